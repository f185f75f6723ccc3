"""HTTP to the model's server: one request out, its events in; retries before anything was shown.

Rule 1: the only importer of httpx, httpx_sse and tenacity; their errors end here, as ModelErrors.
Rule 2: events come in batches, one per network read, so that what arrived together can be shown
together and nothing waits for more.
Rule 3: a request is sent again only while nothing of its answer was given out.
Rule 4: time-outs are measured on bytes, since servers keep a silent connection alive with them.
"""

import os
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol, cast

import anyio
import httpx
from httpx_sse import EventSource
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from bridge.core.wire import dump, load_object
from bridge.errors import BadStream, ConfigError, Fault, ModelError, Unreachable, model_error
from bridge.responses import faults
from bridge.responses.events import IGNORED, Event, Failure, Ignored, parse
from bridge.responses.sse import Frames

OnWait = Callable[[Fault, int, int, float], None]
"""Told of a wait before another attempt: why, which attempt, of how many, seconds."""

_MOST_ERROR_BYTES = 64 * 1024
_MOST_ANSWER_BYTES = 64 * 1024 * 1024
_REASON_SECONDS = 1.0
"""How long we read on after a failure without a reason, for the reason."""
_KEEPALIVE_SECONDS = 60.0
_BACKOFF = wait_random_exponential(multiplier=0.5, max=8)
_EVENT_STREAM = {"content-type": "text/event-stream"}


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


class Transport:
    """The HTTP clients of one process; use it as an async context manager."""

    def __init__(self, inner: httpx.AsyncBaseTransport | None = None) -> None:
        self._inner = inner
        self._clients: dict[tuple[bool, str | None], httpx.AsyncClient] = {}

    async def __aenter__(self) -> "Transport":
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients.values():
            await client.aclose()

    @asynccontextmanager
    async def stream(
        self, endpoint: Endpoint, body: Mapping[str, object], on_wait: OnWait | None = None
    ) -> AsyncGenerator[AsyncIterator[list[Event]]]:
        """Send one request and give its events in batches; raises ModelError or ConfigError."""
        client = self._client(endpoint)
        attempts = _Attempts(endpoint, on_wait)
        content = dump(body)
        answer: _Answer | None = None
        try:
            async for attempt in attempts.retrying():
                with attempt:
                    answer = _Answer(endpoint)
                    try:
                        await answer.begin(client, content)
                    except BaseException:
                        await answer.close()
                        raise
            assert answer is not None  # noqa: S101 (tenacity gives one attempt at least)
            yield answer.batches()
        finally:
            if answer is not None:
                await answer.close()

    def _client(self, endpoint: Endpoint) -> httpx.AsyncClient:
        key = endpoint.base_url.startswith("https:"), endpoint.ca_file
        if key not in self._clients:
            self._clients[key] = _new_client(*key, self._inner)
        return self._clients[key]


class _Attempts:
    """How often one request may be sent, and what is waited for in between."""

    def __init__(self, endpoint: Endpoint, on_wait: OnWait | None) -> None:
        self._endpoint = endpoint
        self._on_wait = on_wait

    def retrying(self) -> AsyncRetrying:
        return AsyncRetrying(
            stop=stop_after_attempt(self._endpoint.max_retries + 1),
            retry=retry_if_exception(self._worth_it),
            wait=self._seconds,
            before_sleep=self._tell,
            sleep=anyio.sleep,
            reraise=True,
        )

    def _worth_it(self, error: BaseException) -> bool:
        if not isinstance(error, ModelError) or not error.fault.retryable:
            return False
        return (error.fault.retry_after or 0) <= self._endpoint.max_wait

    def _seconds(self, state: RetryCallState) -> float:
        hint = _fault(state).retry_after
        return _BACKOFF(state) if hint is None else hint

    def _tell(self, state: RetryCallState) -> None:
        if self._on_wait is not None:
            seconds = 0.0 if state.next_action is None else state.next_action.sleep
            most = self._endpoint.max_retries
            self._on_wait(_fault(state), state.attempt_number, most, seconds)


def _fault(state: RetryCallState) -> Fault:
    error = None if state.outcome is None else state.outcome.exception()
    return cast("ModelError", error).fault


class _Answer:
    """One HTTP answer: read up to its first event that matters, then given out."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._response: httpx.Response | None = None
        self._bytes: AsyncIterator[bytes] | None = None
        self._frames = Frames()
        self._first: list[Event] = []
        self._got_bytes = False
        self._over = False

    async def begin(self, client: httpx.AsyncClient, content: bytes) -> None:
        """Send the request; returns with the first event that shows something, or the last."""
        with _translated(self._endpoint):
            self._response = await self._opened(client, content)
        headers = self._response.headers
        if self._response.status_code >= 300:
            raise model_error(await self._refusal())
        if "text/event-stream" not in headers.get("content-type", "text/event-stream").lower():
            self._first = await self._whole()
            self._over = True
            return
        self._bytes = self._response.aiter_bytes()
        first: Event = IGNORED
        while not self._over and isinstance(first, Ignored):
            self._first = await self._read()
            first = next((one for one in self._first if not isinstance(one, Ignored)), IGNORED)
        if isinstance(first, Failure):
            raise model_error(faults.of_event(first.body, headers, time.time()))
        if isinstance(first, Ignored):
            raise model_error(faults.truncated())

    async def batches(self) -> AsyncIterator[list[Event]]:
        """All events, in batches, to the end of the stream."""
        if self._first:
            yield self._first
        while not self._over:
            yield await self._read()

    async def close(self) -> None:
        """Hang up; the server stops when it notices."""
        if self._response is not None:
            with anyio.CancelScope(shield=True):
                await self._response.aclose()

    async def _opened(self, client: httpx.AsyncClient, content: bytes) -> httpx.Response:
        endpoint = self._endpoint
        request = client.build_request(
            "POST",
            f"{endpoint.base_url.rstrip('/')}/responses",
            params=dict(endpoint.query) or None,
            headers={
                "content-type": "application/json",
                "accept": "text/event-stream",
                **endpoint.headers,
            },
            content=content,
            timeout=httpx.Timeout(None, connect=endpoint.connect_timeout, write=60.0, pool=60.0),
        )
        with anyio.fail_after(endpoint.first_event_timeout):
            return await client.send(request, stream=True)

    async def _read(self) -> list[Event]:
        """The events of the next network read; marks the end of the stream."""
        assert self._bytes is not None  # noqa: S101 (begin() comes first)
        endpoint = self._endpoint
        limit = endpoint.idle_timeout if self._got_bytes else endpoint.first_event_timeout
        with _translated(endpoint, had_bytes=self._got_bytes), anyio.fail_after(limit):
            data = await anext(self._bytes, None)
        self._got_bytes = True
        self._over = data is None
        events = _events(self._frames.end() if data is None else self._frames.feed(data))
        for number, event in enumerate(events):
            if isinstance(event, Failure) and faults.is_reasonless(event.body):
                self._over = True
                return [*events[:number], await self._reason(events[number + 1 :], event)]
        return events

    async def _reason(self, events: list[Event], failure: Failure) -> Event:
        """Some servers say in a second frame why the response failed."""
        assert self._bytes is not None  # noqa: S101 (begin() comes first)
        with anyio.move_on_after(_REASON_SECONDS):
            while True:
                for event in events:
                    if isinstance(event, Failure):
                        return event
                try:
                    data = await anext(self._bytes, None)
                except httpx.HTTPError:
                    break
                if data is None:
                    break
                events = _events(self._frames.feed(data))
        return failure

    async def _refusal(self) -> Fault:
        """The fault of an answer whose status says that it is one."""
        response = self._response
        assert response is not None  # noqa: S101 (begin() comes first)
        if response.status_code < 400:
            what = f"The server redirects to another address (HTTP {response.status_code})"
            return Fault("bad_request", f"{what}: put that address into base_url", 300)
        body = await self._body(_MOST_ERROR_BYTES)
        return faults.of_response(response.status_code, response.headers, body, time.time())

    async def _whole(self) -> list[Event]:
        """The events of an answer that is no stream: a finished response, or an error."""
        response = self._response
        assert response is not None  # noqa: S101 (begin() comes first)
        try:
            data = load_object(await self._body(_MOST_ANSWER_BYTES))
        except ValueError:
            kind = response.headers.get("content-type", "nothing")
            raise BadStream(faults.not_a_stream(kind)) from None
        if "output" in data and not data.get("error"):
            return [parse({"type": "response.completed", "response": data})]
        if data.get("error"):
            raise model_error(faults.of_event(data, response.headers, time.time()))
        raise BadStream(faults.not_a_stream("JSON without an output"))

    async def _body(self, most: int) -> bytes:
        """What the body holds, up to a limit and as far as it comes."""
        assert self._response is not None  # noqa: S101 (begin() comes first)
        body = b""
        with _translated(self._endpoint), anyio.move_on_after(self._endpoint.idle_timeout):
            async for data in self._response.aiter_bytes():
                body += data
                if len(body) > most:
                    break
        return body[:most]


class _translated:  # noqa: N801 (a context manager, used like a function)
    """Turns what httpx and time-outs raise into what the conversation raises."""

    def __init__(self, endpoint: Endpoint, *, had_bytes: bool = False) -> None:
        self._endpoint = endpoint
        self._had_bytes = had_bytes

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            raise Unreachable(self._late(error)) from None
        if isinstance(error, httpx.HTTPError | httpx.InvalidURL):
            raise Unreachable(self._lost(error)) from None

    def _late(self, error: BaseException) -> Fault:
        host = _host(self._endpoint)
        if isinstance(error, httpx.ConnectTimeout):
            seconds = self._endpoint.connect_timeout
            text = f"No connection to {host} within {seconds:g} s: check base_url and the network"
            return Fault("timeout", text, retryable=True)
        if self._had_bytes:
            seconds = self._endpoint.idle_timeout
            text = f"{host} sent nothing for {seconds:g} s: try again, or raise idle_timeout"
            return Fault("timeout", text, retryable=True)
        seconds = self._endpoint.first_event_timeout or 0.0
        text = f"{host} did not begin to answer in {seconds:g} s: raise first_event_timeout"
        # A local server that is still busy with a prompt would get it twice.
        return Fault("timeout", text, retryable=not self._endpoint.is_local)

    def _lost(self, error: httpx.HTTPError | httpx.InvalidURL) -> Fault:
        host = _host(self._endpoint)
        if self._had_bytes:
            return faults.truncated()
        if "CERTIFICATE_VERIFY_FAILED" in str(error) or isinstance(error.__cause__, ssl.SSLError):
            text = f"The TLS certificate of {host} is not trusted: set ca_file, or check base_url"
            return Fault("unreachable", text)
        kind = type(error).__name__
        text = f"No connection to {host} ({kind}): check that the server runs, and base_url"
        return Fault("unreachable", text, retryable=True)


def _host(endpoint: Endpoint) -> str:
    return httpx.URL(endpoint.base_url).host


def _events(part: bytes) -> list[Event]:
    """The events in a whole number of frames."""
    if not part:
        return []
    source = EventSource(httpx.Response(200, headers=_EVENT_STREAM, content=part))
    return [_event(frame.data) for frame in source.iter_sse() if frame.data]


def _event(data: str) -> Event:
    if data.strip() == "[DONE]":
        return IGNORED
    try:
        return parse(load_object(data))
    except ValueError:
        return IGNORED


def _new_client(
    secure: bool,  # noqa: FBT001 (half of a key)
    ca_file: str | None,
    inner: httpx.AsyncBaseTransport | None,
) -> httpx.AsyncClient:
    try:
        return httpx.AsyncClient(
            verify=_tls(ca_file) if secure and inner is None else False,
            transport=inner,
            follow_redirects=False,
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=20,
                keepalive_expiry=_KEEPALIVE_SECONDS,
            ),
        )
    except (ImportError, ValueError, OSError) as error:
        raise ConfigError(_unusable(error)) from None


def _tls(ca_file: str | None) -> ssl.SSLContext:
    import truststore  # noqa: PLC0415 (for https only)

    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is not None:
        context.load_verify_locations(cafile=ca_file)
    return context


def _unusable(error: Exception) -> str:
    """Which setting made the client impossible to build."""
    if "socks" in str(error).lower():
        return (
            "a SOCKS proxy is set in ALL_PROXY or HTTPS_PROXY, which needs the package socksio: "
            "install it beside responses-acp, or unset the variable"
        )
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        if os.environ.get(name) or os.environ.get(name.lower()):
            return f"{name} cannot be used ({type(error).__name__}): correct it, or unset it"
    return f"ca_file cannot be used ({type(error).__name__}): name a file of PEM certificates"
