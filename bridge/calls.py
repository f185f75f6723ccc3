"""Runs the tool calls of one answer: judged, allowed by the person where needed, then made.

Rule 1: what may run is decided by core/policy.py; an answer that is not a clear yes is a no.
Rule 2: calls that only read run at the same time, all others one after another; results come in
the model's order.
Rule 3: however this ends, every call has one result in the history and one end on its card.
Rule 4: an end is written down before it is shown, and what the model has seen of files after it: a
session that is loaded shows no other end, and knows no file whose text the model never got.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from bridge import knowledge, permits
from bridge.acp.editor import SessionEditor
from bridge.acp.person import CallPerson
from bridge.answer import ending
from bridge.beside import beside
from bridge.core import policy, updates
from bridge.core.content import attached
from bridge.core.effects import FunctionCall
from bridge.core.permission import offers
from bridge.core.records import Announced, Item, Planned, Returned, SawFile
from bridge.core.wire import load_object
from bridge.errors import BridgeError
from bridge.links import followed
from bridge.session import Session
from bridge.workbench import Workbench
from tools.base import AnyTool, Context, Files, Person, Prepared, Result, Shell, Signal, Tool
from tools.buffers import BufferedFiles
from tools.frozen import frozen

_NOT_STORED = "The answer could not be stored: it holds for this session only."
ABORTED = "Error: command aborted"
NEVER_STARTED = "Error: tool call aborted before dispatch"

_SNAPSHOT_SECONDS = 0.15
_SNAPSHOT_CHARACTERS = 4096

Pair = tuple[FunctionCall, Announced]


@frozen
class Toolbox:
    """The tools, and this machine's files and processes."""

    tools: Mapping[str, Tool[Any]]
    files: Files
    shell: Callable[[Session], Shell]
    user_folder: str | None = None
    """Where the user's own skills are."""
    private: tuple[str, ...] = ()
    """Our own files and folders, resolved."""

    def tools_of(self, session: Session) -> Mapping[str, AnyTool]:
        """All that calls of this session may name."""
        return {**session.remote.tools, **self.tools}

    def files_of(self, session: Session, editor: SessionEditor) -> Files:
        """The files as this session sees them: with what the editor has not saved, if it tells."""
        if not editor.can.fs_read:
            return self.files
        return BufferedFiles(self.files, editor, session.looks, session.folders)

    async def followed(
        self, blocks: Sequence[Item], session: Session, editor: SessionEditor
    ) -> tuple[Item, ...]:
        """The blocks of a prompt, with what its links to files show."""
        nobody = CallPerson(editor, "")
        return await followed(blocks, session, self.means(session, editor, nobody, lambda _: None))

    def calls(self, session: Session, editor: SessionEditor, calls: Sequence[Pair]) -> "Calls":
        """The calls of one answer, to be run."""
        return Calls(session, editor, self, calls)

    def means(
        self,
        session: Session,
        editor: SessionEditor,
        person: Person,
        output: Callable[[str], None],
    ) -> Context:
        """All that a call of this session may use."""
        return Context(
            cwd=session.cwd,
            roots=session.roots,
            files=self.files_of(session, editor),
            shell=self.shell(session),
            seen=session.seen,
            person=person,
            planning=session.mode == "plan",
            output=output,
            readable=knowledge.readable(self.user_folder),
            private=self.private,
            is_barred=permits.barred(session),
            jobs=session.jobs,
            takes=session.takes,
        )


def workbench(toolbox: Toolbox) -> Workbench:
    """A workbench whose tools are at hand."""

    async def load() -> Toolbox:
        return toolbox

    return Workbench([tool.offer for tool in toolbox.tools.values()], load, toolbox.user_folder)


class Calls:
    """The calls of one answer; owned by the turn that runs them."""

    def __init__(
        self, session: Session, editor: SessionEditor, toolbox: Toolbox, calls: Sequence[Pair]
    ) -> None:
        self._session = session
        self._editor = editor
        self._toolbox = toolbox
        self._tools = toolbox.tools_of(session)
        self._open = {announced.card_id: (call, announced) for call, announced in calls}
        self._started: set[str] = set()
        self._screens: dict[str, _Screen] = {}
        self.signals: list[Signal] = []
        """What the results mean beyond their text, in order."""

    async def run(self) -> None:
        """Run all of them; what a cancellation leaves open is ended as aborted."""
        try:
            for group in self._groups():
                results = await self._together(group)
                for (call, announced), result in zip(group, results, strict=True):
                    self._finish(call, announced, result)
                for change in self._session.seen.changes():
                    self._session.record(SawFile(change))
        finally:
            self._session.seen.changes()  # of calls whose results nobody gets
            for card_id, (call, announced) in list(self._open.items()):
                text = ABORTED if card_id in self._started else NEVER_STARTED
                with suppress(BridgeError):  # what cannot be written down still ends its card
                    self._finish(call, announced, Result(text, ok=False))

    def _groups(self) -> Iterator[list[Pair]]:
        """Neighbours that may run at the same time, everything else alone."""

        def may_share(pair: Pair) -> bool:
            tool = self._tools.get(pair[0].name)
            return tool is not None and tool.parallel

        for shared, group in groupby(list(self._open.values()), may_share):
            if shared:
                yield list(group)
            else:
                yield from ([pair] for pair in group)

    async def _together(self, group: Sequence[Pair]) -> list[Result]:
        """Prepare and ask in the model's order, then make the calls at the same time."""
        ready = [(announced, await self._ready(call, announced)) for call, announced in group]
        results: dict[str, Result] = {}

        async def one(announced: Announced, prepared: Prepared | Result) -> None:
            results[announced.card_id] = await self._made(announced, prepared)

        if len(ready) == 1:
            await one(*ready[0])
        else:
            async with anyio.create_task_group() as tasks:
                for pair in ready:
                    tasks.start_soon(one, *pair)
        return [results[announced.card_id] for _, announced in group]

    async def _ready(self, call: FunctionCall, announced: Announced) -> Prepared | Result:
        """The call, allowed and ready to be made; a Result where it will not be."""
        tool = self._tools.get(call.name)
        if tool is None or call.custom:
            return Result.error(f'unknown tool "{call.name}"{self._known()}')
        try:
            arguments = load_object(call.arguments or "{}")
        except ValueError as error:
            return Result.error(
                f"invalid arguments: {error}; they may have been cut off, send the call again"
            )
        bound = tool.bind(arguments, self._session.cwd)
        if isinstance(bound, Result):
            return bound
        denied = policy.refusal(self._session.mode, mutates=tool.mutates)
        if denied is not None:
            return Result.error(f"{call.name} {denied.text}")
        prepared = await bound.prepare(self._context(announced))
        if isinstance(prepared, Result):
            return prepared
        return await self._refused(call, announced, prepared) or prepared

    def _known(self) -> str:
        """The tools there are, for a model that was told before that one is unknown."""
        again, self._session.missed_a_tool = self._session.missed_a_tool, True
        return f"; the tools are: {', '.join(self._tools)}" if again else ""

    async def _made(self, announced: Announced, prepared: Prepared | Result) -> Result:
        if isinstance(prepared, Result):
            return prepared
        await checkpoint_if_cancelled()
        runs = prepared.access.action == "run"
        if prepared.rewrite is not None:
            await self._session.announce(announced.card_id, prepared.rewrite)
        elif runs:
            await self._session.settle()
        self._started.add(announced.card_id)
        self._editor.update(updates.progress(announced.card_id, status="in_progress"))
        with self._session.looks.command() if runs else nullcontext():
            return await self._watched(announced, prepared)

    async def _refused(
        self, call: FunctionCall, announced: Announced, prepared: Prepared
    ) -> Result | None:
        """None: the call may run."""
        session, access = self._session, prepared.access
        mode = session.mode
        decision = permits.decide(session, call.name, access)
        match decision.verdict:
            case policy.Allow():
                return None
            case policy.Deny(text=text):
                return Result.error(f"{call.name} {text}")
            case policy.Ask() if session.declined(access):
                return _declined(prepared)
            case policy.Ask():
                pass
        offered = offers(session.mode, call.name, access, decision, session.roots)
        question = updates.question(announced, prepared.shown, decision.reason)
        answer = await self._editor.permission(question, offered, decision.reason)
        lasting = None if answer is None else answer.rule
        if lasting is not None and not session.answers.keep(lasting):
            self._editor.notice("warning", _NOT_STORED)
        if answer is None or not answer.allows:
            session.decline(access)
            return _declined(prepared)
        # Mode and rules may have changed while the person thought about it.
        now = permits.decide(session, call.name, access).verdict
        if isinstance(now, policy.Deny):
            return Result.error(f"{call.name} {now.text}")
        if now == policy.Ask() and session.mode == "plan" != mode:
            return await self._refused(call, announced, prepared)
        return None

    async def _watched(self, announced: Announced, prepared: Prepared) -> Result:
        """Run the call; what a command prints is shown while it runs."""
        if announced.card.kind != "execute" and not prepared.live:
            return await prepared.run()
        async with beside() as tasks:
            tasks.start_soon(self._screens[announced.card_id].refresh)
            return await prepared.run()

    def _context(self, announced: Announced) -> Context:
        session = self._session
        screen = self._screens[announced.card_id] = _Screen(
            self._editor,
            announced.card_id,
            self._editor.can.terminal_output and announced.card.kind == "execute",
        )
        person = CallPerson(self._editor, announced.card_id)
        return self._toolbox.means(session, self._editor, person, screen.add)

    def _finish(self, call: FunctionCall, announced: Announced, result: Result) -> None:
        del self._open[announced.card_id]
        session, screen = self._session, self._screens.pop(announced.card_id, None)
        returned = Returned(
            announced.card_id,
            call.call_id,
            call.custom,
            result.text,
            result.ok,
            result.shown,
            result.title,
            result.data,
            tuple(map(attached, result.media)),
        )
        planned = None if result.steps is None else Planned(result.steps)

        def show(end: Returned) -> None:
            if planned is not None and end is returned:
                self._editor.update(updates.plan(planned))
            streamed = screen is not None and screen.flush()
            self._editor.update(ending(end, announced, self._editor, streamed=streamed))

        session.conclude(returned, show, *(() if planned is None else (planned,)))
        if result.signal is not None:
            self.signals.append(result.signal)


def _declined(prepared: Prepared) -> Result:
    usual = "the user declined this call; do not repeat it, go on without it or ask why"
    return Result.error(prepared.declined or usual)


@dataclass(eq=False, slots=True)
class _Screen:
    """What a running command prints: appended in a terminal card, else shown as its tail."""

    editor: SessionEditor
    card_id: str
    terminal: bool
    _new: str = ""
    _tail: str = ""
    _shown: bool = False

    def add(self, text: str) -> None:
        self._new += text

    async def refresh(self) -> None:
        """Show what came, now and then, until cancelled."""
        while True:
            await anyio.sleep(_SNAPSHOT_SECONDS)
            self._show()

    def flush(self) -> bool:
        """Show the rest where it would be missing; whether the terminal card has the output."""
        if self._shown and self.terminal:
            self._show()
        return self._shown

    def _show(self) -> None:
        if not self._new:
            return
        self._tail = (self._tail + self._new)[-_SNAPSHOT_CHARACTERS:]
        text = self._new if self.terminal else self._tail
        self.editor.update(updates.printed(self.card_id, text, terminal=self.terminal))
        self._new, self._shown = "", True
