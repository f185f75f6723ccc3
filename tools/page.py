r"""Some lines of a text file, picked from its bytes as they pass by.

It knows nothing of files: bytes in, block by block, however large the whole is.

Rule 1: memory holds the lines asked for, each up to what is shown of it, and never the file.
Rule 2: lines end at LF and nowhere else. A CR before it, and a byte order mark, are not shown.
Rule 3: a byte that is not UTF-8 is shown as \xNN; a NUL means that this is no text. What a byte
order mark declares as UTF-16 or UTF-32 is shown as the text it is.
"""

from tools.charset import Recoded
from tools.seen import Span
from tools.splice import BOM, UNDECODABLE, decode, visible

MOST_LINES = 2000

_MOST_CHARACTERS = 2000
"""Of one line."""

_MOST_BYTES = 51_200
"""Of all lines together."""

_MOST_OF_LINE = 4 * _MOST_CHARACTERS + len(BOM) + 4
"""Bytes of a line that are certain to hold more characters than are shown."""


class NotText(ValueError):
    """The bytes hold a NUL."""


class Page:
    """The lines from `first` on, at most `most` of them: feed() all bytes, close(), then look."""

    def __init__(self, first: int, most: int) -> None:
        self.first = first
        self.lines = 0
        """How many lines the file has; so far, before close()."""
        self.rows: list[str] = []
        """The lines as they are shown, each after its number."""
        self.whole: list[Span] = []
        """Which of them are shown to their ends."""
        self.full = False
        """There was no room for all the lines asked for."""
        self._end = first + most - 1
        self._line = bytearray()
        self._room = _MOST_BYTES
        self._head = self._tail = b""
        self._ends = self._crlf = self._undecodable = 0
        self._recoded = Recoded()

    @property
    def last(self) -> int:
        """The last line that is shown."""
        return self.first + len(self.rows) - 1

    def feed(self, block: bytes) -> None:
        """Take the bytes that follow; raises NotText."""
        self._take(self._recoded.feed(block))

    def _take(self, block: bytes) -> None:
        if b"\0" in block:
            raise NotText
        self._head = (self._head + block[: len(BOM)])[: len(BOM)]
        self._ends += block.count(b"\n")
        self._crlf += block.count(b"\r\n") + (self._tail == b"\r" and block[:1] == b"\n")
        self._tail = block[-1:] or self._tail
        self._pick(block)

    def close(self) -> None:
        """All bytes have passed by; raises NotText."""
        self._take(self._recoded.finish())
        if self._tail not in (b"", b"\n"):
            self._end_line(b"")

    def notes(self) -> list[str]:
        """What the lines do not show of the bytes, where that is not the usual."""
        mixed = "CRLF" if self._crlf == self._ends else "mixed CRLF and LF"
        unended = self.last == self.lines and self._tail != b"\n"
        facts = {
            f"{self._recoded.charset}, which edit and write cannot change": bool(
                self._recoded.charset
            ),
            f"{mixed} line endings": self._crlf > 0,
            "no newline at end": bool(self.rows) and unended,
            "BOM": self._head == BOM,
            f"{self._undecodable} undecodable bytes shown as \\xNN": self._undecodable > 0,
        }
        return [text for text, holds in facts.items() if holds]

    def _pick(self, block: bytes) -> None:
        place = 0
        while not self._is_done() and (end := block.find(b"\n", place)) >= 0:
            self._extend(block[place:end])
            self._end_line(b"\r")
            place = end + 1
        if self._is_done():
            self.lines += block.count(b"\n", place)
        else:
            self._extend(block[place:])

    def _is_done(self) -> bool:
        return self.full or self.lines >= self._end

    def _extend(self, piece: bytes) -> None:
        if self.lines + 1 >= self.first:
            self._line += piece[: _MOST_OF_LINE - len(self._line)]

    def _end_line(self, end: bytes) -> None:
        wanted = not self._is_done() and self.lines + 1 >= self.first
        self.lines += 1
        if wanted:
            self._show(bytes(self._line).removesuffix(end))
            self._line.clear()

    def _show(self, line: bytes) -> None:
        text = decode(line.removeprefix(BOM) if self.lines == 1 else line)
        cut = text[:_MOST_CHARACTERS]
        row = f"{self.lines}: {visible(cut)}"
        if len(cut) < len(text):
            row += f"... (line truncated to {_MOST_CHARACTERS} chars)"
        self._room -= len(row.encode()) + 1
        if self._room < 0:
            self.full = True
            return
        self.rows.append(row)
        self._undecodable += len(UNDECODABLE.findall(cut))
        if len(cut) == len(text):
            self.whole.append((self.lines, self.lines))
