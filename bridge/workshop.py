"""Puts together what answers prompts: turns, tools, this machine, the models' servers.

It is apart from app.py because it loads while the editor takes in the answer of session/new; the
HTTP client and the tools take as long to load as everything before.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import anyio
from anyio.to_thread import run_sync

from bridge import log
from bridge.acp.editor import SessionEditor
from bridge.calls import Workbench
from bridge.config import Provider, default_file
from bridge.core import policy
from bridge.core.wire import Json
from bridge.errors import Refused
from bridge.keys import Keys
from bridge.prewarm import prewarm
from bridge.responses.answer import OnWait
from bridge.responses.events import Event
from bridge.responses.faults import Broken
from bridge.responses.transport import Opening, Transport
from bridge.servers import Connect, Load, Servers
from bridge.session import Prompt, Session
from bridge.turn import Turn
from bridge.wanted import wanted
from tools.base import Ended, Hold, Reach
from tools.confined import ConfinedShell
from tools.environment import child_environment
from tools.frozen import frozen
from tools.guardian import Guardian
from tools.local import LocalFiles
from tools.login import is_wanted
from tools.login_shell import login_environment
from tools.process import adopt_orphans, hide_memory
from tools.sandbox import Fence, Layers, layers_of
from tools.shell import CONFINED_SHELL, SHELL
from tools.table import TOOLS


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

    async def fetch(self, provider: Provider, url: str, body: Json) -> Json:
        """The JSON at a URL of the provider's server."""
        endpoint = provider.endpoint(await self.keys.key(provider))
        return await self.transport.fetch(endpoint, url, body)


@frozen
class Workshop:
    """All that a turn needs beside its session and its editor."""

    models: Models
    bench: Workbench
    load_client: Load
    confined: Workbench | None = None
    """The same for sessions whose commands run in a sandbox; None: this machine has none."""
    log_in: Callable[[Session], Coroutine[Any, Any, None]] | None = None
    """Finds out what the user's login shell makes of the environment; None: nobody is asked."""

    async def answer(self, session: Session, editor: SessionEditor, prompt: Prompt) -> str:
        """Run one prompt to its stop reason."""
        session.stop_warming()
        return await Turn(session, editor, self.models, self._bench_of(session)).run(prompt)

    def _bench_of(self, session: Session) -> Workbench:
        is_confined = session.config.sandbox.mode == "auto"
        return (self.confined if is_confined else None) or self.bench

    async def attend(self, session: Session, editor: SessionEditor, at_once: bool) -> None:  # noqa: FBT001 (the port has it so)
        """Keep what runs beside the session, until it is closed: its jobs and its MCP servers."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.jobs.keep)
            if self.log_in and is_wanted(session.config.shell.env_from, os.environ):
                session.login.begin()
                tasks.start_soon(self.log_in, session)
            await self._serve(session, editor, at_once)

    async def _serve(self, session: Session, editor: SessionEditor, at_once: bool) -> None:  # noqa: FBT001 (as attend)
        """Keep the session's MCP servers, until it is closed; meanwhile prepare the model's."""
        servers = () if session.is_closed else wanted(session, os.environ)
        if not servers:
            await prewarm(session, self.models, self._bench_of(session))
            return

        def tell(name: str, reason: str) -> None:
            # The reason may be a server's own words, which are no matter for a log.
            log.say("an MCP server cannot be used")
            editor.notice("warning", f'MCP server "{name}" cannot be used: {reason}')

        kept = Servers(servers, tell, can_ask=editor.can.form)
        session.remote = kept
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prewarm, session, self.models, self._bench_of(session))
            await kept.run(self.load_client, at_once=at_once)


@frozen
class SessionShell:
    """The shell of one session: without our secrets, inside what its mode and preset allow."""

    keys: Keys
    session: Session
    layers: Layers
    private: tuple[str, ...] = ()
    """Files and folders of our own, which commands must not read."""
    guardian: Guardian | None = None

    async def hold(self) -> Hold:
        """How a command that starts now would be held."""
        hold = await self._shell(os.environ).hold()
        is_open = hold.strength == "none" and hold.reach != "danger-full-access"
        if not (is_open and self.session.config.sandbox.require):
            return hold
        why = f"no command runs without a sandbox, and there is none: {'; '.join(hold.gaps)}"
        return replace(hold, refusal=why)

    async def run(
        self,
        command: str,
        *,
        cwd: str,
        timeout: float,  # noqa: ASYNC109 (it is the command's, and its end is a result)
        output: Callable[[str], None],
        reach: Reach | None = None,
    ) -> Ended:
        """Run one command; what it may touch is settled now, since most calls run none."""
        inherited = await self.session.login.environment(os.environ)
        return await self._shell(inherited).run(
            command, cwd=cwd, timeout=timeout, output=output, reach=reach
        )

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """What commands get of this environment."""
        config = self.session.config
        secrets = (*self.keys.secrets(config), *self.session.remote.secrets)
        return child_environment(inherited, secrets, config.key_variables(), self.session.scratch)

    def _shell(self, inherited: Mapping[str, str]) -> ConfinedShell:
        session = self.session
        config, scratch = session.config, session.scratch
        environment = self.environment(inherited)
        kept = {name: os.environ[name] for name in config.sandbox.env_keep if name in os.environ}
        fence = Fence(
            policy.reach(session.mode, session.permission),
            session.roots,
            scratch,
            config.sandbox.network,
            hidden=(*self.private, *config.key_files()),
            home=os.environ.get("HOME", ""),
        )
        layers = self.layers
        if config.sandbox.mode == "off":
            layers = replace(layers, working="", failures=("it is switched off",))
        return ConfinedShell({**environment, **kept}, fence, layers, guardian=self.guardian)


class Tape(Protocol):
    """Takes down what the model and the tools say."""

    def tap(self, content: bytes, opening: Opening) -> Opening:
        """The same way to an answer, taken down."""
        ...

    def taped(self, bench: Workbench) -> Workbench:
        """The same tools, taken down."""
        ...


@asynccontextmanager
async def workshop(
    probed: tuple[str, str],
    private: tuple[str, ...],
    on_key: Callable[[str], None],
    tape: Tape | None = None,
) -> AsyncGenerator[Workshop]:
    """The workshop of this process, until the context ends.

    probed says what can confine commands here, private what they must not read; on_key is told of
    each key that a program printed.
    """
    layers = layers_of(*probed)
    hide_memory()
    adopt_orphans()
    files, keys, guardian = LocalFiles(), Keys(os.environ, on_key), Guardian()

    def shell(session: Session) -> SessionShell:
        return SessionShell(keys, session, layers, private, guardian)

    async def log_in(session: Session) -> None:
        own = shell(session).environment(os.environ)
        await session.login.read(own, partial(login_environment, own, session.cwd))

    file = default_file(os.environ)
    folder = None if file is None else str(file.parent)
    plain = Workbench(TOOLS, files, shell, folder)
    confined = Workbench({**TOOLS, SHELL.name: CONFINED_SHELL}, files, shell, folder)
    if tape is not None:
        plain, confined = tape.taped(plain), tape.taped(confined)
    with closing(guardian):
        async with Transport(tap=None if tape is None else tape.tap) as transport:
            models = Models(transport, keys)
            confining = None if layers.hold.strength == "none" else confined
            yield Workshop(models, plain, load_client, confining, log_in)


async def load_client() -> Connect:
    """The MCP client, which takes long to load and is needed by few sessions."""
    module = await run_sync(import_module, "bridge.mcp", abandon_on_cancel=True)
    return module.connect
