"""Plays a recording against this version: the first place where the agent says something else.

The recording is read line by line. What the editor sent is sent, what the model answered is
answered, what a tool found is found; what the agent then says is held against what it said.

Rule 1: nothing is touched. Tools give the results that stand in the recording, and no server,
command, MCP server or file of the workspace is reached; sessions live in a folder that goes.
Rule 2: a line is played when everything before it has happened. So a replay needs no clock, and
what the agent waits for comes in the same order.
Rule 3: what the machine told the agent beside the tools is not in a recording: sessions stored
before, the user's own commands, lasting permissions. Where that matters, a difference shows.
"""

import json
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio

from bridge.acp.agent import Agent
from bridge.acp.connection import Connection
from bridge.acp.editor import SessionEditor
from bridge.acp.methods import take
from bridge.acp.peer import Peer
from bridge.calls import Toolbox, workbench
from bridge.config import Config
from bridge.core import likeness
from bridge.core.likeness import MISSING, Line
from bridge.core.records import Item, Learned
from bridge.core.wire import dump, load_object
from bridge.errors import ConfigError
from bridge.keys import Keys
from bridge.recording import LIVE
from bridge.replay.difference import Difference, Differs
from bridge.replay.parts import Gate, NoFiles, NoKeys, NoShell, Recorded, Stdout
from bridge.replay.read import RESULTS
from bridge.responses.answer import Reply
from bridge.responses.transport import Opening, Transport
from bridge.session import Session
from bridge.store import Store
from bridge.workbench import Load, Workbench
from bridge.workshop import Models, Workshop, load_client
from tools.base import Context, Prepared, Result, Tool
from tools.shell import CONFINED_SHELL
from tools.table import TOOLS

_PATIENCE = 5.0
"""Seconds without what should come next."""
_QUIET = 0.3
"""Seconds without a word after the last line."""


async def replay(
    lines: Sequence[Line], patience: float = _PATIENCE, quiet: float = _QUIET
) -> Difference | None:
    """Play the lines; what differs first."""
    with tempfile.TemporaryDirectory(prefix="responses-acp-replay-") as folder:
        player = _Player(lines, patience, quiet)
        try:
            await player.play(Path(folder))
        except Differs as differs:
            return differs.found
    return None


class _Player:
    """One recording at play; owner of all that has been said and not yet been compared."""

    def __init__(self, lines: Sequence[Line], patience: float, quiet: float) -> None:
        self._lines = lines
        self._patience, self._quiet = patience, quiet
        self._said: dict[str, deque[Line]] = {}
        self._bodies: deque[Line] = deque()
        self._news = anyio.Event()
        self._names: dict[str, str] = {}
        """Sessions of the recording -> ours."""
        self._ids: dict[Any, Any] = {}
        """Requests of the agent's, likewise."""
        self._open: set[Any] = set()
        """Requests of the editor's that the recorded agent has not answered yet."""
        self._answers: dict[int, Recorded] = {}
        self._asked = 0
        self._gates: dict[int, Gate] = {}
        self._calls: dict[str, deque[Gate]] = {}
        self._told = {
            (line["name"], line.get("session"), line.get("time")): line["result"]
            for line in lines
            if line["who"] == "tool" and line.get("name") in RESULTS and "result" in line
        }
        self._times: dict[tuple[str, str], int] = {}

    async def play(self, folder: Path) -> None:
        """From the first line to the last; raises Differs."""
        async with self._agent(folder) as (agent, peer):
            for number, line in enumerate(self._lines[1:], 2):
                await self._step(number, line, agent, peer)
            is_whole = self._lines[-1]["who"] == "end" and not self._open
            if is_whole and (more := await self._unexpected()) is not None:
                raise Differs(Difference(len(self._lines), "agent", "", MISSING, more))

    @asynccontextmanager
    async def _agent(self, folder: Path) -> AsyncGenerator[tuple[Agent, Peer]]:
        peer, keys = Peer(), cast("Keys", NoKeys(self._keyless()))
        bench = self._bench()
        failure: Differs | None = None
        async with (
            Transport(tap=self._tap, sleep=_at_once) as transport,
            anyio.create_task_group() as tasks,
        ):
            workshop = Workshop(Models(transport, keys), bench, load_client)
            agent = Agent(
                connection=Connection(peer, Stdout(self._hear)),
                tasks=tasks,
                load_config=self._config,
                environment={},
                store=Store(folder),
                answer=workshop.answer,
                attend=workshop.attend,
                discover=lambda _: None,
                is_folder=lambda _: True,
            )
            try:
                yield agent, peer
            except Differs as differs:
                failure = differs
            agent.close()
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def _config(self) -> Config:
        start = self._lines[0]
        if "config" not in start:
            raise ConfigError(str(start.get("complaint", "there was no configuration")))
        return start["config"].model_copy(update={"mcp": {}})

    def _keyless(self) -> dict[str, str]:
        start = self._lines[0]
        config: Config | None = start.get("config")
        providers = {} if config is None else config.providers
        missing = start.get("keyless", {})
        return {one.base_url: missing[name] for name, one in providers.items() if name in missing}

    # -- line by line

    async def _step(self, number: int, line: Line, agent: Agent, peer: Peer) -> None:
        match line["who"]:
            case "editor":
                self._send(line, agent, peer)
            case "agent":
                await self._expect(number, line["message"])
            case "ask":
                await self._expect_body(number, line["body"])
            case "model":
                self._answers.setdefault(line["ask"], Recorded()).add(line)
            case "tool":
                self._find(line)
            case _:
                pass

    def _send(self, line: Line, agent: Agent, peer: Peer) -> None:
        if "message" not in line:
            data = str(line.get("text", "")).encode()
        else:
            message = likeness.renamed(line["message"], self._names)
            if isinstance(message.get("params"), dict) and "mcpServers" in message["params"]:
                message["params"]["mcpServers"] = []
            if "method" not in message:
                if message.get("id") not in self._ids:
                    return  # what was asked is not asked now
                message["id"] = self._ids[message["id"]]
            elif "id" in message:
                self._open.add(str(message["id"]))
            data = dump(message)
        for one in peer.feed(data + b"\n"):
            take(agent, one)
        agent.connection.flush()

    async def _expect(self, number: int, recorded: Line) -> None:
        if not likeness.is_compared(recorded):
            return
        wanted = likeness.renamed(recorded, self._names)
        if "method" not in wanted:
            self._open.discard(str(wanted.get("id")))
        chunk = likeness.chunk_of(wanted)
        if chunk is not None:
            await self._expect_text(number, wanted, *chunk)
            return
        got = await self._next(likeness.session_of(wanted))
        if got is None:
            raise Differs(Difference(number, "agent", "", recorded, MISSING))
        if "method" in wanted and "id" in wanted and "id" in got:
            self._ids[wanted["id"]] = got["id"]
        self._learn_session(wanted, got)
        wanted = likeness.renamed(wanted, self._names)
        found = likeness.difference(likeness.of_message(wanted), likeness.of_message(got))
        if found is not None:
            raise Differs(Difference(number, "agent", *found))

    def _learn_session(self, wanted: Line, got: Line) -> None:
        """The session that both have opened just now."""
        old, new = map(likeness.session_in, (wanted, got))
        if old and new:
            self._names[old] = new

    async def _expect_text(
        self, number: int, wanted: Line, key: tuple[object, ...], text: str
    ) -> None:
        """As much text as this; how it was cut does not matter."""
        session, have = likeness.session_of(wanted), ""
        while len(have) < len(text) and text.startswith(have):
            got = await self._next(session)
            piece = None if got is None else likeness.chunk_of(got)
            if got is None or piece is None or piece[0] != key:
                raise Differs(Difference(number, "agent", "", wanted, got or MISSING))
            have += piece[1]
            if have.startswith(text) and len(have) > len(text):
                rest = likeness.with_text(got, have[len(text) :])
                self._said[session].appendleft(rest)
                have = text
        if have != text:
            raise Differs(Difference(number, "agent", "params.update.content.text", text, have))

    async def _expect_body(self, number: int, recorded: Line) -> None:
        with anyio.move_on_after(self._patience):
            while not self._bodies:
                await self._news.wait()
        if not self._bodies:
            raise Differs(Difference(number, "ask", "", recorded, MISSING))
        wanted = likeness.of_body(likeness.renamed(recorded, self._names))
        found = likeness.difference(wanted, likeness.of_body(self._bodies.popleft()))
        if found is not None:
            raise Differs(Difference(number, "ask", *found))

    async def _next(self, session: str) -> Line | None:
        """What the agent says next of this session; None: it has nothing more to say."""
        queue = self._said.setdefault(session, deque())
        with anyio.move_on_after(self._patience):
            while not queue:
                await self._news.wait()
        return queue.popleft() if queue else None

    async def _unexpected(self) -> Line | None:
        """What the agent says beyond the recording."""
        with anyio.move_on_after(self._quiet):
            while not self._bodies and not any(self._said.values()):
                await self._news.wait()
        return next(iter(self._bodies), None) or next(
            (queue[0] for queue in self._said.values() if queue), None
        )

    def _hear(self, message: Line) -> None:
        if likeness.is_compared(message):
            session = likeness.session_of(message)
            self._said.setdefault(session, deque()).append(message)
            self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    # -- what the agent reaches

    def _tap(self, content: bytes, opening: Opening) -> Opening:
        del opening  # the way to the network

        async def opened() -> Reply:
            self._asked += 1
            answer = self._answers.setdefault(self._asked, Recorded())
            self._bodies.append(load_object(content))
            self._tell()
            return await answer.begun()

        return opened

    def _find(self, line: Line) -> None:
        name = str(line.get("name"))
        if name in RESULTS:
            return
        number = line.get("call")
        gate = self._gates.get(cast("int", number))
        if gate is None:
            gate = self._gates[cast("int", number)] = Gate()
            self._calls.setdefault(_call(name, line.get("arguments")), deque()).append(gate)
        gate.add(line)
        self._tell()

    def _bench(self) -> Workbench:
        tools: dict[str, Tool[Any]] = {**TOOLS, "shell": CONFINED_SHELL}
        for name, tool in tools.items():
            if name not in LIVE:
                tools[name] = replace(tool, prepare=self._prepare_of(name))

        def learn(session: Session, _folder: str | None) -> Iterator[Learned]:
            return iter(self._telling("knowledge", session))

        async def follow(
            blocks: Sequence[Item], session: Session, _editor: SessionEditor, _load: Load
        ) -> tuple[Item, ...]:
            return tuple(self._telling("links", session) or blocks)

        toolbox = Toolbox(tools, NoFiles(), lambda _: NoShell())
        return replace(workbench(toolbox), learn=learn, follow=follow)

    def _telling(self, name: str, session: Session) -> Sequence[Any]:
        """What the session was told at this time."""
        time = self._times[name, session.id] = self._times.get((name, session.id), 0) + 1
        names = {ours: recorded for recorded, ours in self._names.items()}
        return self._told.get((name, names.get(session.id), time), ())

    def _prepare_of(self, name: str) -> Callable[[Any, Context], Awaitable[Prepared | Result]]:
        async def prepare(arguments: Any, _context: Context) -> Prepared | Result:
            gate = await self._gate(
                _call(name, arguments.model_dump(mode="json", exclude_defaults=True))
            )
            part = await gate.part("access")
            if isinstance(part, Result):
                return part

            async def made() -> Result:
                return await gate.part("result")

            return Prepared(part["access"], made, part.get("shown"), declined=part.get("declined"))

        return prepare

    async def _gate(self, call: str) -> Gate:
        while not self._calls.get(call):
            await self._news.wait()
        return self._calls[call].popleft()


def _call(name: str, arguments: object) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


async def _at_once(_seconds: float) -> None:
    await anyio.lowlevel.checkpoint()
