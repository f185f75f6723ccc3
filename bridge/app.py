"""Puts the parts together and runs the agent; the only file that knows them all.

Rule 1: what is heavy and not needed for the first answers is imported where it is needed first:
the HTTP client, and with it TLS, loads while the editor takes in the answer of session/new.
"""

import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
from anyio.to_thread import run_sync

from bridge import config as configuration
from bridge import log
from bridge.acp.connection import Connection
from bridge.acp.methods import Agent, take
from bridge.acp.peer import Peer
from bridge.acp.stdio import Stdio
from bridge.calls import Workbench
from bridge.config import Provider
from bridge.core import handshake
from bridge.core.wire import JsonObject
from bridge.errors import Fault
from bridge.responses.events import Event
from bridge.session import Session
from bridge.store import Store
from tools import TOOLS
from tools.environment import child_environment
from tools.local import LocalFiles
from tools.process import LocalShell, adopt_orphans, hide_memory

_FLUSH_SECONDS = 1.0
"""How long the end waits for an editor that does not read."""


def serve(
    config: str | None, stdin: int, stdout: int, received: bytes, hello: JsonObject | None
) -> int:
    """Run the agent on these descriptors to the end of input; the exit code.

    received: bytes read already. hello: the params of an `initialize` answered already.
    """
    hide_memory()
    adopt_orphans()
    anyio.run(_serve, config, Stdio(stdin, stdout), received, hello)
    return 0


async def _serve(
    config: str | None, stdio: Stdio, received: bytes, hello: JsonObject | None
) -> None:
    folder = _state_folder()
    log.start(folder)
    peer = Peer(initialized=hello is not None)
    models = Models(os.environ)
    async with models, anyio.create_task_group() as tasks:

        def warm_up() -> None:
            tasks.start_soon(models.warm_up)

        agent = Agent(
            connection=Connection(peer, stdio),
            tasks=tasks,
            load_config=lambda: configuration.load(config, os.environ),
            environment=os.environ,
            store=Store(None if folder is None else folder / "sessions"),
            model=models,
            bench=Workbench(TOOLS, LocalFiles(), _shell),
            warm_up=warm_up,
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


async def _converse(agent: Agent, peer: Peer, stdio: Stdio, received: bytes) -> None:
    """Until the end of input, a signal, or an editor that is gone."""
    async with anyio.create_task_group() as reading:
        reading.start_soon(_stop_on_signal, reading.cancel_scope)
        reading.start_soon(_stop_when_closed, stdio, reading.cancel_scope)
        await _read(agent, peer, stdio, received)
        reading.cancel_scope.cancel()


async def _read(agent: Agent, peer: Peer, stdio: Stdio, received: bytes) -> None:
    """Handle what the editor sends, to the end of input."""
    for message in peer.feed(received):
        take(agent, message)
    agent.connection.flush()
    async for data in stdio.chunks():
        for message in peer.feed(data):
            take(agent, message)
        agent.connection.flush()
    for message in peer.end():
        take(agent, message)
    agent.connection.flush()


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    """SIGTERM and SIGINT end the process like the end of input."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()


async def _stop_when_closed(stdio: Stdio, scope: anyio.CancelScope) -> None:
    """An editor that closed its end of our output is gone."""
    await stdio.closed.wait()
    scope.cancel()


class Models:
    """The models' servers, reached through one transport that loads when it is needed."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._opened = AsyncExitStack()
        self._loading = anyio.Lock()
        self._transport: Any = None

    async def __aenter__(self) -> "Models":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    async def warm_up(self) -> None:
        """Load the transport, so that the first prompt finds it ready."""
        if self._transport is not None:
            return
        async with self._loading:
            if self._transport is None:
                module = await run_sync(import_module, "bridge.responses.transport")
                self._transport = await self._opened.enter_async_context(module.Transport())

    @asynccontextmanager
    async def stream(
        self,
        provider: Provider,
        body: Mapping[str, object],
        on_wait: Callable[[Fault, int, int, float], None],
    ) -> AsyncGenerator[AsyncIterator[list[Event]]]:
        """Send one request; gives its events in batches, as they arrive."""
        endpoint = provider.endpoint(self._environment)
        await self.warm_up()
        async with self._transport.stream(endpoint, body, on_wait) as batches:
            yield batches


def _shell(session: Session) -> LocalShell:
    """The shell of one session: without our secrets, with a temporary folder of its own."""
    config = session.config
    environment = child_environment(
        os.environ, config.secrets(os.environ), config.key_variables(), session.scratch
    )
    kept = {name: os.environ[name] for name in config.sandbox.env_keep if name in os.environ}
    return LocalShell({**environment, **kept}, session.scratch)


def _state_folder() -> Path | None:
    """Where sessions and the log live; None where the user has no such place."""
    from platformdirs import user_state_path  # noqa: PLC0415 (not needed for initialize)

    folder = user_state_path("responses-acp", appauthor=False)
    return folder if folder.is_absolute() else None
