"""Byte-exact edits of text: what matches where, and what stands there afterwards.

It knows nothing of files and of who may edit them: bytes in, bytes out.

Rule 1: a byte outside the match never changes, whatever its line end or encoding.
Rule 2: inside the match, what old and new text have in common at both ends never changes either.
Rule 3: text matches exactly, but for this: a line end in it stands for LF and CRLF alike, and a
byte order mark is not part of the text. No folding of case, blanks, quotes or Unicode forms.
Rule 4: new lines end as the line ends on which the match begins.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator

from tools.frozen import frozen
from tools.seen import Edited, Span

BOM = b"\xef\xbb\xbf"

UNDECODABLE = re.compile("[\udc80-\udcff]")
"""How decode() keeps a byte that is not UTF-8."""


@frozen
class Spliced:
    """The edit can be made."""

    data: bytes
    """The whole file afterwards."""
    lines: tuple[int, ...]
    """Where the new texts begin, in the file afterwards."""
    edited: Edited


@frozen
class Unmatched:
    """The old text is not there."""


@frozen
class Ambiguous:
    """The old text is there more than once."""

    lines: tuple[int, ...]
    """Where it begins, once for each time."""


def splice(data: bytes, old: str, new: str, *, every: bool) -> Spliced | Unmatched | Ambiguous:
    """Replace old by new: in the one place where it stands, or in every place.

    old is not empty, and both can be encoded.
    """
    view = _View(data)
    wanted, given = (_flat(text).removeprefix(view.mark) for text in (old, new))
    step = len(wanted) if every else 1
    starts = list(_matches(view.text, wanted, step)) if wanted else []
    if not starts:
        return Unmatched()
    if len(starts) > 1 and not every:
        return Ambiguous(tuple(map(view.line, starts)))
    return _spliced(view, starts, wanted, given)


def overwrite(data: bytes, content: str) -> bytes:
    """The whole file with new content; a byte order mark stays, and so does CRLF where it rules."""
    given = content.encode()
    is_crlf = 2 * data.count(b"\r\n") > data.count(b"\n")
    if is_crlf and b"\r" not in given:
        given = given.replace(b"\n", b"\r\n")
    return BOM + given.removeprefix(BOM) if data.startswith(BOM) else given


def decode(data: bytes) -> str:
    """The text, byte for byte: what is not UTF-8 becomes lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def visible(text: str) -> str:
    r"""The text as it is shown: with \xNN for a byte that is not UTF-8."""
    return UNDECODABLE.sub(_escape, text)


def _escape(byte: re.Match[str]) -> str:
    return f"\\x{ord(byte[0]) - 0xDC00:02x}"


def count_lines(data: bytes) -> int:
    """Lines end at LF and nowhere else; what follows the last LF is a line too."""
    return data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))


class _View:
    """The text of a file with every line end as LF, and the way back to its bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.mark = BOM if data.startswith(BOM) else b""
        body = data[len(self.mark) :]
        self.text = body.replace(b"\r\n", b"\n")
        self._ends = [match.start() for match in re.finditer(b"\n", self.text)]
        returns = (match.start() for match in re.finditer(b"\r\n", body))
        self._crlf = [start - removed for removed, start in enumerate(returns)]
        """The line ends that are CRLF in the bytes."""

    def origin(self, place: int) -> int:
        """Where in the bytes a place of the text is."""
        return len(self.mark) + place + bisect_left(self._crlf, place)

    def line(self, place: int) -> int:
        """The line that holds the place."""
        return bisect_left(self._ends, place) + 1

    def line_end(self, place: int) -> bytes:
        """How the line ends that holds the place; the line before it, if it has no end."""
        if not self._crlf:
            return b"\n"
        end = self.origin(self._ends[min(self.line(place), len(self._ends)) - 1])
        return b"\r\n" if self.data[end : end + 1] == b"\r" else b"\n"


def _spliced(view: _View, starts: list[int], wanted: bytes, given: bytes) -> Spliced:
    head = _common(wanted, given)
    tail = _common(wanted[head:][::-1], given[head:][::-1])
    middle = given[head : len(given) - tail]
    pieces: list[bytes] = []
    done = 0
    for start in starts:
        pieces.append(view.data[done : view.origin(start + head)])
        pieces.append(middle.replace(b"\n", view.line_end(start)))
        done = view.origin(start + len(wanted) - tail)
    data = b"".join((*pieces, view.data[done:]))
    growth = given.count(b"\n") - wanted.count(b"\n")
    lines = tuple(view.line(start) + index * growth for index, start in enumerate(starts))
    return Spliced(data, lines, Edited(_touched(view, starts, wanted, given), count_lines(data)))


def _touched(view: _View, starts: list[int], wanted: bytes, given: bytes) -> Span:
    """The lines from the first match to the last; a line that is joined to them is one of them."""
    whole = wanted.endswith(b"\n") and given.endswith(b"\n")
    last = view.line(starts[-1] + len(wanted) - whole)
    return view.line(starts[0]), min(last, count_lines(view.data))


def _flat(text: str) -> bytes:
    return text.encode().replace(b"\r\n", b"\n")


def _common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    most = min(len(one), len(other))
    return next((place for place in range(most) if one[place] != other[place]), most)


def _matches(text: bytes, wanted: bytes, step: int) -> Iterator[int]:
    """Where it stands, from the left; with step 1 also where it overlaps the one before."""
    place = text.find(wanted)
    while place >= 0:
        yield place
        place = text.find(wanted, place + step)
