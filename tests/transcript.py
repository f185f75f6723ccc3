"""Whole conversations, played through the agent without a process, a socket or a model.

A transcript is one JSON object per line; `who` says whose it is:
  setup    config, files, data (more files, as base64), user (files of the user's folder), env,
           sandbox (its strength), mcp: the ground it plays on (first line);
           forgets: a prompt is refused, so that a later request need not begin with all of an
           earlier one; asks: keys of request bodies that are written down beside the input when
           expectations are rewritten
  editor   a message to the agent
  model    a piece of the model's answer: thought, text, call, event, error, or end
  agent    a line the agent must send now
  ask      a request body the agent must send to the model now (only the keys given count)
  file     what a file must hold now
  write    a file that somebody writes now
  restart  the agent ends, and another one starts with the sessions it left
In mcp stand the servers that can be reached, by command: their tools, and what each answers.
"<any>" matches anything; <cwd> is the workspace, <user> the user's folder, <state> where sessions
are kept, <session> the session, <now> any time.
"""

import json
import re
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest
from math import inf
from pathlib import Path
from typing import Any, Literal, cast

import anyio
import anyio.lowlevel

from bridge.acp.agent import Agent
from bridge.acp.connection import Connection
from bridge.acp.methods import take
from bridge.acp.peer import Peer
from bridge.calls import Toolbox, workbench
from bridge.config import Provider, load
from bridge.core import policy
from bridge.core.remote import RemoteTool
from bridge.core.remote_content import Output
from bridge.core.wire import dump
from bridge.errors import Fault, ModelError, model_error
from bridge.remote_tool import Asked, ServerFault
from bridge.responses.events import Event, parse
from bridge.responses.faults import Broken
from bridge.servers import Connect, Events, Load
from bridge.session import Session
from bridge.store import Store
from bridge.wanted import Address, Program
from bridge.workshop import Workshop
from tests import pairing
from tests.laws import Laws
from tools.base import Hold
from tools.environment import child_environment
from tools.frozen import frozen
from tools.local import LocalFiles
from tools.process import LocalShell
from tools.shell import CONFINED_SHELL
from tools.table import TOOLS

Line = dict[str, Any]
Strength = Literal["full", "partial", "none"]

CONFIG: Line = {
    "permission": "workspace-write",
    "providers": {"p": {"base_url": "http://127.0.0.1:9/v1"}},
    "models": {"m": {"provider": "p", "context_window": 1000}},
}
_SETTLED = 0.08
"""Seconds without a word, when expectations are rewritten."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")


class FakeStdio:
    """Takes what the agent writes, as messages."""

    def __init__(self, say: Callable[[Line], None]) -> None:
        self._say = say

    def write(self, data: bytes) -> None:
        for line in data.splitlines(keepends=True) if data.endswith(b"\n") else [data]:
            self._say({"who": "agent", "line": line})

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def room(self) -> None:
        await anyio.lowlevel.checkpoint()


@dataclass(eq=False, slots=True)
class FakeModel:
    """Answers with the events it is given, in the order of the requests."""

    say: Callable[[Line], None]
    conversations: pairing.Conversations
    answers: list[Any] = field(default_factory=list[Any])
    """One memory channel per request: sender and receiver."""
    started: int = 0
    retries: int = 0

    def quiet_for(self) -> float:
        return inf

    def channel(self, number: int) -> Any:
        while len(self.answers) <= number:
            self.answers.append(anyio.create_memory_object_stream[object](1000))
        return self.answers[number]

    @asynccontextmanager
    async def stream(
        self,
        provider: Provider,
        body: Mapping[str, object],
        on_wait: Callable[[Fault, int, int, float], None],
        after: Broken | None,
    ) -> AsyncGenerator[AsyncIterator[list[Event]]]:
        if after is not None:
            if after.attempt > self.retries or not after.fault.retryable:
                raise model_error(after.fault)
            on_wait(after.fault, after.attempt, self.retries, 1.0)
        provider.credentials({})
        sent = json.loads(dump(body))
        self.conversations.check(sent)
        self.say({"who": "ask", "body": sent})
        _, receiver = self.channel(self.started)
        self.started += 1

        async def batches() -> AsyncIterator[list[Event]]:
            async for batch in receiver:
                if isinstance(batch, ModelError):
                    raise batch
                if isinstance(batch, Fault):
                    on_wait(batch, 1, 4, 2.0)
                else:
                    yield cast("list[Event]", batch)

        with receiver:
            yield batches()


class HeldShell(LocalShell):
    """A shell that says it holds commands; what it says is all it does."""

    __slots__ = ("session", "strength")

    def __init__(self, of: LocalShell, session: Session, strength: Strength) -> None:
        super().__init__(of.environment, of.scratch)
        self.session = session
        self.strength: Strength = strength

    async def hold(self) -> Hold:
        reach = policy.reach(self.session.mode, self.session.permission)
        return Hold(reach, self.strength)


@frozen
class FakeServer:
    """An MCP server that answers as the transcript says."""

    script: Line

    async def tools(self) -> tuple[RemoteTool, ...]:
        return tuple(RemoteTool(**tool) for tool in self.script["tools"])

    async def call(self, name: str, arguments: Mapping[str, object], asked: Asked) -> Output:
        answer = self.script["answers"][name]
        return Output(tuple(answer["blocks"]), failed=answer.get("failed", False))


@dataclass(eq=False, slots=True)
class Player:
    """One transcript at play."""

    lines: list[Line]
    folder: Path
    update: bool = False
    marks: dict[str, str] = field(default_factory=dict[str, str])
    heard: list[Line] = field(default_factory=list[Line])
    written: list[Line] = field(default_factory=list[Line])
    said: list[Line] = field(default_factory=list[Line])
    """Every message of the agent's, as it was sent."""
    laws: Laws = field(default_factory=Laws)
    news: anyio.Event = field(default_factory=anyio.Event)
    answer: int = 0
    items: list[Line] = field(default_factory=list[Line])

    async def play(self) -> None:
        """Play it to its end; AssertionError where it is not as written."""
        setup = self.lines[0]
        workspace = self.folder / "ws"
        workspace.mkdir()
        self.marks |= {"<cwd>": str(workspace), "<user>": str(self.folder / "user")}
        self.marks["<state>"] = str(self.folder / "state")
        for name, text in setup.get("files", {}).items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(text, encoding="utf-8")
        for name, data in setup.get("data", {}).items():
            (workspace / name).write_bytes(b64decode(data))
        for name, text in setup.get("user", {}).items():
            (self.folder / "user" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "user" / name).write_text(text, encoding="utf-8")
        conversations = pairing.Conversations(forgets=setup.get("forgets", False))
        model = FakeModel(self._say, conversations, retries=setup.get("retries", 0))
        async with anyio.create_task_group() as tasks:
            agent = self.agent(setup, model, tasks)
            self.written.append(setup)
            for line in self.lines[1:]:
                if line["who"] == "restart":
                    await self._settle()
                    self.written.append(line)
                    agent.close()
                    self.laws, self.answer = Laws(), model.started
                    agent = self.agent(setup, model, tasks)
                await self._step(line, agent, model)
            rest = await self._rest()
            assert self.update or not rest, f"the agent said more: {rest}"
            self.written += rest
            for session in agent.sessions.values():
                session.cancel()
            agent.close()
            tasks.cancel_scope.cancel()
        for sender, receiver in model.answers:
            sender.close()
            receiver.close()

    def agent(self, setup: Line, model: FakeModel, tasks: Any) -> Agent:
        """An agent on this ground; what it says is heard here."""
        file = self.folder / "config.toml"
        config = {**CONFIG, **setup.get("config", {})}
        file.write_text(toml(config), encoding="utf-8")
        connection = Connection(Peer(), FakeStdio(self._say))

        @asynccontextmanager
        async def connect(reach: Program | Address, events: Events) -> AsyncGenerator[FakeServer]:
            command = reach.argv[0] if isinstance(reach, Program) else reach.url
            if command not in setup.get("mcp", {}):
                raise ServerFault("No such file or directory")
            yield FakeServer(setup["mcp"][command])

        async def load_client() -> Connect:
            return connect

        workshop = self._workshop(model, load_client)
        return Agent(
            connection=connection,
            tasks=tasks,
            load_config=lambda: load(str(file), setup.get("env", {})),
            environment=setup.get("env", {}),
            store=self.store,
            answer=workshop.answer,
            attend=workshop.attend,
            discover=lambda _: None,
            user_folder=self._user_folder,
        )

    @property
    def _user_folder(self) -> str | None:
        return str(self.folder / "user") if "user" in self.lines[0] else None

    @property
    def store(self) -> Store:
        """Where its sessions are kept."""
        return Store(self.folder / "state")

    def _workshop(self, model: FakeModel, load_client: Load) -> Workshop:
        files = LocalFiles()
        user = self._user_folder
        plain = workbench(Toolbox(TOOLS, files, self._shell, user))
        held = workbench(Toolbox({**TOOLS, "shell": CONFINED_SHELL}, files, self._shell, user))
        confined = held if "sandbox" in self.lines[0] else None
        return Workshop(cast("Any", model), plain, load_client, confined)

    def _shell(self, session: Session) -> LocalShell:
        environment = child_environment({"PATH": "/usr/bin:/bin"}, (), (), session.scratch)
        shell = LocalShell(environment, session.scratch)
        strength = self.lines[0].get("sandbox")
        return shell if strength is None else HeldShell(shell, session, strength)

    def _say(self, line: Line) -> None:
        self.heard.append(line)
        self.news.set()

    async def _step(self, line: Line, agent: Agent, model: FakeModel) -> None:
        match line["who"]:
            case "editor":
                await self._settle()
                self._send(line, agent)
            case "model":
                await self._settle()
                self._stream(line, model)
            case "file":
                await self._settle()
                text = (self.folder / "ws" / line["path"]).read_text(encoding="utf-8")
                assert text == line["text"], line["path"]
                self.written.append(line)
            case "write":
                await self._settle()
                (self.folder / "ws" / line["path"]).write_text(line["text"], encoding="utf-8")
                self.written.append(line)
            case "agent" | "ask" if not self.update:
                await self._expect(line)
            case _:
                pass

    def _send(self, line: Line, agent: Agent) -> None:
        self.written.append(line)
        message = {"jsonrpc": "2.0", **self._filled(line["message"])}
        self.laws.sent(message)
        peer = cast("Any", agent.connection)._peer
        for one in peer.feed(dump(message) + b"\n"):
            take(agent, one)
        agent.connection.flush()

    def _stream(self, line: Line, model: FakeModel) -> None:
        self.written.append(line)
        sender, _ = model.channel(self.answer)
        piece = self._piece(self._filled(line))
        with suppress(anyio.BrokenResourceError):  # the agent hung up
            sender.send_nowait(piece)
        if "end" in line or "error" in line:
            self.answer += 1
            self.items = []
            sender.close()

    def _piece(self, line: Line) -> object:
        index = len(self.items)
        if "error" in line:
            return model_error(Fault(**line["error"]))
        if "wait" in line:
            return Fault(**line["wait"])
        if "event" in line:
            return [parse(line["event"])]
        if "end" in line:
            response = {"status": line["end"], "usage": line.get("usage")}
            response["incomplete_details"] = {"reason": line.get("reason")}
            return [parse({"type": f"response.{line['end']}", "response": response})]
        events, item = _events(line, index)
        self.items.append(item)
        return [parse(event) for event in events]

    async def _expect(self, line: Line) -> None:
        with anyio.fail_after(5):
            while not self.heard:
                self.news = anyio.Event()
                await self.news.wait()
        self._match(line, self._written(self.heard.pop(0)))

    def _match(self, wanted: Line, got: Line) -> None:
        assert wanted["who"] == got["who"], f"wanted {wanted}, got {got}"
        if wanted["who"] == "ask":
            got = {"who": "ask", "body": {key: got["body"].get(key) for key in wanted["body"]}}
        assert _like(wanted, got), f"wanted {json.dumps(wanted)}\n   got {json.dumps(got)}"

    async def _settle(self) -> None:
        """When rewriting: take down everything the agent has to say now."""
        if self.update:
            self.written += await self._rest()

    async def _rest(self) -> list[Line]:
        said: list[Line] = []
        while True:
            await anyio.wait_all_tasks_blocked()
            if self.update:
                await anyio.sleep(_SETTLED)
            if not self.heard:
                return [] if self.update and not said else said
            said += [self._written(line) for line in self.heard]
            self.heard.clear()

    @property
    def _asked(self) -> list[str]:
        """What the transcript says of requests beside their input."""
        bodies = (line["body"] for line in self.lines if line["who"] == "ask")
        every = dict.fromkeys(key for body in bodies for key in body)
        return [key for key in (*self.lines[0].get("asks", ()), *every) if key != "input"]

    def _written(self, line: Line) -> Line:
        """What was said, in the form of a transcript."""
        if line["who"] == "ask":
            body = self._unfilled(line["body"])
            if self.update:
                body = {key: body.get(key) for key in ("input", *self._asked)}
            return {"who": "ask", "body": body}
        message = self.laws.take(line["line"])
        self.said.append(dict(message))
        result = cast("Line", message.get("result") or {})
        session = result.get("sessionId")
        if session:
            self.marks[f"<session{len([m for m in self.marks if 'session' in m]) or ''}>"] = session
        del message["jsonrpc"]
        if self.update and "agentInfo" in result:
            message["result"] = "<any>"  # the handshake has tests of its own
        return {"who": "agent", "message": self._unfilled(message)}

    def _filled(self, value: Any) -> Any:
        text = json.dumps(value)
        for mark, real in self.marks.items():
            text = text.replace(mark, real)
        return json.loads(text)

    def _unfilled(self, value: Any) -> Any:
        text = json.dumps(value)
        for mark, real in self.marks.items():
            text = text.replace(real, mark)
        return json.loads(_TIME.sub("<now>", text))


def read(path: Path) -> list[Line]:
    """The lines of a transcript."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def write(path: Path, lines: list[Line]) -> None:
    """The lines as a transcript."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")


def toml(config: Line) -> str:
    """A configuration as TOML: plain values of a table first, then its tables."""
    return "\n".join(_tables(config, ())) + "\n"


def _tables(table: Line, name: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"[{'.'.join(name)}]"] if name and (plain or not table) else []
    lines += [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _tables(cast("Line", value), (*name, key))
    return lines


def _like(wanted: Any, got: Any) -> bool:
    if wanted == "<any>":
        return True
    if isinstance(wanted, dict) and isinstance(got, dict):
        one, other = cast("Line", wanted), cast("Line", got)
        return one.keys() == other.keys() and all(_like(one[key], other[key]) for key in one)
    if isinstance(wanted, list) and isinstance(got, list):
        pairs = list(zip(cast("list[Any]", wanted), cast("list[Any]", got), strict=False))
        return len(cast("list[Any]", wanted)) == len(cast("list[Any]", got)) and all(
            _like(one, other) for one, other in pairs
        )
    return wanted == got


def renewed(old: Sequence[Line], new: Sequence[Line]) -> list[Line]:
    """The new lines, as vague as the old ones are where they say the same kind of thing."""
    lines = list(new)
    kinds = [_kind_of(line) for line in old], [_kind_of(line) for line in new]
    alike = SequenceMatcher(None, *kinds, autojunk=False).get_matching_blocks()
    for start, other, length in alike:
        for step in range(length):
            line: Line = _vague(old[start + step], new[other + step])
            if line["who"] == "ask":
                line["body"] = {key: line["body"][key] for key in old[start + step]["body"]}
            lines[other + step] = line
    return lines


def _kind_of(line: Line) -> tuple[str, ...]:
    message: Line = line.get("message", {})
    update: Line = message.get("params", {}).get("update", {})
    return line["who"], str(message.get("method", "")), str(update.get("sessionUpdate", ""))


def _vague(old: Any, new: Any) -> Any:
    if old == "<any>":
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        one, other = cast("Line", old), cast("Line", new)
        return {key: _vague(one.get(key), value) for key, value in other.items()}
    if isinstance(old, list) and isinstance(new, list):
        pair = cast("list[Any]", old), cast("list[Any]", new)
        return [_vague(*each) for each in zip_longest(*pair)][: len(pair[1])]
    return new


def _events(line: Line, index: int) -> tuple[list[Line], Line]:
    """The events of one item in the order in which OpenAI sends them."""
    key: Line = {"output_index": index, "item_id": f"i{index}"}
    done: Line = {"id": f"i{index}"}
    if "call" in line:
        call_id, name, arguments = line["call"]
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        done |= {"type": "function_call", "call_id": call_id, "name": name, "arguments": text}
        opened: Line = {**done, "arguments": ""}
        kind = "function_call_arguments"
    elif "thought" in line:
        text, kind = line["thought"], "reasoning_summary_text"
        done |= {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}
        opened = {**done, "summary": []}
    else:
        text, kind = line["text"], "output_text"
        part = {"type": "output_text", "text": text}
        done |= {"type": "message", "role": "assistant", "content": [part]}
        opened = {**done, "content": []}
    delta: Line = {"type": f"response.{kind}.delta", **key, "delta": text}
    added: Line = {"type": "response.output_item.added", "output_index": index, "item": opened}
    closed: Line = {"type": "response.output_item.done", "output_index": index, "item": done}
    return [added, delta, closed], done
