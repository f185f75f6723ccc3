"""What one session holds, and the only place where it changes.

Rule 1: every change that must last is a record, taken by record(): written down, then applied.
Rule 2: a session that is loaded is the same records applied again.
Rule 3: prompts of one session run one after the other, in the order in which they came.
"""

import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast, get_args

import anyio
from anyio.to_thread import run_sync

from bridge import log
from bridge.acp.schema import McpServer
from bridge.answers import Answers
from bridge.config import Config, Model
from bridge.core import updates
from bridge.core.caching import Caching
from bridge.core.changes import Changes
from bridge.core.goal import NO_GOAL
from bridge.core.history import Dialect, History
from bridge.core.meter import Meter
from bridge.core.own_command import OwnCommand
from bridge.core.policy import Mode, Preset, reach
from bridge.core.prefix import Prefix
from bridge.core.records import (
    Announced,
    Changing,
    Compacted,
    Extended,
    GoalChanged,
    Hosted,
    Item,
    Learned,
    Opened,
    Prompted,
    Record,
    Responded,
    Returned,
    SawFile,
    Switched,
    Titled,
    Told,
)
from bridge.core.rule import Rule
from bridge.core.updates import Update
from bridge.errors import BridgeError, ConfigError
from bridge.interrupted import interrupted
from bridge.journal import Journal
from bridge.responses.quirks import InForce, in_force
from bridge.store import timestamp
from tools import filetype
from tools.base import REACHES, Access, AnyTool, Rewrite
from tools.jobs import LocalJobs
from tools.login import Login
from tools.looks import Looks
from tools.seen import Seen, digest

_NO_SCRATCH = (
    "there is no folder for temporary files: free some space, or set TMPDIR to a folder that can "
    "be written"
)


@dataclass(eq=False, slots=True)
class Prompt:
    """One session/prompt on its way: waiting for its turn, or running."""

    blocks: tuple[Item, ...]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    answered: anyio.Event = field(default_factory=anyio.Event)


@dataclass(eq=False, slots=True)
class Loading:
    """One session/load on its way."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class Remote(Protocol):
    """The MCP servers of a session, as far as its turns need them."""

    @property
    def tools(self) -> Mapping[str, AnyTool]:
        """Their tools, by their names towards the model."""
        ...

    @property
    def offered(self) -> Sequence[dict[str, object]]:
        """The tools of the next request, as the API takes them."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """What they were given and nobody else is to see."""
        ...

    async def join(self) -> None:
        """Wait, within limits, for servers that are starting."""
        ...

    def view(self, server: str) -> str:
        """How they are, for the user; or how the named one is, and which tools it has."""
        ...

    def brief(self) -> str:
        """How they are, in a few words each."""
        ...

    def close(self) -> None:
        """End all of them, soon."""
        ...


class NoServers:
    """The servers of a session that has none."""

    tools: Mapping[str, AnyTool] = {}
    offered: Sequence[dict[str, object]] = ()
    secrets: tuple[str, ...] = ()

    async def join(self) -> None: ...

    def view(self, server: str) -> str:
        del server
        return "There are no MCP servers in this session."

    def brief(self) -> str:
        return "none"

    def close(self) -> None: ...


class Session:
    """One conversation. Owner of all that is named here; nobody else changes it."""

    def __init__(
        self,
        config: Config,
        opened: Opened,
        journal: Journal,
        directories: tuple[str, ...] = (),
    ) -> None:
        self.config = config
        self.id = opened.session
        self.cwd = opened.cwd
        self.directories = directories
        """Further folders of the workspace."""
        self.mode: Mode = "plan" if opened.mode == "plan" else "default"
        self.model_key = _known_model(config, opened.model)
        self.effort = opened.effort or None
        self.permission: Preset = _known_preset(config, opened.permission)
        self.title: str | None = None
        self.history = History()
        self.seen = Seen()
        self.looks = Looks()
        self.jobs = LocalJobs()
        self.login = Login()
        self.introduced = False
        """The model was told what the project tells every agent."""
        self.looked_for: set[str] = set()
        """The files of instructions that were told, or are not there."""
        self.told_files: set[str] = set()
        """Those that were told."""
        self.visited: set[str] = set()
        """The folders of files that the model has seen."""
        self.own_commands: Mapping[str, OwnCommand] = {}
        """The commands that the user and the project bring along, as they were last found."""
        self.command_faults: tuple[str, ...] = ()
        """What is wrong with their files, a sentence each."""
        self.told_faults: set[str] = set()
        """Of those, the sentences that the person has been told."""
        self.changes = Changes()
        self.goal: GoalChanged = NO_GOAL
        self.missed_a_tool = False
        """The model called one that is not there."""
        self.goal_armed = False
        self.answers = Answers(None, opened.cwd)
        """What the person allowed or denied for good."""
        self.rules: tuple[Rule, ...] = ()
        """The permission rules of all files."""
        self.remarks: tuple[str, ...] = ()
        """What was left out of the project's settings."""
        self._declined: set[Access] = set()
        """Wider limits that the person refused since the last prompt."""
        self.described_mode: Mode | None = None
        """The mode that the last request spoke of; None before the first."""
        self.is_closed = False
        self.closed = anyio.Event()
        self.loading: Loading | None = None
        """Its records are still being read; the prompts wait."""
        self.prompts: list[Prompt] = []
        self.turn = anyio.Lock()
        self.servers: tuple[McpServer, ...] = ()
        """The editor's MCP servers, as it sent them."""
        self.remote: Remote = NoServers()
        self.journal = journal
        self.meter = Meter()
        """All that answers took so far, as the servers counted."""
        self.prefix = Prefix()
        self.warming: anyio.CancelScope | None = None
        """Of the request that prepares the server for the first prompt, once it was made."""
        self.extended = Extended(0)
        """The last time that the person let it spend more."""
        self.caching = Caching()
        self._refused: dict[str, set[str]] = {}
        """Parameters that a model's server has refused, by the model's maker."""
        self._prompts_made = 0
        self._responses_made = 0
        self._told = 0
        self._compactions_made = 0
        self._cards: set[str] = set()
        """Ids of calls that the editor knows."""
        self._repeats: Counter[str] = Counter()
        """How often an id of the model's was met: where to look for the next free one."""
        self._scratch: str | None = None
        self._owed: list[Record] = []
        """What is applied and still to be written down, in order: the disk was full."""

    @property
    def usage(self) -> Update | None:
        """What the editor is shown of the context window; None where the server counts nothing."""
        window = self.model.context_window
        if window is None or not self.meter.tokens:
            return None
        return updates.usage(self.history.tokens, window, self.meter.cost)

    @property
    def model(self) -> Model:
        """The model in force."""
        return self.config.models[self.model_key]

    @property
    def scratch(self) -> str:
        """The session's own temporary folder, made when first asked for; ConfigError.

        Systems clear what lies in /tmp for days, and a command may remove it: then it is made anew.
        """
        if self._scratch is None or not _is_own_folder(self._scratch):
            import tempfile  # noqa: PLC0415 (it loads slowly; no session needs it to begin)

            try:
                self._scratch = os.path.realpath(tempfile.mkdtemp(prefix="responses-acp-"))
            except OSError as error:
                raise ConfigError(_NO_SCRATCH) from error
        return self._scratch

    @property
    def folders(self) -> tuple[tuple[str, str], ...]:
        """The folders that the editor opened: resolved, and as it names them."""
        return tuple((os.path.realpath(named), named) for named in (self.cwd, *self.directories))

    @property
    def roots(self) -> tuple[str, ...]:
        """Where files may be read and written without asking."""
        made = () if self._scratch is None else (self._scratch,)
        named = (self.cwd, *self.directories, *self.config.sandbox.writable_roots)
        return (*map(os.path.realpath, named), *made)

    @property
    def dialect(self) -> Dialect:
        """How the model in force wants its history."""
        return self.dialect_of(self.model)

    def dialect_of(self, model: Model) -> Dialect:
        """How this model wants a history."""
        maker = f"{model.provider}/{model.model}"
        return Dialect(
            maker,
            model.replay,
            self.quirks_of(model).replay_reasoning,
            images=model.images,
            files=model.files,
        )

    def quirks_of(self, model: Model) -> InForce:
        """How the server of this model is spoken to."""
        return in_force(self.config.providers[model.provider], model)

    @property
    def takes(self) -> frozenset[str]:
        """The media types that the model in force takes beside text."""
        pictures = filetype.PICTURES if self.model.images else frozenset[str]()
        return pictures | ({filetype.PDF} if self.model.files else frozenset[str]())

    def refused_by(self, model: Model) -> frozenset[str]:
        """Parameters that requests to this model leave out from now on."""
        return frozenset(self._refused.get(self.dialect_of(model).maker, ()))

    def refuse(self, parameter: str, model: Model) -> None:
        """The server of this model does not know this parameter."""
        log.say(f"the server does not know {parameter}; going on without it in this session")
        self._refused.setdefault(self.dialect_of(model).maker, set()).add(parameter)

    def record(self, record: Record) -> None:
        """Write one record down and apply it."""
        if isinstance(record, Prompted):
            self.journal.start()
        while self._owed:
            self.journal.append(self._owed[0])
            del self._owed[0]
        self.journal.append(record)
        self._apply(record)

    def restored(self, records: Iterable[Record]) -> Iterator[Record]:
        """Apply what was written down earlier, and hand each record on."""
        for record in records:
            self._apply(record)
            yield record
        self.introduced = self.history.is_worked_on
        self.goal_armed = False
        for call in self.changes.open_calls():
            returned = interrupted(call)
            try:
                self.record(returned)
            except BridgeError:  # a full disk keeps nobody from looking
                self._owe(returned)
            yield returned

    def conclude(
        self, returned: Returned, show: Callable[[Returned], None], *before: Record
    ) -> None:
        """Write the end of a call down, and show it; before: what is to be written with it.

        BridgeError where that fails; what is shown then is what a load will find.
        """
        try:
            for record in (*before, returned):
                self.record(record)
        except BridgeError:
            (call,) = (one for one in self.changes.open_calls() if one.card_id == returned.card_id)
            lost = interrupted(call)
            self._owe(lost)
            show(lost)
            raise
        show(returned)

    def _owe(self, record: Record) -> None:
        """Apply a record that is to be written down before all others, once that can be done."""
        self._owed.append(record)
        self._apply(record)

    async def announce(self, card_id: str, rewrite: Rewrite) -> None:
        """Have on disk what a call is about to do to a file; BridgeError where that fails."""
        before = None
        if rewrite.old is not None:
            before = digest(rewrite.old)
            await run_sync(self.journal.keep, rewrite.old)
        self.record(Changing(card_id, rewrite.path, before, digest(rewrite.new)))
        await self.settle()

    async def settle(self) -> None:
        """Wait until all that was recorded is on disk; BridgeError where that fails."""
        await run_sync(self.journal.sync)

    def next_prompt(self) -> int:
        """The number of the prompt that comes now."""
        return self._prompts_made + 1

    def next_response(self) -> int:
        """The number of the model answer that comes now; message ids are made of it."""
        self._responses_made += 1
        return self._responses_made

    def next_compaction(self) -> int:
        """The number of the compaction that comes now, whether or not it succeeds."""
        self._compactions_made += 1
        return self._compactions_made

    def next_told(self) -> str:
        """The message id of what we say ourselves now."""
        self._told += 1
        return f"n{self._told}"

    def card_id(self, call_id: str) -> str:
        """The id of a new call towards the editor: its own, made unique in the session."""
        while True:
            self._repeats[call_id] += 1
            times = self._repeats[call_id]
            card = call_id if times == 1 else f"{call_id}#{times}"
            if card not in self._cards:
                self._cards.add(card)
                return card

    def switch(self, mode: Mode) -> bool:
        """Change the mode; False if it is in force already."""
        if mode == self.mode:
            return False
        self.record(Switched("mode", mode))
        return True

    def decline(self, access: Access) -> None:
        """The person refused this; a refusal of wider limits stands until the next prompt."""
        if access.wider:
            self._declined.add(access)

    def declined(self, access: Access) -> bool:
        """Whether it would be asked again what the person has just refused."""
        return access in self._declined

    def cancel(self) -> None:
        """Stop the running prompt and all that wait; does nothing when there is none."""
        for prompt in self.prompts:
            prompt.scope.cancel()

    def stop_warming(self) -> None:
        """The server is needed for something better."""
        if self.warming is not None:
            self.warming.cancel()

    async def end(self) -> None:
        """Stop everything, wait until all prompts are answered, and close."""
        self.cancel()
        try:
            if self.loading is not None:
                self.loading.scope.cancel()
                await self.loading.ended.wait()
            for prompt in list(self.prompts):
                await prompt.answered.wait()
            await self.jobs.end()
        finally:
            self.close()

    def close(self) -> None:
        """Give everything free that outlives a prompt."""
        self.is_closed = True
        self.jobs.close()
        self.stop_warming()
        self.remote.close()
        self.journal.close()
        if self._scratch is not None:
            import shutil  # noqa: PLC0415 (as above)

            shutil.rmtree(self._scratch, ignore_errors=True)
        self.closed.set()

    def _apply(self, record: Record) -> None:
        self.history.add(record)
        self.changes.add(record)
        self.meter.add(record)
        match record:
            case Prompted(prompt=number):
                self._prompts_made = max(self._prompts_made, number)
                self._declined.clear()
            case Responded(response=number, seen=seen):
                self._responses_made = max(self._responses_made, number)
                self._cards.update(one.card_id for one in seen if isinstance(one, Announced))
                self._cards.update(one.call.card_id for one in seen if isinstance(one, Hosted))
            case Told():
                self._told = max(self._told, int(record.message.removeprefix("n")))
            case Compacted(compaction=number):
                self._compactions_made = max(self._compactions_made, number)
            case Extended():
                self.extended = record
            case Titled(title=title):
                self.title = title
            case Learned(source=source):
                self.looked_for.add(source)
                self.told_files.add(source)
            case SawFile(file=file):
                self.seen.restore(file)
                self.visited.add(os.path.dirname(str(file.get("path"))))
            case GoalChanged():
                self.goal = record
            case Switched():
                self._set(record)
            case _:
                pass

    def _set(self, switched: Switched) -> None:
        before = reach(self.mode, self.permission)
        match switched.option:
            case "mode":
                self.mode = "plan" if switched.value == "plan" else "default"
            case "model":
                self.model_key = _known_model(self.config, str(switched.value))
                self.effort = self.model.effort
            case "effort":
                self.effort = switched.value or None
            case "permission":
                self.permission = _known_preset(self.config, switched.value)
        after = reach(self.mode, self.permission)
        if REACHES.index(after) < REACHES.index(before):
            self.jobs.narrow(after)


def now() -> str:
    """The present moment as RFC 3339 in UTC."""
    return timestamp(time.time_ns())


def _known_preset(config: Config, name: str | None) -> Preset:
    """The preset of this name, or the configured one where there is none."""
    return cast("Preset", name) if name in get_args(Preset) else config.permission


def _known_model(config: Config, key: str) -> str:
    """The key itself, or the default one where the configuration no longer has it."""
    return key if key in config.models else config.default_model


def _is_own_folder(path: str) -> bool:
    """Whether this is a folder of ours, and not what somebody put where one was."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
