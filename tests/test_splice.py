import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tools.seen import Edited
from tools.splice import (
    BOM,
    Ambiguous,
    Spliced,
    Unmatched,
    count_lines,
    decode,
    overwrite,
    splice,
)


def made(data: bytes, old: str, new: str, *, every: bool = False) -> Spliced:
    spliced = splice(data, old, new, every=every)
    assert isinstance(spliced, Spliced)
    return spliced


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (b"a\r\nb\nc\r\n", "b", "B", b"a\r\nB\nc\r\n"),
        (b"a\r\nb\r\nc", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc"),
        (b"a\r\nb\nc\n", "b\nc", "x\ny\nz", b"a\r\nx\ny\nz\n"),
        (b"a\r\nb\nc\n", "a\nb\nc", "a\nb\nC", b"a\r\nb\nC\n"),
        (b"a\r\nb\n", "b\n", "b\nc\n", b"a\r\nb\nc\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a\nb", "b", "b\r\nc", b"a\nb\nc"),
        (b"a\r\nb", "a\r\nb", "c", b"c"),
        (b"one", "one", "two\nthree", b"two\nthree"),
        (BOM + b"one\n", "one", "two", BOM + b"two\n"),
        (BOM + b"one\n", "\ufeffone", "\ufefftwo", BOM + b"two\n"),
        (BOM + b"one\n", "one", "\ufefftwo", BOM + b"two\n"),
        (b"one\n", "one", "\ufefftwo", BOM + b"two\n"),
        (b"caf\xe9 x\n", "x", "y", b"caf\xe9 y\n"),
        (b"\ta:\n", "\ta:", "\tb:", b"\tb:\n"),
        (b"last", "last", "end", b"end"),
        (b"x", "x", "$& \\1 %s {x}", b"$& \\1 %s {x}"),
        (b"x", "x", "\u201cq\u201d \u2014", "\u201cq\u201d \u2014".encode()),
        (b"a\r\r\nb\n", "b", "c", b"a\r\r\nc\n"),
        (b"a\nb\n", "a\n", "", b"b\n"),
    ],
)
def test_only_the_match_changes(data: bytes, old: str, new: str, expected: bytes) -> None:
    assert made(data, old, new).data == expected


@pytest.mark.parametrize(
    ("data", "old"),
    [
        (b"", "a"),
        (b"a b", "a  b"),
        (b" a", "\ta"),
        ("a\u00a0b".encode(), "a b"),
        ("e\u0301".encode(), "\u00e9"),
        (b"A", "a"),
        (b"caf\xe9", "caf\u00e9"),
        (BOM + b"a", "\ufeff"),
    ],
)
def test_a_near_miss_does_not_match(data: bytes, old: str) -> None:
    assert splice(data, old, "new", every=False) == Unmatched()
    assert splice(data, old, "new", every=True) == Unmatched()


@pytest.mark.parametrize(
    ("data", "old", "lines"),
    [
        (b"x\ny\nx\n", "x", (1, 3)),
        (b"x\r\ny\r\nx", "x", (1, 3)),
        (b"aaa", "aa", (1, 1)),
        (b"\n\n\n", "\n", (1, 2, 3)),
    ],
)
def test_several_matches_are_ambiguous(data: bytes, old: str, lines: tuple[int, ...]) -> None:
    assert splice(data, old, "new", every=False) == Ambiguous(lines)


@pytest.mark.parametrize(
    ("data", "old", "new", "expected", "lines"),
    [
        (b"x\ny\nx", "x", "z", b"z\ny\nz", (1, 3)),
        (b"x\r\ny\nx\n", "x", "1\n2", b"1\r\n2\r\ny\n1\n2\n", (1, 4)),
        (b"aaaa", "aa", "b", b"bb", (1, 1)),
        (b"a\nb\na\nb\n", "a\nb", "ab", b"ab\nab\n", (1, 2)),
        (BOM + b"x x", "x", "\ufeffy", BOM + b"y y", (1, 1)),
    ],
)
def test_every_match_is_replaced(
    data: bytes, old: str, new: str, expected: bytes, lines: tuple[int, ...]
) -> None:
    spliced = made(data, old, new, every=True)
    assert (spliced.data, spliced.lines) == (expected, lines)


@pytest.mark.parametrize(
    ("data", "old", "new", "edited"),
    [
        (b"a\nb\nc\n", "b", "B", Edited((2, 2), 3)),
        (b"a\nb\nc\n", "b\n", "1\n2\n", Edited((2, 2), 4)),
        (b"a\nb\nc\n", "b\n", "", Edited((2, 3), 2)),
        (b"a\nb\nc\n", "a\nb\nc\n", "", Edited((1, 3), 0)),
        (b"a\nb", "b", "b\n", Edited((2, 2), 2)),
        (b"a\nb\nc\n", "c\n", "c", Edited((3, 3), 3)),
        (b"x\na\nx\n", "x", "y", Edited((1, 3), 3)),
    ],
)
def test_an_edit_says_which_lines_it_touched(
    data: bytes, old: str, new: str, edited: Edited
) -> None:
    assert made(data, old, new, every=True).edited == edited


@pytest.mark.parametrize(
    ("data", "content", "expected"),
    [
        (b"a\nb\n", "c\n", b"c\n"),
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "c\r\nd\n", b"c\r\nd\n"),
        (b"a\r\nb\nc\n", "c\n", b"c\n"),
        (BOM + b"a\n", "c\n", BOM + b"c\n"),
        (BOM + b"a\n", "\ufeffc\n", BOM + b"c\n"),
        (b"", "\ufeffc", BOM + b"c"),
    ],
)
def test_overwriting_keeps_the_manner_of_the_file(
    data: bytes, content: str, expected: bytes
) -> None:
    assert overwrite(data, content) == expected


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", 0),
        (b"a", 1),
        (b"a\n", 1),
        (b"a\r\nb\x0b\x0cc\xc2\x85", 2),
        (b"a\rb\r", 1),
    ],
)
def test_lines_are_counted_by_lf_alone(data: bytes, lines: int) -> None:
    assert count_lines(data) == lines


PIECES = st.lists(
    st.sampled_from([b"a", b"b", b" ", b"\n", b"\r\n", b"\r", b"\xe9", b"\xff", "\u00e9".encode()]),
    max_size=30,
)
TEXT = st.text("ab \n\u00e9", min_size=1, max_size=4)
LINE = st.text("ab \u00e9", min_size=1, max_size=4)


@given(st.booleans(), PIECES, PIECES, TEXT, TEXT)
def test_bytes_outside_the_match_stay(
    mark: bool, before: list[bytes], after: list[bytes], old: str, new: str
) -> None:
    head, tail = BOM * mark + b"".join(before) + b"<", b">" + b"".join(after)
    data = made(head + b"[" + old.encode() + b"]" + tail, f"[{old}]", f"[{new}]").data
    assert data.startswith(head + b"[")
    assert data.endswith(b"]" + tail)
    middle = data[len(head) + 1 : -len(tail) - 1]
    assert middle.replace(b"\r\n", b"\n") == new.encode()


@given(st.booleans(), PIECES, PIECES, LINE, LINE)
def test_an_edit_and_its_inverse_give_the_same_bytes(
    mark: bool, before: list[bytes], after: list[bytes], old: str, new: str
) -> None:
    assume(old != new)
    data = BOM * mark + b"".join((*before, b"<", old.encode(), b">", *after))
    there = made(data, f"<{old}>", f"<{new}>").data
    assert there != data
    assert made(there, f"<{new}>", f"<{old}>").data == data


@given(st.sampled_from([b"\n", b"\r\n"]), PIECES, PIECES, TEXT, TEXT)
def test_an_edit_over_lines_and_its_inverse_give_the_same_bytes(
    end: bytes, before: list[bytes], after: list[bytes], old: str, new: str
) -> None:
    pieces = [b"first\n", *before, b"<", old.encode(), b">", *after]
    data = b"".join(pieces).replace(b"\r", b"").replace(b"\n", end)
    there = made(data, f"<{old}>", f"<{new}>").data
    assert made(there, f"<{new}>", f"<{old}>").data == data


@given(PIECES, TEXT, st.text("ab \n\u00e9", max_size=4))
def test_replacing_all_is_what_bytes_do_where_lines_end_in_lf(
    pieces: list[bytes], old: str, new: str
) -> None:
    data = b"".join(piece for piece in pieces if b"\r" not in piece)
    expected = data.replace(old.encode(), new.encode())
    spliced = splice(data, old, new, every=True)
    assert (spliced.data if isinstance(spliced, Spliced) else data) == expected


@given(st.booleans(), PIECES, PIECES, TEXT, st.text("ab \n", max_size=4))
def test_lines_outside_the_touched_ones_stay(
    mark: bool, before: list[bytes], after: list[bytes], old: str, new: str
) -> None:
    data = BOM * mark + b"".join((*before, old.encode(), *after))
    spliced = made(data, old, new, every=True)
    first, last = spliced.edited.old
    old_lines, new_lines = data.split(b"\n"), spliced.data.split(b"\n")
    rest = len(old_lines) - last
    assert spliced.edited.lines == count_lines(spliced.data)
    assert old_lines[: first - 1] == new_lines[: first - 1]
    assert last >= count_lines(data) or old_lines[-rest:] == new_lines[-rest:]


@given(PIECES)
def test_decoding_keeps_every_byte(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    assert decode(data).encode("utf-8", "surrogateescape") == data
