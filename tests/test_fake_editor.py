"""The fake editor with small agents, so that what it says of ours can be believed."""

import os
import sys
from pathlib import Path

import anyio
import pytest

from tests.fake_editor import Agent, Refused, agent_process, choose, fill
from tests.laws import LawBroken

pytestmark = pytest.mark.anyio

HOME = Path(__file__).parent.parent
ENV = {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOME)}

POLITE = "from bridge.windows import serve; serve(0, 1)"

ASKING = """
import json, sys
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def read(): return json.loads(input())
def show(**update):
    send(method="session/update", params={"sessionId": "s", "update": update})
send(id=read()["id"], result={"protocolVersion": 1})
send(id=read()["id"], result={"sessionId": "s"})
prompt = read()
show(sessionUpdate="tool_call", toolCallId="c", title="T", kind="edit", status="pending",
     rawInput={})
for name, more in (
    ("session/request_permission", {"toolCall": {"toolCallId": "c"}, "options": [
        {"optionId": "y", "name": "Y", "kind": "allow_once"},
        {"optionId": "n", "name": "N", "kind": "reject_once"}]}),
    ("elicitation/create", {"mode": "form", "message": "m", "requestedSchema":
        {"type": "object", "properties": {}}}),
):
    send(id=name, method=name, params={"sessionId": "s", **more})
    said = json.dumps(read().get("result"))
    show(sessionUpdate="agent_message_chunk", content={"type": "text", "text": said})
show(sessionUpdate="tool_call_update", toolCallId="c", status="completed")
send(id=prompt["id"], result={"stopReason": "end_turn"})
input()
"""


def agent(script: str) -> list[str]:
    return [sys.executable, "-c", script]


async def opened(one: Agent) -> str:
    await one.editor.initialize(elicitation={"form": {}})
    return await one.editor.new_session("/")


async def test_an_agent_is_started_spoken_to_and_ended() -> None:
    with anyio.fail_after(20):
        async with agent_process(agent(POLITE), env=ENV, cwd=HOME) as one:
            session = await opened(one)
            with pytest.raises(Refused, match="WSL") as refused:
                await one.editor.prompt(session, "hello")
            assert refused.value.code == -32603
            assert await one.end() == 0
            one.editor.laws.end()
            assert bytes(one.stderr) == b""


async def test_what_the_agent_asks_is_answered_from_the_table() -> None:
    with anyio.fail_after(20):
        async with agent_process(agent(ASKING), env=ENV, cwd=HOME) as one:
            one.editor.answers["session/request_permission"] = choose("allow_once")
            one.editor.answers["elicitation/create"] = fill(a=1)
            assert await one.editor.prompt(await opened(one), "hello") == "end_turn"
            assert one.editor.text() == (
                '{"outcome": {"outcome": "selected", "optionId": "y"}}'
                '{"action": "accept", "content": {"a": 1}}'
            )
            assert len(one.editor.updates("tool_call", "s")) == 1


async def test_an_answer_may_be_held_back_and_given_later() -> None:
    with anyio.fail_after(20):
        async with agent_process(agent(ASKING), env=ENV, cwd=HOME) as one:
            one.editor.answers["session/request_permission"] = lambda params: None
            session = await opened(one)
            params = {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}
            prompt = await one.editor.begin("session/prompt", params)
            asked = await one.editor.asked("session/request_permission")
            await one.editor.reply(asked["id"], {"outcome": {"outcome": "cancelled"}})
            await one.editor.update("tool_call_update", status="completed")
            assert (await one.editor.result(prompt))["stopReason"] == "end_turn"
            assert one.editor.text().endswith("null")


@pytest.mark.parametrize("said", ["log line", '{"jsonrpc":"2.0","id":5,"result":{}}'])
async def test_a_broken_law_ends_the_wait(said: str) -> None:
    script = f"input(); print({said!r}, flush=True); input()"
    with anyio.fail_after(20):
        async with agent_process(agent(script), env=ENV, cwd=HOME) as one:
            with pytest.raises(LawBroken):
                await one.editor.initialize()


async def test_an_agent_that_ends_ends_the_wait() -> None:
    with anyio.fail_after(20):
        async with agent_process(agent("input()"), env=ENV, cwd=HOME) as one:
            with pytest.raises(EOFError):
                await one.editor.initialize()


async def test_nothing_is_left_of_an_agent_that_does_not_end() -> None:
    script = "import signal, sys; signal.signal(15, signal.SIG_IGN); print(flush=True)\nwhile 1: 1"
    with anyio.fail_after(20):
        async with agent_process(agent(script), env=ENV, cwd=HOME) as one:
            with pytest.raises(LawBroken):
                await one.editor.end()
    with pytest.raises(ProcessLookupError):
        os.kill(one.pid, 0)
