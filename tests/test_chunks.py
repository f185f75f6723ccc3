"""The library hears the same body, in fewer pieces."""

import h11
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.responses.chunks import Chunks

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def heard(reads: list[bytes]) -> tuple[bytes, str, int]:
    """What the library makes of these reads: the body, how it ended, in how many pieces."""
    line = h11.Connection(h11.CLIENT)
    line.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    line.send(h11.EndOfMessage())
    body, pieces = b"", 0
    for data in reads:
        line.receive_data(data)
        while True:
            try:
                event = line.next_event()
            except h11.RemoteProtocolError:
                return body, "broken", pieces
            if isinstance(event, h11.Data):
                body += event.data
                pieces += 1
            elif isinstance(event, h11.EndOfMessage):
                return body, "whole", pieces
            elif event is h11.NEED_DATA:
                break
    return body, "open", pieces


def joined(reads: list[bytes]) -> list[bytes]:
    chunks = Chunks()
    return [given for data in reads if (given := chunks.feed(data))]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted(place % (len(data) + 1) for place in places)
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True) if a < b]


@st.composite
def chunked(draw: st.DrawFn) -> bytes:
    """A body in chunks, in every way that servers write them."""
    sizes = st.sampled_from(["{:x}", "{:X}", "{:04x}", "{:x};a=b", "{:x} "])
    body = b""
    for piece in draw(st.lists(st.binary(min_size=1, max_size=40), max_size=8)):
        body += draw(sizes).format(len(piece)).encode() + b"\r\n" + piece + b"\r\n"
    return body + draw(st.sampled_from([b"0\r\n\r\n", b"0\r\na: b\r\n\r\n", b"000\r\n\r\n", b""]))


@given(chunked(), st.lists(st.integers(0, 400), max_size=12))
def test_the_body_is_the_same_wherever_chunks_and_reads_end(body: bytes, places: list[int]) -> None:
    reads = cut(HEAD + body, places)
    assert heard(joined(reads))[:2] == heard(reads)[:2]


@given(st.binary(max_size=60), st.lists(st.integers(0, 200), max_size=6))
@example(b"3\r\nabcX\r\n0\r\n\r\n", [])
@example(b"3\r\nabc\n2\r\nde\r\n", [])
@example(b"\r\n3\r\nabc\r\n", [])
@example(b"12345678\r\n", [])
def test_what_is_wrong_stays_wrong(body: bytes, places: list[int]) -> None:
    reads = cut(HEAD + body, places)
    assert heard(joined(reads))[:2] == heard(reads)[:2]


def test_what_came_together_is_one_piece() -> None:
    body = b"".join(b"5\r\nevent\r\n" for _ in range(100))
    assert heard([HEAD, body, body, b"0\r\n\r\n"]) == (b"event" * 200, "whole", 200)
    assert heard(joined([HEAD, body, body, b"0\r\n\r\n"])) == (b"event" * 200, "whole", 2)


def test_nothing_is_held_back_but_a_part_of_a_size() -> None:
    chunks = Chunks()

    def check(data: bytes, given: bytes) -> None:
        assert chunks.feed(data) == given

    check(HEAD[:20], HEAD[:20])
    check(HEAD[20:] + b"3\r\na", HEAD[20:] + b"3\r\na")
    check(b"b", b"b")
    check(b"c\r", b"c\r")
    check(b"\n1\r\nd\r\n01\r\ne\r\n2", b"\n2\r\nde\r\n")
    check(b"\r", b"")
    check(b"\nfg\r\n", b"2\r\nfg\r\n")
    check(b"0\r\n\r\n", b"0\r\n\r\n")
    check(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n")


def test_other_answers_go_on_as_they_came() -> None:
    pieces = b"1\r\na\r\n1\r\nb\r\n"
    heads = {
        b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n": pieces,
        b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n": pieces,
        b"HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n": pieces,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n": pieces,
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000: pieces,
        b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + HEAD: b"2\r\nab\r\n",
    }
    for head, told in heads.items():
        assert b"".join(joined([head, pieces])) == head + told
        assert b"".join(joined([head + pieces])) == head + told
