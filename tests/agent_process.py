"""The real agent, a machine of its own for it, and a model whose part the test plays.

Rule 1: the test is the model. It takes each request as it comes and writes the answer piece by
piece, so that every moment of a turn can be held still without a clock.
Rule 2: whatever a test is about, every request body must be one that a server accepts, the agent
must end well and in silence, and no secret may stand in anything it wrote.
"""

import json
import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from tests import pairing
from tests.fake_editor import Agent, Editor, agent_process
from tests.laws import Message

HOME = Path(__file__).parent.parent
PROGRAM = (sys.executable, "-I", str(HOME / "bridge" / "__main__.py"))
KEY = "sk-test-4f1d09c3b7"
"""The key in the agent's environment."""

_DEADLINE, _SOON = 30.0, 10.0
"""Seconds for a test and for one wait; none takes a tenth of it."""
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


# -- the model ------------------------------------------------------------------------------------


class Request:
    """One request of the agent's, and the answer to it as far as the test has given it."""

    def __init__(self, stream: SocketStream, head: bytes, body: Message) -> None:
        self.head = head.decode("latin-1")
        self.body = body
        self.hung_up = anyio.Event()
        """The agent closed the connection."""
        self._stream = stream
        self._started = False
        self._events = 0
        self._items: list[Message] = []
        self._open: Message | None = None

    @property
    def input(self) -> list[Message]:
        """The conversation as the agent sent it."""
        return self.body["input"]

    @property
    def session(self) -> str:
        """The session that asks."""
        return str(self.body["prompt_cache_key"])

    # -- raw

    async def raw(self, data: bytes) -> None:
        """Send a piece of the stream as it is."""
        if not self._started:
            self._started = True
            await self._head("200 OK", "text/event-stream", "transfer-encoding: chunked")
        if data:
            await self._send(b"%x\r\n%b\r\n" % (len(data), data))

    async def close(self) -> None:
        """End the stream as a server does that has said all it has to say."""
        await self.raw(b"")
        await self._send(b"0\r\n\r\n")

    async def cut(self) -> None:
        """Break the connection."""
        await self._stream.aclose()

    async def refuse(
        self, status: str, body: bytes, *headers: str, kind: str = "application/json"
    ) -> None:
        """Answer with another status, or with something else than a stream."""
        self._started = True
        await self._head(status, kind, f"content-length: {len(body)}", *headers)
        await self._send(body)

    async def _head(self, status: str, kind: str, *headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", *headers, "", ""]
        await self._send("\r\n".join(lines).encode())

    async def _send(self, data: bytes) -> None:
        """What is sent to a client that has hung up is lost: it may do so when it has enough."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._stream.send(data)

    # -- events

    async def event(self, kind: str, **members: Any) -> None:
        """Send one event."""
        event = {"type": kind, **members, "sequence_number": self._events}
        self._events += 1
        await self.raw(f"event: {kind}\ndata: {json.dumps(event)}\n\n".encode())

    async def think(self, text: str) -> None:
        """Stream a piece of a thought; the next piece of it may follow."""
        await self._grow("reasoning", "summary", {"type": "summary_text"}, text)

    async def say(self, text: str) -> None:
        """Stream a piece of a message; the next piece of it may follow."""
        part: Message = {"type": "output_text", "annotations": []}
        await self._grow("message", "content", part, text)

    async def begin_call(self, call_id: str, name: str, arguments: str) -> None:
        """Stream a call up to these arguments, which may be half of them."""
        await self._close_item()
        names = {"call_id": call_id, "name": name, "arguments": ""}
        await self._open_item({"type": "function_call", **names})
        await self._delta("function_call_arguments", delta=arguments)
        self._item["arguments"] = arguments

    async def call(self, call_id: str, name: str, /, **arguments: Any) -> None:
        """Stream a whole call."""
        await self.begin_call(call_id, name, json.dumps(arguments))
        await self._close_item()

    async def complete(self, status: str = "completed", **members: Any) -> None:
        """End the response; with its terminal event, unless that is overwritten."""
        await self._close_item()
        usage = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
        response = {"id": "resp_1", "status": status, "output": self._items, "usage": usage}
        await self.event(f"response.{status}", response={**response, **members})
        await self.close()

    async def answer(self, text: str = "Done.") -> None:
        """Say this and nothing else."""
        await self.say(text)
        await self.complete()

    async def ask_for(self, call_id: str, name: str, /, **arguments: Any) -> None:
        """Make one call and nothing else."""
        await self.call(call_id, name, **arguments)
        await self.complete()

    @property
    def _item(self) -> Message:
        assert self._open is not None
        return self._open

    async def _grow(self, kind: str, where: str, part: Message, text: str) -> None:
        if self._open is None or self._open["type"] != kind:
            await self._close_item()
            role = {"role": "assistant"} if kind == "message" else {}
            await self._open_item({"type": kind, **role, where: []})
            self._item[where] = [{**part, "text": ""}]
        self._item[where][0]["text"] += text
        index = {"summary": "summary_index", "content": "content_index"}[where]
        family = {"summary": "reasoning_summary_text", "content": "output_text"}[where]
        await self._delta(family, delta=text, **{index: 0})

    async def _delta(self, family: str, **members: Any) -> None:
        at = {"item_id": self._item["id"], "output_index": len(self._items)}
        await self.event(f"response.{family}.delta", **at, **members)

    async def _open_item(self, item: Message) -> None:
        self._open = {"id": f"item_{len(self._items)}", **item}
        await self._tell_item("added")

    async def _close_item(self) -> None:
        if self._open is not None:
            self._open["status"] = "completed"
            await self._tell_item("done")
            self._items.append(self._open)
            self._open = None

    async def _tell_item(self, what: str) -> None:
        kind = f"response.output_item.{what}"
        await self.event(kind, output_index=len(self._items), item=self._open)


class Model:
    """A Responses server on loopback; owner of the requests it got."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.base_url = ""
        self.conversations = pairing.Conversations()
        self.any_body = False
        """What comes need not be what the agent sends to a model."""
        self._taken = 0
        self._arrived = anyio.Event()

    async def request(self) -> Request:
        """Wait for the next request, in the order of arrival."""
        with anyio.fail_after(_SOON):
            while self._taken == len(self.requests):
                await self._arrived.wait()
        self._taken += 1
        return self.requests[self._taken - 1]

    def forget(self) -> None:
        """Wait for none of the requests so far: whoever sent them is gone."""
        self._taken = len(self.requests)

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[None]:
        """Listen as long as the context is open."""
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            port = listener.extra(SocketAttribute.local_port)
            self.base_url = f"http://127.0.0.1:{port}/v1"
            tasks.start_soon(listener.serve, self._converse)
            yield
            tasks.cancel_scope.cancel()

    async def _converse(self, stream: SocketStream) -> None:
        reader = BufferedByteReceiveStream(stream)
        request: Request | None = None
        async with stream:
            try:
                while True:
                    head = await reader.receive_until(b"\r\n\r\n", 65536)
                    request = await self._read(stream, reader, head)
                    self.requests.append(request)
                    self._arrived.set()
                    self._arrived = anyio.Event()
            except (
                anyio.EndOfStream,
                anyio.IncompleteRead,
                anyio.BrokenResourceError,
                anyio.ClosedResourceError,
            ):
                if request is not None:
                    request.hung_up.set()

    async def _read(
        self, stream: SocketStream, reader: BufferedByteReceiveStream, head: bytes
    ) -> Request:
        length = _LENGTH.search(head)
        assert length is not None or self.any_body
        body: Message = json.loads(await reader.receive_exactly(int(length[1])) if length else "{}")
        if not self.any_body:
            self.conversations.check(body)
        return Request(stream, head, body)


# -- the machine ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Machine:
    """A user's machine: home, workspace, configuration, and the model's server."""

    folder: Path
    model: Model
    secrets: list[str] = field(default_factory=lambda: [KEY])
    """What no agent may write anywhere."""

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    @property
    def environment(self) -> dict[str, str]:
        """As an editor would pass it on."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_CONFIG_HOME": str(self.folder / "home" / "config"),
            "XDG_STATE_HOME": str(self.folder / "home" / "state"),
            "TEST_KEY": KEY,
        }

    def configure(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        provider: str = "p",
        models: Mapping[str, Mapping[str, Any]] | None = None,
        retries: int = 0,
        sandbox: Mapping[str, Any] | None = None,
    ) -> None:
        """Write config.toml: these settings, and one server with these models.

        Without a word on the sandbox it is off, so that every machine tells the same story.
        """
        replays = [model.get("replay") for model in (models or {}).values()]
        self.model.conversations.verbatim = "verbatim" in replays
        server = {
            "base_url": self.model.base_url,
            "api_key_env": "TEST_KEY",
            "max_retries": retries,
        }
        lines = [
            *_settings({"permission": "danger-full-access", **(settings or {})}),
            f"[providers.{provider}]",
            *_settings(server),
        ]
        for name, model in (models or {"m": {}}).items():
            lines += [f"[models.{name}]", *_settings({"provider": provider, **model})]
        lines += ["[sandbox]", *_settings({"mode": "off"} if sandbox is None else sandbox)]
        self.config.write_text("\n".join([*lines, ""]), encoding="utf-8")

    @asynccontextmanager
    async def agent(
        self,
        *,
        program: tuple[str, ...] = PROGRAM,
        configured: bool = True,
        env: Mapping[str, str] | None = None,
        greet: bool = True,
        code: int = 0,
        answers_all: bool = True,
        **capabilities: Any,
    ) -> AsyncGenerator[Agent]:
        """The agent, started and greeted by a client that can do this; how it ends is checked."""
        command = [*program, *(("--config", str(self.config)) if configured else ())]
        environment = self.environment if env is None else env
        async with agent_process(command, env=environment, cwd=self.workspace) as agent:
            if greet:
                await agent.editor.initialize(**capabilities)
            yield agent
            assert (await agent.end(), bytes(agent.stderr)) == (code, b"")
            if answers_all:
                agent.editor.laws.end()
            self._check(agent)

    def _check(self, agent: Agent) -> None:
        state = (path for path in self.folder.rglob("state/**/*") if path.is_file())
        written = {path: path.read_bytes() for path in state}
        written[Path("stdout")] = json.dumps(agent.editor.received, ensure_ascii=False).encode()
        for path, data in written.items():
            for secret in self.secrets:
                assert secret.encode() not in data, f"{path} holds a secret"

    def log(self) -> str:
        """What the agent wrote into its log."""
        return "".join(path.read_text("utf-8") for path in self.folder.rglob("*.log"))


def _settings(values: Mapping[str, Any]) -> list[str]:
    """TOML writes these as JSON does."""
    return [f"{key} = {json.dumps(value)}" for key, value in values.items()]


@asynccontextmanager
async def machine(
    folder: Path, *, deadline: float = _DEADLINE, **configured: Any
) -> AsyncGenerator[Machine]:
    """A machine configured like this, for as long as the deadline allows."""
    for name in ("workspace", "home", "tmp"):
        (folder / name).mkdir()
    with anyio.fail_after(deadline):
        server = Model()
        async with server.serve():
            made = Machine(folder, server)
            made.configure(**configured)
            yield made


async def begin_prompt(editor: Editor, session: str, text: str = "Go on.") -> int:
    """Send a prompt without waiting for its answer; gives its id."""
    prompt = [{"type": "text", "text": text}]
    return await editor.begin("session/prompt", {"sessionId": session, "prompt": prompt})


async def cancel(editor: Editor, session: str) -> None:
    """Cancel what runs in this session, and what waits there."""
    await editor.notify("session/cancel", {"sessionId": session})


async def printed(editor: Editor, call: str, text: str) -> None:
    """Wait until the card of a running command shows this."""

    def shows(message: Message) -> bool:
        update = message.get("params", {}).get("update", {})
        return update.get("toolCallId") == call and text in json.dumps(update.get("content"))

    await editor.message(lambda message: "rawInput" not in json.dumps(message) and shows(message))


def is_alive(pid: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def read_lines(path: Path, marks: Mapping[str, str]) -> list[Message]:
    """A file of one JSON value per line, with its {{marks}} filled in."""
    return [
        cast("Message", filled(json.loads(line), marks))
        for line in path.read_text(encoding="utf-8").split("\n")
        if line
    ]


def filled(value: Any, marks: Mapping[str, str]) -> Any:
    """A JSON value with its {{marks}} filled in."""
    if isinstance(value, str):
        for mark, text in marks.items():
            value = value.replace(f"{{{{{mark}}}}}", text)
        return value
    if isinstance(value, dict):
        return {key: filled(item, marks) for key, item in cast("Message", value).items()}
    if isinstance(value, list):
        return [filled(item, marks) for item in cast("list[Any]", value)]
    return value
