"""Puts together what answers prompts: turns, tools, this machine, the models' servers.

It is apart from app.py because it loads while the editor takes in the answer of session/new; the
HTTP client and the tools take as long to load as everything before.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from bridge.acp.editor import SessionEditor
from bridge.calls import Workbench
from bridge.config import Provider
from bridge.core.wire import dump
from bridge.errors import Fault, ModelError, model_error
from bridge.responses.events import Event, Failure
from bridge.responses.transport import Transport
from bridge.session import Prompt, Session
from bridge.turn import Turn
from tools.environment import child_environment
from tools.local import LocalFiles
from tools.process import LocalShell, adopt_orphans, hide_memory
from tools.table import TOOLS


@dataclass(frozen=True, slots=True)
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
    ) -> AsyncGenerator[AsyncIterator[list[Event]]]:
        """Send one request; gives its events in batches, as they arrive.

        A server that repeats our key in an error does not get it any further.
        """
        endpoint, key = provider.endpoint(self.environment), provider.key(self.environment)

        def waiting(fault: Fault, attempt: int, most: int, seconds: float) -> None:
            on_wait(_without(key, fault), attempt, most, seconds)

        try:
            async with self.transport.stream(endpoint, body, waiting) as batches:
                yield _guarded(key, batches)
        except ModelError as error:
            raise model_error(_without(key, error.fault)) from None


async def _guarded(
    key: str | None, batches: AsyncIterator[list[Event]]
) -> AsyncIterator[list[Event]]:
    async for batch in batches:
        yield [_told(key, event) if isinstance(event, Failure) else event for event in batch]


def _told(key: str | None, failure: Failure) -> Failure:
    said = dump(failure.body).decode()
    return failure if key is None or key not in said else Failure({"error": {"message": _REPEATED}})


def _without(key: str | None, fault: Fault) -> Fault:
    if key is None or key not in f"{fault.message}{fault.code}{fault.request_id}":
        return fault
    return replace(fault, message=_REPEATED, code=None, request_id=None)


_REPEATED = "The provider failed, in words that repeat the key: check the key, then try again"


@dataclass(frozen=True, slots=True)
class Workshop:
    """All that a turn needs beside its session and its editor."""

    models: Models
    bench: Workbench

    async def answer(self, session: Session, editor: SessionEditor, prompt: Prompt) -> str:
        """Run one prompt to its stop reason."""
        return await Turn(session, editor, self.models, self.bench).run(prompt)


@asynccontextmanager
async def workshop() -> AsyncGenerator[Workshop]:
    """The workshop of this process, until the context ends."""
    hide_memory()
    adopt_orphans()
    async with Transport() as transport:
        models = Models(transport, os.environ)
        yield Workshop(models, Workbench(TOOLS, LocalFiles(), _shell))


def _shell(session: Session) -> LocalShell:
    """The shell of one session: without our secrets, with a temporary folder of its own."""
    config = session.config
    environment = child_environment(
        os.environ, config.secrets(os.environ), config.key_variables(), session.scratch
    )
    kept = {name: os.environ[name] for name in config.sandbox.env_keep if name in os.environ}
    return LocalShell({**environment, **kept}, session.scratch)
