"""One answer of the model's: shown to the editor as it comes, recorded when it has ended.

Rule 1: what is to be shown is decided by core/response.py; here it gets its ids and goes out.
Rule 2: every call that was announced ends once: by its result, or here when its answer fails. What
the provider calls itself ends with the answer at the latest.
Rule 3: nothing here waits, so that a cancelled turn can still put everything in order.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bridge.acp.editor import SessionEditor
from bridge.core import updates
from bridge.core.effects import (
    Call,
    Effect,
    Failed,
    Finished,
    FunctionCall,
    HostedCall,
    Restart,
    Say,
    Think,
    Usage,
)
from bridge.core.hosted import look_of
from bridge.core.meter import Taken
from bridge.core.records import Announced, Hosted, Responded, Returned, SaidText
from bridge.core.wire import JsonObject
from bridge.errors import BridgeError
from bridge.session import Session
from tools.base import AnyTool, Bound, Card, Place, Text
from tools.late import pattern

_RESTART = "\n\nThe answer broke off and starts again:\n\n"
_NOT_TOLD = "Error: the answer ended before the provider told what came of this call"
_EARLY_PATH = pattern(r'"file_path"\s*:\s*"((?:[^"\\]|\\.)*)"')


@dataclass(eq=False, slots=True)
class _Text:
    said: SaidText
    pieces: list[str] = field(default_factory=list[str])


class Answer:
    """What the person has seen of one answer; owned by the turn that asked for it."""

    def __init__(self, session: Session, editor: SessionEditor) -> None:
        self._session = session
        self._editor = editor
        self.tools: Mapping[str, AnyTool] = {}
        """What calls may name; wanted from the first call on."""
        self._number = session.next_response()
        self._seen: list[_Text | str] = []
        """What was shown, in order: texts, and the card ids of calls."""
        self._texts: dict[str, _Text] = {}
        self._cards: dict[str, Announced | Hosted] = {}
        self._announced: dict[str, tuple[FunctionCall, Announced]] = {}
        """The calls of the attempt that runs, by their own ids."""
        self._hosted: dict[int, Announced] = {}
        """The calls that the provider is making, by their items."""
        self._broken_off: list[Returned] = []
        self._taken = Taken()
        self._sent: Mapping[str, object] | None = None
        self._restarts = 0

    def show(self, effects: Iterable[Effect]) -> None:
        """Show what is to be seen of these effects."""
        for effect in effects:
            match effect:
                case Say(item=item, text=text):
                    self._say("message", f"m{self._number}.{item}", text)
                case Think(item=item, text=text):
                    self._say("thought", f"t{self._number}.{item}", text)
                case Restart():
                    self._restarts += 1
                    self._say("message", f"r{self._number}.{self._restarts}", _RESTART)
                case Call(call=call):
                    self._announce(call, complete=effect.complete)
                case HostedCall():
                    self._host(effect)
                case Failed() | Finished():  # pragma: no branch (every effect has its case)
                    self._taken.add(effect, self._session.model.price)

    def sends(self, body: Mapping[str, object]) -> None:
        """This is asked now; of several attempts the last one counts for the next request."""
        self._sent = body

    def calls(self, wanted: Iterable[FunctionCall]) -> list[tuple[FunctionCall, Announced]]:
        """The calls that are to run, with their cards."""
        return [(call, self._announced[call.call_id][1]) for call in wanted]

    def record(self, items: tuple[JsonObject, ...], usage: Usage | None = None) -> None:
        """Write the answer down; without items it leaves no trace in the history."""
        self._stop_hosted()
        seen = tuple(
            self._cards[one]
            if isinstance(one, str)
            else SaidText(one.said.role, one.said.message, "".join(one.pieces))
            for one in self._seen
        )
        used = None if usage is None else usage.input_tokens + usage.output_tokens
        maker = self._session.dialect.maker
        if self._sent is not None:
            self._taken.went_on(self._session.prefix.feed(maker, self._sent))
            self._sent = None
        cost, metered = self._taken.cost, self._taken.metered
        self._session.record(Responded(self._number, maker, seen, items, used, cost, metered))
        for returned in self._broken_off:
            self._session.record(returned)

    def close(self, reason: str, *, but: Iterable[FunctionCall] = ()) -> None:
        """End every announced call that will not run."""
        for returned in self._ended(reason, {call.call_id for call in but}):
            self._session.record(returned)

    def abandon(self, items: tuple[JsonObject, ...], reason: str) -> None:
        """End it with every call; what cannot be written down ends for the person all the same."""
        ended = self._ended(reason)
        with suppress(BridgeError):
            self.record(items)
            for returned in ended:
                self._session.record(returned)

    def break_off(self, reason: str) -> None:
        """End the calls of an attempt that failed; another one follows."""
        self._broken_off += self._ended(reason)
        self._announced.clear()
        self._stop_hosted()

    def _ended(self, reason: str, running: Collection[str] = ()) -> list[Returned]:
        """How all calls but those that run end; the editor is told."""
        ended: list[Returned] = []
        for call_id, (call, announced) in self._announced.items():
            if call_id not in running:
                returned = Returned(announced.card_id, call_id, call.custom, reason, ok=False)
                self._editor.update(ending(returned, announced, self._editor))
                ended.append(returned)
        return ended

    def _say(self, role: Any, message: str, text: str) -> None:
        known = self._texts.get(message)
        if known is None:
            known = self._texts[message] = _Text(SaidText(role, message, ""))
            self._seen.append(known)
        known.pieces.append(text)
        self._editor.text(role, message, text)

    def _announce(self, call: FunctionCall, *, complete: bool) -> None:
        known = self._announced.get(call.call_id)
        card_id = self._session.card_id(call.call_id) if known is None else known[1].card_id
        card = self._card(call) if complete else _early_card(call)
        arguments = call.raw_input if complete else ""
        announced = Announced(card_id, call.call_id, call.name, arguments, card)
        self._announced[call.call_id] = call, announced
        self._cards[card_id] = announced
        show = updates.announcement if known is None else updates.renewal
        if known is None:
            self._seen.append(card_id)
        can, cwd = self._editor.can, self._session.cwd
        self._editor.update(show(announced, cwd=cwd, terminal=can.terminal_output))

    def _host(self, effect: HostedCall) -> None:
        """Show a call of the provider's as it stands."""
        look, begun = look_of(effect.given), self._hosted.get(effect.item)
        call_id = effect.id or f"{look.name}_{self._number}_{effect.item}"
        card_id = self._session.card_id(call_id) if begun is None else begun.card_id
        call = Announced(card_id, call_id, look.name, look.arguments, look.card)
        if begun is None:
            self._hosted[effect.item] = call
            self._seen.append(card_id)
            self._editor.update(updates.hosted_begin(call))
        if effect.status != "in_progress":
            ended = Hosted(call, look.shown, ok=effect.status == "completed")
            self._end_hosted(effect.item, ended)

    def _stop_hosted(self) -> None:
        """End the calls of the provider's of which no more will be heard."""
        for item, call in list(self._hosted.items()):
            self._end_hosted(item, Hosted(call, (Text(_NOT_TOLD),), ok=False))

    def _end_hosted(self, item: int, ended: Hosted) -> None:
        del self._hosted[item]
        self._cards[ended.call.card_id] = ended
        self._editor.update(updates.hosted_end(ended))

    def _card(self, call: FunctionCall) -> Card:
        tool = self.tools.get(call.name)
        if tool is None or call.custom:
            return Card(call.name)
        bound = tool.bind(updates.raw_input(call.arguments), self._session.cwd)
        return bound.card if isinstance(bound, Bound) else Card(call.name)


def ending(
    returned: Returned, call: Announced, editor: SessionEditor, *, streamed: bool = False
) -> updates.Update:
    """The last update of a call, in the form this client takes."""
    return updates.outcome(
        returned,
        execute=call.card.kind == "execute",
        terminal=editor.can.terminal_output,
        streamed=streamed,
    )


def _early_card(call: FunctionCall) -> Card:
    """A card for a call whose arguments are still coming."""
    found = _EARLY_PATH.search(call.arguments)
    path = None if found is None else updates.raw_input(f'{{"path":"{found[1]}"}}').get("path")
    title = call.name if path is None else f"{call.name.capitalize()} {path}"
    places = (Place(path),) if isinstance(path, str) and path.startswith("/") else ()
    return Card(title, places=places)
