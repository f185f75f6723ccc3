"""Connections on which nothing is secured: what is read, written, waited for and hung up.

The other end is another library's, in the same event loop.
"""

import errno
import os
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpcore
import pytest
from anyio.abc import ByteStream, SocketAttribute

from bridge.responses.sockets import Sockets
from tests.skipped_time import BACKEND, no_waiting, skipped

pytestmark = pytest.mark.anyio

BIG = bytes(range(256)) * 128 * 1024
"""32 MiB: more than the system and we together keep for somebody who does not read."""


FILES = Path("/proc/self/fd")


@pytest.fixture
def anyio_backend() -> Any:
    return BACKEND


@asynccontextmanager
async def connected(
    other_end: Callable[[ByteStream], Awaitable[object]],
) -> AsyncGenerator[httpcore.AsyncNetworkStream]:
    """A connection to what other_end plays; hung up there when that is over."""

    async def play(stream: ByteStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            async with stream:
                await other_end(stream)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, play)
        port = listener.extra(SocketAttribute.local_port)
        alive = (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        stream = await Sockets().connect_tcp("127.0.0.1", port, 5, socket_options=[alive])
        try:
            yield stream
        finally:
            await stream.aclose()
            tasks.cancel_scope.cancel()


async def read_all(stream: httpcore.AsyncNetworkStream, most: int = 65536) -> bytes:
    data = bytearray()
    while piece := await stream.read(most):
        assert len(piece) <= most
        data += piece
    return bytes(data)


def reset_at_close(line: Any) -> None:
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def test_what_is_said_arrives_and_the_end_is_told_for_good() -> None:
    async def echo(stream: ByteStream) -> None:
        await stream.send(await stream.receive())

    async with connected(echo) as stream:
        await stream.write(b"")
        await stream.write(b"Hello")
        assert await read_all(stream, 2) == b"Hello"
        assert await stream.read(10) == b""
        assert await stream.read(10, timeout=1) == b""
        assert stream.get_extra_info("is_readable")
        with pytest.raises(httpcore.WriteError):
            await stream.write(b"Hello")


async def test_who_does_not_read_holds_up_the_other_end_and_loses_nothing() -> None:
    sent: list[int] = []

    async def talk(stream: ByteStream) -> None:
        for start in range(0, len(BIG), 64 * 1024):
            await stream.send(BIG[start : start + 64 * 1024])
            sent.append(start)

    async with connected(talk) as stream:
        before = -1
        while len(sent) != before:
            before = len(sent)
            await anyio.sleep(0.2)
        assert 0 < len(sent) < len(BIG) // (64 * 1024)
        assert await read_all(stream) == BIG


async def test_a_write_takes_as_long_as_the_other_end_needs() -> None:
    begin, heard = anyio.Event(), bytearray()

    async def listen(stream: ByteStream) -> None:
        heard.extend(await stream.receive(1))  # from here on it takes only what it wants
        await begin.wait()
        while not heard.endswith(b"The end."):
            heard.extend(await stream.receive())

    async with connected(listen) as stream:
        with pytest.raises(httpcore.WriteTimeout):
            await stream.write(BIG, timeout=0.1)
        begin.set()
        with anyio.fail_after(10):
            await stream.write(b"The end.", timeout=5)
            assert await stream.read(1) == b""
    assert heard == BIG + b"The end."


async def test_a_read_waits_as_long_as_it_may_and_no_longer() -> None:
    go_on = anyio.Event()

    async def talk(stream: ByteStream) -> None:
        for pause in (90, 90, 4):
            await anyio.sleep(pause)
            await stream.send(b"sign")
        await go_on.wait()

    async with connected(talk) as stream:
        with no_waiting():
            before = skipped()
            assert await stream.read(10, timeout=100) == b"sign"
            assert await stream.read(10) == b"sign"  # however long that takes
            assert await stream.read(10, timeout=100) == b"sign"  # the alarm is another read's
            assert round(skipped() - before) == 184
            for seconds in (50, 7, 300):
                before = skipped()
                with pytest.raises(httpcore.ReadTimeout):
                    await stream.read(10, timeout=seconds)
                assert round(skipped() - before) == seconds
        go_on.set()
        with anyio.fail_after(5):
            assert await stream.read(10, timeout=5) == b""


async def test_a_read_that_is_given_up_takes_nothing_away() -> None:
    go_on = anyio.Event()

    async def talk(stream: ByteStream) -> None:
        await go_on.wait()
        await stream.send(b"Hello")

    async with connected(talk) as stream:
        with anyio.move_on_after(0.01):
            await stream.read(10)
        go_on.set()
        assert await read_all(stream) == b"Hello"


async def test_what_hangs_up_does_so_at_once_and_ends_who_waits() -> None:
    gone, ended = anyio.Event(), anyio.Event()

    async def listen(stream: ByteStream) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await stream.receive()
        gone.set()

    async def wait(stream: httpcore.AsyncNetworkStream) -> None:
        with pytest.raises(httpcore.ReadError):
            await stream.read(10)
        ended.set()

    async with connected(listen) as stream, anyio.create_task_group() as tasks:
        tasks.start_soon(wait, stream)
        await anyio.sleep(0.01)
        with anyio.fail_after(1):
            await stream.aclose()
            await gone.wait()
            await ended.wait()
        for _ in range(10):  # the event loop warns of a line that is used on and on
            with pytest.raises(httpcore.WriteError):
                await stream.write(b"more")
        assert stream.get_extra_info("is_readable")
        await stream.aclose()


async def test_a_reset_is_an_error_after_what_came_before_it() -> None:
    async def reset(stream: ByteStream) -> None:
        await stream.send(b"Hello")
        await anyio.sleep(0.05)
        reset_at_close(stream.extra(SocketAttribute.raw_socket))

    async with connected(reset) as stream:
        await anyio.sleep(0.1)
        assert await stream.read(10) == b"Hello"
        with pytest.raises(httpcore.ReadError, match=os.strerror(errno.ECONNRESET)):
            await stream.read(10)
        with pytest.raises(httpcore.WriteError):
            await stream.write(b"more")


def open_files() -> int:
    return len(list(FILES.iterdir()))


@asynccontextmanager
async def by_hand() -> AsyncGenerator[tuple[httpcore.AsyncNetworkStream, socket.socket]]:
    """A connection and its other end, which does what it does between two turns of the loop."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        stream = await Sockets().connect_tcp(*listener.getsockname())
        with listener.accept()[0] as other:
            yield stream, other
        await stream.aclose()


async def test_a_reset_is_noticed_before_the_event_loop_tells_of_it() -> None:
    async with by_hand() as (stream, other):
        assert not stream.get_extra_info("is_readable")
        reset_at_close(other)
        other.close()
        assert stream.get_extra_info("is_readable")
        with pytest.raises(httpcore.WriteError):
            await stream.write(BIG)
        assert stream.get_extra_info("is_readable")


@pytest.mark.skipif(not FILES.is_dir(), reason="the system does not tell which files are open")
async def test_what_is_cancelled_while_it_connects_leaves_nothing_open() -> None:
    async def connect(port: int) -> None:
        await (await Sockets().connect_tcp("127.0.0.1", port)).aclose()

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(200)
        before = open_files()
        for turns in range(100):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connect, listener.getsockname()[1])
                for _ in range(turns % 25):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            await anyio.sleep(0.001)
            assert open_files() == before


async def test_news_on_an_idle_connection_are_seen_without_reading() -> None:
    go_on = anyio.Event()

    async def talk(stream: ByteStream) -> None:
        await go_on.wait()
        await stream.send(b"more than was asked for")
        await anyio.sleep_forever()

    async with connected(talk) as stream:
        await anyio.sleep(0.01)
        assert not stream.get_extra_info("is_readable")
        go_on.set()
        with anyio.fail_after(5):
            while not stream.get_extra_info("is_readable"):  # noqa: ASYNC110 (nothing tells of it)
                await anyio.sleep(0.001)
        assert stream.get_extra_info("server_addr")[0] == "127.0.0.1"
        assert stream.get_extra_info("client_addr")[0] == "127.0.0.1"
        assert stream.get_extra_info("ssl_object") is None
        assert stream.get_extra_info("nothing") is None
        line = stream.get_extra_info("socket")
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
