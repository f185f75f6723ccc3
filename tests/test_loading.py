"""A session that is being loaded: streamed at the editor's pace, while others are heard.

The agent writes into a real pipe that nobody reads before the test does, so that a load can be held
still at any place.
"""

import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.lowlevel import checkpoint

from bridge.acp.agent import Agent
from bridge.acp.connection import Connection
from bridge.acp.editor import SessionEditor
from bridge.acp.methods import take
from bridge.acp.peer import Note, Peer, Request
from bridge.acp.stdio import Stdio
from bridge.config import load
from bridge.core.records import Opened, Prompted, Record, Responded, SaidText, Switched
from bridge.errors import Unreachable
from bridge.responses.faults import truncated
from bridge.session import Prompt, Session
from bridge.store import Store
from tests.laws import Message

pytestmark = pytest.mark.anyio

CONFIG = '[providers.p]\nbase_url = "http://127.0.0.1:9/v1"\n[models.m]\nprovider = "p"\n'
BLIND = f"{CONFIG}images = false\n"
IMAGE: Message = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}
LONG = "word " * 4000


@dataclass(eq=False, slots=True)
class Pipe:
    """An agent, and the end of the pipe that its editor reads."""

    agent: Agent
    stdio: Stdio
    end: int
    cwd: str
    answered: list[Session] = field(default_factory=list[Session])
    """The sessions of the prompts that ran."""
    _rest: bytes = b""

    def ask(self, request: int, method: str, **params: Any) -> None:
        take(self.agent, Request(request, method, params))

    def load(self, request: int, session: str = "s1", method: str = "session/load") -> None:
        self.ask(request, method, sessionId=session, cwd=self.cwd, mcpServers=[])

    def prompt(self, request: int, *blocks: Message) -> None:
        given = list(blocks) or [{"type": "text", "text": "Go on"}]
        self.ask(request, "session/prompt", sessionId="s1", prompt=given)

    def tell(self, method: str, **params: Any) -> None:
        take(self.agent, Note(method, params))

    async def answers(self, *requests: int) -> list[Message]:
        """Read until all of these are answered; gives the answers in their order on the wire."""
        found: list[Message] = []
        with anyio.fail_after(10):
            while len(found) < len(requests):
                await anyio.wait_readable(self.end)
                *lines, self._rest = (self._rest + os.read(self.end, 1 << 20)).split(b"\n")
                messages = [json.loads(line) for line in lines]
                found += [one for one in messages if one.get("id") in requests]
        return found


@asynccontextmanager
async def pipe(
    folder: Path, config: str = CONFIG, until: Callable[[], Awaitable[None]] = checkpoint
) -> AsyncGenerator[Pipe]:
    """An agent whose model answers every prompt with nothing, after this."""
    file = folder / "config.toml"
    file.write_text(config, encoding="utf-8")
    end, written = os.pipe()
    stdio = Stdio(written, written)

    async def answer(session: Session, editor: SessionEditor, prompt: Prompt) -> str:
        here.answered.append(session)
        await until()
        return "end_turn"

    async def attend(session: Session, editor: SessionEditor, at_once: bool) -> None: ...

    try:
        async with anyio.create_task_group() as tasks:
            agent = Agent(
                connection=Connection(Peer(initialized=True), stdio),
                tasks=tasks,
                load_config=lambda: load(str(file), {}),
                environment={},
                store=Store(folder / "state"),
                answer=answer,
                attend=attend,
                discover=lambda _: None,
            )
            here = Pipe(agent, stdio, end, str(folder))
            tasks.start_soon(stdio.drain)
            yield here
            tasks.cancel_scope.cancel()
            agent.close()
    finally:
        os.close(end)
        os.close(written)


def stored(folder: Path, turns: int, *more: Record, text: str = LONG) -> None:
    """Session s1, whose turns say so much."""
    journal = Store(folder / "state").create(
        Opened("s1", str(folder), "t", "default", "m", None, "ask")
    )
    journal.start()
    for number in range(1, turns + 1):
        said = SaidText("message", f"m{number}.0", text)
        item: Message = {"type": "message", "role": "assistant", "content": []}
        part: Message = {"type": "input_text", "text": "Go on"}
        journal.append(Prompted(number, ({"type": "text", "text": "Go on"},), (part,), "t"))
        journal.append(Responded(number, "p/m", (said,), (item,), 5))
    for record in more:
        journal.append(record)
    journal.close()


async def test_a_slow_editor_is_waited_for_and_others_are_heard(tmp_path: Path) -> None:
    stored(tmp_path, 1500)  # 30 MB
    async with pipe(tmp_path) as here:
        here.load(1)
        await anyio.wait_all_tasks_blocked()
        assert 0 < here.stdio.backlog < 9 * 1024 * 1024
        here.ask(2, "session/list")
        here.ask(3, "no/such/method")
        first, second, third = await here.answers(1, 2, 3)
        assert (first["id"], second["id"], third["id"]) == (2, 3, 1)
        assert third["result"]["modes"]["currentModeId"] == "default"


async def test_what_waits_for_a_load_happens_after_it(tmp_path: Path) -> None:
    stored(tmp_path, 1000, Switched("mode", "plan"))
    async with pipe(tmp_path) as here:
        here.load(1)
        here.prompt(2)
        here.ask(3, "session/set_mode", sessionId="s1", modeId="default")
        here.ask(4, "session/set_config_option", sessionId="s1", configId="permission", value="ask")
        here.load(5)
        await anyio.wait_all_tasks_blocked()
        assert here.answered == []
        answers = await here.answers(1, 2, 3, 4, 5)
        assert [one["id"] for one in answers][:2] == [5, 1]
        assert "loaded already" in answers[0]["error"]["message"]
        assert answers[1]["result"]["modes"]["currentModeId"] == "plan"
        assert all("result" in one for one in answers[1:])
        (session,) = here.answered
        assert session.mode == "default"


async def test_a_picture_is_judged_by_the_model_that_is_loaded(tmp_path: Path) -> None:
    stored(tmp_path, 1)
    async with pipe(tmp_path, BLIND) as here:
        here.load(1)
        here.prompt(2, IMAGE)
        _, answer = await here.answers(1, 2)
        assert answer["error"]["code"] == -32602
        here.prompt(3, IMAGE)
        (answer,) = await here.answers(3)
        assert answer["error"]["code"] == -32602
        assert here.answered == []


async def test_content_that_is_refused_is_named_and_not_repeated(tmp_path: Path) -> None:
    stored(tmp_path, 1)
    async with pipe(tmp_path) as here:
        here.load(1)
        here.prompt(2, {"type": "text", "text": "x"}, {"type": "y" * 100_000})
        answers = {one["id"]: one for one in await here.answers(1, 2)}
        said = f'prompt.1: content of type "{"y" * 100}": not supported'
        assert answers[2]["error"]["message"] == said


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_a_session_can_be_ended_while_it_is_loaded(tmp_path: Path, method: str) -> None:
    stored(tmp_path, 1000)
    async with pipe(tmp_path) as here:
        here.load(1)
        here.prompt(2)
        await anyio.wait_all_tasks_blocked()
        here.ask(3, method, sessionId="s1")
        here.prompt(4)
        answers = {one["id"]: one for one in await here.answers(1, 2, 3, 4)}
        assert answers[1]["error"]["code"] == -32800
        assert answers[2]["result"] == {"stopReason": "cancelled"}
        assert answers[3]["result"] == {}
        assert answers[4]["error"]["code"] == -32002
        assert here.agent.sessions == {}
        here.load(5)
        (again,) = await here.answers(5)
        assert ("result" in again) == (method == "session/close")


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
@pytest.mark.parametrize("busy", ["a load", "a prompt", "nothing"])
async def test_a_session_that_is_still_ending_can_be_deleted(
    tmp_path: Path, method: str, busy: str
) -> None:
    stored(tmp_path, 1000 if busy == "a load" else 1)
    async with pipe(tmp_path) as here:
        here.load(1)
        if busy != "a load":
            await here.answers(1)
        if busy == "a prompt":
            here.prompt(1)
        here.ask(2, method, sessionId="s1")
        here.ask(3, "session/delete", sessionId="s1")
        here.ask(4, "session/delete", sessionId="s1")
        here.ask(5, "session/close", sessionId="s1")
        answers = {one["id"]: one for one in await here.answers(2, 3, 4, 5)}
        assert [answers[number].get("result") for number in (2, 3, 4)] == [{}, {}, {}]
        assert answers[5]["error"]["code"] == -32002
        assert here.agent.closing == here.agent.sessions == {}
        assert list((tmp_path / "state").iterdir()) == []


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_load_can_be_given_up(tmp_path: Path, method: str) -> None:
    stored(tmp_path, 1000)
    async with pipe(tmp_path) as here:
        here.load(1, method=method)
        here.prompt(2)
        here.ask(3, "session/set_mode", sessionId="s1", modeId="plan")
        await anyio.lowlevel.checkpoint()
        here.tell("$/cancel_request", requestId=1)
        answers = {one["id"]: one for one in await here.answers(1, 2, 3)}
        assert answers[1]["error"]["code"] == -32800
        assert answers[2]["result"] == {"stopReason": "cancelled"}
        assert answers[3]["error"]["code"] == -32002
        here.load(4)
        (again,) = await here.answers(4)
        assert "result" in again


async def test_a_cancel_ends_the_prompt_that_waits_and_not_the_load(tmp_path: Path) -> None:
    stored(tmp_path, 1000)
    async with pipe(tmp_path) as here:
        here.load(1)
        here.prompt(2)
        await anyio.wait_all_tasks_blocked()
        here.tell("session/cancel", sessionId="s1")
        second, first = await here.answers(1, 2)
        assert second["result"] == {"stopReason": "cancelled"}
        assert "modes" in first["result"]
        here.tell("$/cancel_request", requestId=1)  # is answered already
        here.prompt(3)
        (third,) = await here.answers(3)
        assert third["result"] == {"stopReason": "end_turn"}


@pytest.mark.parametrize("cancel", ["session/cancel", "$/cancel_request", "session/close"])
async def test_a_prompt_that_fails_by_being_cancelled_is_cancelled(
    tmp_path: Path, cancel: str
) -> None:
    async def until() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise Unreachable(truncated())

    stored(tmp_path, 1)
    async with pipe(tmp_path, until=until) as here:
        here.load(1)
        await here.answers(1)
        here.prompt(2)
        await anyio.wait_all_tasks_blocked()
        if cancel == "session/close":
            here.ask(3, cancel, sessionId="s1")
        else:
            here.tell(cancel, sessionId="s1", requestId=2)
        (answer,) = await here.answers(2)
        assert answer["result"] == {"stopReason": "cancelled"}


async def test_two_sessions_load_at_the_same_time(tmp_path: Path) -> None:
    stored(tmp_path, 500)
    lines = (tmp_path / "state" / "s1.jsonl").read_bytes()
    (tmp_path / "state" / "s2.jsonl").write_bytes(
        lines.replace(b'"session":"s1"', b'"session":"s2"')
    )
    async with pipe(tmp_path) as here:
        here.load(1)
        here.load(2, "s2")
        assert all("result" in one for one in await here.answers(1, 2))


async def test_the_work_of_a_load_grows_with_the_session_and_no_faster(tmp_path: Path) -> None:
    """Counted are the calls of functions, which no clock and no other program can change."""
    made: list[int] = []
    for turns in (200, 1000):
        folder = tmp_path / str(turns)
        folder.mkdir()
        stored(folder, turns, text="Short")
        async with pipe(folder) as here:
            made.append(await calls(lambda here=here: here.load(1), here))
    few, many = made
    assert 4 * few < many < 6 * few


async def calls(begin: Callable[[], None], here: Pipe) -> int:
    """The function calls that are made from here to the answer of request 1."""
    count = 0

    def counted(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        begin()
        await here.answers(1)
    finally:
        sys.setprofile(None)
    return count
