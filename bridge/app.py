"""Puts the parts together and runs the agent; the only file that knows them all.

Rule 1: what the first answers do not need is behind workshop.py: turns, tools, the HTTP client. It
loads while the editor takes in the answer of session/new.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
from anyio.to_thread import run_sync

from bridge import config as configuration
from bridge import log
from bridge.acp.agent import Agent
from bridge.acp.connection import Connection
from bridge.acp.editor import SessionEditor
from bridge.acp.methods import take
from bridge.acp.peer import Message, Peer
from bridge.acp.stdio import Stdio
from bridge.catalogues import Catalogues, is_asked
from bridge.config import Config, Provider
from bridge.confinement import Confinement
from bridge.core import handshake
from bridge.core.wire import JsonObject
from bridge.folders import machine_file, state_folder, user_folder
from bridge.session import Prompt, Session
from bridge.store import Store
from tools.late import patterns

_FLUSH_SECONDS = 1.0
"""How long the end waits for an editor that does not read."""
_GIVE_WAY_SECONDS = 0.0005
"""How long a thread that loads or reads may hold up what streams; Python's own is ten times."""


def serve(
    config: str | None,
    stdin: int,
    stdout: int,
    received: bytes,
    hello: JsonObject | None,
    *,
    record: str | None = None,
) -> int:
    """Run the agent on these descriptors to the end of input; the exit code.

    received: bytes read already. hello: the params of an `initialize` answered already. record: a
    file to be made, for all that is said.
    """
    recording: Any = None
    if record is not None:
        try:
            recording = import_module("bridge.recording").begin(record)
        except OSError as error:
            text = f"responses-acp: {record}: {error.strerror}; name a new file for the recording\n"
            os.write(2, text.encode("utf-8", "replace"))
            return 2
    sys.setswitchinterval(_GIVE_WAY_SECONDS)
    anyio.run(run, config, Stdio(stdin, stdout), received, hello, recording)
    return 0


async def run(
    config: str | None,
    stdio: Stdio,
    received: bytes,
    hello: JsonObject | None,
    recording: Any = None,
) -> None:
    """The agent, from its first message to its last; recording: that of bridge/recording.py."""
    folder = state_folder()
    log.start(folder, os.environ.get(log.VARIABLE, ""))
    peer = Peer(initialized=hello is not None)
    catalogues = Catalogues(folder)

    def hide_key(key: str) -> None:
        agent.hide_key(key)
        if recording is not None:
            recording.hide((key,))

    def load_config() -> Config:
        return catalogues.opened(configuration.load(config, os.environ))

    if recording is not None:
        load_config = recording.record(stdio, load_config, os.environ)
    own = user_folder(os.environ)
    private = _private(folder, own, config)
    answers = Answers(Confinement(folder), hide_key, private, recording)
    async with answers, anyio.create_task_group() as tasks:

        def discover(config: Config) -> None:
            if any(map(is_asked, config.providers.values())):
                tasks.start_soon(answers.discover, catalogues, config, agent)

        agent = Agent(
            connection=Connection(peer, stdio),
            tasks=tasks,
            load_config=load_config,
            environment=os.environ,
            store=Store(None if folder is None else folder / "sessions"),
            answer=answers.answer,
            attend=answers.attend,
            discover=discover,
            forget_keys=answers.forget_keys,
            find_key=answers.find_key,
            machine_file=machine_file(),
            user_folder=None if own is None else str(own),
        )
        if hello is not None:
            agent.can = handshake.client_capabilities(hello)
        try:
            async with anyio.create_task_group() as line:
                line.start_soon(stdio.drain)
                await _converse(agent, peer, stdio, received)
                tasks.cancel_scope.cancel()
                with anyio.move_on_after(_FLUSH_SECONDS, shield=True):
                    await stdio.flushed()
                line.cancel_scope.cancel()
        finally:
            agent.close()
            if recording is not None:
                recording.end()


async def _converse(agent: Agent, peer: Peer, stdio: Stdio, received: bytes) -> None:
    """Until the end of input, a signal, or an editor that is gone."""
    async with anyio.create_task_group() as reading:
        reading.start_soon(_stop_on_signal, reading.cancel_scope)
        reading.start_soon(_stop_when_closed, stdio, reading.cancel_scope)
        await _read(agent, peer, stdio, received)
        reading.cancel_scope.cancel()


async def _read(agent: Agent, peer: Peer, stdio: Stdio, received: bytes) -> None:
    """Handle what the editor sends, to the end of input."""

    def handle(messages: list[Message]) -> None:
        with stdio.together():
            for message in messages:
                take(agent, message)
            agent.connection.flush()

    handle(peer.feed(received))
    async for data in stdio.chunks():
        handle(peer.feed(data))
    handle(peer.end())


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    """SIGTERM, SIGINT and a terminal that closes end the process like the end of input."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for _ in signals:
            scope.cancel()


async def _stop_when_closed(stdio: Stdio, scope: anyio.CancelScope) -> None:
    """An editor that closed its end of our output is gone."""
    await stdio.closed.wait()
    scope.cancel()


class Answers:
    """The way to bridge/workshop.py, which loads when it is first needed, or soon before."""

    def __init__(
        self,
        confinement: Confinement,
        on_key: Callable[[str], None],
        private: tuple[str, ...] = (),
        tape: Any = None,
    ) -> None:
        self._confinement = confinement
        self._on_key = on_key
        """Told of each key that a program printed."""
        self._private = private
        """Files and folders that commands must not read."""
        self._tape = tape
        """Takes down what is said, if anything does."""
        self._opened = AsyncExitStack()
        self._opening = anyio.Lock()
        self._workshop: Any = None
        self._discovery: Any = None

    async def __aenter__(self) -> "Answers":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._confinement.end()
        await self._opened.aclose()

    async def warm_up(self) -> None:
        """Load the workshop, in a thread: the editor may say more meanwhile."""
        if self._workshop is not None:
            return
        async with self._opening:
            if self._workshop is None:
                opening = await run_sync(self._load, abandon_on_cancel=True)
                self._workshop = await self._opened.enter_async_context(opening)
                gc.freeze()
                gc.enable()

    async def attend(self, session: Session, editor: SessionEditor, at_once: bool) -> None:  # noqa: FBT001 (the port has it so)
        """Prepare for the first prompt of a session, and keep its servers until it is closed."""
        await self.warm_up()
        await self._workshop.attend(session, editor, at_once)

    def _load(self) -> Any:
        """The workshop, to be opened; blocks."""
        with patterns():
            module: Any = import_module("bridge.workshop")
        self._confinement.expected()
        return module.workshop(self._confinement, self._private, self._on_key, self._tape)

    async def answer(self, session: Session, editor: SessionEditor, prompt: Prompt) -> str:
        """Run one prompt to its stop reason."""
        await self.warm_up()
        return await self._workshop.answer(session, editor, prompt)

    def forget_keys(self) -> None:
        """Let keys be got anew."""
        if self._workshop is not None:
            self._workshop.models.keys.forget()

    async def find_key(self, provider: Provider) -> None:
        """Have a server's key at hand."""
        await self.warm_up()
        await self._workshop.models.keys.key(provider)

    async def discover(self, catalogues: Catalogues, config: Config, agent: Agent) -> None:
        """Ask the servers for their models."""
        await self.warm_up()
        if self._discovery is None:
            module = await run_sync(import_module, "bridge.discovery")
            self._discovery = module.Discovery(catalogues, self._workshop.models.fetch)
        await self._discovery.run(config, agent.open_sessions)


def _private(state: Path | None, own: Path | None, config: str | None) -> tuple[str, ...]:
    """Our own files and folders, which commands must not read."""
    named = (state, own, config and Path(config).absolute())
    return tuple(str(path) for path in named if path)
