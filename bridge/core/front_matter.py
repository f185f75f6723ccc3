"""What stands between two lines of dashes at the start of a Markdown file: `key: value` lines.

It knows as much of YAML as skills and commands use: one line per key, quotes around a value, and
text that goes on in lines below, indented. Everything else is passed over.
"""

from collections.abc import Mapping

from tools.frozen import frozen
from tools.late import pattern

_FIELD = pattern(r"([A-Za-z][A-Za-z0-9_-]*):[ \t]*(.*)")
_BLOCK = pattern(r"[>|][+-]?")
_QUOTED = pattern(r"""'([^']*)'|"([^"]*)\"""")


@frozen
class Page:
    """A Markdown file, taken apart."""

    fields: Mapping[str, str]
    body: str


def parted(text: str) -> Page | None:
    """The fields and what follows them; None where they begin and do not end."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return Page({}, text)
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return Page(_fields(lines[1:number]), "".join(lines[number + 1 :]))
    return None


def _fields(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    at = ""
    for line in lines:
        field = _FIELD.match(line)
        if field is not None:
            at, value = field[1], field[2].strip()
            found[at] = "" if _BLOCK.fullmatch(value) else _unquoted(value)
        elif at and line.startswith((" ", "\t")):
            found[at] = f"{found[at]} {line.strip()}".strip()
        else:
            at = ""
    return found


def _unquoted(value: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    return value if quoted is None else quoted[1] or quoted[2] or ""
