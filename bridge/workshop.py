"""Puts together what answers prompts: turns, the models' servers, and the way to the tools.

It is apart from app.py because it loads while the editor takes in the answer of session/new; what
the first request does not need is behind machine.py, and loads after it.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import anyio
from anyio.to_thread import run_sync

from bridge import log
from bridge.acp.editor import SessionEditor
from bridge.config import Provider
from bridge.confinement import Confinement
from bridge.core.wire import Json
from bridge.errors import Refused
from bridge.folders import user_folder
from bridge.keys import Keys
from bridge.prewarm import prewarm
from bridge.responses.answer import OnWait
from bridge.responses.events import Event
from bridge.responses.faults import Broken
from bridge.responses.transport import Opening, Transport
from bridge.session import Prompt, Session
from bridge.turn import Turn
from bridge.workbench import ToolPort, Workbench
from tools.base import Tool
from tools.frozen import frozen
from tools.login import is_wanted
from tools.offers import CONFINED_SHELL, OFFERS
from tools.prctl import adopt_orphans, hide_memory

_SOON = 0.5
"""Seconds from a session's begin until the tools load, if nothing needs them before."""
_LULL = 0.2
"""Seconds without a word from the models' servers, until then: an answer that streams would
stutter."""


@frozen
class Models:
    """The models' servers, with their keys."""

    transport: Transport
    keys: Keys

    @asynccontextmanager
    async def stream(
        self,
        provider: Provider,
        body: Mapping[str, object],
        on_wait: OnWait,
        after: Broken | None = None,
    ) -> AsyncGenerator[AsyncIterator[list[Event]]]:
        """Send one request; gives its events in batches, as they arrive.

        It is sent once more where the server refused a key that has changed meanwhile.
        """

        def asked(key: str | None) -> AbstractAsyncContextManager[AsyncIterator[list[Event]]]:
            return self.transport.stream(provider.endpoint(key), body, on_wait, after)

        key = await self.keys.key(provider)
        log.detail(f"asking {provider.base_url}")
        async with AsyncExitStack() as stack:
            try:
                batches = await stack.enter_async_context(asked(key))
            except Refused as error:
                other = (
                    await self.keys.instead(provider, key) if error.fault.status == 401 else None
                )
                if other is None:
                    raise
                batches = await stack.enter_async_context(asked(other))
            yield batches

    def quiet_for(self) -> float:
        """Seconds since one of them was asked something or said something."""
        return self.transport.quiet_for()

    async def fetch(self, provider: Provider, url: str, body: Json) -> Json:
        """The JSON at a URL of the provider's server."""
        endpoint = provider.endpoint(await self.keys.key(provider))
        return await self.transport.fetch(endpoint, url, body)


@frozen
class Workshop:
    """All that a turn needs beside its session and its editor."""

    models: Models
    bench: Workbench
    load_client: Callable[[], Awaitable[Any]]
    """Gives the way to connect to an MCP server."""
    confined: Workbench | None = None
    """The same for sessions whose commands run in a sandbox; None: this machine has none."""
    log_in: Callable[[Session], Coroutine[Any, Any, None]] | None = None
    """Finds out what the user's login shell makes of the environment; None: nobody is asked."""
    confinement: Confinement | None = None
    """Whether there is one, as far as is known; None: as `confined` says."""

    async def answer(self, session: Session, editor: SessionEditor, prompt: Prompt) -> str:
        """Run one prompt to its stop reason."""
        session.stop_warming()
        return await Turn(session, editor, self.models, self._bench_of(session)).run(prompt)

    def _bench_of(self, session: Session) -> Workbench:
        there = self.confinement is None or self.confinement.expected().hold.strength != "none"
        is_confined = there and session.config.sandbox.mode == "auto"
        return (self.confined if is_confined else None) or self.bench

    async def attend(self, session: Session, editor: SessionEditor, at_once: bool) -> None:  # noqa: FBT001 (the port has it so)
        """Keep what runs beside the session, until it is closed: its jobs and its MCP servers."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.jobs.keep)
            if self.log_in and is_wanted(session.config.shell.env_from, os.environ):
                session.login.begin()
                tasks.start_soon(self.log_in, session)
            tasks.start_soon(load_soon, self._bench_of(session), self.models.quiet_for)
            await self._serve(session, editor, at_once)

    async def _serve(self, session: Session, editor: SessionEditor, at_once: bool) -> None:  # noqa: FBT001 (as attend)
        """Keep the session's MCP servers, until it is closed; meanwhile prepare the model's."""
        bench = self._bench_of(session)
        if session.is_closed or not (session.servers or session.config.mcp):
            await prewarm(session, self.models, bench)
            return
        # Few sessions have servers, and those that have wait for them anyway.
        wanted: Any = import_module("bridge.wanted")
        servers: Any = import_module("bridge.servers")

        def tell(name: str, reason: str) -> None:
            # The reason may be a server's own words, which are no matter for a log.
            log.say("an MCP server cannot be used")
            editor.notice("warning", f'MCP server "{name}" cannot be used: {reason}')

        all_wanted = wanted.wanted(session, os.environ)
        kept = session.remote = servers.Servers(all_wanted, tell, can_ask=editor.can.form)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prewarm, session, self.models, bench)
            await kept.run(self.load_client, at_once=at_once)


async def load_soon(bench: Workbench, quiet_for: Callable[[], float]) -> None:
    """Have the tools ready for the first call, but not in the way of what streams.

    quiet_for: for how many seconds the models' servers have had nothing to say.
    """
    await anyio.sleep(_SOON)
    while (left := _LULL - quiet_for()) > 0:  # noqa: ASYNC110 (nobody tells of it)
        await anyio.sleep(left)
    await bench.load()


class Tape(Protocol):
    """Takes down what the model and the tools say."""

    def tap(self, content: bytes, opening: Opening) -> Opening:
        """The same way to an answer, taken down."""
        ...

    def taped(self, bench: Workbench) -> Workbench:
        """The same workbench; what it tells the model is taken down."""
        ...

    def tools(self, tools: Mapping[str, Tool[Any]], /) -> Mapping[str, Tool[Any]]:
        """The same tools; what they find is taken down."""
        ...


class _Late:
    """The machine, loaded once, when it is first wanted."""

    def __init__(self, keys: Keys, confinement: Confinement, private: tuple[str, ...]) -> None:
        self._keys = keys
        self._confinement = confinement
        self._private = private
        self._loading = anyio.Lock()
        self._machine: Any = None

    def close(self) -> None:
        """End what it keeps running."""
        if self._machine is not None:
            self._machine.close()

    async def machine(self) -> Any:
        """A Machine of bridge/machine.py."""
        if self._machine is None:
            # It takes a moment, in which a cancelled turn would lose what it is about to show.
            with anyio.CancelScope(shield=True):
                async with self._loading:
                    if self._machine is None:
                        self._machine = await run_sync(self._load)
        return self._machine

    def _load(self) -> Any:
        module: Any = import_module("bridge.machine")
        return module.Machine(self._keys, self._confinement.tried(), self._private)


@asynccontextmanager
async def workshop(
    confinement: Confinement,
    private: tuple[str, ...],
    on_key: Callable[[str], None],
    tape: Tape | None = None,
) -> AsyncGenerator[Workshop]:
    """The workshop of this process, until the context ends.

    confinement tells what can confine commands here, private what they must not read; on_key is
    told of each key that a program printed.
    """
    hide_memory()
    adopt_orphans()
    keys = Keys(os.environ, on_key)
    late = _Late(keys, confinement, private)
    own = user_folder(os.environ)
    folder = None if own is None else str(own)
    boxes: list[ToolPort] = []

    async def load(which: int) -> ToolPort:
        if not boxes:
            machine = await late.machine()
            boxes[:] = machine.toolboxes(folder, None if tape is None else tape.tools)
        return boxes[which]

    async def log_in(session: Session) -> None:
        await (await late.machine()).log_in(session)

    held = {**OFFERS, CONFINED_SHELL.name: CONFINED_SHELL}
    plain = Workbench(OFFERS.values(), partial(load, 0), folder)
    confined = Workbench(held.values(), partial(load, 1), folder)
    if tape is not None:
        plain, confined = tape.taped(plain), tape.taped(confined)
    with closing(late):
        async with Transport(tap=None if tape is None else tape.tap) as transport:
            models = Models(transport, keys)
            yield Workshop(models, plain, load_client, confined, log_in, confinement)


async def load_client() -> Any:
    """`connect` of the MCP client, which takes long to load and is needed by few sessions."""
    module = await run_sync(import_module, "bridge.mcp", abandon_on_cancel=True)
    return module.connect
