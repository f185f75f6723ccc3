"""Has a server read a new session's instructions and tools before the first prompt comes.

A local server takes seconds or minutes to read them; what it has read it keeps, and the first
answer begins sooner.

Rule 1: only where the configuration says so: a server that bills would bill for it.
Rule 2: nothing waits for it. The first prompt and the end of the session stop it; where it fails
only the log says so.
Rule 3: the model may write one token, and nobody sees it. Where that cannot be asked for, nothing
is.
"""

from contextlib import suppress

import anyio

from bridge import context, log
from bridge.core.content import message
from bridge.core.effects import Effect
from bridge.core.meter import Taken
from bridge.core.records import Responded
from bridge.core.response import Response
from bridge.errors import BridgeError, Fault
from bridge.exchange import ModelPort, attempt, provider_of
from bridge.session import Session
from bridge.workbench import Workbench

_WORD = "Hello"
"""Templates of conversations fail where nobody has said anything."""


async def prewarm(session: Session, model: ModelPort, bench: Workbench) -> None:
    """Send the beginning of a session's first request, if that is wanted; never raises."""
    chosen = session.model
    provider = provider_of(session, chosen)
    if not provider.prewarm or session.prompts or session.next_prompt() > 1 or session.is_closed:
        return
    with anyio.CancelScope() as session.warming:
        await session.remote.join()
        body = context.request_body(session, bench, [message(_WORD)], chosen)
        if "max_output_tokens" in session.quirks_of(chosen).omit:
            return
        body["max_output_tokens"] = 1
        once = provider.model_copy(update={"max_retries": 0})
        taken = Taken()
        try:
            asking = model.stream(once, body, _unheard, None)
            taken.add(await attempt(asking, Response(), _unseen), chosen.price)
        except BridgeError as error:
            log.say(f"a server was not prepared for the first prompt: {error.kind}")
        if taken.cost is not None:
            number, maker = session.next_response(), session.dialect.maker
            with suppress(BridgeError):  # a full disk; the first prompt tells of it
                session.record(Responded(number, maker, (), (), None, taken.cost, taken.metered))


def _unheard(_fault: Fault, _attempt: int, _most: int, _seconds: float) -> None:
    """There is no other attempt to wait for."""


async def _unseen(_effects: list[Effect]) -> None:
    """The person has asked nothing yet."""
