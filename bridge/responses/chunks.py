"""The chunks of an HTTP answer that came together, joined into one.

Servers send each event of a stream as a chunk of its own, and the HTTP library takes longer for a
chunk than all of us for an event. What it gets is another spelling of the same answer: where a
body is cut into chunks means nothing (RFC 9112, 7.1).

Rule 1: nothing waits for more, but the few bytes of a chunk's size that are not all there.
Rule 2: from what is not plain on (extensions, trailers, line ends of another kind, no chunks at
all) everything goes on as it came, to the end of the answer.
"""

import re
from collections.abc import Callable

_HEAD = re.compile(rb"HTTP/1\.1 (\d{3})[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n")
_CHUNKED = re.compile(rb"(?i)\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,7})\r\n")
_PART_OF_A_SIZE = re.compile(rb"[0-9A-Fa-f]{1,7}\r?")
_LONGEST_HEAD = 64 * 1024


class Chunks:
    """One answer on its way: feed() it what is read, and give out what that returns."""

    def __init__(self) -> None:
        self._read: Callable[[bytes], bytes] = self._head
        self._kept = b""
        """What has come of the head, or what was held back of a chunk's size."""
        self._rest = 0
        """Bytes still to come of a chunk that was given out before."""

    def feed(self, data: bytes) -> bytes:
        """The same bytes, but for where chunks begin and end; none where more is needed."""
        return self._read(data)

    def _plain(self, data: bytes) -> bytes:
        return data

    def _head(self, data: bytes) -> bytes:
        known, came = len(self._kept), self._kept + data
        head = _HEAD.match(came)
        if head is None:
            self._kept = came
            if len(came) > _LONGEST_HEAD:
                self._read = self._plain
            return data
        self._kept = b""
        if not head[1].startswith(b"1"):  # else another head follows
            self._read = self._body if _CHUNKED.search(head[0]) else self._plain
        return came[known : head.end()] + self._read(came[head.end() :])

    def _body(self, data: bytes) -> bytes:
        came = self._kept + data
        begun = place = min(self._rest, len(came))
        self._rest -= place
        self._kept = b""
        joined: list[bytes] = []
        while place < len(came):
            size = _SIZE.match(came, place)
            if size is None:
                if _PART_OF_A_SIZE.fullmatch(came, place):
                    self._kept = came[place:]
                else:
                    self._read = self._plain
                break
            start = size.end()
            end = start + int(size[1], 16)
            if start == end or not b"\r\n".startswith(came[end : end + 2]):
                self._read = self._plain
                break
            if end + 2 > len(came):
                self._rest = end + 2 - len(came)
                break
            joined.append(came[start:end])
            place = end + 2
        rest = b"" if self._kept else came[place:]
        if len(joined) < 2:  # there is nothing to join
            return came[:place] + rest
        whole = b"".join(joined)
        return b"%s%x\r\n%s\r\n%s" % (came[:begun], len(whole), whole, rest)
