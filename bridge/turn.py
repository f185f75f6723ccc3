"""Runs one prompt: request, effects, tools, next request; waits, and decides little.

Rule 1: a tool runs only after the terminal event of its answer said completed.
Rule 2: whatever ends a turn, its history is one that the next request can carry on.
Rule 3: a turn knows its session, editor, model and workbench by argument and shares nothing else,
so that one can run inside another.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Literal
from urllib.parse import urlsplit

import anyio

from bridge import commands, context, log, spending
from bridge.acp.editor import SessionEditor
from bridge.answer import Answer
from bridge.commands import Reply
from bridge.compaction import Compaction
from bridge.config import Provider
from bridge.core import goal as goals
from bridge.core import updates
from bridge.core.content import user_content
from bridge.core.effects import Call, Effect, Failed, Finished, Usage
from bridge.core.records import Forgotten, Item, Noted, Prompted, Titled, Told
from bridge.core.repeats import Repeats
from bridge.core.response import Response
from bridge.core.written import company, title_of, typed, with_names, with_places
from bridge.errors import BridgeError, Fault, ModelError
from bridge.exchange import ModelPort, attempt, provider_of, wait_notice
from bridge.options import Choice, all_options
from bridge.remedies import Remedies
from bridge.responses.faults import Broken
from bridge.session import Prompt, Session, now
from bridge.silence import Silence
from bridge.workbench import Workbench
from tools.base import GoalReport, PlanApproved, Signal
from tools.frozen import frozen

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]

_BROKEN_OFF = "Error: the model's answer broke off before this call could run"
_CUT = "Error: the answer was cut off, so the arguments may be incomplete; the call did not run"
_STOPPED = "Error: the call did not run"
_NO_ANSWER = "The model ended its turn without an answer."

_WITH_GOAL = "With the goal came:"


@frozen
class Turn:
    """The means to answer prompts of one session."""

    session: Session
    editor: SessionEditor
    model: ModelPort
    bench: Workbench

    async def run(self, prompt: Prompt) -> StopReason:
        """Answer one prompt to its end; BridgeError if that fails for good."""
        session, blocks = self.session, prompt.blocks
        before = all_options(session)
        if commands.find_own(session, self.bench.user_folder):
            self.editor.update(updates.commands(commands.menu(session)))
        reply = commands.reply_to(session, typed(blocks), with_places(blocks))
        self._show_changes(before)
        shown = blocks
        if reply is None or reply.is_for_model:
            self._learn()
            shown = await self.bench.follow(blocks, session, self.editor, self.bench.load)
        if reply is None:
            self._note_switch()
        content = user_content(shown if reply is None else blocks)
        session.record(Prompted(session.next_prompt(), blocks, content, now(), reply is None))
        if (unkept := session.journal.complaint()) is not None:
            self.editor.notice("warning", unkept)
        self._tell_faults()
        budget = _Budget(session.config.max_turn_requests)
        if reply is not None:
            return await self._carry_out(reply, user_content(company(shown, blocks)), budget)
        self._entitle(with_names(blocks))
        return await self._work(budget)

    async def _carry_out(
        self, reply: Reply, more: tuple[Item, ...], budget: "_Budget"
    ) -> StopReason:
        """Do what a slash command is for; more: what came with it for the model."""
        session = self.session
        if reply.compact is not None:
            if not await self._may_spend():
                return "max_turn_requests"
            await Compaction(session, self.editor, self.model, self.bench).run(reply.compact)
            return "end_turn"
        text = reply.text
        if reply.work is not None:
            size = session.history.tokens
            text = await reply.work(self.editor, await self.bench.load())
            if session.history.tokens < size:
                self._show_size()
        if text:
            self._tell(text)
        if reply.message is not None:
            self._entitle(reply.message)
            self._note_switch()
            session.record(Noted(reply.message, more, asked=True))
            return await self._work(budget)
        return await self._pursue(budget, more) if reply.pursue else "end_turn"

    async def _pursue(self, budget: "_Budget", more: tuple[Item, ...]) -> StopReason:
        """Work on the goal in rounds, until it is reported, stopped or out of rounds.

        more: what came with it.
        """
        session = self.session
        if more:
            session.record(Noted(_WITH_GOAL, more))
        while (
            session.goal_armed
            and session.goal.status == "active"
            and session.goal.rounds < session.config.goal_rounds
            and not any(_is_pause(waiting) for waiting in session.prompts)
        ):
            session.record(replace(session.goal, rounds=session.goal.rounds + 1))
            session.record(Noted(goals.task(session.goal), asked=True, goal=True))
            stop = await self._work(budget)
            if stop != "end_turn":
                return stop
        return "end_turn"

    async def _work(self, budget: "_Budget") -> StopReason:
        """Requests and tool calls until the model has no more to call."""
        compaction = Compaction(self.session, self.editor, self.model, self.bench)
        repeats = Repeats()
        while budget.take() and await self._may_spend():
            self._learn()
            await self.session.remote.join()
            self._note_switch()
            if compaction.is_due:
                with suppress(ModelError):  # shown; the request itself tells whether it fits
                    await compaction.run()
            answer, finished = await self._answer(compaction)
            if finished.outcome != "completed":
                return self._unfinished(finished)
            if not finished.calls:
                if not finished.is_answer:
                    self._tell(_NO_ANSWER)
                return "end_turn"
            toolbox = await self.bench.load()
            calls = toolbox.calls(self.session, self.editor, answer.calls(finished.calls))
            try:
                await calls.run()
            finally:
                self._heed(calls.signals)
            reminder = repeats.feed(finished.calls)
            if reminder is not None:
                self.session.record(Noted(reminder))
        return "max_turn_requests"

    async def _may_spend(self) -> bool:
        """Whether one more request may be paid for; says so where it may not."""
        refusal = await spending.refusal(self.session, self.editor)
        if refusal is not None:
            self._tell(refusal)
        return refusal is None

    async def _answer(self, compaction: Compaction) -> tuple[Answer, Finished]:
        """One request and its streamed answer, shown and recorded."""
        answer = Answer(self.session, self.editor)
        remedies = Remedies(self.session, compaction)
        attempts = [Response()]
        try:
            with remedies:
                finished = await self._heard(answer, attempts, remedies)
        except anyio.get_cancelled_exc_class():
            answer.abandon(attempts[-1].kept(), _STOPPED)
            raise
        except BridgeError:
            answer.abandon((), _BROKEN_OFF)
            raise
        try:
            answer.record(finished.items, finished.usage)
        except BridgeError:  # a full disk
            answer.abandon((), _STOPPED)
            raise
        reason = _CUT if finished.outcome == "max_tokens" else _STOPPED
        answer.close(reason, but=finished.calls)
        self._show_usage(finished)
        return answer, finished

    async def _heard(
        self, answer: Answer, attempts: list[Response], remedies: Remedies
    ) -> Finished:
        """Ask, and tell of a long silence where the editor can show it."""
        silence = Silence(partial(self.editor.notice, "info"))
        work = partial(self._attempted, answer, attempts, remedies, silence)
        return await (silence.during(work) if self.editor.can.notices else work())

    async def _attempted(
        self, answer: Answer, attempts: list[Response], remedies: Remedies, silence: Silence
    ) -> Finished:
        """Ask until an answer ends well, each attempt going on from what the last one showed.

        The transport counts the attempts against one limit, waits, and raises when that is
        reached. An answer of nothing but thoughts is asked for once more.
        """
        after: Broken | None = None
        waits = repeats = 0

        def on_wait(fault: Fault, attempt: int, most: int, seconds: float) -> None:
            nonlocal waits
            waits += 1
            self.editor.notice("warning", wait_notice(fault, attempt, most, seconds))
            silence.announced(seconds)

        show = partial(self._show, answer, silence)
        while True:
            body = self._body(remedies)
            answer.sends(body)
            asking = self.model.stream(self._provider, body, on_wait, after)
            try:
                ended = await attempt(asking, attempts[-1], show)
            except ModelError as error:
                if not await remedies.apply(error):
                    raise
                after = None
            else:
                if isinstance(ended, Failed):
                    answer.break_off(_BROKEN_OFF)
                    after = Broken(ended.fault, waits + 1)
                elif ended.outcome != "completed" or ended.is_answer or repeats:
                    return ended
                else:
                    repeats, after = 1, None
            attempts.append(Response(attempts[-1]))

    async def _show(self, answer: Answer, silence: Silence, effects: list[Effect]) -> None:
        if effects:
            silence.heard()
        if Call in map(type, effects):
            answer.tools = (await self.bench.load()).tools_of(self.session)
        answer.show(effects)
        await self.editor.room()

    @property
    def _provider(self) -> Provider:
        return provider_of(self.session, self.session.model)

    def _body(self, remedies: Remedies) -> dict[str, object]:
        session = self.session
        items = session.history.input(session.dialect, left_out=remedies.left_out)
        body = context.request_body(session, self.bench, items, session.model)
        remedies.sent = frozenset(body)
        return body

    def _unfinished(self, finished: Finished) -> StopReason:
        match finished.outcome:
            case "max_tokens":
                return "max_tokens"
            case "refusal":
                # ACP, Prompt Turn, Stop Reasons: after a refusal the client may treat the prompt
                # and all that followed as dropped from the conversation.
                self.session.record(Forgotten(self.session.next_prompt() - 1))
                self._show_size()
                return "refusal"
            case _:
                self._tell(f"The model stopped early: {finished.reason or 'no reason given'}.")
                return "end_turn"

    def _heed(self, signals: list[Signal]) -> None:
        """Apply what results meant for the session, before the next request."""
        session = self.session
        for signal in signals:
            match signal:
                case PlanApproved():
                    if session.switch("default"):
                        session.described_mode = "default"
                        self._show_mode()
                case GoalReport():
                    if session.goal.objective is not None:
                        session.record(goals.reported(session.goal, signal))

    def _learn(self) -> None:
        for learned in list(self.bench.learn(self.session, self.bench.user_folder)):
            self.session.record(learned)

    def _note_switch(self) -> None:
        note = context.tell_of_switch(self.session)
        if note is not None:
            self.session.record(Noted(note))

    def _show_changes(self, before: Sequence[Choice]) -> None:
        """Show the options that a command changed."""
        after = all_options(self.session)
        if after[0] != before[0]:
            self._show_mode()
        elif after != before:
            self.editor.update(updates.options(after))

    def _show_mode(self) -> None:
        self.editor.update(updates.mode(self.session.mode))
        self.editor.update(updates.options(all_options(self.session)))

    def _show_usage(self, finished: Finished) -> None:
        if finished.upstream:
            log.say(f"a request was served by {finished.upstream}")
        window, usage = self.session.model.context_window, finished.usage
        if usage is None:
            return
        self._watch_cache(usage)
        if (blindness := spending.blindness(self.session)) is not None:
            self.editor.notice("warning", blindness)
        if window is not None:
            used = usage.input_tokens + usage.output_tokens
            self.editor.update(updates.usage(used, window, self.session.meter.cost))

    def _show_size(self) -> None:
        """Show the size of a conversation that got shorter."""
        if self.session.usage is not None:
            self.editor.update(self.session.usage)

    def _watch_cache(self, usage: Usage) -> None:
        host = urlsplit(self._provider.base_url).hostname or ""
        maker = self.session.dialect.maker
        text = self.session.caching.feed(usage, maker, host, anyio.current_time())
        if text is not None:
            self.editor.notice("warning", text)

    def _entitle(self, text: str) -> None:
        """Give the session its title, from the first prompt that goes to the model."""
        if self.session.title is None and (title := title_of(text)):
            titled = Titled(title, now())
            self.session.record(titled)
            self.editor.update(updates.title(titled))

    def _tell_faults(self) -> None:
        """Say what is wrong with files of commands, once."""
        faults = commands.untold_faults(self.session)
        if self.editor.can.notices:
            for text in faults:
                self.editor.notice("warning", text)
        elif faults:
            self._tell("".join(f"- {text}\n" for text in faults) + "\n")

    def _tell(self, text: str) -> None:
        """Say something of our own in the conversation."""
        told = Told(self.session.next_told(), text)
        self.session.record(told)
        self.editor.text("message", told.message, text)


def _is_pause(prompt: Prompt) -> bool:
    return commands.pauses_goal(typed(prompt.blocks))


class _Budget:
    """Model requests that one prompt may still make."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self) -> bool:
        """Whether one more is allowed; it then counts as made."""
        self._left -= 1
        return self._left >= 0
