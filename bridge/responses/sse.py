"""Where frames of a server-sent event stream end, in bytes that are cut anywhere.

Rule 1: what is given out is a whole number of frames, as one piece; nothing is held back that is
complete.
Rule 2: a byte order mark in front is dropped, and a last frame that nobody ended is ended here:
parsers lose an event over either.
"""

_BLANK_LINES = (b"\n\n", b"\n\r", b"\r\r")
"""Two line ends, of which there are three kinds, in a row: one of these is in every such pair."""
BOM = b"\xef\xbb\xbf"


class Frames:
    """Owner of the bytes that do not make a frame yet."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._searched = 0
        self._begun = False

    @property
    def waiting(self) -> int:
        """How many bytes those are."""
        return len(self._pending)

    def feed(self, data: bytes) -> bytes:
        """The frames that are complete now, up to the last one."""
        pending = self._pending
        if not pending and self._begun and data.endswith(b"\n\n"):  # as nearly always
            return data
        pending += data
        if not self._begun and len(pending) >= len(BOM):
            self._begun = True
            if pending.startswith(BOM):
                del pending[: len(BOM)]
        start = max(0, self._searched - 1)
        end = 2 + max(pending.rfind(blank, start) for blank in _BLANK_LINES)
        with memoryview(pending) as view:
            complete = bytes(view[: end if end >= len(_BLANK_LINES[0]) else 0])
        del pending[: len(complete)]
        self._searched = len(pending)
        return complete

    def end(self) -> bytes:
        """What is left, ended."""
        rest = bytes(self._pending).removeprefix(b"" if self._begun else BOM)
        return rest + b"\n\n" if rest.strip() else b""
