"""HTTP to the model's server: one request out, its answer in; retries before anything was shown.

Rule 1: the only importer of httpx and httpx_sse; their errors end here, as ModelErrors.
Rule 2: a request is sent again by itself only while nothing of its answer was given out. After
that the caller asks for it, and both count against one limit.
Rule 3: an address is never followed elsewhere: the key is for the configured one.
"""

import os
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import cast
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import anyio
import httpx
from anyio.abc import TaskGroup, TaskStatus
from httpx_sse import EventSource

from bridge.beside import beside
from bridge.core.wire import Json, dump, load
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
from bridge.responses.answer import Answer, Endpoint, OnWait, begun
from bridge.responses.events import Event
from bridge.responses.faults import Broken
from tools.frozen import frozen

_KEEPALIVE_SECONDS = 60.0
_HAND_OVER_SECONDS = 60.0
"""For sending the request and for a free place in the pool."""
_READ_AHEAD = 1024 * 1024
"""Bytes of an answer that may wait to be taken."""
_FETCH_SECONDS = 10.0
"""For each step of a short answer."""
_OK, _PROXY_WANTS_PASSWORD = 200, 407
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_NAMELESS = "its name cannot be looked up: is there a network?"
_REASONS: dict[type[httpx.HTTPError], str] = {
    httpx.ConnectError: "nobody answers there",
    httpx.ProxyError: "the proxy refused",
    httpx.ReadError: "it hung up",
    httpx.RemoteProtocolError: "it hung up",
}


def boot_time() -> float:
    """Seconds that the machine has been on, asleep or not."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


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
        clock: Callable[[], float] = boot_time,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._sleep = sleep
        self._pools: dict[tuple[bool, str | None, bool], _Pool] = {}

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
        content = dump(body)
        async with self._client(endpoint) as client, beside() as tasks:
            opening = partial(_Reply.open, client, endpoint, content, tasks)
            attempt = partial(begun, endpoint, _host(endpoint), opening)
            try:
                answer = await _first(attempt, after)
            except ModelError as error:
                made = 1 if after is None else after.attempt
                answer = await self._again(endpoint, on_wait, attempt, error, made)
            try:
                yield answer
            finally:
                await answer.close()

    async def fetch(self, endpoint: Endpoint, url: str, body: Json = None) -> Json:
        """The JSON at a URL of the server: asked for, or sent this body; raises BridgeError."""
        async with self._client(endpoint) as client:
            try:
                answer = await client.request(
                    "GET" if body is None else "POST",
                    url,
                    params=dict(endpoint.query) or None,
                    headers=dict(endpoint.headers),
                    json=body,
                    timeout=httpx.Timeout(_FETCH_SECONDS, connect=endpoint.connect_timeout),
                )
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise _failed(endpoint, error) from None
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
        async with self._client(endpoint) as client:
            try:
                answer = await client.get(
                    f"{endpoint.base_url}/models",
                    params=dict(endpoint.query) or None,
                    headers=dict(endpoint.headers),
                    timeout=httpx.Timeout(_FETCH_SECONDS, connect=endpoint.connect_timeout),
                )
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise _failed(endpoint, error) from None
        if answer.status_code == _PROXY_WANTS_PASSWORD:
            raise _locked_proxy(endpoint)
        secured = answer.extensions.get("network_stream")
        lock = None if secured is None else secured.get_extra_info("ssl_object")
        body: Json = None
        with suppress(ValueError):
            body = load(answer.content)
        certificate: dict[str, object] = (lock.getpeercert() or {}) if lock else {}
        return Greeting(answer.status_code, body, certificate)

    async def _again(
        self,
        endpoint: Endpoint,
        on_wait: OnWait | None,
        attempt: Callable[[], Awaitable[Answer]],
        failed: ModelError,
        made: int,
    ) -> Answer:
        """More attempts after one that failed, as many as are left and make sense."""
        from bridge.responses.again import again  # noqa: PLC0415 (tenacity: slow, seldom needed)

        return await again(endpoint, on_wait, attempt, failed, made=made, sleep=self._sleep)

    @asynccontextmanager
    async def _client(self, endpoint: Endpoint) -> AsyncGenerator[httpx.AsyncClient]:
        """The client for this endpoint; a new one where its connections have been idle long.

        The library's own clock stands still while the machine sleeps, connections die meanwhile.
        """
        key = endpoint.base_url.startswith("https:"), endpoint.ca_file, _is_here(_host(endpoint))
        pool = self._pools.get(key)
        if pool and not pool.users and self._clock() - pool.idle_since > _KEEPALIVE_SECONDS:
            del self._pools[key]
            await pool.client.aclose()
            pool = None
        if pool is None:
            pool = self._pools[key] = _Pool(_new_client(*key, self._inner))
        pool.users += 1
        try:
            yield pool.client
        finally:
            pool.users -= 1
            pool.idle_since = self._clock()


async def _first(attempt: Callable[[], Awaitable[Answer]], after: Broken | None) -> Answer:
    if after is not None:
        raise model_error(after.fault)
    return await attempt()


class _Reply:
    """One HTTP answer, as answer.py reads it.

    The library hands out one piece for each chunk that the server made, and servers make one for
    each event. A task of our own reads ahead, so that what came in one network read stays together.
    """

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._pieces: list[bytes] = []
        self._size = 0
        self._news, self._room = anyio.Event(), anyio.Event()
        self._reading = anyio.CancelScope()
        self._over = anyio.Event()
        self._fault: Fault | None = None

    @staticmethod
    async def open(
        client: httpx.AsyncClient, endpoint: Endpoint, content: bytes, tasks: TaskGroup
    ) -> "_Reply":
        """Send the request and wait for the head of its answer; its body is read by a task."""
        own = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            # Compression makes proxies hold back what should be shown now.
            "accept-encoding": "identity",
        }
        connect = endpoint.connect_timeout
        try:
            request = client.build_request(
                "POST",
                f"{endpoint.base_url.rstrip('/')}/responses",
                params=dict(endpoint.query) or None,
                headers={**own, **endpoint.headers},
                content=content,
                timeout=httpx.Timeout(_HAND_OVER_SECONDS, connect=connect, read=None),
            )
            reply = _Reply(await client.send(request, stream=True))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _failed(endpoint, error) from None
        if reply.status == _PROXY_WANTS_PASSWORD:
            await reply._response.aclose()
            raise _locked_proxy(endpoint)
        await tasks.start(reply._hear)
        return reply

    async def read(self) -> bytes | None:
        """All that has come, or else the next network read; None: the end."""
        while not self._pieces and not self._over.is_set():
            self._news = anyio.Event()
            await self._news.wait()
        if self._pieces:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._room.set()
            return data
        if self._fault is not None:
            raise Unreachable(self._fault)
        return None

    async def _hear(self, *, task_status: TaskStatus[None]) -> None:
        """Read the body as it comes; wait while nobody takes it."""
        try:
            with self._reading:
                task_status.started()
                async for data in self._response.aiter_bytes():
                    self._pieces.append(data)
                    self._size += len(data)
                    self._news.set()
                    while self._size > _READ_AHEAD:
                        self._room = anyio.Event()
                        await self._room.wait()
        except httpx.HTTPError:
            self._fault = faults.truncated()
        finally:
            self._over.set()
            self._news.set()

    def frames(self, whole: bytes) -> Iterator[tuple[str, str]]:
        """Name and data of each frame in these bytes, which hold whole frames."""
        return frames_in(whole)

    async def close(self) -> None:
        """Hang up."""
        self._reading.cancel()
        await self._over.wait()
        await self._response.aclose()


@frozen
class _Text:
    """As much of an HTTP answer as the parser of event streams looks at.

    The real answer is not for it: its headers may name an encoding, which servers do not mean, and
    a whole answer for each network read would cost more than all the rest.
    """

    text: str
    headers: Mapping[str, str] = field(
        default_factory=lambda: {"content-type": "text/event-stream"}
    )

    def iter_text(self) -> Iterator[str]:
        yield self.text


def frames_in(whole: bytes) -> Iterator[tuple[str, str]]:
    """Name and data of each frame in these bytes that has data; they hold whole frames."""
    source = EventSource(cast("httpx.Response", _Text(whole.decode("utf-8", "replace"))))
    return ((frame.event, frame.data) for frame in source.iter_sse() if frame.data)


def _host(endpoint: Endpoint) -> str:
    return urlsplit(endpoint.base_url).hostname or endpoint.base_url


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _failed(endpoint: Endpoint, error: httpx.HTTPError | httpx.InvalidURL) -> BridgeError:
    if isinstance(error, httpx.ProxyError) and str(_PROXY_WANTS_PASSWORD) in str(error):
        return _locked_proxy(endpoint)
    return Unreachable(_lost(endpoint, error))


def _lost(endpoint: Endpoint, error: httpx.HTTPError | httpx.InvalidURL) -> Fault:
    """The fault of a request that got no answer. What httpx says may hold headers: not shown."""
    host = _host(endpoint)
    if isinstance(error, httpx.ConnectTimeout):
        return faults.late(host, endpoint.connect_timeout, "connect_timeout")
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return faults.untrusted(host)
    known = (reason for kind, reason in _REASONS.items() if isinstance(error, kind))
    reason = _NAMELESS if _is_nameless(error) else next(known, type(error).__name__)
    proxy = proxy_variable(endpoint)
    return faults.unreachable(host, reason if proxy is None else f"{reason}, by way of {proxy}")


def _is_nameless(error: BaseException | None) -> bool:
    """Whether a name could not be looked up."""
    while error is not None and not isinstance(error, socket.gaierror):
        error = error.__cause__ or error.__context__
    return error is not None


def proxy_variable(endpoint: Endpoint) -> str | None:
    """The variable that names the proxy to this server; None where there is none in between."""
    parts = urlsplit(endpoint.base_url)
    host = parts.hostname or ""
    if _is_here(host) or proxy_bypass(host):
        return None
    names = (f"{parts.scheme.upper()}_PROXY", "ALL_PROXY")
    return next((name for name in names if _variable(name)), None)


def _locked_proxy(endpoint: Endpoint) -> ConfigError:
    return ConfigError(
        f"The proxy of {proxy_variable(endpoint) or 'this system'} wants a user and a password "
        "(HTTP 407): write them into its URL, as http://USER:PASSWORD@HOST:PORT"
    )


def _variable(name: str) -> str:
    return os.environ.get(name) or os.environ.get(name.lower(), "")


def _new_client(
    secure: bool,  # noqa: FBT001 (part of a key)
    ca_file: str | None,
    here: bool,  # noqa: FBT001 (part of a key)
    inner: httpx.AsyncBaseTransport | None,
) -> httpx.AsyncClient:
    verify = _tls(ca_file) if secure and inner is None else False
    try:
        return httpx.AsyncClient(
            verify=verify,
            transport=inner,
            follow_redirects=False,
            trust_env=not here,  # no proxy stands between this machine and itself
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=20,
                keepalive_expiry=_KEEPALIVE_SECONDS,
            ),
        )
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise ConfigError(_unusable_proxy(error)) from None


def _tls(ca_file: str | None) -> ssl.SSLContext:
    """Trusts what the system trusts, and what the user adds to that."""
    import truststore  # noqa: PLC0415 (for https only)

    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for setting, file in (("ca_file", ca_file), ("SSL_CERT_FILE", os.environ.get("SSL_CERT_FILE"))):
        try:
            context.load_verify_locations(file) if file else None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            text = f"{setting} cannot be used ({reason}): name a file of PEM certificates"
            raise ConfigError(text) from None
    return context


def _unusable_proxy(error: Exception) -> str:
    """Which variable made the client impossible to build."""
    found = {name: _variable(name) for name in _PROXIES}
    if isinstance(error, ImportError):
        name = next((name for name, url in found.items() if url.startswith("socks")), "ALL_PROXY")
        return (
            f"{name} names a SOCKS proxy, which needs the package socksio: "
            "install it beside responses-acp, or unset the variable"
        )
    name = next((name for name, url in found.items() if url and not _is_proxy(url)), "NO_PROXY")
    return f"{name} cannot be used: it must hold a URL such as http://HOST:PORT, or be unset"


def _is_proxy(url: str) -> bool:
    try:
        httpx.Proxy(url if "://" in url else f"http://{url}")
    except (ValueError, httpx.InvalidURL):
        return False
    return True
