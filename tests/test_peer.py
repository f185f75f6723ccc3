import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.acp.peer import Message, Note, Peer, Reply, Request
from bridge.errors import EditorError


def answers(peer: Peer) -> list[Any]:
    return [json.loads(line) for line in peer.take().splitlines()]


def check(line: bytes, messages: list[Message], code: int | None = None, call: Any = None) -> None:
    """What a line is taken for, and the error that it is answered with."""
    peer = Peer(initialized=True)
    assert peer.feed(line + b"\n") == messages
    said = answers(peer)
    assert [(one["id"], one["error"]["code"]) for one in said] == ([(call, code)] if code else [])
    for one in said:
        error = one["error"]
        assert error["data"] == {"details": error["message"], "error": error["message"]}


@pytest.mark.parametrize("call", ["0", "6f1c", "", 0, 1, 2**53 + 1, -1, None])
def test_an_id_comes_back_exactly_as_it_came(call: Any) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": call, "method": "a/b", "params": {"x": 1}})
    check(line.encode(), [Request(call, "a/b", {"x": 1})])
    peer = Peer()
    peer.result(call, {"x": 2})
    peer.refuse(call, EditorError(-32002, "gone", {"sessionId": "s"}))
    data = {"details": "gone", "error": "gone", "sessionId": "s"}
    assert answers(peer) == [
        {"jsonrpc": "2.0", "id": call, "result": {"x": 2}},
        {"jsonrpc": "2.0", "id": call, "error": {"code": -32002, "message": "gone", "data": data}},
    ]


@pytest.mark.parametrize(
    ("line", "messages"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"logout"}', [Request(1, "logout", {})]),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":null}', [Request(1, "m", {})]),
        (b'{"jsonrpc":"2.0","method":"m","params":{"a":1}}\r', [Note("m", {"a": 1})]),
        (b'{"jsonrpc":"2.0","method":"m"}', [Note("m", {})]),
        (b'{"jsonrpc":"2.0","id":3,"result":null}', [Reply(3)]),
        (b'{"jsonrpc":"2.0","id":3,"result":{"a":1}}', [Reply(3, {"a": 1})]),
        (b'{"jsonrpc":"2.0","id":3,"result":{},"error":null}', [Reply(3, {})]),
        (b'{"jsonrpc":"2.0","id":"x","error":{"code":1}}', [Reply("x", error={"code": 1})]),
        (b'{"jsonrpc":"2.0","id":3,"error":"no"}', [Reply(3, error={"message": "no"})]),
        (b'{"jsonrpc":"2.0","id":null,"error":{}}', [Reply(None, error={})]),
        (b'{"id":3,"result":1}', [Reply(3, 1)]),
        (b"", []),
        (b" \t\r", []),
        (
            '{"jsonrpc":"2.0","method":"m","params":{"a":"\u2028\\u0000😀\\ud800"}}'.encode(),
            [Note("m", {"a": "\u2028\x00😀\ud800"})],
        ),
    ],
)
def test_a_message_is_taken(line: bytes, messages: list[Message]) -> None:
    check(line, messages)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":[3],"result":1}',
        b'{"jsonrpc":"2.0","id":1.5,"error":{}}',
        b'{"jsonrpc":"2.0","id":true,"error":{}}',
        b'{"jsonrpc":"2.0","method":"m","params":[1]}',
        b'{"jsonrpc":"2.0","method":"m","params":5}',
    ],
)
def test_a_wrong_answer_or_note_is_ignored(line: bytes) -> None:
    check(line, [])


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0", nope',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xff"}}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m"}',
        b"[" * 5000,
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":' + b"[" * 300 + b"]" * 300 + b"}}",
        b'{"jsonrpc":"2.0","id":1,"method":"m"}{"jsonrpc":"2.0","id":1,"method":"m"}',
    ],
)
def test_a_line_that_is_no_json_is_a_parse_error(line: bytes) -> None:
    check(line, [], -32700)


@pytest.mark.parametrize(
    "line",
    [
        b'[{"jsonrpc":"2.0","id":7,"method":"m"},{"jsonrpc":"2.0","id":8,"method":"m"}]',
        b"[]",
        b"5",
        b"null",
        b'"text"',
        b"{}",
        b'{"jsonrpc":"2.0","id":7}',
        b'{"id":7,"method":"m"}',
        b'{"jsonrpc":2.0,"id":7,"method":"m"}',
        b'{"jsonrpc":"2.0","id":7,"method":5}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"m"}',
        b'{"jsonrpc":"2.0","id":true,"method":"m"}',
        b'{"jsonrpc":"2.0","id":{"a":1},"method":"m"}',
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(line: bytes) -> None:
    check(line, [], -32600)


@pytest.mark.parametrize("params", ["[1]", "5", '"x"', "false"])
def test_params_that_are_no_object_are_refused(params: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":7,"method":"m","params":{params}}}'.encode()
    check(line, [], -32602, 7)


def test_nothing_is_served_before_initialize() -> None:
    peer = Peer()
    line = b'{"jsonrpc":"2.0","id":%d,"method":"%s"}\n'
    assert peer.feed(line % (1, b"session/new") + b'{"jsonrpc":"2.0","method":"m"}\n') == []
    assert [(one["id"], one["error"]["code"]) for one in answers(peer)] == [(1, -32600)]
    assert len(peer.feed(line % (2, b"initialize") + line % (3, b"session/new"))) == 2
    assert peer.take() == b""


def test_a_refused_initialize_without_params_leaves_the_door_shut() -> None:
    peer = Peer()
    peer.feed(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}\n')
    assert peer.feed(b'{"jsonrpc":"2.0","id":2,"method":"session/list"}\n') == []
    assert [one["error"]["code"] for one in answers(peer)] == [-32602, -32600]


def test_the_last_line_needs_no_line_end() -> None:
    peer = Peer(initialized=True)
    assert peer.feed(b'{"jsonrpc":"2.0","method":"m"}') == []
    assert peer.end() == [Note("m", {})]
    assert peer.end() == []


def test_a_line_that_is_too_long_is_answered_once_and_skipped_to_its_end() -> None:
    peer = Peer(initialized=True, limit=100)
    assert peer.feed(b"x" * 60) == []
    assert answers(peer) == []
    assert peer.feed(b"x" * 60) == []
    assert [one["error"]["code"] for one in answers(peer)] == [-32700]
    assert peer.feed(b"x" * 1000) == []
    assert peer.feed(b'x"\n{"jsonrpc":"2.0","method":"m"}\n') == [Note("m", {})]
    assert answers(peer) == []


def test_a_line_of_20_mib_in_small_pieces_is_read_in_linear_work() -> None:
    text = "A" * (20 * 2**20)
    line = b'{"jsonrpc":"2.0","method":"m","params":{"a":"' + text.encode() + b'"}}\n'
    peer = Peer(initialized=True)
    messages: list[Message] = []
    for count, start in enumerate(range(0, len(line), 65536), 1):
        messages += peer.feed(line[start : start + 65536])
        kept = peer._pieces  # pyright: ignore[reportPrivateUsage] (joining them early is the cost)
        assert len(kept) in (0, 1, count)
    assert messages == [Note("m", {"a": text})]


def test_what_we_send_is_lines_in_the_order_of_the_calls() -> None:
    peer = Peer()
    first = peer.request("session/request_permission", {"a": 1})
    peer.notify("session/update", {"b": "\ud800"})
    second = peer.request("x", {})
    assert first != second
    assert peer.take().decode().split("\n") == [
        f'{{"jsonrpc":"2.0","id":{first},"method":"session/request_permission","params":{{"a":1}}}}',
        '{"jsonrpc":"2.0","method":"session/update","params":{"b":"\ufffd"}}',
        f'{{"jsonrpc":"2.0","id":{second},"method":"x","params":{{}}}}',
        "",
    ]
    assert peer.take() == b""


LINES = [
    b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"t":"\xc3\xa9"}}\r\n',
    b"nope\n",
    b"\n",
    b'{"jsonrpc":"2.0","method":"b"}\n',
    b'{"jsonrpc":"2.0","id":2,"result":{}}\n',
    b"[]\n",
    b"x" * 300 + b"\n",
]


@given(st.lists(st.sampled_from(LINES)), st.data())
def test_bytes_cut_anywhere_give_the_same_messages(lines: list[bytes], data: Any) -> None:
    stream = b"".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    whole, cut = Peer(initialized=True, limit=200), Peer(initialized=True, limit=200)
    expected = whole.feed(stream)
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [message for piece in pieces for message in cut.feed(piece)] == expected
    assert cut.take() == whole.take()


@given(st.binary())
def test_no_bytes_raise(data: bytes) -> None:
    peer = Peer(initialized=True)
    peer.feed(data)
    peer.end()
    answers(peer)
