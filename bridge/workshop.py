"""Puts together what answers prompts: turns, tools, this machine, the models' servers.

It is apart from app.py because it loads while the editor takes in the answer of session/new; the
HTTP client and the tools take as long to load as everything before.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from bridge.acp.editor import SessionEditor
from bridge.calls import Workbench
from bridge.config import Provider, default_file
from bridge.errors import Fault
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

    async def answer(self, session: Session, editor: SessionEditor, prompt: Prompt) -> str:
        """Run one prompt to its stop reason."""
        return await Turn(session, editor, self.models, self.bench).run(prompt)


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
            os.environ, config.secrets(os.environ), config.key_variables(), scratch
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
        file = default_file(os.environ)
        folder = None if file is None else str(file.parent)
        yield Workshop(models, Workbench(TOOLS, LocalFiles(), SessionShell, folder))
