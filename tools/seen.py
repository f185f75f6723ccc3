"""What the model has seen of each file, so that it changes only what it knows.

It knows nothing of disks and tools: it is told what was shown, and asked.

Rule 1: a file is known by all its bytes. The same bytes are the same file, whatever its times say.
Rule 2: what was shown counts for the bytes it was shown of; other bytes begin anew.
Rule 3: a line counts as shown only if the whole of it was.
Rule 4: a second name of the same file (a hard link, another case) shares what was seen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cache
from hashlib import blake2b
from typing import TypeAlias

from pydantic import TypeAdapter, ValidationError

from tools.frozen import frozen
from tools.trace import Traces

Version: TypeAlias = tuple[int, int, int, int, int]
"""dev, ino, size, and mtime and ctime in nanoseconds."""

Span: TypeAlias = tuple[int, int]
"""The first and the last of some lines, counted from 1."""


@frozen
class Stamp:
    """What tells one state of a file from another."""

    digest: str
    """Of all bytes."""
    version: Version
    """Which file that was; equal versions are no proof of equal bytes."""
    unsaved: bool = False
    """They were an editor's and not on disk."""


def new_digest(data: bytes = b"") -> blake2b:
    """A hash to feed with all bytes of a file; its hexdigest() is the digest of a Stamp."""
    return blake2b(data, digest_size=16)


def digest(data: bytes) -> str:
    """The digest of a file with these bytes."""
    return new_digest(data).hexdigest()


@frozen
class Sight:
    """What was seen of one file."""

    path: str
    """Absolute and resolved."""
    stamp: Stamp
    lines: int
    """How many lines the file has."""
    shown: tuple[Span, ...]
    """In order, apart from each other."""

    def missing(self) -> tuple[Span, ...]:
        """The lines that were never shown."""
        edges = [0, *(edge for span in self.shown for edge in span), self.lines + 1]
        gaps = zip(edges[::2], edges[1::2], strict=True)
        return tuple((last + 1, first - 1) for last, first in gaps if last + 1 < first)

    def covers(self, span: Span) -> bool:
        """Every line of the span was shown."""
        return any(first <= span[0] and span[1] <= last for first, last in self.shown)


@frozen
class Edited:
    """Where the lines of an edited file went."""

    old: Span
    """The lines that the edit touched."""
    lines: int
    """How many lines the file has now."""


class Seen:
    """The files one session has seen; the session owns it."""

    def __init__(self) -> None:
        self._by_path: dict[str, Sight] = {}
        self._by_file: dict[Span, Sight] = {}
        """By device and inode."""
        self._new: dict[str, Sight] = {}
        self._overtaken: set[str] = set()
        """What commands of this session have changed since."""
        self.traces = Traces()
        """What tells the lines of it apart; of this process only."""

    def find(self, path: str, stamp: Stamp) -> Sight | None:
        """What was last seen of the file that is there now: of these bytes, if they were seen.

        None: the file was never seen. A Sight with another digest: it changed since.
        """
        here, same = self._by_path.get(path), self._by_file.get(stamp.version[:2])
        if same is not None and same.stamp.digest == stamp.digest:
            return same
        return here

    def knows(self, path: str) -> bool:
        """Something was seen at this path, whatever is there now."""
        return path in self._by_path

    def paths(self) -> tuple[str, ...]:
        """Every path at which something was seen."""
        return tuple(self._by_path)

    def overtaken(self, paths: Iterable[str]) -> None:
        """A command has changed these files."""
        self._overtaken.update(paths)

    def is_overtaken(self, path: str) -> bool:
        """A command has changed the file since it was seen."""
        return path in self._overtaken

    def read(self, path: str, stamp: Stamp, *, lines: int, shown: Iterable[Span]) -> None:
        """These lines of the file were shown, whole; `lines` is how many it has."""
        known = self.find(path, stamp)
        before = known.shown if known is not None and known.stamp.digest == stamp.digest else ()
        self._keep(Sight(path, stamp, lines, _union((*before, *shown))))

    def wrote(self, path: str, stamp: Stamp, *, lines: int) -> None:
        """The model wrote the whole file, so it knows every line."""
        self._keep(Sight(path, stamp, lines, _union([(1, lines)])))

    def edited(self, path: str, stamp: Stamp, before: Sight, edit: Edited) -> None:
        """The model changed some lines: what it knew of the others moved along with them."""
        first, last = edit.old
        moved = edit.lines - before.lines
        spans = [(start, min(end, first - 1)) for start, end in before.shown]
        spans += [(max(start, last + 1) + moved, end + moved) for start, end in before.shown]
        if before.covers(edit.old):
            spans.append((first, last + moved))
        self._keep(Sight(path, stamp, edit.lines, _union(spans)))

    def changes(self) -> list[dict[str, object]]:
        """What was learnt since the last call, as JSON data that restore() takes."""
        new, self._new = self._new, {}
        return [asdict(sight) for sight in new.values()]

    def restore(self, record: Mapping[str, object]) -> None:
        """Know what an earlier process knew; a record that makes no sense is passed over."""
        try:
            sight = _sights().validate_python(dict(record))
        except ValidationError:
            return
        self._know(Sight(sight.path, sight.stamp, sight.lines, _union(sight.shown)))

    def _keep(self, sight: Sight) -> None:
        self._overtaken.discard(sight.path)
        self._know(sight)
        self._new[sight.path] = sight

    def _know(self, sight: Sight) -> None:
        self._by_path[sight.path] = sight
        self._by_file[sight.stamp.version[:2]] = sight


@cache
def _sights() -> TypeAdapter[Sight]:
    """Takes records; built on first use, for most processes restore nothing."""
    return TypeAdapter(Sight)


def _union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same lines in the fewest spans; spans that end before they begin are none."""
    union: list[Span] = []
    for first, last in sorted(span for span in spans if 1 <= span[0] <= span[1]):
        if union and first <= union[-1][1] + 1:
            union[-1] = (union[-1][0], max(last, union[-1][1]))
        else:
            union.append((first, last))
    return tuple(union)
