"""What counts as the same between a recording and a replay."""

from typing import Any

import pytest

from bridge.core import likeness
from bridge.core.recorded import message, take_server_secrets

Line = dict[str, Any]


def update(**members: Any) -> Line:
    return {"method": "session/update", "params": {"sessionId": "s", "update": members}}


@pytest.mark.parametrize(
    ("wanted", "got", "expected"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ("a.b", 1, 2)),
        ({"a": 1}, {}, ("a", 1, "nothing")),
        ({}, {"a": 1}, ("a", "nothing", 1)),
        ([1, 2], [1, 2], None),
        ([1, 2], [1, 3], ("[1]", 2, 3)),
        ({"a": [1]}, {"a": [1, 2]}, ("a[1]", "nothing", 2)),
        ({"a": [1, 2]}, {"a": [1]}, ("a[1]", 2, "nothing")),
        ({"a": 1}, [1], ("", {"a": 1}, [1])),
    ],
)
def test_the_first_place_that_differs_is_named(wanted: Any, got: Any, expected: Any) -> None:
    assert likeness.difference(wanted, got) == expected


@pytest.mark.parametrize(
    ("said", "is_compared"),
    [
        ({"id": 1, "result": {}}, True),
        ({"id": 1, "method": "session/request_permission", "params": {}}, True),
        ({"id": 1, "method": "fs/read_text_file", "params": {}}, False),
        (update(sessionUpdate="notice", title="x"), False),
        (update(sessionUpdate="available_commands_update"), False),
        (update(sessionUpdate="tool_call_update", toolCallId="c", content=[]), False),
        (update(sessionUpdate="tool_call_update", toolCallId="c", status="failed"), True),
        (update(sessionUpdate="agent_message_chunk", content={}), True),
        (update(sessionUpdate="agent_message_chunk", messageId="m1.0", content={}), True),
        (update(sessionUpdate="agent_message_chunk", messageId="n1", content={}), False),
    ],
)
def test_what_no_two_runs_share_is_not_compared(said: Line, is_compared: bool) -> None:
    assert likeness.is_compared(said) == is_compared


@pytest.mark.parametrize(
    ("said", "compared"),
    [
        ({"id": 1, "result": {"agentInfo": {}, "a": 1}}, {"id": 1, "result": {"a": 1}}),
        ({"id": 1, "error": {}}, {"id": 1, "error": {}}),
        ({"id": 1, "method": "m", "params": {}}, {"method": "m", "params": {}}),
        (update(updatedAt="now", title="x"), update(title="x")),
        (update(_meta={"terminal_output": {}, "b": 1}), update(_meta={"b": 1})),
    ],
)
def test_what_no_two_runs_share_is_left_out(said: Line, compared: Line) -> None:
    assert likeness.of_message(said) == compared


def test_of_a_request_the_words_of_a_version_are_left_out() -> None:
    tools = [{"name": "read", "description": "x"}, {"type": "web_search"}, {"name": "mcp__a__b"}]
    body: Line = {"model": "m", "instructions": "x", "tools": tools}
    assert likeness.of_body(body) == {"model": "m", "tools": ["read", "web_search"]}
    assert likeness.of_body({"model": "m"}) == {"model": "m"}


def test_names_are_changed_wherever_they_stand() -> None:
    value = {"a": ["x s1 y", 1], "b": {"c": "s1"}}
    assert likeness.renamed(value, {"s1": "s2"}) == {"a": ["x s2 y", 1], "b": {"c": "s2"}}


def test_a_piece_of_a_text_is_known_and_cut() -> None:
    content = {"type": "text", "text": "abc"}
    piece = update(sessionUpdate="agent_message_chunk", messageId="m", content=content)
    assert likeness.chunk_of(piece) == (("agent_message_chunk", "m"), "abc")
    assert likeness.chunk_of(likeness.with_text(piece, "c")) == (("agent_message_chunk", "m"), "c")
    assert likeness.chunk_of({"id": 1}) is None


def test_the_session_of_a_message_is_known() -> None:
    assert likeness.session_of(update()) == "s"
    assert likeness.session_of({"id": 1}) == ""
    assert likeness.session_of({"params": {"sessionId": 1}}) == ""
    assert likeness.session_in({"id": 1, "result": {"sessionId": "t"}}) == "t"


def test_what_mcp_servers_are_given_is_taken_out() -> None:
    env: Any = [{"name": "A", "value": "x"}, {"name": "B"}, 3]
    servers: Any = [{"env": env}, {"headers": [{"name": "C", "value": "y"}]}, 4, {"env": 5}]
    given: Line = {"params": {"mcpServers": servers}}
    assert take_server_secrets(given) == ["x", "y"]
    assert env[0] == {"name": "A", "value": "[secret removed]"}
    assert take_server_secrets({"params": 1}) == []
    assert take_server_secrets({}) == []


def test_a_line_that_is_no_message_stays_a_text() -> None:
    assert message('{"a":1}') == {"message": {"a": 1}}
    assert message("x") == {"text": "x"}
