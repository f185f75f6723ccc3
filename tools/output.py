"""What a program prints, as text that people and models can read, and never more than fits.

Pure: bytes in, text out; it knows nothing of processes.

Rule 1: bytes may be cut anywhere, also inside a character or an escape sequence.
Rule 2: what leaves here holds no control characters but tab, line end and carriage return.
Rule 3: memory is bounded, whatever arrives.
"""

import codecs
from collections.abc import Callable
from dataclasses import dataclass, field

from tools.late import pattern

HEAD = 24 * 1024
TAIL = 40 * 1024
"""Bytes kept of the beginning and of the end of one stream."""

_LONGEST_LINE = 8 * 1024
"""A line that grows beyond this is no progress display: it is passed on as it is."""

_UNWANTED = pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LOOSE = pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# ECMA-48: control sequences, control strings, and the short escapes, each perhaps unfinished. The
# one-character openings of strings are no openings here: text that was encoded twice holds them.
_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*"
_STRING = r"\x1b[\]PX^_][^\x07\x1b\x9c\n]*"
_SHORT = r"\x1b[ -/]*"
_END = r"(?:\x07|\x1b\\|\x9c)"
_ESCAPE = pattern(rf"{_CSI}[@-~]?|{_STRING}{_END}?|{_SHORT}[0-~]?")
_UNFINISHED = pattern(rf"(?:{_CSI}|{_STRING}\x1b?|{_SHORT})\Z")
_OPENING = pattern(r"(\x1b[\[\]PX^_]?|\x9b)")


@dataclass(slots=True)
class Capture:
    """One stream of a program. feed() what it printed, finish() at its end, then read text()."""

    spill: Callable[[bytes], None] | None = None
    """Given the whole, from its beginning, as soon as something of it has to be dropped."""
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    _escape: str = ""
    """The opening of an escape sequence that has not ended yet."""
    _line: str = ""
    """The last line as far as it goes; a carriage return may still take it back."""
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)
    _size: int = 0

    def feed(self, data: bytes) -> str:
        """Take what was printed; returns it decoded and without escapes, to be shown at once."""
        return self._take(self._decoder.decode(data))

    def finish(self) -> str:
        """Nothing more will come; returns what was still held back."""
        rest = self._take(self._decoder.decode(b"", final=True))
        self._keep(_last_state(self._line))
        self._escape = self._line = ""
        return rest

    def text(self) -> str:
        """The beginning and the end of what was printed, and between them how much is missing.

        Lines that were overwritten show their last state.
        """
        if not self.truncated:
            return (self._head + self._tail).decode()
        # A character that was cut at either border is dropped whole.
        head = self._head.decode("utf-8", "ignore")
        tail = self._tail[-TAIL:].decode("utf-8", "ignore")
        dropped = self._size - len(head.encode()) - len(tail.encode())
        return f"{head}\n[... {dropped} bytes dropped ...]\n{tail}"

    @property
    def truncated(self) -> bool:
        """Something was dropped."""
        return self._size > HEAD + TAIL

    def _take(self, text: str) -> str:
        clean = self._without_escapes(text)
        lines, end, self._line = (self._line + clean).rpartition("\n")
        if end:
            self._keep(_last_states(lines) + end)
        if "\r" in self._line:
            self._line = _last_state(self._line) + "\r" * self._line.endswith("\r")
        if len(self._line) > _LONGEST_LINE:
            self._keep(self._line.rstrip("\r"))
            self._line = ""
        return clean

    def _without_escapes(self, text: str) -> str:
        text = self._escape + text
        self._escape = ""
        if _UNWANTED.search(text) is None:
            return text
        if unfinished := _UNFINISHED.search(text):
            # How it began and its last character tell how it may end: a long one costs no memory.
            _, opening, rest = _OPENING.split(unfinished[0], maxsplit=1)
            self._escape = opening + rest[-1:]
            text = text[: unfinished.start()]
        return _LOOSE.sub("", _ESCAPE.sub("", text))

    def _keep(self, text: str) -> None:
        data = text.encode()
        self._spill(data)
        self._size += len(data)
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]

    def _spill(self, data: bytes) -> None:
        if self.spill is not None and self._size + len(data) > HEAD + TAIL:
            self.spill(data if self.truncated else bytes(self._head + self._tail) + data)


def _last_states(lines: str) -> str:
    if "\r" not in lines:
        return lines
    return "\n".join(map(_last_state, lines.split("\n")))


def _last_state(line: str) -> str:
    """What a terminal would show of a line that went back to its beginning."""
    return next((state for state in reversed(line.split("\r")) if state), "")
