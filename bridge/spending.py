"""Asks the person before a session spends more than the configuration allows.

It must not know what is asked of the model, nor who asks.

Rule 1: what was spent is a sum over the records, so that it is the same after a load.
Rule 2: only a clear yes lets a session go on, and then for as much again.
"""

from collections.abc import Iterator

from bridge.acp.editor import SessionEditor
from bridge.answer import ending
from bridge.core import money, updates
from bridge.core.records import Announced, Extended, Responded, Returned
from bridge.session import Session
from tools.base import Card

_BLIND = (
    "max_cost cannot be held: nobody tells what {model} costs; give it a price in the "
    "configuration, or set max_tokens_total"
)
_GO_ON, _STOP = "Go on", "Stop here"
_STOPPED = (
    "Stopped before the next request: {spent}. Send a prompt to be asked again, raise {setting} in "
    "the configuration, or start a new session."
)


async def refusal(session: Session, editor: SessionEditor) -> str | None:
    """Why no further request may be made; None: it may, perhaps since the person says so."""
    setting, spent = next(_reached(session), (None, ""))
    if setting is None:
        return None
    if await _may_go_on(session, editor, spent):
        session.record(Extended(session.meter.tokens, session.meter.spent))
        return None
    return _STOPPED.format(spent=spent, setting=setting)


def blindness(session: Session) -> str | None:
    """What to tell, once, after an answer whose cost nobody knows: a limit of money is no use."""
    if session.config.max_cost is None or not session.meter.has_lost_count:
        return None
    return _BLIND.format(model=session.model.name or session.model_key)


def _reached(session: Session) -> Iterator[tuple[str, str]]:
    """The settings that allow no more, and how much was spent."""
    most, meter = session.config.max_cost, session.meter
    if most is not None and _since(session) >= most:
        amount = money.told(meter.costs)
        yield "max_cost", f"this session has cost {amount}, of {most:g} allowed at a time"
    most = session.config.max_tokens_total
    if most is not None and meter.tokens - session.extended.tokens >= most:
        spent = f"this session has used {meter.tokens:,} tokens, of {most:,} allowed at a time"
        yield "max_tokens_total", spent


def _since(session: Session) -> float:
    """What it has cost since more was allowed, without the dust of binary fractions."""
    return round(session.meter.spent - session.extended.cost, 9)


async def _may_go_on(session: Session, editor: SessionEditor, spent: str) -> bool:
    """Ask with a card of its own: a question about a call that is not there is not shown."""
    number = session.next_response()
    title = f"Go on? {spent[0].upper()}{spent[1:]}"
    card = Announced(session.card_id(f"limit_{number}"), "limit", "limit", "", Card(title))
    session.record(Responded(number, session.dialect.maker, (card,), ()))
    editor.update(updates.announcement(card, cwd=session.cwd, terminal=False))
    answer = None
    try:
        answer = await editor.pick(card.card_id, title, (_GO_ON, _STOP))
    finally:
        text = {_GO_ON: "You let it go on.", _STOP: "You stopped it."}.get(
            answer or "", "Nobody answered."
        )
        ok = answer == _GO_ON
        returned = Returned(card.card_id, "limit", custom=False, text=text, ok=ok)
        session.conclude(returned, lambda end: editor.update(ending(end, card, editor)))
    return ok
