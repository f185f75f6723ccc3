import pytest

from tools.changed import MOST_SHOWN, told
from tools.trace import MOST_LINES, trace

NOW = "; read it again, these lines are other now:"


def numbered(*numbers: int) -> bytes:
    return b"".join(b"%d\n" % number for number in numbers)


TEN = numbered(*range(10))


@pytest.mark.parametrize(
    ("before", "now", "rows"),
    [
        (TEN, TEN.replace(b"4", b"four"), ["5: four"]),
        (TEN, TEN.replace(b"0", b"a").replace(b"9", b"b"), ["1: a", "10: b"]),
        (TEN, b"a\n" + TEN, ["1: a"]),
        (TEN, TEN + b"a", ["11: a"]),
        (TEN, TEN.replace(b"4\n", b""), ["(1 line gone before line 5)"]),
        (TEN, TEN.replace(b"4\n5\n6\n", b"x\n"), ["5: x", "(2 lines gone before line 6)"]),
        (TEN, TEN.replace(b"8\n9\n", b""), ["(2 lines gone before line 9)"]),
        (TEN, b"", ["(10 lines gone before line 1)"]),
        (b"", b"a\n", ["1: a"]),
        (b"a\n", b"a", ["1: a"]),
        (b"a\nb\n", b"a\r\nb\n", ["1: a"]),
        (b"a\n", b"\xff\xc3\xa9\n", ["1: \\xff\u00e9"]),
        (b"a\n", b"x" * 200 + b"\n", ["1: " + "x" * 200]),
        (b"a\n", b"x" * 201 + b"\n", ["1: " + "x" * 200 + "\u2026"]),
        (TEN, TEN, []),
    ],
)
def test_changed_lines_are_shown_as_they_are_now(
    before: bytes, now: bytes, rows: list[str]
) -> None:
    assert told(trace(before), now) == "\n".join([NOW, *rows])


@pytest.mark.parametrize(
    ("lines", "more"),
    [(20, ""), (21, "1 more line"), (22, "2 more lines"), (1000, "980 more lines")],
)
def test_many_changed_lines_are_counted(lines: int, more: str) -> None:
    rows = [f"{number + 1}: {number}" for number in range(MOST_SHOWN)]
    ends = [f"\u2026 and {more}"] if more else []
    assert told(trace(b""), numbered(*range(lines))) == "\n".join([NOW, *rows, *ends])


def test_distant_changes_in_a_long_file_are_told_apart() -> None:
    before = b"".join(b"%d\n%s\n" % (number, b"" if number % 3 else b"}") for number in range(9000))
    now = before.replace(b"\n17\n", b"\nA\n").replace(b"\n8000\n", b"\nB\n")
    assert told(trace(before), now) == f"{NOW}\n35: A\n16001: B"


def test_distant_changes_are_told_apart_where_much_between_them_is_alike() -> None:
    middle = b"".join(b"%d\n" % (number % 1000) for number in range(15_000))
    text = told(trace(b"a\n" + middle + b"a\n"), b"b\n" + middle + b"b\n")
    assert text == f"{NOW}\n1: b\n15002: b"


def test_what_left_no_trace_is_not_told() -> None:
    unknown = "; which lines is not known, read it again"
    assert told(None, b"a") == unknown
    assert told(trace(b"a"), b"\n" * (MOST_LINES + 1)) == unknown
