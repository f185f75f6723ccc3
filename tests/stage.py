"""The whole agent in this process: a fake editor at one end, a scripted server at the other.

Between them everything is real but the two lines. Time is the event loop's, so that with
skipped_time.py no wait takes long.
"""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.lowlevel

from bridge.acp.connection import Connection
from bridge.acp.methods import Agent, take
from bridge.acp.peer import Peer
from bridge.calls import Toolbox, workbench
from bridge.config import Config, load
from bridge.keys import Keys
from bridge.machine import SessionShell
from bridge.recording import Recording
from bridge.responses.transport import Transport
from bridge.session import Session
from bridge.store import Store
from bridge.workbench import Workbench
from bridge.workshop import Models, Workshop, load_client
from tests.fake_editor import Editor, Refused
from tests.fake_responses import FakeResponses
from tests.laws import Message
from tests.transcript import toml
from tools.base import Tool
from tools.layers import Layers
from tools.local import LocalFiles
from tools.shell import CONFINED_SHELL, SHELL
from tools.table import TOOLS

NOTICES: Message = {"session": {"notices": {}}}


class _Stdout:
    """What the agent writes, for the editor to read."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self.on_read: Callable[[bytes], None] | None = None
        self.on_write: Callable[[bytes], None] | None = None

    def write(self, data: bytes) -> None:
        if self.on_write is not None:
            self.on_write(data)
        self._send(data)

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def room(self) -> None:
        await anyio.lowlevel.checkpoint()


@dataclass(eq=False, slots=True)
class _Stdin:
    """What the editor writes goes to the agent at once."""

    agent: Agent
    peer: Peer
    on_read: Callable[[bytes], None] | None = None

    async def send(self, data: bytes) -> None:
        if self.on_read is not None:
            self.on_read(data)
        for message in self.peer.feed(data):
            take(self.agent, message)
        self.agent.connection.flush()


@dataclass(eq=False, slots=True)
class Stage:
    """An agent at play, with one session."""

    editor: Editor
    model: FakeResponses
    folder: Path
    session: str = ""
    told: int = 0
    """Updates that news() has given."""

    @property
    def workspace(self) -> Path:
        return self.folder / "ws"

    async def prompt(self, text: str = "Go on.") -> Message:
        """The answer of one prompt: its result, or its error."""
        prompt = [{"type": "text", "text": text}]
        params = {"sessionId": self.session, "prompt": prompt}
        try:
            return await self.editor.request("session/prompt", params)
        except Refused as refused:
            return refused.error

    def news(self) -> list[Message]:
        """The updates since this was asked last."""
        updates = self.editor.updates()
        before, self.told = self.told, len(updates)
        return updates[before:]


@asynccontextmanager
async def stage(
    folder: Path,
    model: FakeResponses,
    *,
    provider: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    can: Mapping[str, Any] = NOTICES,
    wired: bool = False,
    top: Mapping[str, Any] | None = None,
    layers: Layers | None = None,
    recording: Recording | None = None,
    environment: Mapping[str, str] | None = None,
) -> AsyncGenerator[Stage]:
    """The agent, greeted, with a session; afterwards every law held to its end.

    provider and settings: what the configuration says of the server and of the model; top: what
    it says beside them. wired: the model is reached where it serves, at the configured address.
    layers: what holds commands; without it nothing does. recording: takes all of it down.
    """
    (folder / "ws").mkdir(exist_ok=True)
    file = folder / "config.toml"
    server = {"base_url": "http://127.0.0.1:9/v1", **(provider or {})}
    config = {
        "permission": "danger-full-access",
        "providers": {"p": server},
        "models": {"m": {"provider": "p", **(settings or {})}},
        **(top or {}),
    }
    file.write_text(toml(config), encoding="utf-8")
    written, to_editor = anyio.create_memory_object_stream[bytes](100_000)
    peer = Peer()
    async with (
        written,
        to_editor,
        Transport(
            None if wired else model.inner,
            clock=anyio.current_time,
            tap=None if recording is None else recording.tap,
        ) as transport,
        anyio.create_task_group() as tasks,
    ):
        around = os.environ if environment is None else environment
        keys = Keys(around, lambda _: None)
        files, held = LocalFiles(), {**TOOLS, SHELL.name: CONFINED_SHELL}

        def shell(session: Session) -> SessionShell:
            return SessionShell(keys, session, layers or Layers())

        def bench_of(tools: Mapping[str, Tool[Any]]) -> Workbench:
            taped = tools if recording is None else recording.tools(tools)
            bench = workbench(Toolbox(taped, files, shell))
            return bench if recording is None else recording.taped(bench)

        bench, confined = bench_of(TOOLS), bench_of(held)
        models, stdout = Models(transport, keys), _Stdout(written.send_nowait)

        def load_config() -> Config:
            return load(str(file), environment or {})

        if recording is not None:
            load_config = recording.record(stdout, load_config, around)
        workshop = Workshop(models, bench, load_client, confined if layers else None)
        agent = Agent(
            connection=Connection(peer, stdout),
            tasks=tasks,
            load_config=load_config,
            environment={},
            store=Store(folder / "state"),
            answer=workshop.answer,
            attend=workshop.attend,
            discover=lambda _: None,
        )
        stdin = _Stdin(agent, peer, stdout.on_read)
        editor = Editor(cast("Any", stdin), cast("Any", to_editor))
        tasks.start_soon(editor.listen)
        playing = Stage(editor, model, folder)
        await editor.initialize(**can)
        playing.session = await editor.new_session(playing.workspace)
        await editor.update("available_commands_update")
        playing.news()
        yield playing
        agent.close()
        if recording is not None:
            recording.end()
        written.close()
        await editor.end()
        editor.laws.end()
        tasks.cancel_scope.cancel()
