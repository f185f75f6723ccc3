"""Puts together what answers prompts: turns, tools, this machine, the models' servers.

It is apart from app.py because it loads while the editor takes in the answer of session/new; the
HTTP client and the tools take as long to load as everything before.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial

from bridge.acp.editor import SessionEditor
from bridge.calls import Workbench
from bridge.config import Provider, default_file
from bridge.core.wire import Json
from bridge.errors import Fault, Refused
from bridge.keys import Keys
from bridge.responses.events import Event
from bridge.responses.faults import Broken
from bridge.responses.transport import Transport
from bridge.session import Prompt, Session
from bridge.turn import Turn
from tools.base import Ended
from tools.environment import child_environment
from tools.frozen import frozen
from tools.local import LocalFiles
from tools.process import LocalShell, adopt_orphans, hide_memory
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
        on_wait: Callable[[Fault, int, int, float], None],
        after: Broken | None = None,
    ) -> AsyncGenerator[AsyncIterator[list[Event]]]:
        """Send one request; gives its events in batches, as they arrive.

        It is sent once more where the server refused a key that has changed meanwhile.
        """

        def asked(key: str | None) -> AbstractAsyncContextManager[AsyncIterator[list[Event]]]:
            return self.transport.stream(provider.endpoint(key), body, on_wait, after)

        key = await self.keys.key(provider)
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

    async def answer(self, session: Session, editor: SessionEditor, prompt: Prompt) -> str:
        """Run one prompt to its stop reason."""
        return await Turn(session, editor, self.models, self.bench).run(prompt)


@frozen
class SessionShell:
    """The shell of one session: without our secrets, with a temporary folder of its own."""

    keys: Keys
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
            os.environ, self.keys.secrets(config), config.key_variables(), scratch
        )
        kept = {name: os.environ[name] for name in config.sandbox.env_keep if name in os.environ}
        shell = LocalShell({**environment, **kept}, scratch)
        return await shell.run(command, cwd=cwd, timeout=timeout, output=output)


@asynccontextmanager
async def workshop(on_key: Callable[[str], None]) -> AsyncGenerator[Workshop]:
    """The workshop of this process, until the context ends; on_key: told of printed keys."""
    hide_memory()
    adopt_orphans()
    async with Transport() as transport:
        keys = Keys(os.environ, on_key)
        file = default_file(os.environ)
        folder = None if file is None else str(file.parent)
        bench = Workbench(TOOLS, LocalFiles(), partial(SessionShell, keys), folder)
        yield Workshop(Models(transport, keys), bench)
