"""Where frames of a server-sent event stream end, in bytes that are cut anywhere.

Rule 1: what is given out is a whole number of frames, as one piece; nothing is held back that is
complete.
Rule 2: a byte order mark in front is dropped, and a last frame that nobody ended is ended here:
parsers lose an event over either.
"""

import re

_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_BOM = b"\xef\xbb\xbf"


class Frames:
    """Owner of the bytes that do not make a frame yet."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._searched = 0
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        """The frames that are complete now, up to the last one."""
        self._pending += data
        if not self._begun and len(self._pending) >= len(_BOM):
            self._begun = True
            if self._pending.startswith(_BOM):
                del self._pending[: len(_BOM)]
        end = 0
        for found in _BLANK_LINE.finditer(self._pending, max(0, self._searched - 3)):
            end = found.end()
        complete = bytes(self._pending[:end])
        del self._pending[:end]
        self._searched = len(self._pending)
        return complete

    def end(self) -> bytes:
        """What is left, ended."""
        rest = bytes(self._pending)
        self._pending.clear()
        return rest.removeprefix(_BOM) + b"\n\n" if rest.strip() else b""
