"""Connections that were kept: alive, dead without a word, or hung up just now.

The far side is on this machine, and the lines are told that it is not. What a network that
swallows everything does is played twice: by a count of unacknowledged bytes that never falls, and
for real where the system lets a test have a network of its own.
"""

import errno
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpcore
import pytest
from anyio.abc import SocketAttribute

from bridge.errors import ModelError
from bridge.responses.lines import DEAD_SECONDS, Line, Lines, Near, is_near, queued
from bridge.responses.sockets import Sockets
from bridge.responses.transport import Transport
from tests.fake_proxy import FakeProxy
from tests.fake_responses import FakeResponses, Reply, frame, said, stream
from tests.raw_server import Conversation, http, server
from tests.skipped_time import BACKEND, no_waiting, skipped
from tests.test_transport import BODY, CERTIFICATE, Place, fault_of, read_all, secure

pytestmark = pytest.mark.anyio

HELLO = stream(said("Hello"))
DEAF = Reply(HELLO, deaf=True)


@pytest.fixture
def anyio_backend() -> Any:
    return BACKEND


def far(unacknowledged: Callable[[socket.socket], int] = queued) -> Lines:
    return Lines(near=lambda _: False, queued=unacknowledged)


def swallowed(_: socket.socket) -> int:
    """Nothing that was sent is ever acknowledged."""
    return 7


async def ask(transport: Transport, place: Place, text: str = "") -> str:
    """Send a request with this text; gives the answer as it came."""
    found: list[str] = []
    async with transport.stream(place, {**BODY, "instructions": text}) as batches:
        found.extend([str(event) async for batch in batches for event in batch])
    return "".join(found)


ANSWER = http(b"".join(map(frame, HELLO)))


# -- a connection that died without a word


@pytest.mark.parametrize("tls", [False, True])
async def test_a_connection_that_died_without_a_word_costs_under_a_second(tls: bool) -> None:
    fake = FakeResponses(DEAF, HELLO, HELLO)
    async with secure(fake) if tls else fake.serve() as base_url:
        place = Place(base_url=base_url, ca_file=str(CERTIFICATE), first_event_timeout=None)
        with no_waiting():
            async with Transport(lines=far(swallowed)) as transport:
                await read_all(transport, place)
                before = skipped()
                await read_all(transport, place)
                assert 0 < skipped() - before < 1
    assert [asked.connection for asked in fake.asked] == [1, 2]


async def test_one_dead_connection_is_enough_to_give_up_all_that_were_kept_with_it() -> None:
    fake = FakeResponses(*[DEAF] * 5, *[HELLO] * 2)
    async with fake.serve() as base_url:
        place = Place(base_url=base_url)
        with no_waiting():
            async with Transport(lines=far(swallowed)) as transport:
                async with anyio.create_task_group() as tasks:
                    for _ in range(5):
                        tasks.start_soon(read_all, transport, place)
                before = skipped()
                await read_all(transport, place)
                assert skipped() - before < 1
    assert len({asked.connection for asked in fake.asked}) == 6


async def test_who_still_reads_an_answer_is_not_disturbed_by_a_dead_connection() -> None:
    fake = FakeResponses(HELLO, HELLO, HELLO)
    async with fake.serve() as base_url, Transport(lines=far(swallowed)) as transport:
        place = Place(base_url=base_url)
        with anyio.fail_after(10):
            async with transport.stream(place, BODY) as first:
                await read_all(transport, place)
                await read_all(transport, place)
                assert [batch async for batch in first]
    assert [asked.connection for asked in fake.asked] == [1, 2, 3]


# -- a connection that lives


@pytest.mark.parametrize("tls", [False, True])
async def test_a_live_connection_is_used_again_whatever_the_size_of_the_request(tls: bool) -> None:
    texts = ["", "x", "y" * 8192, "z" * 3_000_000]
    fake = FakeResponses(*[HELLO] * 4, any_body=True)
    async with secure(fake) if tls else fake.serve() as base_url:
        place = Place(base_url=base_url, ca_file=str(CERTIFICATE))
        with anyio.fail_after(20):
            async with Transport(lines=far()) as transport:
                for text in texts:
                    assert "Hello" in await ask(transport, place, text)
    assert [asked.connection for asked in fake.asked] == [1, 1, 1, 1]
    assert [asked.body["instructions"] for asked in fake.asked] == texts


async def test_what_is_fetched_goes_the_same_way() -> None:
    async def answer(talk: Conversation, _: int) -> None:
        for _ in range(2):
            await talk.request()
            await talk.send(http(b"{}"))

    async with server(answer) as (base_url, connections), Transport(lines=far()) as transport:
        with anyio.fail_after(10):
            for _ in range(3):
                assert await transport.fetch(Place(base_url=base_url), f"{base_url}/models") == {}
    assert connections == [1, 2]


# -- one that the server hangs up while the request is on its way


async def test_a_server_that_hangs_up_on_half_a_request_is_asked_again_at_once() -> None:
    whole: list[Any] = []

    async def answer(talk: Conversation, number: int) -> None:
        whole.append(await talk.request())
        await talk.send(ANSWER)
        await talk.some()  # the beginning of the next request

    async with server(answer) as (base_url, connections), Transport(lines=far()) as transport:
        with anyio.fail_after(10):
            for text in ("first", "x" * 20_000):
                assert "Hello" in await ask(transport, Place(base_url=base_url), text)
    assert connections == [1, 2]
    assert [len(one["instructions"]) for one in whole] == [5, 20_000]


async def test_an_answer_to_half_a_request_is_an_answer_and_the_last_one_there() -> None:
    async def answer(talk: Conversation, number: int) -> None:
        await talk.request()
        await talk.send(ANSWER)
        await talk.some()
        await talk.send(http(b"", "413 Too Large"))
        answered.append(True)
        await talk.some()

    answered: list[bool] = []

    def late(_: socket.socket) -> int:
        """What is sent first is acknowledged together with the answer to it."""
        return 0 if answered else 7

    async with server(answer) as (base_url, connections), Transport(lines=far(late)) as transport:
        place = Place(base_url=base_url)
        with anyio.fail_after(10):
            await ask(transport, place)
            with pytest.raises(Exception, match="HTTP 413"):
                await ask(transport, place, "x" * 20_000)
            await ask(transport, place)
    assert connections == [1, 2]


async def test_an_answer_to_half_a_request_counts_though_the_server_hung_up_behind_it() -> None:
    async def answer(talk: Conversation, number: int) -> None:
        await talk.request()
        await talk.send(ANSWER)
        await talk.some()
        await talk.send(http(b"", "413 Too Large"))

    def never(line: socket.socket) -> int:
        """Nothing is acknowledged until the line is closed, which no longer tells of anything."""
        return 7 if line.fileno() >= 0 else queued(line)

    async with server(answer) as (base_url, connections), Transport(lines=far(never)) as transport:
        place = Place(base_url=base_url)
        with anyio.fail_after(10):
            await ask(transport, place)
            with pytest.raises(Exception, match="HTTP 413"):
                await ask(transport, place, "x" * 20_000)
    assert connections == [1]


async def test_a_server_that_hangs_up_after_it_has_the_whole_request_is_not_asked_again() -> None:
    async def answer(talk: Conversation, number: int) -> None:
        await talk.request()
        await talk.send(ANSWER)
        await talk.request()

    async with server(answer) as (base_url, connections), Transport(lines=far()) as transport:
        place = Place(base_url=base_url)
        with anyio.fail_after(10):
            await ask(transport, place)
            with pytest.raises(Exception, match="it hung up"):
                await ask(transport, place)
    assert connections == [1]


async def test_a_first_request_that_is_hung_up_is_a_failure_like_any_other() -> None:
    async def answer(talk: Conversation, number: int) -> None:
        await talk.some()

    async with server(answer) as (base_url, connections):
        fault = await fault_of(None, Place(base_url=base_url))
    assert "it hung up" in fault.message
    assert connections == [1]


async def test_one_that_is_hung_up_as_soon_as_it_is_made_is_a_failure_like_any_other() -> None:
    made: list[socket.socket] = []

    def reset(line: socket.socket) -> bool:
        made.append(line)
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    async def answer(talk: Conversation, number: int) -> None:
        await talk.some()

    async with server(answer) as (base_url, _):
        with anyio.fail_after(10), pytest.raises(ModelError, match="it hung up"):
            async with Transport(lines=Lines(near=reset)) as transport:
                await read_all(transport, Place(base_url=base_url))
    assert [line.fileno() for line in made] == [-1]


@pytest.mark.parametrize(
    "error", [OSError(errno.EBADF, "Bad file descriptor"), ValueError("a negative integer (-1)")]
)
async def test_one_that_was_closed_while_a_request_was_begun_is_replaced_at_once(
    error: Exception,
) -> None:
    def closed(_: socket.socket) -> int:
        raise error

    fake = FakeResponses(HELLO, DEAF, HELLO)
    async with fake.serve() as base_url, Transport(lines=far(closed)) as transport:
        with anyio.fail_after(10):
            for _ in range(2):
                await read_all(transport, Place(base_url=base_url))
    assert {asked.connection for asked in fake.asked} == {1, 2}


# -- the system's part


async def test_a_far_connection_is_asked_for_signs_of_life() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(SocketAttribute.local_port)
        for lines, asked in ((far(), 1), (Lines(), 0)):
            made = await lines.connect_tcp("127.0.0.1", port)
            line = made.get_extra_info("socket")
            assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == asked
            if asked:
                tcp = socket.IPPROTO_TCP
                every = line.getsockopt(tcp, socket.TCP_KEEPINTVL)
                assert every * line.getsockopt(tcp, socket.TCP_KEEPCNT) < DEAD_SECONDS
            await made.aclose()


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_way_through_a_proxy_has_such_connections_too(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def near(line: socket.socket) -> bool:
        seen.append(line.getpeername()[1])
        return False

    fake = FakeResponses(HELLO)
    async with fake.serve() as base_url, FakeProxy(base_url).serve() as proxy:
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", f"http://{proxy}")
        with anyio.fail_after(10), suppress(ModelError):
            async with Transport(lines=Lines(near=near)) as transport:
                await read_all(transport, Place(base_url=f"{scheme}://model.test/v1"))
    assert seen == [int(proxy.rpartition(":")[2])]


class Scripted(httpcore.AsyncNetworkStream):
    """Gives these bytes, one piece for each reading."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (httpcore's)
        return self._pieces.pop(0)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (httpcore's)
        pass


@pytest.mark.parametrize("connection", [Near, partial(Line, queued=queued)])
async def test_chunks_that_came_together_are_one_piece(
    connection: Callable[[httpcore.AsyncNetworkStream], Near],
) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    pieces = (head + b"1\r\na\r\n1\r\nb\r\n", b"1", b"\r\nc\r\n", b"")
    line = connection(Scripted(*pieces))
    await line.write(b"a request")
    assert [await line.read(99) for _ in range(3)] == [
        head + b"2\r\nab\r\n",
        b"1\r\nc\r\n",
        b"",
    ]


class Deaf(httpcore.AsyncNetworkStream):
    """The other end says nothing to a handshake."""

    def __init__(self) -> None:
        self.is_closed = False

    async def start_tls(
        self,
        ssl_context: Any,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's)
    ) -> httpcore.AsyncNetworkStream:
        await anyio.sleep_forever()
        raise NotImplementedError

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.is_closed = True


async def test_a_connection_is_closed_whose_handshake_is_cancelled() -> None:
    deaf = Deaf()
    with anyio.fail_after(5), anyio.CancelScope() as turn:
        turn.cancel()
        await Near(deaf).start_tls(None)
    assert deaf.is_closed


class Late(Deaf):
    """Whoever waits for the handshake is cancelled in the moment in which it has succeeded."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        super().__init__()
        self._scope = scope

    async def start_tls(
        self,
        ssl_context: Any,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's)
    ) -> httpcore.AsyncNetworkStream:
        self._scope.cancel()
        return Deaf()


async def test_a_connection_is_closed_that_is_cancelled_as_soon_as_it_is_secured() -> None:
    scope = anyio.CancelScope()
    late = Late(scope)
    with scope:
        await Near(late).start_tls(None)
    assert late.is_closed


async def test_a_connection_is_closed_that_is_cancelled_as_soon_as_it_is_made() -> None:
    """Whichever turn of the event loop it is: the library loses one that it has not written to."""
    ended: list[int] = []

    async def answer(talk: Conversation, number: int) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                await talk.some()
        ended.append(number)

    async with server(answer) as (base_url, made), Transport() as transport:
        for turns in range(1, 40):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read_all, transport, Place(base_url=base_url))
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            with anyio.fail_after(1):
                while len(ended) < len(made):  # noqa: ASYNC110 (nothing tells of it)
                    await anyio.sleep(0.001)
    assert made


class Spoilt(httpcore.AsyncMockStream):
    """What comes and goes on it is not encrypted as it should be."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        raise ssl.SSLError("wrong version number")

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        raise ssl.SSLError("wrong version number")


@pytest.mark.parametrize("connection", [Near, partial(Line, queued=queued)])
async def test_what_is_wrongly_encrypted_breaks_a_connection_as_a_reset_does(
    connection: Callable[[httpcore.AsyncNetworkStream], Near],
) -> None:
    stream = connection(Spoilt([]))
    with pytest.raises(httpcore.WriteError, match="wrong version"):
        await stream.write(b"Hello")
    with pytest.raises(httpcore.ReadError, match="wrong version"):
        await stream.read(10)


async def test_each_answer_is_looked_at_anew() -> None:
    body = b"1\r\na\r\n1\r\nb\r\n"
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + body
    plain = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n" + body
    line = Near(Scripted(chunked, plain))
    for answer in (chunked.replace(body, b"2\r\nab\r\n"), plain):
        await line.write(b"a request")
        assert await line.read(99) == answer


def test_what_was_sent_counts_until_it_is_acknowledged() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as line,
        listener.accept()[0],
    ):
        assert is_near(line)
        assert queued(line) == 0
        line.setblocking(False)
        with suppress(BlockingIOError):
            while True:  # until neither end takes more
                line.send(bytes(65536))
        assert queued(line) > 0


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.127.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fd00::1", False),
    ],
)
def test_this_machine_is_known_by_its_addresses(host: str, near: bool) -> None:
    class Line(socket.socket):
        def getpeername(self) -> tuple[str, int]:
            return host, 443

    with Line() as line:
        assert is_near(line) == near


# -- a network of its own


HOME = Path(__file__).parent.parent
NETWORK = HOME / "tests" / "lost_network.py"


def own_network(*command: str) -> list[str]:
    return ["unshare", "--user", "--map-root-user", "--net", *command]


def missing() -> str | None:
    """What this machine lacks for a test to have a network of its own."""
    if not sys.platform.startswith("linux") or not all(map(shutil.which, ("unshare", "ip"))):
        return "needs Linux with unshare and ip"
    tried = subprocess.run(
        own_network("ip", "link", "set", "lo", "up"), capture_output=True, check=False
    )
    return None if tried.returncode == 0 else "the system gives no network of its own"


@pytest.mark.slow
def test_a_network_that_is_lost_for_real() -> None:
    """Where no network can be had, the tests above hold the same by themselves."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    told = subprocess.run(
        own_network(sys.executable, str(NETWORK)),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
        timeout=DEAD_SECONDS * 4,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == {"kept": [1, 1], "lost": [2], "cut": "stream_truncated"}


# -- whose connection it is


async def test_what_is_secured_at_some_point_is_the_library_s_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own: list[str] = []
    connect = Sockets.connect_tcp

    async def noted(sockets: Sockets, host: str, *more: Any, **named: Any) -> Any:
        own.append(host)
        return await connect(sockets, host, *more, **named)

    monkeypatch.setattr(Sockets, "connect_tcp", noted)

    async def check(base_url: str, expected: list[str]) -> None:
        own.clear()
        async with Transport() as transport:
            await read_all(transport, Place(base_url=base_url, ca_file=str(CERTIFICATE)))
        assert own == expected

    async with FakeResponses(HELLO).serve() as base_url:
        await check(base_url, ["127.0.0.1"])
    async with secure(FakeResponses(HELLO)) as base_url:
        await check(base_url, [])
    async with secure(FakeResponses(HELLO)) as base_url, FakeProxy(base_url).serve() as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://{proxy}")
        monkeypatch.setenv("NO_PROXY", "")
        await check(base_url, [])
