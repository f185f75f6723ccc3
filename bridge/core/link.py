"""A link in a prompt as a place in a local file: the path, and the lines that are meant.

Editors write lines in several ways: `file:///a#L10-20`, `#L10-L20`, `#L10:20`, `file:///a:10-20`.
A file may also be called so. Nothing is looked up here: all readings are given, the likely first.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from tools.frozen import frozen
from tools.late import pattern

_LINES = r"L?(\d{1,9})(?:[-:]L?(\d{1,9}))?"
_FRAGMENT = pattern(_LINES)
_END = pattern(rf"(.+):{_LINES}", re.DOTALL)
_HERE = ("", "localhost")


@frozen
class Spot:
    """Lines of a file; without a first one it is all of it."""

    path: str
    first: int | None = None
    count: int | None = None


def spots(uri: str) -> Iterator[Spot]:
    """What the link may mean on this machine; nothing for a link that leads elsewhere."""
    path = _path(uri)
    if path is None:
        return
    before, mark, fragment = path.rpartition("#")
    lines = _FRAGMENT.fullmatch(fragment) if mark else None
    if lines is not None:
        yield _spot(before.partition("?")[0], lines[1], lines[2])
    elif mark or "?" in path:
        yield Spot(unquote((before if mark else path).partition("?")[0]))
    yield Spot(unquote(path))
    end = _END.fullmatch(path)
    if end is not None:
        yield _spot(end[1], end[2], end[3])


def _path(uri: str) -> str | None:
    """The path, still encoded, with all that follows it."""
    if uri.startswith("/"):
        return uri
    if uri[:7].lower() != "file://":
        return None
    host, slash, path = uri[7:].partition("/")
    return slash + path if slash and host.lower() in _HERE else None


def _spot(path: str, first: str, last: str | None) -> Spot:
    start = max(int(first), 1)
    return Spot(unquote(path), start, max(int(last or start) - start, 0) + 1)
