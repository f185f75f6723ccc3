"""Links in a prompt to local files: what they show goes into the prompt, as `read` shows it.

Rule 1: only what `read` may read without asking is shown. Everything else stays a link, which the
model can follow with a call that the person is asked about.
Rule 2: what is shown counts as read, so that the model may edit it at once.
Rule 3: a link never fails a prompt, nor holds it up: what takes long to read stays a link as well.
"""

from collections.abc import Iterator, Sequence

import anyio

from bridge import permits
from bridge.core import policy
from bridge.core.link import Spot, spots
from bridge.core.records import Item, SawFile
from bridge.session import Session
from tools.base import Context, Prepared, Result
from tools.read import READ

MOST_SHOWN = 20
"""Links of one prompt."""
MOST_CHARACTERS = 200_000
"""Of all their files together."""
MOST_SECONDS = 5.0
"""For all of them: a file may be huge, or on a disk that is gone."""


async def followed(blocks: Sequence[Item], session: Session, context: Context) -> tuple[Item, ...]:
    """The blocks of a prompt, with what its links show after each of them."""
    result: list[Item] = []
    shown, room = 0, MOST_CHARACTERS
    end = anyio.current_time() + MOST_SECONDS
    for block in blocks:
        result.append(block)
        if block.get("type") != "resource_link" or shown == MOST_SHOWN or room <= 0:
            continue
        read: Result | None = None
        with anyio.CancelScope(deadline=end):
            read = await _read(str(block.get("uri")), session, context)
        if read is not None:
            shown, room = shown + 1, room - len(read.text)
            result += _blocks(read)
    for change in session.seen.changes():
        session.record(SawFile(change))
    return tuple(result)


def _blocks(read: Result) -> Iterator[Item]:
    yield {"type": "text", "text": f"{read.text}\n"}
    for media in read.media:
        resource = {"uri": media.name, "mimeType": media.kind, "blob": media.data}
        yield {"type": "resource", "resource": resource}


async def _read(uri: str, session: Session, context: Context) -> Result | None:
    """What `read` gives for a link, if it gives anything without asking."""
    for spot in spots(uri):
        prepared = await _prepared(spot, context)
        if isinstance(prepared, Prepared) and _is_allowed(prepared, session):
            read = await prepared.run()
            if read.ok:
                return read
    return None


async def _prepared(spot: Spot, context: Context) -> Prepared | Result:
    arguments = {"file_path": spot.path, "offset": spot.first, "limit": spot.count}
    bound = READ.bind(arguments, context.cwd)
    return bound if isinstance(bound, Result) else await bound.prepare(context)


def _is_allowed(prepared: Prepared, session: Session) -> bool:
    return isinstance(permits.decide(session, READ.name, prepared.access).verdict, policy.Allow)
