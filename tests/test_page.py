import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.page import MOST_LINES, NotText, Page
from tools.splice import BOM, count_lines


def page_of(data: bytes, first: int = 1, most: int = MOST_LINES, cut: int = 1 << 20) -> Page:
    page = Page(first, most)
    for place in range(0, len(data), cut):
        page.feed(data[place : place + cut])
    page.close()
    return page


@pytest.mark.parametrize(
    ("data", "first", "most", "rows", "lines"),
    [
        (b"a\nb\n", 1, 9, ["1: a", "2: b"], 2),
        (b"a\nb", 1, 9, ["1: a", "2: b"], 2),
        (b"a\r\nb\r\n", 1, 9, ["1: a", "2: b"], 2),
        (b"a\r\r\nb\r", 1, 9, ["1: a\r", "2: b\r"], 2),
        (b"\n\n", 1, 9, ["1: ", "2: "], 2),
        (b"", 1, 9, [], 0),
        (b"a\nb\nc\nd\n", 2, 2, ["2: b", "3: c"], 4),
        (b"a\nb\nc\nd", 4, 2, ["4: d"], 4),
        (b"a\nb\nc\nd", 3, 1, ["3: c"], 4),
        (b"a\nb\n", 3, 1, [], 2),
        (BOM + b"a\n" + BOM + b"b\n", 1, 9, ["1: a", "2: \ufeffb"], 2),
        (b"caf\xe9 \xff\n", 1, 9, ["1: caf\\xe9 \\xff"], 1),
        ("\u00e9\u2028\u0085x\x0b\n".encode(), 1, 9, ["1: \u00e9\u2028\u0085x\x0b"], 1),
        (b"\ttab\n", 1, 9, ["1: \ttab"], 1),
        (b"\xff\xfe" + "\u00e9\r\nb\n".encode("utf-16-le"), 1, 9, ["1: \u00e9", "2: b"], 2),
        (b"\xfe\xff" + "a\nb".encode("utf-16-be"), 2, 9, ["2: b"], 2),
    ],
)
def test_the_lines_asked_for_are_shown(
    data: bytes, first: int, most: int, rows: list[str], lines: int
) -> None:
    page = page_of(data, first, most)
    assert (page.rows, page.lines, page.full) == (rows, lines, False)
    assert page.whole == [(number, number) for number in range(first, first + len(rows))]


@pytest.mark.parametrize(
    ("data", "notes"),
    [
        (b"a\nb\n", []),
        (b"", []),
        (b"a", ["no newline at end"]),
        (b"a\r\nb\r\n", ["CRLF line endings"]),
        (b"a\r\nb\n", ["mixed CRLF and LF line endings"]),
        (BOM + b"a\n", ["BOM"]),
        (
            b"\xff\xfe" + "a\r\n".encode("utf-16-le"),
            ["UTF-16, which edit and write cannot change", "CRLF line endings"],
        ),
        (b"\xe9\xe8\n", ["2 undecodable bytes shown as \\xNN"]),
        (BOM + b"\xe9\r\nb", [
            "CRLF line endings", "no newline at end", "BOM", "1 undecodable bytes shown as \\xNN",
        ]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cut", [1, 2, 100])
def test_what_lines_do_not_show_is_noted(data: bytes, notes: list[str], cut: int) -> None:
    assert page_of(data, cut=cut).notes() == notes


def test_a_missing_last_newline_is_noted_where_the_last_line_is_shown() -> None:
    assert page_of(b"a\nb", 1, 1).notes() == []


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\U0001f600"])
def test_a_long_line_is_cut_and_not_known(letter: str) -> None:
    page = page_of(f"{letter * 2000}\n{letter * 2001}\n".encode(), cut=1000)
    assert page.rows[0] == f"1: {letter * 2000}"
    assert page.rows[1] == f"2: {letter * 2000}... (line truncated to 2000 chars)"
    assert page.whole == [(1, 1)]


def test_a_line_without_end_takes_no_room() -> None:
    page, block = Page(1, 10), b"x" * 100_000
    tracemalloc.start()
    for _ in range(100):
        page.feed(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * len(block)


def test_output_ends_where_there_is_no_more_room() -> None:
    page = page_of(b"x" * 1000 + b"\n" + (b"y" * 1000 + b"\n") * 99)
    assert page.full
    assert (page.last, page.lines) == (50, 100)
    assert len("\n".join(page.rows).encode()) <= 51_200
    assert len(page.whole) == 50


@pytest.mark.parametrize("data", [b"\0", b"a\0b", "text".encode("utf-16-le"), b"\xff\xfea\0\0\0"])
def test_a_nul_is_no_text(data: bytes) -> None:
    with pytest.raises(NotText):
        page_of(data)


BYTES = st.lists(
    st.sampled_from([b"a", b"\n", b"\r\n", b"\r", b"\xe9", "\u00e9".encode(), BOM]), max_size=25
).map(b"".join)


@given(BYTES, st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_bytes_cut_anywhere_give_the_same_page(
    data: bytes, first: int, most: int, cut: int
) -> None:
    whole, parts = page_of(data, first, most), page_of(data, first, most, cut)
    for page in (whole, parts):
        assert page.lines == count_lines(data)
        assert len(page.rows) == max(0, min(most, page.lines - first + 1))
    assert (parts.rows, parts.whole) == (whole.rows, whole.whole)
    assert parts.notes() == whole.notes()
