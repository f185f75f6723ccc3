"""Text that is not UTF-8 and says so: UTF-16 and UTF-32 begin with a byte order mark of their own.

Pure: bytes in, bytes out. Without such a mark bytes are what they are: nothing is guessed.
"""

import codecs

_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
"""The longer ones first: one begins like a shorter one."""

_LONGEST_MARK = 4


def charset(data: bytes) -> str | None:
    """What the mark at the beginning says; None where there is none."""
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


class Recoded:
    """Bytes that pass by, as UTF-8: feed() them all, then finish()."""

    def __init__(self) -> None:
        self.charset: str | None = None
        """What the bytes were, where they were not UTF-8 already; known from the fourth on."""
        self._head: bytes | None = b""
        """The first bytes, as long as they may still be a mark."""
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, block: bytes) -> bytes:
        """The bytes that follow, as UTF-8; a few may come later."""
        if self._head is not None:
            self._head += block
            if len(self._head) < _LONGEST_MARK:
                return b""
            block = self._begin()
        return block if self._decoder is None else self._decoder.decode(block).encode()

    def finish(self) -> bytes:
        """What was held back."""
        rest = b"" if self._head is None else self._begin()
        if self._decoder is None:
            return rest
        return self._decoder.decode(rest, final=True).encode()

    def _begin(self) -> bytes:
        head, self._head = self._head or b"", None
        self.charset = charset(head)
        if self.charset is not None:
            self._decoder = codecs.getincrementaldecoder(self.charset)("replace")
        return head
