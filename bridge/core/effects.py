"""What a streamed response means for the editor and the history: plain data.

It must not know how any of it is found out, nor how it is shown.
"""

from typing import Literal, TypeAlias

from bridge.core.wire import JsonObject, dump
from bridge.errors import Fault
from tools.frozen import frozen

_ANSWERS = frozenset({"message", "function_call", "custom_tool_call"})

Outcome: TypeAlias = Literal["completed", "max_tokens", "refusal", "stopped"]
HostedStatus: TypeAlias = Literal["in_progress", "completed", "failed"]


@frozen
class FunctionCall:
    """A call the model makes."""

    item: int
    call_id: str
    name: str
    arguments: str
    """As received: JSON text, or the raw input of a custom call."""
    custom: bool = False

    @property
    def raw_input(self) -> str:
        """The text of an object with all that was given: a custom call has one input, not JSON."""
        return dump({"input": self.arguments}).decode() if self.custom else self.arguments


@frozen
class Usage:
    """Tokens as the server counted them; what it left out counts as 0."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    """In US dollars, where the server says it."""


@frozen
class Say:
    """Message text of the item with this number."""

    item: int
    text: str


@frozen
class Think:
    """Thought text of the item with this number."""

    item: int
    text: str


@frozen
class Restart:
    """The answer differs from what was shown of it: the message that follows is told anew."""


@frozen
class Call:
    """A call is to be announced; complete: its arguments are all that will come."""

    call: FunctionCall
    complete: bool


@frozen
class HostedCall:
    """A call that the provider makes itself; exactly one that is not in progress ends it."""

    item: int
    id: str
    given: JsonObject
    """The item as it stands."""
    status: HostedStatus


@frozen
class Finished:
    """The response ended by itself."""

    outcome: Outcome
    items: tuple[JsonObject, ...]
    """Provider items in the order in which they go back."""
    calls: tuple[FunctionCall, ...]
    """What is to run now, each call id once."""
    usage: Usage | None = None
    reason: str = ""
    upstream: str = ""
    """Who served it, where the server says so."""

    @property
    def is_answer(self) -> bool:
        """It holds words or calls, and not thoughts alone."""
        return any(item.get("type") in _ANSWERS for item in self.items)


@frozen
class Failed:
    """The response failed or broke off."""

    fault: Fault
    usage: Usage | None = None
    """What it took all the same, where the server says so."""


Effect: TypeAlias = Say | Think | Restart | Call | HostedCall | Finished | Failed


def joined(effects: list[Effect]) -> list[Effect]:
    """Neighbouring texts of one item as one text."""
    if len(effects) < 2:
        return effects
    result: list[Effect] = []
    pieces: list[str] = []
    for effect in effects:
        last = result[-1] if result else None
        if isinstance(effect, Say | Think) and _run_on(last, effect):
            pieces.append(effect.text)
            continue
        _seal(result, pieces)
        result.append(effect)
        pieces = [effect.text] if isinstance(effect, Say | Think) else []
    _seal(result, pieces)
    return result


def _run_on(last: Effect | None, effect: Say | Think) -> bool:
    return isinstance(last, type(effect)) and last.item == effect.item


def _seal(result: list[Effect], pieces: list[str]) -> None:
    last = result[-1] if result else None
    if len(pieces) > 1 and isinstance(last, Say | Think):
        result[-1] = type(last)(last.item, "".join(pieces))
