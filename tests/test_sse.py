import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.responses.sse import BOM, Frames
from bridge.responses.transport import frames_in


def fed(*pieces: bytes) -> tuple[list[bytes], bytes]:
    frames = Frames()
    return [frames.feed(piece) for piece in pieces], frames.end()


def test_frames_come_out_as_soon_as_they_are_whole() -> None:
    def check(pieces: list[bytes], given: list[bytes], rest: bytes = b"") -> None:
        assert fed(*pieces) == (given, rest)

    check([b"data: 1\n\n"], [b"data: 1\n\n"])
    check([b"data: 1\n\ndata: 2\n\ndata"], [b"data: 1\n\ndata: 2\n\n"], b"data\n\n")
    check([b"data: 1", b"\n", b"\n"], [b"", b"", b"data: 1\n\n"])
    check([b"data: 1\r\n\r\n"], [b"data: 1\r\n\r"])
    check([b"data: 1\r", b"\n\r", b"\nx\r\n"], [b"", b"data: 1\r\n\r", b""], b"\nx\r\n\n\n")
    check([b"data: 1\r\rx"], [b"data: 1\r\r"], b"x\n\n")
    check([b"data: 1\n\r\n"], [b"data: 1\n\r"])
    check([b"data: 1\n", b"data: 2\n"], [b"", b""], b"data: 1\ndata: 2\n\n\n")
    check([], [])
    check([b"", b"\n"], [b"", b""])
    check([b"\n\n"], [b"\n\n"])


def test_a_byte_order_mark_is_dropped_in_front_only() -> None:
    def check(pieces: list[bytes], given: list[bytes], rest: bytes = b"") -> None:
        assert fed(*pieces) == (given, rest)

    check([BOM + b"data: 1\n\n"], [b"data: 1\n\n"])
    check([BOM[:1], BOM[1:2], BOM[2:] + b"x\n\n"], [b"", b"", b"x\n\n"])
    check([b"x\n\n" + BOM + b"y"], [b"x\n\n"], BOM + b"y\n\n")
    check([b"xy\n\n", BOM + b"y\n\n"], [b"xy\n\n", BOM + b"y\n\n"])
    check([BOM + b"x"], [b""], b"x\n\n")
    check([BOM[:2]], [b""], BOM[:2] + b"\n\n")
    check([BOM], [b""])


LINES = st.sampled_from(
    [b"data: a", b"data:b", b"data", b":comment", b"event: e", b"id:3", b"retry: x", b"",
     b"data: \xe2\x80\xa8\xc2\x85", b"data: \xff", b"data: 1"]
)  # fmt: skip
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=12), st.data())
def test_bytes_that_are_cut_anywhere_hold_the_same_frames(
    lines: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    whole = b"".join(line + end for line, end in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    given, rest = fed(*pieces)
    found = [one for part in (*given, rest) for one in frames_in(part)]
    assert found == list(frames_in(whole + b"\n\n"))


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_line_ends_end_a_line(separator: str) -> None:
    text = f"data: a{separator}b\n\n"
    assert list(frames_in(text.encode())) == [("message", f"a{separator}b")]
