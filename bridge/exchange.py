"""One attempt at one response: a request goes out, its events go into a response machine.

It must not know what is shown of them, nor whether there is another attempt.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from bridge.config import Model, Provider
from bridge.core.effects import Effect, Failed, Finished, joined
from bridge.core.response import Response
from bridge.errors import Fault, ModelError
from bridge.responses.answer import OnWait
from bridge.responses.events import Event
from bridge.responses.faults import Broken, truncated
from bridge.session import Session

Show: TypeAlias = Callable[[list[Effect]], Awaitable[None]]
"""Takes the effects of one network read."""


class ModelPort(Protocol):
    """The model's server, reached for one request."""

    def stream(
        self,
        provider: Provider,
        body: Mapping[str, object],
        on_wait: OnWait,
        after: Broken | None,
    ) -> AbstractAsyncContextManager[AsyncIterator[list[Event]]]:
        """Send the request; gives the events in batches, as they arrive. Raises BridgeError.

        after: the attempt before, where something of it was shown.
        """
        ...


def provider_of(session: Session, model: Model) -> Provider:
    """Who serves this model."""
    return session.config.providers[model.provider]


def wait_notice(fault: Fault, attempt: int, most: int, seconds: float) -> str:
    """What the person is told of a wait before another attempt."""
    when = "now" if seconds < 1 else f"in {seconds:.0f} s"
    return f"{fault.cause or fault.message}; trying again {when} ({attempt} of {most})"


async def attempt(
    asking: AbstractAsyncContextManager[AsyncIterator[list[Event]]],
    response: Response,
    show: Show,
) -> Finished | Failed:
    """Hear one answer to its end; ModelError where there is none to hear."""
    async with asking as batches:
        try:
            async for batch in batches:
                effects = joined([effect for event in batch for effect in response.feed(event)])
                await show(effects)
                if response.over:
                    return _end(effects)
        except ModelError as error:
            return Failed(error.fault)
    effects = response.end()
    await show(effects)
    return _end(effects)


def _end(effects: Sequence[Effect]) -> Finished | Failed:
    last = effects[-1] if effects else None
    return last if isinstance(last, Finished | Failed) else Failed(truncated())
