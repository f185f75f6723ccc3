"""What tells the lines of a file apart, without the lines: to find later which of them changed.

It knows nothing of files: bytes in, numbers out.

Rule 1: of a line a short number is kept, never its text. A line that does not end is another one.
Rule 2: memory is bounded: a file with too many lines leaves no trace, and old ones go for new ones.
"""

from array import array
from typing import TypeAlias
from zlib import crc32

MOST_LINES = 20_000
"""Of one file."""
MOST_KEPT = 500_000
"""Lines of all files together: two megabytes."""
_UNENDED = b"\0"
"""No text holds it: a line with it is no line that ends."""

Trace: TypeAlias = "array[int]"


class Tracer:
    """The trace of bytes that pass by: feed() all of them, then take the trace()."""

    def __init__(self) -> None:
        self._lines: Trace = array("I")
        self._line = 0
        self._tail = b"\n"

    def feed(self, block: bytes) -> None:
        """Take the bytes that follow."""
        if len(self._lines) > MOST_LINES or not block:
            return
        first, *others = block.split(b"\n")
        self._line = crc32(first, self._line)
        if others:
            self._lines.append(self._line)
            self._lines.extend(map(crc32, others[:-1]))
            self._line = crc32(others[-1])
        self._tail = block[-1:]

    def trace(self) -> "Trace | None":
        """What is left of all lines; None: they are too many."""
        unended = () if self._tail == b"\n" else (crc32(_UNENDED, self._line),)
        lines = array("I", (*self._lines, *unended))
        return lines if len(lines) <= MOST_LINES else None


def trace(data: bytes) -> "Trace | None":
    """What is left of a file with these bytes."""
    tracer = Tracer()
    tracer.feed(data)
    return tracer.trace()


class Traces:
    """The traces of what was seen last, by the digest of all bytes; its owner is a Seen."""

    def __init__(self) -> None:
        self._kept: dict[str, Trace] = {}
        self._lines = 0

    def keep(self, digest: str, lines: "Trace | None") -> None:
        """Know the lines of these bytes, as long as there is room for them."""
        self._lines -= len(self._kept.pop(digest, ()))
        if lines is None:
            return
        self._kept[digest] = lines
        self._lines += len(lines)
        while self._lines > MOST_KEPT:
            self._lines -= len(self._kept.pop(next(iter(self._kept))))

    def find(self, digest: str) -> "Trace | None":
        """The lines of these bytes; None where they are not known, or not any more."""
        return self._kept.get(digest)
