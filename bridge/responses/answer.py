"""One HTTP answer: the bytes of its body in, batches of events out.

It must not know the HTTP library: Reply is all it sees of it.

Rule 1: events come in batches, one per network read, so that what arrived together can be shown
together and nothing waits for more.
Rule 2: time-outs are measured on bytes, since servers keep a silent connection alive with them.
Rule 3: what an answer is, its first byte tells: servers label streams as JSON, errors as streams.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Protocol, TypeAlias, TypeVar, cast

import anyio
from pydantic_core import from_json

from bridge.core.wire import JsonObject, load_object
from bridge.errors import BadStream, Fault, ModelError, Unreachable, model_error
from bridge.responses import faults
from bridge.responses.events import IGNORED, Ended, Event, Failure, Ignored, Served, parse
from bridge.responses.sse import BOM, Frames
from bridge.responses.upstream import upstream_of

_MOST_ERROR_BYTES = 64 * 1024
_MOST_ANSWER_BYTES = 64 * 1024 * 1024
_ERROR_SECONDS = 5.0
"""How long we read what an error status has to say, all in all."""
_REASON_SECONDS = 1.0
"""How long we read on after a failure without a reason, for the reason."""
_END_SECONDS = 0.05
"""How long we wait for the end of a body of which nothing more is needed."""
_NO_NAME = "message"
"""What the grammar of event streams calls a frame that has no name."""
_NO_STREAM = (b"{", b"[", b"<")
"""How bodies begin that are no streams: JSON and HTML."""

T = TypeVar("T")

OnWait: TypeAlias = Callable[[Fault, int, int, float], None]
"""Told of a wait before another attempt: why, which attempt failed, of how many, seconds."""


class Endpoint(Protocol):
    """Where a provider is reached and how patient we are with it; times in seconds."""

    @property
    def base_url(self) -> str: ...
    @property
    def is_local(self) -> bool: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def query(self) -> Mapping[str, str]: ...
    @property
    def ca_file(self) -> str | None: ...
    @property
    def connect_timeout(self) -> float: ...
    @property
    def first_event_timeout(self) -> float | None: ...
    @property
    def idle_timeout(self) -> float: ...
    @property
    def max_wait(self) -> float: ...
    @property
    def max_retries(self) -> int: ...


class Reply(Protocol):
    """An HTTP answer whose body is still to come."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes | None:
        """The next network read; None: the end.

        Raises ModelError where it breaks off, or is silent for too long once it has begun.
        """
        ...

    def frames(self, whole: bytes) -> Iterable[tuple[str, str]]:
        """Name and data of each frame in these bytes, which hold whole frames."""
        ...

    async def close(self) -> None:
        """Hang up."""
        ...


Attempt: TypeAlias = Callable[[], Awaitable["Answer"]]
"""Asks once; gives the answer that has begun, or raises ModelError."""


async def begun(endpoint: Endpoint, host: str, opening: Callable[[], Awaitable[Reply]]) -> "Answer":
    """The answer, read up to the first event that means something; raises ModelError."""
    patience = _Patience(endpoint, host)
    reply = await patience.wait_for(opening)
    answer = Answer(reply, endpoint, patience)
    try:
        await answer.begin()
    except BaseException:
        await answer.close()
        raise
    return answer


class Answer:
    """One answer, as an iterator over batches of events; close() it."""

    def __init__(self, reply: Reply, endpoint: Endpoint, patience: "_Patience") -> None:
        self._reply = reply
        self._secrets = tuple(endpoint.headers.values())
        self._patience = patience
        self._frames = Frames()
        self._kept = b""
        """Read ahead."""
        self._first: list[Event] = []
        self._has_begun = False
        """A byte of the body has come."""
        self._over = False
        self._is_whole = False
        """Nothing that counts can come any more."""

    def __aiter__(self) -> "Answer":
        return self

    async def __anext__(self) -> list[Event]:
        batch, self._first = self._first, []
        if not batch and self._over:
            raise StopAsyncIteration
        return batch or await self._batch(await self._reply.read())

    async def close(self) -> None:
        """Hang up; the server stops when it notices."""
        with anyio.CancelScope(shield=True):
            if self._is_whole:
                await self._read_on()
            await self._reply.close()

    async def _read_on(self) -> None:
        """Read what is left, if that comes soon: then the connection serves the next request."""
        with anyio.move_on_after(_END_SECONDS), suppress(ModelError):
            while await self._reply.read() is not None:
                pass

    async def begin(self) -> None:
        """Read up to the first event that means something, or the last."""
        if self._reply.status >= 300:
            raise model_error(await self._refusal())
        self._kept = await self._start()
        if self._kept.removeprefix(BOM).lstrip().startswith(_NO_STREAM):
            self._first = [await self._whole()]
            self._over = True
        while not self._over and all(isinstance(event, Ignored) for event in self._first):
            self._first = await self._batch(await self._read())
        for event in self._first:
            match event:
                case Ignored():
                    continue
                case Failure(fault=Fault() as fault):
                    raise model_error(fault)
                case _:
                    upstream = upstream_of(self._reply.headers, self._secrets)
                    self._first[:0] = [Served(upstream)] if upstream else []
                    return
        raise model_error(self._nothing())

    async def _start(self) -> bytes:
        """The first bytes that are not blank."""
        start = b""
        while not start.removeprefix(BOM).strip():
            data = await self._read()
            if data is None:
                break
            start += data
        return start

    async def _read(self) -> bytes | None:
        """The next network read, until the answer has begun."""
        if self._kept:
            data, self._kept = self._kept, b""
            return data
        if self._has_begun:
            return await self._reply.read()
        data = await self._patience.wait_for(self._reply.read)
        self._has_begun = True
        return data

    async def _batch(self, data: bytes | None) -> list[Event]:
        """The events of one network read; marks the end of the stream."""
        events = self._decoded(data)
        for number, event in enumerate(events):
            match event:
                case Ended():
                    self._is_whole = True
                    break
                case Failure():
                    return [*events[:number], await self._explained(event, events[number + 1 :])]
                case _:
                    pass
        return events

    def _decoded(self, data: bytes | None) -> list[Event]:
        frames = self._frames
        self._over = self._over or data is None
        events: list[Event] = []
        # The bytes have no name here: a frame may be large, and there are enough copies of it.
        for name, text in self._reply.frames(frames.end() if data is None else frames.feed(data)):
            if text.strip() == "[DONE]":
                self._over = self._is_whole = True
                break
            events.append(_event(name, text))
        if frames.waiting > _MOST_ANSWER_BYTES:
            raise BadStream(faults.not_a_stream("a frame without an end"))
        return events

    async def _explained(self, failure: Failure, rest: list[Event]) -> Failure:
        """The failure with all that is known of it; nothing is read after it."""
        if faults.is_reasonless(failure.body):
            failure = await self._reason(rest) or failure
        self._over = True
        fault = faults.of_event(failure.body, self._reply.headers, time.time(), self._secrets)
        return replace(failure, fault=fault)

    async def _reason(self, events: list[Event]) -> Failure | None:
        """Some servers say in a second frame why the response failed."""
        with anyio.move_on_after(_REASON_SECONDS), suppress(ModelError):
            while True:
                for event in events:
                    if isinstance(event, Failure):
                        return event
                if self._over:
                    break
                events = self._decoded(await self._reply.read())
        return None

    async def _refusal(self) -> Fault:
        """The fault of an answer whose status says that it is one."""
        status, headers = self._reply.status, self._reply.headers
        if status < 400:
            return faults.redirected(status)
        body = bytearray()
        with anyio.move_on_after(_ERROR_SECONDS), suppress(ModelError):
            await self._collect(body, _MOST_ERROR_BYTES)
        now, host = time.time(), self._patience.host
        return faults.of_response(status, headers, bytes(body), now, self._secrets, host)

    async def _whole(self) -> Event:
        """The event that an answer in one piece amounts to: a finished response, or an error."""
        body = bytearray()
        await self._collect(body, _MOST_ANSWER_BYTES)
        try:
            data = load_object(bytes(body).removeprefix(BOM))
        except ValueError:
            raise BadStream(faults.not_a_stream(self._kind() or "text")) from None
        if data.get("error"):
            return await self._explained(Failure(data), [])
        if "output" not in data:
            raise BadStream(faults.not_a_stream("JSON without an output"))
        event = parse({"type": "response.completed", "response": data})
        return await self._explained(event, []) if isinstance(event, Failure) else event

    async def _collect(self, body: bytearray, most: int) -> None:
        """Add what the body holds, up to a limit."""
        while len(body) < most:
            data = await self._read()
            if data is None:
                break
            body += data

    def _nothing(self) -> Fault:
        """The fault of a stream in which nothing was found."""
        kind = self._kind()
        is_stream = not kind or "text/event-stream" in kind.lower()
        return faults.truncated() if is_stream else faults.not_a_stream(kind)

    def _kind(self) -> str:
        return self._reply.headers.get("content-type", "")


class _Patience:
    """How long a server may take until it begins to answer; owned by one answer."""

    def __init__(self, endpoint: Endpoint, host: str) -> None:
        self._is_local = endpoint.is_local
        self.host = host
        self._seconds = endpoint.first_event_timeout or inf
        self._end = anyio.current_time() + self._seconds

    async def wait_for(self, what: Callable[[], Awaitable[T]]) -> T:
        """Wait for as long as is allowed; raises Unreachable after that."""
        with anyio.CancelScope(deadline=self._end):
            return await what()
        fault = faults.late(self.host, self._seconds, "first_event_timeout")
        # A local server that is still busy with a prompt would get it twice.
        raise Unreachable(replace(fault, retryable=not self._is_local))


def _event(name: str, text: str) -> Event:
    """The event of one frame; its name counts only where the data have no type."""
    try:
        data = _object(text)
    except ValueError:
        return IGNORED
    if isinstance(data.get("type"), str) or name == _NO_NAME:
        return parse(data)
    return parse({**data, "type": name})


def _object(text: str) -> JsonObject:
    """Like load_object(), and far faster: there is one for each word that streams."""
    try:
        data = from_json(text, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        return load_object(text)  # half of a surrogate pair is nothing to the fast reader
    return cast("JsonObject", data) if isinstance(data, dict) else load_object(text)
