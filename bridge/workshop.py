"""Puts together what answers prompts: turns, tools, this machine, the models' servers.

It is apart from app.py because it loads while the editor takes in the answer of session/new; the
HTTP client and the tools take as long to load as everything before.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib import import_module

from anyio.to_thread import run_sync

from bridge import log
from bridge.acp.editor import SessionEditor
from bridge.calls import Workbench
from bridge.config import Provider
from bridge.errors import Fault
from bridge.responses.events import Event
from bridge.responses.faults import Broken
from bridge.responses.transport import Transport
from bridge.servers import Connect, Load, Servers
from bridge.session import Prompt, Session
from bridge.turn import Turn
from bridge.wanted import wanted
from tools.base import Ended
from tools.environment import child_environment
from tools.frozen import frozen
from tools.local import LocalFiles
from tools.process import LocalShell, adopt_orphans, hide_memory
from tools.table import TOOLS


@frozen
class Models:
    """The models' servers, with the keys that the environment and the configuration give."""

    transport: Transport
    environment: Mapping[str, str]

    @asynccontextmanager
    async def stream(
        self,
        provider: Provider,
        body: Mapping[str, object],
        on_wait: Callable[[Fault, int, int, float], None],
        after: Broken | None = None,
    ) -> AsyncGenerator[AsyncIterator[list[Event]]]:
        """Send one request; gives its events in batches, as they arrive."""
        endpoint = provider.endpoint(self.environment)
        async with self.transport.stream(endpoint, body, on_wait, after) as batches:
            yield batches


@frozen
class Workshop:
    """All that a turn needs beside its session and its editor."""

    models: Models
    bench: Workbench
    load_client: Load

    async def answer(self, session: Session, editor: SessionEditor, prompt: Prompt) -> str:
        """Run one prompt to its stop reason."""
        return await Turn(session, editor, self.models, self.bench).run(prompt)

    async def attend(self, session: Session, editor: SessionEditor, at_once: bool) -> None:  # noqa: FBT001 (the port has it so)
        """Keep the session's MCP servers, until it is closed; without any it returns at once."""
        servers = wanted(session, os.environ)
        if not servers:
            return

        def tell(name: str, reason: str) -> None:
            # The reason may be a server's own words, which are no matter for a log.
            log.say("an MCP server cannot be used")
            editor.notice("warning", f'MCP server "{name}" cannot be used: {reason}')

        kept = Servers(servers, tell, can_ask=editor.can.form)
        session.remote = kept
        await kept.run(self.load_client, at_once=at_once)


@frozen
class SessionShell:
    """The shell of one session: without our secrets, with a temporary folder of its own."""

    session: Session

    async def run(
        self,
        command: str,
        *,
        cwd: str,
        timeout: float,  # noqa: ASYNC109 (it is the command's, and its end is a result)
        output: Callable[[str], None],
    ) -> Ended:
        """Run one command; what it may see is settled now, since most calls run none."""
        config, scratch = self.session.config, self.session.scratch
        environment = child_environment(
            os.environ,
            (*config.secrets(os.environ), *self.session.remote.secrets),
            config.key_variables(),
            scratch,
        )
        kept = {name: os.environ[name] for name in config.sandbox.env_keep if name in os.environ}
        shell = LocalShell({**environment, **kept}, scratch)
        return await shell.run(command, cwd=cwd, timeout=timeout, output=output)


@asynccontextmanager
async def workshop() -> AsyncGenerator[Workshop]:
    """The workshop of this process, until the context ends."""
    hide_memory()
    adopt_orphans()
    async with Transport() as transport:
        models = Models(transport, os.environ)
        yield Workshop(models, Workbench(TOOLS, LocalFiles(), SessionShell), load_client)


async def load_client() -> Connect:
    """The MCP client, which takes long to load and is needed by few sessions."""
    module = await run_sync(import_module, "bridge.mcp", abandon_on_cancel=True)
    return module.connect
