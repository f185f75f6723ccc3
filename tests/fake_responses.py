"""The model's server, scripted: in-process or on loopback; and builders of what OpenAI sends.

The n-th request gets the n-th script; `asked` keeps what came. A script is a body in pieces, each
of which is one network read: an event, bytes as they are, or an exception, where the connection
breaks, or a Pause. A Reply says more: status, headers, and how the connection stands afterwards.
Every body that comes is held to the rules of pairing.py.
"""

import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import httpx
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSListener

from tests import pairing

Event: TypeAlias = dict[str, Any]
Piece: TypeAlias = "Event | bytes | Exception | Pause"
Script: TypeAlias = "Reply | bytes | Exception | Sequence[Piece]"

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing comes for so long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP answer; hold: nothing more comes, and the connection stays open.

    deaf: after this answer the connection neither takes a request nor ends.
    """

    body: Sequence[Piece] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: EVENT_STREAM)
    hold: bool = False
    deaf: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """One request; connection: which one it came on."""

    body: Any
    headers: Mapping[str, str]
    target: str
    connection: int = 0


class FakeResponses:
    """Answers with scripts; cut: bytes of one network read, instead of one piece of the script.

    any_body: what comes need not be what the agent would send. forgets: an earlier conversation
    may lose its end, after a refusal, or its beginning, when it was compacted.
    """

    def __init__(
        self,
        *scripts: Script,
        cut: int | None = None,
        any_body: bool = False,
        forgets: bool = False,
    ) -> None:
        self._conversations = None if any_body else pairing.Conversations(forgets=forgets)
        self.asked: list[Asked] = []
        self.hung_up = anyio.Event()
        """The client closed a connection that was held open."""
        self._scripts = list(scripts)
        self._cut = cut

    @property
    def inner(self) -> httpx.MockTransport:
        """Serves without a network."""

        async def handle(request: httpx.Request) -> httpx.Response:
            body = json.loads(await request.aread())
            asked = Asked(body, request.headers, request.url.raw_path.decode())
            reply = self._reply(asked)
            if isinstance(reply, Exception):
                raise reply
            body = _Body(self._pieces(reply), reply.hold, self.hung_up)
            return httpx.Response(
                reply.status,
                headers=reply.headers,
                stream=body,
                extensions={"network_stream": body},
            )

        return httpx.MockTransport(handle)

    @asynccontextmanager
    async def serve(
        self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> AsyncGenerator[str]:
        """Serve on this machine as long as the context is open; gives the base URL."""
        plain = await anyio.create_tcp_listener(local_host=host)
        port = plain.extra(anyio.abc.SocketAttribute.local_port)
        listener = plain if tls is None else TLSListener(plain, tls, standard_compatible=False)
        numbers = count(1)

        async def converse(stream: ByteStream) -> None:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
                async with stream:
                    await self._converse(stream, next(numbers))

        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, converse)
            yield f"{'http' if tls is None else 'https'}://{host}:{port}/v1"
            tasks.cancel_scope.cancel()

    def _reply(self, asked: Asked) -> Reply | Exception:
        self.asked.append(asked)
        if self._conversations is not None:
            self._conversations.check(asked.body)
        if len(self.asked) > len(self._scripts):
            pairing.BROKEN.append("more requests than scripts")
            return Reply(status=418)
        script = self._scripts[len(self.asked) - 1]
        if isinstance(script, Reply | Exception):
            return script
        return Reply([script] if isinstance(script, bytes) else script)

    def _pieces(self, reply: Reply) -> list[bytes | Exception | Pause]:
        pieces = [frame(piece) if isinstance(piece, dict) else piece for piece in reply.body]
        if self._cut is None:
            return pieces
        whole = b"".join(piece for piece in pieces if isinstance(piece, bytes))
        cuts = range(0, len(whole), self._cut)
        broken = [piece for piece in pieces if not isinstance(piece, bytes)]
        return [*(whole[at : at + self._cut] for at in cuts), *broken]

    async def _converse(self, stream: ByteStream, number: int) -> None:
        """Requests and answers of one connection, to its end."""
        reader = BufferedByteReceiveStream(stream)
        while True:
            head = (await reader.receive_until(b"\r\n\r\n", 65536)).decode()
            first, *lines = head.split("\r\n")
            pairs = (line.partition(":") for line in lines)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            body = await reader.receive_exactly(int(headers.get("content-length", "0")))
            reply = self._reply(
                Asked(json.loads(body or b"null"), headers, first.split()[1], number)
            )
            if isinstance(reply, Exception):
                return
            given = {**reply.headers, "transfer-encoding": "chunked"}
            wire = "".join(f"{name}: {value}\r\n" for name, value in given.items())
            await stream.send(f"HTTP/1.1 {reply.status} Scripted\r\n{wire}\r\n".encode())
            for piece in self._pieces(reply):
                if isinstance(piece, Exception):
                    return
                if isinstance(piece, Pause):
                    await anyio.sleep(piece.seconds)
                else:
                    await stream.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            if reply.hold:
                with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    await stream.receive()
                self.hung_up.set()
                return
            await stream.send(b"0\r\n\r\n")
            if reply.deaf:
                await anyio.sleep_forever()


class _Body(httpx.AsyncByteStream):
    """The body of an answer, and the connection that it comes on."""

    def __init__(
        self, pieces: Iterable[bytes | Exception | Pause], hold: bool, hung_up: anyio.Event
    ) -> None:
        self._pieces = pieces
        self._hold = hold
        self._hung_up = hung_up
        self.patience: float | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, Pause):
                await self._wait(piece.seconds)
            else:
                yield piece
                await anyio.lowlevel.checkpoint()  # between two network reads
        if self._hold:
            await self._wait(inf)

    async def _wait(self, seconds: float) -> None:
        patience = inf if self.patience is None else self.patience
        await anyio.sleep(min(seconds, patience))
        if seconds > patience:
            raise httpx.ReadTimeout("")

    async def aclose(self) -> None:
        if self._hold:
            self._hung_up.set()


def frame(event: Event) -> bytes:
    """One event as OpenAI frames it."""
    return f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n".encode()


# -- what OpenAI sends

USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 29,
}


@dataclass(frozen=True, slots=True)
class Item:
    """An output item: as it opens, the events of its inside, and as it closes."""

    opened: Event
    inside: Sequence[Event]
    closed: Event


def thought(*parts: str) -> Item:
    """Reasoning with a summary of these parts."""
    opened: Event = {"type": "reasoning", "summary": []}
    inside: list[Event] = []
    for number, text in enumerate(parts):
        at = {"summary_index": number}
        family = "response.reasoning_summary"
        empty, full = ({"type": "summary_text", "text": said} for said in ("", text))
        inside += [
            {"type": f"{family}_part.added", **at, "part": empty},
            *({"type": f"{family}_text.delta", **at, "delta": word} for word in words(text)),
            {"type": f"{family}_text.done", **at, "text": text},
            {"type": f"{family}_part.done", **at, "part": full},
        ]
    summary = [{"type": "summary_text", "text": text} for text in parts]
    return Item(opened, inside, {**opened, "summary": summary, "encrypted_content": "opaque"})


def said(text: str) -> Item:
    """A message."""
    part: Event = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    deltas: list[Event] = [
        {"type": "response.output_text.delta", "content_index": 0, "delta": word, "logprobs": []}
        for word in words(text)
    ]
    done: Event = {
        "type": "response.output_text.done",
        "content_index": 0,
        "text": text,
        "logprobs": [],
    }
    return _message(part, [*deltas, done])


def refused(text: str) -> Item:
    """A message that refuses."""
    kind = "response.refusal"
    deltas = [{"type": f"{kind}.delta", "content_index": 0, "delta": word} for word in words(text)]
    done = {"type": f"{kind}.done", "content_index": 0, "refusal": text}
    return _message({"type": "refusal", "refusal": text}, [*deltas, done])


def _message(part: Event, inside: Sequence[Event]) -> Item:
    opened: Event = {"type": "message", "role": "assistant", "status": "in_progress", "content": []}
    key = "refusal" if part["type"] == "refusal" else "text"
    added = {"type": "response.content_part.added", "content_index": 0, "part": {**part, key: ""}}
    done = {"type": "response.content_part.done", "content_index": 0, "part": part}
    closed = {**opened, "status": "completed", "content": [part]}
    return Item(opened, [added, *inside, done], closed)


def called(call_id: str, name: str, arguments: str = "{}") -> Item:
    """A call of a function."""
    opened = {"type": "function_call", "call_id": call_id, "name": name, "arguments": ""}
    kind = "response.function_call_arguments"
    inside = [
        *({"type": f"{kind}.delta", "delta": word} for word in words(arguments)),
        {"type": f"{kind}.done", "arguments": arguments},
    ]
    opened["status"] = "in_progress"
    return Item(opened, inside, {**opened, "arguments": arguments, "status": "completed"})


def stream(*items: Item, end: str = "completed", **response: Any) -> list[Event]:
    """A whole response; end: its status, or "" for a stream that is cut before its end."""
    base: Event = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
    }
    begun = {**base, "status": "in_progress"}
    events = [
        {"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")
    ]
    for index, item in enumerate(items):
        at = {"output_index": index, "item_id": f"item_{index}"}
        name = {"id": f"item_{index}"}
        added, done = "response.output_item.added", "response.output_item.done"
        events += [
            {"type": added, "output_index": index, "item": {**item.opened, **name}},
            *({**event, **at} for event in item.inside),
            {"type": done, "output_index": index, "item": {**item.closed, **name}},
        ]
    if end:
        output = [{**item.closed, "id": f"item_{index}"} for index, item in enumerate(items)]
        ended = {**base, "status": end, "output": output, "usage": USAGE, **response}
        events.append({"type": f"response.{end}", "response": ended})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def incomplete(*items: Item, reason: str = "max_output_tokens") -> list[Event]:
    """A response that ended before it was done."""
    return stream(*items, end="incomplete", incomplete_details={"reason": reason})


def failed(*items: Item, code: str = "server_error", message: str = "It broke.") -> list[Event]:
    """A response that failed."""
    return stream(*items, end="failed", error={"code": code, "message": message})


def words(text: str) -> list[str]:
    """The text in pieces, as a model might stream it."""
    return [text[at : at + 5] for at in range(0, len(text), 5)]
