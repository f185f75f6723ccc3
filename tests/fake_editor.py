"""An editor for tests: sends what a test says, and holds every line of the agent's to the laws.

Rule 1: it decides nothing by itself; what the agent asks is answered from `answers`.
Rule 2: a line that breaks a law fails the test at its next wait.
"""

import json
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from subprocess import PIPE
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream

from tests.laws import LawBroken, Laws, Message

Answer = Callable[[Message], Message | None]
"""The params of a request of the agent's -> its result; None: it stays open."""


class Refused(Exception):
    """The agent answered with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.error = error
        self.code: int = error["code"]


def choose(kind: str) -> Answer:
    """Answer a permission request with the first option of this kind."""

    def answer(params: Message) -> Message:
        chosen = next(one["optionId"] for one in params["options"] if one["kind"] == kind)
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    return answer


def fill(**content: Any) -> Answer:
    """Accept a form with this content."""
    return lambda params: {"action": "accept", "content": content}


class Editor:
    """One editor with one agent; owner of the streams between them."""

    def __init__(self, to_agent: ByteSendStream, from_agent: ByteReceiveStream) -> None:
        self.laws = Laws()
        self.received: list[Message] = []
        """Every message of the agent's, in order."""
        self.answers: dict[str, Answer] = {}
        """By method; a request of another method is answered with "method not found"."""
        self._to_agent = to_agent
        self._from_agent = from_agent
        self._last_id = 0
        self._rest = b""
        self._arrived = anyio.Event()
        self._broken: LawBroken | None = None
        self._over = False

    # -- sending

    async def write(self, data: bytes) -> None:
        """Send bytes as they are, unseen by the laws."""
        await self._to_agent.send(data)

    async def send(self, *messages: Mapping[str, Any]) -> None:
        """Send messages in one write."""
        for message in messages:
            self.laws.sent(message)
        await self.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def begin(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request without waiting for its answer; gives its id."""
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        await self.send(request if params is None else {**request, "params": params})
        return self._last_id

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Message:
        """Send a request and wait for its result; raises Refused."""
        return await self.result(await self.begin(method, params))

    async def reply(self, call: Any, result: Mapping[str, Any]) -> None:
        """Answer a request of the agent's that was left open."""
        await self.send({"jsonrpc": "2.0", "id": call, "result": result})

    async def initialize(self, **capabilities: Any) -> Message:
        """Shake hands as a client that can do this."""
        params = {"protocolVersion": 1, "clientCapabilities": capabilities}
        return await self.request("initialize", params)

    async def new_session(self, cwd: str | os.PathLike[str]) -> str:
        """Open a session; gives its id."""
        params: Message = {"cwd": os.fspath(cwd), "mcpServers": []}
        return str((await self.request("session/new", params))["sessionId"])

    async def prompt(self, session: str, text: str) -> str:
        """Send one text and wait for the end of its turn; gives the stop reason."""
        prompt = [{"type": "text", "text": text}]
        answer = await self.request("session/prompt", {"sessionId": session, "prompt": prompt})
        return str(answer["stopReason"])

    # -- receiving

    def updates(self, kind: str | None = None, session: str | None = None) -> list[Message]:
        """The updates so far: all, or of one kind or session."""
        return [
            message["params"]["update"]
            for message in self.received
            if message.get("method") == "session/update"
            and kind in (None, message["params"]["update"]["sessionUpdate"])
            and session in (None, message["params"]["sessionId"])
        ]

    def text(self, kind: str = "agent_message_chunk") -> str:
        """Everything said so far."""
        return "".join(update["content"].get("text", "") for update in self.updates(kind))

    async def result(self, call: Any) -> Message:
        """Wait for the result of a request; raises Refused."""
        answer = await self.message(
            lambda message: (
                "method" not in message
                and message["id"] == call
                and type(message["id"]) is type(call)
            )
        )
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    async def asked(self, method: str) -> Message:
        """Wait for a request of the agent's that is still open."""
        return await self.message(
            lambda message: message.get("method") == method and message["id"] in self.laws.asking
        )

    async def update(self, kind: str, **members: Any) -> Message:
        """Wait for an update of this kind with these members."""
        found = await self.message(lambda message: _is_update(message, kind, members))
        return found["params"]["update"]

    async def message(self, wanted: Callable[[Message], bool]) -> Message:
        """Wait for the first message, of those received and those to come, that is wanted."""
        seen = 0
        while True:
            arrived = self._arrived
            while seen < len(self.received):
                if wanted(self.received[seen]):
                    return self.received[seen]
                seen += 1
            self._check()
            if self._over:
                raise EOFError("the agent ended before what was waited for came")
            await arrived.wait()

    async def end(self) -> None:
        """Wait for the end of the agent's output, and hold it against the laws."""
        while not self._over and self._broken is None:
            await self._arrived.wait()
        self._check()

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken

    async def listen(self) -> None:
        """Take what the agent sends up to its end; runs beside the test."""
        try:
            async for data in self._from_agent:
                *lines, self._rest = (self._rest + data).split(b"\n")
                for line in lines:
                    await self._take(line + b"\n")
            if self._rest:
                self.laws.take(self._rest)
        except LawBroken as broken:
            self._broken = broken
        finally:
            self._over = True
            self._arrived.set()

    async def _take(self, line: bytes) -> None:
        message = self.laws.take(line)
        self.received.append(message)
        self._arrived.set()
        self._arrived = anyio.Event()
        if "id" in message and "method" in message:
            await self._answer(message)

    async def _answer(self, request: Message) -> None:
        answer = self.answers.get(request["method"])
        if answer is None:
            error = {"code": -32601, "message": f"the test does not answer {request['method']}"}
            await self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})
            return
        result = answer(request["params"])
        if result is not None:
            await self.reply(request["id"], result)


def _is_update(message: Message, kind: str, members: Message) -> bool:
    if message.get("method") != "session/update":
        return False
    update = message["params"]["update"]
    return update["sessionUpdate"] == kind and all(
        update.get(key) == value for key, value in members.items()
    )


@dataclass(eq=False, slots=True)
class Agent:
    """A running agent process and the editor that started it."""

    editor: Editor
    pid: int
    end: Callable[[], Awaitable[int]]
    """Close its stdin and wait until it is gone; gives the exit code."""
    stderr: bytearray


@asynccontextmanager
async def agent_process(
    argv: list[str], *, env: Mapping[str, str], cwd: str | os.PathLike[str]
) -> AsyncGenerator[Agent]:
    """An agent over pipes; afterwards it and everything in its process group is gone."""
    process = await anyio.open_process(
        argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env, cwd=cwd, start_new_session=True
    )
    to_agent, from_agent, complaints = process.stdin, process.stdout, process.stderr
    assert to_agent is not None
    assert from_agent is not None
    assert complaints is not None
    stderr = bytearray()

    async def drain() -> None:
        async for data in complaints:
            stderr.extend(data)

    async def end() -> int:
        await to_agent.aclose()
        await editor.end()
        return await process.wait()

    editor = Editor(to_agent, from_agent)
    async with process, anyio.create_task_group() as tasks:
        tasks.start_soon(editor.listen)
        tasks.start_soon(drain)
        try:
            yield Agent(editor, process.pid, end, stderr)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            tasks.cancel_scope.cancel()
