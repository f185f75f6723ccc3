"""The laws themselves: each is broken once."""

import json
from typing import Any

import pytest

from tests.laws import LONGEST_LINE, LawBroken, Laws, Message

CAPABILITIES: Message = {"session": {"notices": {}}, "elicitation": {"form": {}}}
OPTION: Message = {
    "id": "mode",
    "name": "Mode",
    "type": "select",
    "currentValue": "plan",
    "options": [{"value": "plan", "name": "Plan"}],
}
MODES: Message = {"currentModeId": "plan", "availableModes": [{"id": "plan", "name": "Plan"}]}


def request(call: int | str, method: str, params: Message) -> Message:
    return {"jsonrpc": "2.0", "id": call, "method": method, "params": params}


def result(call: int | str, value: Message) -> Message:
    return {"jsonrpc": "2.0", "id": call, "result": value}


def update(name: str, **members: Any) -> Message:
    params = {"sessionId": "s", "update": {"sessionUpdate": name, **members}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chunk(text: str = "x", **members: Any) -> Message:
    return update("agent_message_chunk", content={"type": "text", "text": text, **members})


def card(call: str = "c", **members: Any) -> Message:
    plain: Message = {"title": "Read a", "kind": "read", "status": "pending", "rawInput": {}}
    return update("tool_call", toolCallId=call, **{**plain, **members})


def progress(status: str = "completed", call: str = "c", **members: Any) -> Message:
    return update("tool_call_update", toolCallId=call, status=status, **members)


def permission(*kinds: str) -> Message:
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in kinds]
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": options}
    return request("p", "session/request_permission", params)


def prompting() -> Laws:
    """A connection on which the prompt with id 3 runs."""
    laws = Laws()
    laws.sent(request(1, "initialize", {"protocolVersion": 1, "clientCapabilities": CAPABILITIES}))
    laws.take(result(1, {"protocolVersion": 1}))
    laws.sent(request(2, "session/new", {"cwd": "/w", "mcpServers": []}))
    laws.take(result(2, {"sessionId": "s", "modes": MODES, "configOptions": [OPTION]}))
    laws.sent(request(3, "session/prompt", {"sessionId": "s", "prompt": []}))
    return laws


ASKED = permission("allow_once", "reject_once")
ENDED = result(3, {"stopReason": "end_turn"})
GIVEN_UP: Message = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "p"}}


@pytest.mark.parametrize(
    "lines",
    [
        [chunk(), chunk(), ENDED],
        [card(), progress("in_progress"), progress(), ENDED],
        [card(), progress("failed"), card("d"), progress(call="d"), ENDED],
        [card(), ASKED, GIVEN_UP, progress("failed"), ENDED],
        [card(rawInput={"a": None}), progress(rawOutput={"b": None}, _meta={"c": None}), ENDED],
        [update("notice", severity="info", title="t"), ENDED, update("session_info_update")],
        [update("config_option_update", configOptions=[OPTION])],
        [update("current_mode_update", currentModeId="plan")],
        [{"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "m"}}],
        [{"jsonrpc": "2.0", "method": "_ours/note", "params": {"a": 1}}],
        [chunk(), {"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": "m"}}],
    ],
)
def test_what_is_lawful_passes(lines: list[Message]) -> None:
    laws = prompting()
    for message in lines:
        if "error" in message:
            message["error"]["data"] = {"details": "m", "error": "m"}
        laws.take(json.dumps(message).encode() + b"\n")


BOOLEAN: Message = {"id": "b", "name": "B", "type": "boolean", "currentValue": True}
GROUPED: Message = {**OPTION, "options": [{"group": "g", "name": "G", "options": []}]}


BREAKS: list[tuple[list[Any], str]] = [
    ([b"log line\n"], "not JSON"),
    ([b"[]\n"], "not an object"),
    ([b"{}"], "not one line"),
    ([b'{"a":NaN}\n'], "NaN"),
    ([b'{"a":"\\ud800"}\n'], "not JSON"),
    ([{"id": 3, "result": {}}], "2.0"),
    ([{**ENDED, "extra": 1}], "unknown keys"),
    ([{**ENDED, "error": None}], "one of result and error"),
    ([{"jsonrpc": "2.0", "id": 3}], "one of result and error"),
    ([{"jsonrpc": "2.0", "id": 3, "error": {"code": "1", "message": "m"}}], "without a code"),
    ([{"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": " "}}], "empty message"),
    ([{"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": "m"}}], "same in all places"),
    ([{**ENDED, "id": "3"}], "not open"),
    ([ENDED, ENDED], "not open"),
    ([result(3, {"stopReason": "error"})], "session/prompt result"),
    ([result(3, {"stopReason": "end_turn", "x": 1})], "unknown key 'x'"),
    ([{**chunk(), "result": {}}], "a call with a result"),
    ([{"jsonrpc": "2.0", "method": "made/up", "params": {}}], "no params in the schema"),
    ([update("nonsense")], "not valid"),
    ([chunk(extra=1)], "unknown key 'extra'"),
    ([chunk(annotations=None)], "null"),
    ([chunk("")], "empty chunk"),
    ([chunk("x" * LONGEST_LINE)], "a line of"),
    ([ENDED, chunk()], "while no prompt runs"),
    ([ENDED, card()], "while no prompt runs"),
    ([card(), card()], "announced twice"),
    ([progress()], "never announced"),
    ([card(), progress(), progress()], "ended already"),
    ([card(), progress("in_progress"), progress("pending")], "goes back"),
    ([card(), ENDED], "open tool calls"),
    ([card(title="")], "empty title"),
    ([card(rawInput=[])], "not an object"),
    ([card(locations=[{"path": "a"}])], "relative path"),
    ([card(locations=[{"path": "/a", "line": 0}])], "begin with 1"),
    ([card(content=[{"type": "diff", "path": "a", "newText": ""}])], "relative path"),
    ([update("tool_call", toolCallId="c", title="t")], "announces a call without"),
    ([ASKED], "before it was announced"),
    ([card(), progress(), ASKED], "after its end"),
    ([card(), permission("allow_once")], "a way to refuse"),
    ([card(), permission("allow_once", "reject_once", "allow_once")], "occur twice"),
    ([card(), ASKED, ASKED], "in use"),
    ([card(), ASKED, progress("failed"), ENDED], "is open"),
    ([GIVEN_UP], "not open"),
    ([request("r", "fs/read_text_file", {"sessionId": "s", "path": "/a"})], "does not offer"),
    ([update("compaction_update", compactionId="c", status="failed")], "does not take"),
    ([update("config_option_update", configOptions=[OPTION, OPTION])], "given twice"),
    ([update("config_option_update", configOptions=[BOOLEAN])], "boolean"),
    ([update("config_option_update", configOptions=[GROUPED])], "not among its values"),
    ([update("current_mode_update", currentModeId="x")], "not an available mode"),
]


@pytest.mark.parametrize(("lines", "broken"), BREAKS)
def test_a_broken_law_is_noticed(lines: list[Any], broken: str) -> None:
    laws = prompting()
    for line in lines[:-1]:
        laws.take(line)
    with pytest.raises(LawBroken, match=broken):
        laws.take(lines[-1])


def test_a_session_is_not_spoken_of_before_it_was_given() -> None:
    laws = Laws()
    laws.sent(request(2, "session/new", {"cwd": "/w", "mcpServers": []}))
    with pytest.raises(LawBroken, match="not open yet"):
        laws.take(update("session_info_update", title="t"))


def test_a_session_that_loads_is_replayed_before_the_answer() -> None:
    laws = prompting()
    laws.take(ENDED)
    laws.sent(request(4, "session/load", {"sessionId": "s", "cwd": "/w", "mcpServers": []}))
    for message in (chunk(), card(status="completed"), result(4, {})):
        laws.take(message)
    with pytest.raises(LawBroken, match="while no prompt runs"):
        laws.take(chunk())


def test_a_prompt_that_waited_may_end_while_another_runs() -> None:
    laws = prompting()
    laws.sent(request(4, "session/prompt", {"sessionId": "s", "prompt": []}))
    laws.take(card())
    laws.take({**ENDED, "id": 4})
    with pytest.raises(LawBroken, match="open tool calls"):
        laws.take(ENDED)


def test_an_answered_request_may_not_be_given_up() -> None:
    laws = prompting()
    laws.take(card())
    laws.take(ASKED)
    laws.sent(result("p", {"outcome": {"outcome": "cancelled"}}))
    with pytest.raises(LawBroken, match="not open"):
        laws.take(GIVEN_UP)


def test_every_request_is_answered_in_the_end() -> None:
    laws = prompting()
    with pytest.raises(LawBroken, match="session/prompt"):
        laws.end()
    laws.take(ENDED)
    laws.end()


def test_recordings_of_others_are_held_to_the_protocol_alone() -> None:
    laws = prompting()
    laws._own_laws = False  # pyright: ignore[reportPrivateUsage] (the same connection, less strictly)
    laws.take(update("tool_call", toolCallId="c", title="", locations=[{"path": "a"}]))
