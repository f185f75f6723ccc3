"""Cancelling the real agent at every moment of a turn, and prompts that wait for each other."""

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteReceiveStream

from tests.agent_process import (
    PROGRAM,
    Machine,
    Model,
    Request,
    begin_prompt,
    cancel,
    is_alive,
    machine,
    printed,
)
from tests.fake_editor import Editor
from tests.laws import Message

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs bash"),
]

CAN: Message = {"elicitation": {"form": {}}, "session": {"notices": {}}}


@dataclass(slots=True)
class Scene:
    """A turn that has just begun, and means to bring it to some moment."""

    editor: Editor
    model: Model
    session: str
    name: str
    """Of the moment; ids and texts made of it occur once."""

    async def shown(self, kind: str) -> None:
        """Wait until a text that is the moment's name is shown."""
        await self.editor.update(kind, content={"type": "text", "text": self.name})

    async def asked_by_call(self, tool: str, /, **arguments: Any) -> Request:
        """Take the request and answer it with one call."""
        request = await self.model.request()
        await request.ask_for(self.name, tool, **arguments)
        return request


# -- moments, each with what it leaves open: a request of the agent's to the model or to the editor


async def before_the_answer(scene: Scene) -> Request:
    return await scene.model.request()


async def answer_begun(scene: Scene) -> Request:
    request = await scene.model.request()
    await request.raw(b"")
    return request


async def in_a_thought(scene: Scene) -> Request:
    request = await scene.model.request()
    await request.think(scene.name)
    await scene.shown("agent_thought_chunk")
    return request


async def in_a_text(scene: Scene) -> Request:
    request = await scene.model.request()
    await request.think("Hm.")
    await request.say(scene.name)
    await scene.shown("agent_message_chunk")
    return request


async def in_the_arguments(scene: Scene) -> Request:
    request = await scene.model.request()
    await request.begin_call(scene.name, "write", '{"file_path": "cut", "content": "' + "x" * 2000)
    await scene.editor.update("tool_call", toolCallId=scene.name)
    return request


async def call_announced(scene: Scene) -> Request:
    request = await scene.model.request()
    await request.call(scene.name, "write", file_path="announced", content="")
    await scene.editor.update("tool_call", toolCallId=scene.name)
    return request


async def permission_open(scene: Scene) -> Message:
    await scene.editor.request(
        "session/set_config_option",
        {"sessionId": scene.session, "configId": "permission", "value": "ask"},
    )
    await scene.asked_by_call("write", file_path="unasked", content="")
    return await scene.editor.asked("session/request_permission")


async def form_open(scene: Scene) -> Message:
    question: Message = {"id": "q", "header": "Q", "question": "Which?", "options": []}
    await scene.asked_by_call("request_user_input", title="T", message="M", questions=[question])
    return await scene.editor.asked("elicitation/create")


async def review_open(scene: Scene) -> Message:
    mode = {"sessionId": scene.session, "modeId": "plan"}
    await scene.editor.request("session/set_mode", mode)
    await scene.asked_by_call("exit_plan_mode", plan="# Plan")
    return await scene.editor.asked("elicitation/create")


async def command_running(scene: Scene) -> None:
    command = f"echo $$ > {scene.name}.pid; echo begun; exec sleep 1000"
    await scene.asked_by_call("shell", command=command, description="Sleeps.")
    await printed(scene.editor, scene.name, "begun")


async def one_call_running_one_waiting(scene: Scene) -> None:
    command = f"echo $$ > {scene.name}.pid; echo begun; sleep 1000 & wait"
    request = await scene.model.request()
    await request.call(scene.name, "shell", command=command, description="Sleeps.")
    await request.call(f"{scene.name}-2", "write", file_path="waiting", content="")
    await request.complete()
    await printed(scene.editor, scene.name, "begun")


async def waiting_to_try_again(scene: Scene) -> None:
    request = await scene.model.request()
    await request.refuse("503 Service Unavailable", b"{}", "retry-after: 30")
    await scene.editor.update("notice")


Moment = Callable[[Scene], Awaitable[Request | Message | None]]

MOMENTS: tuple[Moment, ...] = (
    before_the_answer,
    answer_begun,
    in_a_thought,
    in_a_text,
    in_the_arguments,
    call_announced,
    permission_open,
    form_open,
    review_open,
    command_running,
    one_call_running_one_waiting,
    waiting_to_try_again,
)


async def check_cancel(here: Machine, editor: Editor, moment: Moment) -> None:
    session, name = await editor.new_session(here.workspace), moment.__name__
    for question in ("session/request_permission", "elicitation/create"):
        editor.answers[question] = lambda _: None
    call = await begin_prompt(editor, session)
    held = await moment(Scene(editor, here.model, session, name))
    waiting = await begin_prompt(editor, session, "And then?")
    await cancel(editor, session)
    assert [(await editor.result(one))["stopReason"] for one in (call, waiting)] == (
        ["cancelled"] * 2
    ), name
    for pid in here.workspace.glob("*.pid"):
        assert not is_alive(int(pid.read_text())), name
    await check_next_prompt(here, editor, session, name)
    if isinstance(held, Request):
        await held.hung_up.wait()
    elif held is not None:  # an answer that comes too late changes nothing
        await editor.reply(held["id"], {"outcome": {"outcome": "cancelled"}, "action": "accept"})


async def check_next_prompt(here: Machine, editor: Editor, session: str, name: str) -> None:
    call = await begin_prompt(editor, session, f"After {name}")
    request = await here.model.request()
    assert request.input[-1]["content"][0]["text"] == f"After {name}"
    await request.answer()
    assert (await editor.result(call))["stopReason"] == "end_turn", name


async def test_a_turn_can_be_cancelled_at_every_moment(tmp_path: Path) -> None:
    async with machine(tmp_path, retries=1) as here, here.agent(**CAN) as agent:
        for moment in MOMENTS:
            await check_cancel(here, agent.editor, moment)
        files = [path.name for path in here.workspace.iterdir() if path.suffix != ".pid"]
        assert files == []
        assert here.log() == ""


Kept = tuple[str, str | None]
CALL: Kept = ("function_call", None)


def output(text: str) -> Kept:
    return ("function_call_output", f"Error: {text}")


KEPT: tuple[tuple[Moment, list[Kept]], ...] = (
    (in_a_text, [("reasoning", None), ("message", None)]),
    (in_the_arguments, []),
    (call_announced, [CALL, output("the call did not run")]),
    (
        one_call_running_one_waiting,
        [
            CALL,
            CALL,
            output("command aborted"),
            output("tool call aborted before dispatch"),
        ],
    ),
)
"""What the model is told afterwards: the type of each item, and the output of a call."""


async def test_what_was_said_before_a_cancel_stays_in_the_conversation(tmp_path: Path) -> None:
    async with machine(tmp_path, retries=1) as here, here.agent(**CAN) as agent:
        for moment, kept in KEPT:
            await check_cancel(here, agent.editor, moment)
            between = here.model.requests[-1].input[1:-1]
            items = [one for one in between if one.get("role") != "user"]
            assert [(one["type"], one.get("output")) for one in items] == kept, items


# -- prompts that wait ----------------------------------------------------------------------------


@asynccontextmanager
async def conversation(folder: Path) -> AsyncGenerator[tuple[Machine, Editor, str]]:
    async with machine(folder) as here, here.agent() as agent:
        yield here, agent.editor, await agent.editor.new_session(here.workspace)


async def test_prompts_of_a_session_are_answered_one_after_the_other(tmp_path: Path) -> None:
    async with conversation(tmp_path) as (here, editor, session):
        calls = [await begin_prompt(editor, session, f"Prompt {number}") for number in range(3)]
        for number, call in enumerate(calls):
            request = await here.model.request()
            texts = [item["content"][0]["text"] for item in request.input]
            earlier = [(f"Prompt {one}", f"Answer {one}") for one in range(number)]
            assert texts == [*(text for pair in earlier for text in pair), f"Prompt {number}"]
            assert len(here.model.requests) == number + 1
            await request.answer(f"Answer {number}")
            assert (await editor.result(call))["stopReason"] == "end_turn"


async def test_a_prompt_that_is_cancelled_by_itself_leaves_the_others(tmp_path: Path) -> None:
    async with conversation(tmp_path) as (here, editor, session):
        running, queued, last = [await begin_prompt(editor, session, text) for text in "abc"]
        request = await here.model.request()
        await editor.notify("$/cancel_request", {"requestId": queued})
        assert (await editor.result(queued))["stopReason"] == "cancelled"
        assert not request.hung_up.is_set()
        await editor.notify("$/cancel_request", {"requestId": str(running)})  # another id
        await editor.notify("$/cancel_request", {"requestId": running})
        assert (await editor.result(running))["stopReason"] == "cancelled"
        await request.hung_up.wait()
        request = await here.model.request()
        prompts = [item["content"][0]["text"] for item in request.input]
        assert prompts[-1] == "c"
        assert "b" not in prompts
        await request.answer()
        assert (await editor.result(last))["stopReason"] == "end_turn"


async def test_sessions_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async with conversation(tmp_path) as (here, editor, one):
        other = await editor.new_session(here.workspace)
        calls = {session: await begin_prompt(editor, session, session) for session in (one, other)}
        answers = {request.session: request for request in await two(here.model)}
        for piece in range(3):
            for session in (other, one):
                await answers[session].say(f"{session}:{piece} ")
        await editor.message(lambda _: said(editor, one).endswith(f"{one}:2 "))
        await cancel(editor, other)
        assert (await editor.result(calls[other]))["stopReason"] == "cancelled"
        await answers[one].complete()
        assert (await editor.result(calls[one]))["stopReason"] == "end_turn"
        for session in (one, other):
            assert said(editor, session) == f"{session}:0 {session}:1 {session}:2 "


# -- an editor that does not read -----------------------------------------------------------------


class Reading(ByteReceiveStream):
    """The agent's output, taken from the pipe only while the editor reads."""

    def __init__(self, inner: ByteReceiveStream) -> None:
        self._inner = inner
        self.goes_on = anyio.Event()
        self.goes_on.set()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await self.goes_on.wait()
        return await self._inner.receive(max_bytes)

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def lazy_editor(here: Machine) -> AsyncGenerator[tuple[Editor, Reading]]:
    command = [*PROGRAM, "--config", str(here.config)]
    process = await anyio.open_process(command, env=here.environment, cwd=here.workspace)
    assert process.stdin is not None
    assert process.stdout is not None
    reading = Reading(process.stdout)
    editor = Editor(process.stdin, reading)
    async with process, anyio.create_task_group() as tasks:
        tasks.start_soon(editor.listen)
        await editor.initialize()
        yield editor, reading
        await process.stdin.aclose()
        await editor.end()
        assert await process.wait() == 0


@dataclass(slots=True)
class Flood:
    """Answers of several MB; together they exceed what the agent holds for a lazy editor."""

    sent: dict[str, str] = field(default_factory=dict[str, str])
    """By session."""
    much: anyio.Event = field(default_factory=anyio.Event)
    """So much was sent that the agent must have stopped to take more, or is about to."""

    async def answer(self, request: Request) -> None:
        self.sent[request.session] = ""
        for number in range(160):
            if not request.hung_up.is_set():
                text = f"{number:06}{'x' * 60_000}"
                await request.say(text)
                self.sent[request.session] += text
                if sum(map(len, self.sent.values())) > 8_000_000:
                    self.much.set()
        await request.complete()


async def test_an_editor_that_does_not_read_stops_nothing_and_loses_nothing(
    tmp_path: Path,
) -> None:
    async with (
        machine(tmp_path) as here,
        anyio.create_task_group() as tasks,
        lazy_editor(here) as (editor, reading),
    ):
        sessions = [await editor.new_session(here.workspace) for _ in range(3)]
        reading.goes_on = anyio.Event()
        flood = Flood()
        calls = [await begin_prompt(editor, session) for session in sessions[:2]]
        requests = {request.session: request for request in await two(here.model)}
        for request in requests.values():
            tasks.start_soon(flood.answer, request)
        await flood.much.wait()
        calls.append(await begin_prompt(editor, sessions[2]))
        small = await here.model.request()
        await small.answer("Small.")
        await cancel(editor, sessions[0])
        await requests[sessions[0]].hung_up.wait()
        reading.goes_on.set()
        stops = [(await editor.result(call))["stopReason"] for call in calls]
        assert stops == ["cancelled", "end_turn", "end_turn"]
        shown = [said(editor, session) for session in sessions]
        assert 0 < len(shown[0]) < len(shown[1])
        assert flood.sent[sessions[1]].startswith(shown[0])
        assert shown[1:] == [flood.sent[sessions[1]], "Small."]


async def two(model: Model) -> tuple[Request, Request]:
    return await model.request(), await model.request()


def said(editor: Editor, session: str) -> str:
    chunks = editor.updates("agent_message_chunk", session)
    return "".join(chunk["content"]["text"] for chunk in chunks)
