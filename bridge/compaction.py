"""Makes a conversation shorter: the model writes a summary that takes the place of what it read.

Rule 1: it is an ordinary request that goes on from the last one, so that the provider's cache
still holds; only where that does not fit, what is long is cut.
Rule 2: it ends with a record, or it changes nothing.
Rule 3: a conversation too long for the model in force is summed up by the model that made it.
"""

from contextlib import suppress
from dataclasses import replace
from functools import partial

import anyio

from bridge import context
from bridge.acp.editor import SessionEditor
from bridge.config import Model
from bridge.core import updates, window
from bridge.core.content import message
from bridge.core.effects import Effect, Finished, Say
from bridge.core.meter import Taken
from bridge.core.records import Compacted, Responded
from bridge.core.response import Response
from bridge.errors import BridgeError, Fault, ModelError, Refused, TooLong, model_error
from bridge.exchange import ModelPort, attempt, provider_of, wait_notice
from bridge.responses.faults import Broken
from bridge.session import Session
from bridge.silence import Silence
from bridge.workbench import Workbench

_TASK = """\
The conversation gets too long and is compacted now. Write the summary that you will work from:
of all that was said and done so far, you will have only it and the user's last message. Call no
tool; answer with the summary alone. Say, as exactly as you need it to go on:

- what the user wants, with every decision, constraint and wish, in their words where those matter;
- what was done: files read and changed, and how; commands that were run, and what came of them;
- what you found out: names, places as path:line, causes, errors;
- what is still to be done, and the very next step.
"""
_NO_SUMMARY = "The model wrote no summary: send the prompt again, or start a new session"
_CUT = "The model's summary was cut off: raise max_output_tokens in the model's settings"
_TOO_LONG = (
    "The conversation is too long for the model to be summed up, even with all that is long in it "
    "cut: choose a model with a larger window, or start a new session"
)


class Compaction:
    """The means to make one session's conversation shorter; owned by one turn."""

    def __init__(
        self, session: Session, editor: SessionEditor, model: ModelPort, bench: Workbench
    ) -> None:
        self._session = session
        self._editor = editor
        self._model = model
        self._bench = bench
        self._has_failed = False
        self._used: int | None = None
        self._taken = Taken()
        self._is_done = False
        self._least: int | None = None

    @property
    def is_due(self) -> bool:
        """The conversation fills the window, as far as that is known, and can be made shorter."""
        history, model = self._session.history, self._session.model
        if model.context_window is None or self._has_failed or not history.is_worked_on:
            return False
        limit = window.limit(model.context_window, model.max_output_tokens)
        if self._is_done and self._least is None:
            self._least = history.tokens  # what is left after a compaction, and its first answer
        # Where little was gained, the next one would come at once and lose what was just read.
        grown = history.tokens - (self._least or 0)
        return history.tokens >= limit and grown >= limit // 4

    async def run(self, hint: str = "") -> None:
        """Compact now; BridgeError where that fails, and then nothing has changed.

        hint: what the person wants to be kept above all.
        """
        number = self._session.next_compaction()
        self._taken = Taken()
        self._show(number, "in_progress")
        try:
            summary = await self._summary(hint)
        except anyio.get_cancelled_exc_class():
            self._show(number, "cancelled")
            self._count_failure()
            raise
        except BridgeError as error:
            self._has_failed = True
            self._show(number, "failed", error=str(error))
            self._count_failure()
            raise
        record = Compacted(number, summary, self._used, self._taken.cost, self._taken.metered)
        self._session.record(record)
        self._is_done, self._least = True, None
        for update in updates.compacted(record, known=self._editor.can.compaction):
            self._editor.update(update)
        self._show_usage()

    def _show_usage(self) -> None:
        if self._session.usage is not None:
            self._editor.update(self._session.usage)

    def _count_failure(self) -> None:
        """Write down what was paid for nothing; the history takes nothing of it."""
        if self._taken.metered is not None:
            number, maker = self._session.next_response(), self._session.dialect.maker
            cost, metered = self._taken.cost, self._taken.metered
            with suppress(BridgeError):  # a full disk
                self._session.record(Responded(number, maker, (), (), None, cost, metered))
            self._show_usage()

    async def _summary(self, hint: str) -> str:
        """The summary: of all, or else of what every server takes, cut to what fits."""
        try:
            return await self._ask(hint, shorten=False)
        except (TooLong, Refused) as error:
            if error.fault.kind not in ("context_too_long", "bad_request"):
                raise
        try:
            return await self._ask(hint, shorten=True)
        except TooLong as error:
            raise TooLong(replace(error.fault, message=_TOO_LONG)) from None

    async def _ask(self, hint: str, *, shorten: bool) -> str:
        task = f"{_TASK}\nThe user asks to keep above all: {hint}\n" if hint else _TASK
        session, model = self._session, self._summariser()
        items = session.history.input(session.dialect_of(model))
        items = [*(window.shortened(items) if shorten else items), message(task)]
        while True:
            body = context.request_body(session, self._bench, items, model)
            try:
                return await self._judged(model, body)
            except ModelError as error:
                if error.fault.parameter not in body:
                    raise
                session.refuse(str(error.fault.parameter), model)

    async def _judged(self, model: Model, body: dict[str, object]) -> str:
        """The summary that is answered, if it is a whole one; ModelError."""
        maker = self._session.dialect_of(model).maker
        self._taken.went_on(self._session.prefix.feed(maker, body))
        summary, outcome = await self._answer(model, body)
        if outcome == "max_tokens" and body.pop("max_output_tokens", None) is not None:
            summary, outcome = await self._answer(model, body)
        if outcome == "max_tokens":
            raise model_error(Fault("bad_stream", _CUT))
        if not summary or outcome != "completed":
            raise model_error(Fault("bad_stream", _NO_SUMMARY))
        return summary

    async def _answer(self, model: Model, body: dict[str, object]) -> tuple[str, str]:
        """Text and outcome; another attempt where one breaks off, as often as is allowed."""
        said: list[str] = []
        silence = Silence(partial(self._editor.notice, "info"))
        waits = 0

        async def hear(effects: list[Effect]) -> None:
            if effects:
                silence.heard()
            said.extend(effect.text for effect in effects if isinstance(effect, Say))

        def on_wait(fault: Fault, tried: int, most: int, seconds: float) -> None:
            nonlocal waits
            waits += 1
            self._editor.notice("warning", wait_notice(fault, tried, most, seconds))
            silence.announced(seconds)

        async def attempts() -> Finished:
            after: Broken | None = None
            while True:
                provider = provider_of(self._session, model)
                asking = self._model.stream(provider, body, on_wait, after)
                ended = await attempt(asking, Response(), hear)
                self._taken.add(ended, model.price)
                if isinstance(ended, Finished):
                    return ended
                after = Broken(ended.fault, waits + 1)
                said.clear()

        ended = await (silence.during(attempts) if self._editor.can.notices else attempts())
        if ended.usage is not None:
            self._used = ended.usage.input_tokens + ended.usage.output_tokens
        return "".join(said).strip(), ended.outcome

    def _summariser(self) -> Model:
        """The model that can read the conversation: the one in force, or else its maker."""
        session = self._session
        maker, model = session.history.maker, session.model
        for other in session.config.models.values():
            larger = (other.context_window or 0) > (model.context_window or 0)
            if larger and maker == session.dialect_of(other).maker:
                return other
        return model

    def _show(self, number: int, status: str, **more: str) -> None:
        if self._editor.can.compaction:
            self._editor.update(updates.compaction(number, status, **more))
