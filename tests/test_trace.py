from hypothesis import given
from hypothesis import strategies as st

from tools.trace import MOST_KEPT, MOST_LINES, Tracer, Traces, trace


@given(st.lists(st.binary(max_size=8)), st.binary(max_size=3))
def test_however_bytes_are_cut_they_leave_one_trace(blocks: list[bytes], end: bytes) -> None:
    tracer = Tracer()
    for block in (*(b"\n".join((one, one)) for one in blocks), end):
        tracer.feed(block)
    whole = b"".join(b"\n".join((one, one)) for one in blocks) + end
    assert tracer.trace() == trace(whole)


def test_each_line_leaves_a_number_of_its_own() -> None:
    def check(data: bytes, *lines: int) -> None:
        found = trace(data)
        assert found is not None
        numbers = list(dict.fromkeys(found))
        assert [numbers.index(one) for one in found] == list(lines)

    check(b"")
    check(b"\n", 0)
    check(b"a\nb\na\n", 0, 1, 0)
    check(b"a\n\n\na", 0, 1, 1, 2)
    check(b"a\na\r\n", 0, 1)


def test_too_many_lines_leave_no_trace() -> None:
    assert len(trace(b"\n" * MOST_LINES) or ()) == MOST_LINES
    assert trace(b"\n" * (MOST_LINES + 1)) is None
    assert trace(b"\n" * MOST_LINES + b"a") is None
    tracer = Tracer()
    for _ in range(3):
        tracer.feed(b"\n" * (MOST_LINES + 1))
    assert tracer.trace() is None


def test_old_traces_go_for_new_ones() -> None:
    traces, lines = Traces(), trace(b"\n" * MOST_LINES)
    fitting = MOST_KEPT // MOST_LINES
    for number in range(fitting):
        traces.keep(str(number), lines)
    assert traces.find("0") is lines
    traces.keep("0", lines)
    traces.keep("new", lines)
    assert [traces.find(name) for name in ("1", "0", "2", "new")] == [None, lines, lines, lines]
    traces.keep("new", None)
    assert traces.find("new") is None
    traces.keep("1", lines)
    assert None not in map(traces.find, map(str, range(fitting)))
