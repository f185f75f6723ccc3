"""HTTP to the model's server: one request out, its answer in; retries before anything was shown.

Rule 1: errors of the HTTP library end here, as ModelErrors.
Rule 2: a request is sent again by itself only while nothing of its answer was given out. After
that the caller asks for it, and both count against one limit.
Rule 3: a request that found nobody at the other end of a kept connection is sent on a new one at
once, uncounted: see lines.py for why nobody can have acted on it.
"""

import re
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from types import MappingProxyType
from typing import TypeAlias, cast
from urllib.parse import urlsplit

import anyio
import httpx
from httpx_sse import EventSource

from bridge.core.wire import Json, dump_lists, load
from bridge.errors import (
    BadStream,
    BridgeError,
    ConfigError,
    Fault,
    ModelError,
    Unreachable,
    model_error,
)
from bridge.responses import faults
from bridge.responses.answer import Answer, Attempt, Endpoint, OnWait, Reply, begun
from bridge.responses.client import KEEPALIVE_SECONDS, Way, new_client, way_to
from bridge.responses.events import Event
from bridge.responses.faults import Broken
from bridge.responses.lines import Lines, Near, Vanished
from bridge.responses.proxies import proxy_to, source_of_proxy
from tools.frozen import frozen

_HAND_OVER_SECONDS = 60.0
"""For sending the request and for a free place in the pool."""
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_FETCH_SECONDS = 10.0
"""For each step of a short answer."""
_OK, _PROXY_WANTS_PASSWORD = 200, 407
_NO_TLS = "it does not speak TLS, which https:// in base_url asks for"
_REASONS: tuple[tuple[type[Exception], str, str], ...] = (
    (socket.gaierror, "", "its name is not known"),
    (UnicodeError, "", "its name is none that can be known"),
    (httpx.ConnectError, "[SSL", _NO_TLS),
    (httpx.ReadError, "", "it hung up"),
    (ssl.SSLError, "", _NO_TLS),
    (httpx.ConnectError, "", "nobody answers there"),
    (httpx.ProxyError, "", "the proxy refused"),
    (httpx.RemoteProtocolError, "Server disconnected", "it hung up"),
    (httpx.RemoteProtocolError, "", "what it says is not HTTP"),
)
"""An error that caused the failure, words in it, and what it means."""


Send: TypeAlias = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]
Opening: TypeAlias = Callable[[], Awaitable[Reply]]
Tap: TypeAlias = Callable[[bytes, Opening], Opening]
"""Stands between a request's body, the way to its answer, and whoever reads that."""


def boot_time() -> float:
    """Seconds that the machine has been on, asleep or not."""
    return time.clock_gettime(_BOOT_CLOCK)


@frozen
class Greeting:
    """What a server answered to a first question."""

    status: int
    body: Json
    """None where it was no JSON."""
    certificate: Mapping[str, object]
    """As Python's ssl tells it; empty where nothing was encrypted or the system keeps it back."""


@dataclass(eq=False, slots=True)
class _Pool:
    """One client, with the connections it keeps."""

    client: httpx.AsyncClient
    users: int = 0
    idle_since: float = 0.0


class Transport:
    """The HTTP clients of one process; use it as an async context manager."""

    def __init__(
        self,
        inner: httpx.AsyncBaseTransport | None = None,
        *,
        lines: Lines | None = None,
        clock: Callable[[], float] = boot_time,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        tap: Tap | None = None,
    ) -> None:
        self._inner = inner
        self._tap = tap
        self._lines = lines or Lines()
        self._clock = clock
        self._sleep = sleep
        self._pools: dict[Way, _Pool] = {}
        self._stirred = -inf

    def quiet_for(self) -> float:
        """Seconds since something went to a server or came from one; infinite before that."""
        return self._clock() - self._stirred

    async def __aenter__(self) -> "Transport":
        return self

    async def __aexit__(self, *_: object) -> None:
        for pool in self._pools.values():
            await pool.client.aclose()

    @asynccontextmanager
    async def stream(
        self,
        endpoint: Endpoint,
        body: Mapping[str, object],
        on_wait: OnWait | None = None,
        after: Broken | None = None,
    ) -> AsyncGenerator[AsyncIterator[list[Event]]]:
        """Send one request and give its events in batches; raises ModelError or ConfigError.

        after: the attempt before, where the caller has shown something of it. It counts, and the
        request is sent once more only where that makes sense; else its own fault is raised.
        """
        content = dump_lists(body)
        async with AsyncExitStack() as leases:
            opening: Opening = partial(self._open, endpoint, content, leases)
            if self._tap is not None:
                opening = self._tap(content, opening)
            attempt = partial(begun, endpoint, _host(endpoint), opening)
            answer = await self._begun(endpoint, on_wait, attempt, after)
            try:
                yield answer
            finally:
                await answer.close()

    async def fetch(self, endpoint: Endpoint, url: str, body: Json = None) -> Json:
        """The JSON at a URL of the server: asked for, or sent this body; raises BridgeError."""
        async with AsyncExitStack() as leases:
            answer = await self._sent(endpoint, leases, partial(_fetch, endpoint, url, body))
        if answer.status_code != _OK:
            fault = faults.of_response(answer.status_code, answer.headers, b"", 0.0)
            raise model_error(fault)
        try:
            return load(answer.content)
        except ValueError:
            raise BadStream(faults.not_a_stream("no JSON")) from None

    async def greet(self, endpoint: Endpoint) -> Greeting:
        """Ask the server for its models, to see that it is there; raises BridgeError.

        Whatever it answers is a greeting: that it has no such list, or refuses the key.
        """
        asking = partial(_fetch, endpoint, f"{endpoint.base_url}/models", None)
        async with AsyncExitStack() as leases:
            answer = await self._sent(endpoint, leases, asking)
            if answer.status_code == _PROXY_WANTS_PASSWORD:
                raise _locked_proxy(endpoint)
            secured = answer.extensions.get("network_stream")
            lock = None if secured is None else secured.get_extra_info("ssl_object")
            certificate: dict[str, object] = (lock.getpeercert() or {}) if lock else {}
        body: Json = None
        with suppress(ValueError):
            body = load(answer.content)
        return Greeting(answer.status_code, body, certificate)

    async def _begun(
        self,
        endpoint: Endpoint,
        on_wait: OnWait | None,
        attempt: Attempt,
        failed: Broken | None,
    ) -> Answer:
        """The answer of the first attempt, or after one that failed of those that are left."""
        if failed is None:
            try:
                return await attempt()
            except ModelError as error:
                failed = Broken(error.fault, 1)
        from bridge.responses.again import again  # noqa: PLC0415 (tenacity: slow, seldom needed)

        return await again(endpoint, on_wait, attempt, failed, self._sleep)

    async def _open(self, endpoint: Endpoint, content: bytes, leases: AsyncExitStack) -> "_Reply":
        """Send the request and wait for the head of its answer."""
        response = await self._sent(endpoint, leases, partial(_ask, endpoint, content))
        if response.status_code == _PROXY_WANTS_PASSWORD:
            await response.aclose()
            raise _locked_proxy(endpoint)
        return _Reply(response, _host(endpoint), endpoint.idle_timeout, self._stir)

    async def _sent(self, endpoint: Endpoint, leases: AsyncExitStack, send: Send) -> httpx.Response:
        """What came of sending, once more on a new connection where a kept one was dead."""
        self._stir()
        try:
            try:
                return await send(await leases.enter_async_context(self._client(endpoint)))
            except httpx.ReadError as error:
                if not isinstance(error.__cause__, Vanished):
                    raise
            # The others were kept for as long, on the same network: they are dead as well.
            self._pools.pop(way_to(endpoint), None)
            return await send(await leases.enter_async_context(self._client(endpoint)))
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise _failed(endpoint, error) from None

    def _stir(self) -> None:
        self._stirred = self._clock()

    @asynccontextmanager
    async def _client(self, endpoint: Endpoint) -> AsyncGenerator[httpx.AsyncClient]:
        """The client for this endpoint; a new one where its connections have been idle long.

        The library's own clock stands still while the machine sleeps, connections die meanwhile.
        """
        way = way_to(endpoint)
        pool = self._pools.get(way)
        if pool and not pool.users and self._clock() - pool.idle_since > KEEPALIVE_SECONDS:
            del self._pools[way]
            await pool.client.aclose()
            pool = None
        if pool is None:
            pool = self._pools[way] = _Pool(new_client(way, self._lines, self._inner))
        pool.users += 1
        try:
            yield pool.client
        finally:
            pool.users -= 1
            pool.idle_since = self._clock()
            if not pool.users and self._pools.get(way) is not pool:
                await pool.client.aclose()


async def _ask(endpoint: Endpoint, content: bytes, client: httpx.AsyncClient) -> httpx.Response:
    """Send a request for a response; its body is still to be read."""
    own = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        # Compression makes proxies hold back what should be shown now.
        "accept-encoding": "identity",
    }
    request = client.build_request(
        "POST",
        f"{endpoint.base_url}/responses",
        params=dict(endpoint.query) or None,
        headers={**own, **endpoint.headers},
        content=content,
        timeout=httpx.Timeout(_HAND_OVER_SECONDS, connect=endpoint.connect_timeout, read=None),
    )
    return await client.send(request, stream=True)


async def _fetch(
    endpoint: Endpoint, url: str, body: Json, client: httpx.AsyncClient
) -> httpx.Response:
    """A short answer, whole."""
    return await client.request(
        "GET" if body is None else "POST",
        url,
        params=dict(endpoint.query) or None,
        headers=dict(endpoint.headers),
        json=body,
        timeout=httpx.Timeout(_FETCH_SECONDS, connect=endpoint.connect_timeout),
    )


class _Reply:
    """One HTTP answer, as answer.py reads it.

    host, idle_timeout: whose silence is a fault, once the body has begun, and after how long.
    on_read: told of each network read.
    """

    def __init__(
        self,
        response: httpx.Response,
        host: str,
        idle_timeout: float,
        on_read: Callable[[], None],
    ) -> None:
        self._response = response
        self._host = host
        self._idle_timeout = idle_timeout
        self._on_read = on_read
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        is_packed = "content-encoding" in response.headers  # which nobody asked for
        self._pieces = response.aiter_bytes() if is_packed else response.aiter_raw()
        self._line: Near = response.extensions["network_stream"]

    async def read(self) -> bytes | None:
        """The next network read; None: the end."""
        try:
            data = await anext(self._pieces, None)
        except httpx.ReadTimeout:
            fault = faults.late(self._host, self._idle_timeout, "idle_timeout")
            raise Unreachable(fault) from None
        except httpx.HTTPError:
            raise Unreachable(faults.truncated()) from None
        self._line.patience = self._idle_timeout
        self._on_read()
        return data

    def frames(self, whole: bytes) -> list[tuple[str, str]]:
        """Name and data of each frame in these bytes, which hold whole frames."""
        return frames_in(whole)

    async def close(self) -> None:
        """Hang up."""
        with anyio.CancelScope() as scope, suppress(httpx.HTTPError):
            scope.cancel()  # so that each of the library's readers ends where it waits
            while await anext(self._pieces, None) is not None:
                pass
        await self._response.aclose()


@frozen
class _Text:
    """As much of an HTTP answer as the parser of event streams looks at.

    The real answer is not for it: its headers may name an encoding, which servers do not mean, and
    a whole answer for each network read would cost more than all the rest.
    """

    text: str
    headers = MappingProxyType({"content-type": "text/event-stream"})

    def iter_text(self) -> Iterator[str]:
        return iter((self.text,))


def frames_in(whole: bytes) -> list[tuple[str, str]]:
    """Name and data of each frame in these bytes that has data; they hold whole frames."""
    if not whole:
        return []
    source = EventSource(cast("httpx.Response", _Text(whole.decode("utf-8", "replace"))))
    return [(frame.event, frame.data) for frame in source.iter_sse() if frame.data]


def _host(endpoint: Endpoint) -> str:
    return urlsplit(endpoint.base_url).hostname or endpoint.base_url


def _failed(endpoint: Endpoint, error: Exception) -> BridgeError:
    if isinstance(error, httpx.ProxyError) and str(_PROXY_WANTS_PASSWORD) in str(error):
        return _locked_proxy(endpoint)
    return Unreachable(_lost(endpoint, error))


def _lost(endpoint: Endpoint, error: Exception) -> Fault:
    """The fault of a request that got no answer. What httpx says may hold headers: not shown."""
    host = _host(endpoint)
    if isinstance(error, httpx.ConnectTimeout):
        return faults.late(host, endpoint.connect_timeout, "connect_timeout")
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return faults.untrusted(host)
    if proxy_to(endpoint.base_url) is None:
        return faults.unreachable(host, _reason(error))
    source = source_of_proxy(endpoint.base_url)
    if isinstance(error, httpx.ProxyError):
        return faults.refused_by_proxy(host, source, _status(error))
    return faults.unreachable(host, f"{_reason(error)}, by way of {source}", source)


def _status(error: httpx.ProxyError) -> str:
    """The status that a proxy refused with; what else it says is anybody's."""
    status = re.match(r"\d{3}(?= |$)", str(error))
    return "no reason given" if status is None else f"HTTP {status[0]}"


def _reason(error: BaseException) -> str:
    causes = [error]
    while (cause := causes[-1].__context__) is not None:
        causes.append(cause)
    for kind, words, reason in _REASONS:
        if any(isinstance(cause, kind) and words in str(cause) for cause in causes):
            return reason
    return type(error).__name__


def _locked_proxy(endpoint: Endpoint) -> ConfigError:
    return ConfigError(
        f"The proxy of {source_of_proxy(endpoint.base_url)} wants a user and a password "
        "(HTTP 407): write them into its URL, as http://USER:PASSWORD@HOST:PORT"
    )
