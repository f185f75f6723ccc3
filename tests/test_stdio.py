import os
import select
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from bridge.acp.stdio import Stdio

pytestmark = pytest.mark.anyio

NULL = os.open(os.devnull, os.O_RDWR)
Pair = tuple[int, int]
"""A descriptor to read from and one that writes to it."""


def pipe() -> Pair:
    return os.pipe()


def sockets() -> Pair:
    one, other = socket.socketpair()
    return one.detach(), other.detach()


@pytest.fixture(params=[pipe, sockets])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    ends = request.param()
    yield ends
    for fd in ends:
        with suppress(OSError):  # the test closed it
            os.close(fd)


@asynccontextmanager
async def draining(stdio: Stdio) -> AsyncGenerator[None]:
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stdio.drain)
            yield
            tasks.cancel_scope.cancel()


async def all_of(stdio: Stdio) -> bytes:
    with anyio.fail_after(10):
        return b"".join([data async for data in stdio.chunks()])


# -- reading


@pytest.mark.parametrize("blocking", [True, False])
async def test_bytes_are_read_as_they_come_up_to_the_end(pair: Pair, blocking: bool) -> None:
    read_end, write_end = pair
    os.set_blocking(read_end, blocking)
    chunks = Stdio(read_end, NULL).chunks()
    with anyio.fail_after(10):
        for sent in (b"one", b"two\n"):
            os.write(write_end, sent)
            assert await anext(chunks) == sent
        os.close(write_end)
        with pytest.raises(StopAsyncIteration):
            await anext(chunks)


async def test_waiting_for_bytes_lets_others_run(pair: Pair) -> None:
    read_end, write_end = pair

    async def send() -> None:
        os.write(write_end, b"late")
        os.close(write_end)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        assert await all_of(Stdio(read_end, NULL)) == b"late"


async def test_another_reader_may_take_the_bytes_first(pair: Pair) -> None:
    read_end, write_end = pair
    os.set_blocking(read_end, False)
    twin = os.dup(read_end)
    received: list[bytes] = []

    async def read(fd: int) -> None:
        received.append(await all_of(Stdio(fd, NULL)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, read_end)
        tasks.start_soon(read, twin)
        for _ in range(3):
            await checkpoint()
        os.write(write_end, b"for one of them")
        while select.select([read_end], [], [], 0)[0]:
            await checkpoint()
        await checkpoint()
        assert received == [], "one of them took it for the end"
        os.close(write_end)
    os.close(twin)
    assert b"".join(received) == b"for one of them"


async def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"x" * 3_000_000)
    with path.open("rb") as file:
        assert len(await all_of(Stdio(file.fileno(), NULL))) == 3_000_000


async def test_dev_null_is_at_its_end() -> None:
    assert await all_of(Stdio(NULL, NULL)) == b""


async def test_a_reset_connection_is_the_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    with accepted:
        # Closing with a linger time of zero sends a reset.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        assert await all_of(Stdio(accepted.fileno(), NULL)) == b""


async def test_a_descriptor_that_is_none_is_a_fault() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with pytest.raises(OSError, match="Bad file descriptor"):
        await all_of(Stdio(read_end, NULL))
    os.close(write_end)


# -- writing


async def test_what_belongs_together_goes_out_in_one_write_and_all_else_at_once() -> None:
    one, other = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with one, other:
        stdio = Stdio(NULL, other.fileno())
        async with draining(stdio):
            await checkpoint()
            with stdio.together():
                for text in (b"a\n", b"b\n", b"c\n"):
                    stdio.write(text)
            stdio.write(b"d\n")
            assert stdio.backlog == 0
            with stdio.together():
                pass
        assert [one.recv(100), one.recv(100)] == [b"a\nb\nc\n", b"d\n"]


async def test_what_was_queued_before_the_writer_ran_goes_out_first(pair: Pair) -> None:
    read_end, write_end = pair
    stdio = Stdio(NULL, write_end)
    stdio.write(b"early ")
    async with draining(stdio):
        stdio.write(b"late")
        await stdio.flushed()
    assert os.read(read_end, 100) == b"early late"
    assert stdio.backlog == 0


async def test_a_reader_that_is_slow_stops_nobody_and_loses_nothing(pair: Pair) -> None:
    read_end, write_end = pair
    stdio = Stdio(NULL, write_end)
    line = b"x" * 999 + b"\n"
    received = bytearray()

    async def produce() -> None:
        for _ in range(20_000):
            await stdio.room()
            stdio.write(line)
            highest.append(stdio.backlog)
        await stdio.flushed()
        produced.set()

    highest: list[int] = []
    produced = anyio.Event()
    async with draining(stdio), anyio.create_task_group() as tasks:
        tasks.start_soon(produce)
        while not produced.is_set() or select.select([read_end], [], [], 0)[0]:
            if select.select([read_end], [], [], 0)[0]:
                received += os.read(read_end, 100_000)
            await checkpoint()
    assert received == line * 20_000
    assert 8 * 2**20 < max(highest) <= 8 * 2**20 + len(line)


async def test_an_editor_that_closed_its_end_is_no_error(pair: Pair) -> None:
    read_end, write_end = pair
    stdio = Stdio(NULL, write_end)
    async with draining(stdio):
        stdio.write(b"x" * 10_000_000)
        await checkpoint()
        os.close(read_end)
        async with anyio.create_task_group() as waiting:
            for wait in (stdio.flushed, stdio.closed.wait):
                waiting.start_soon(wait)
            await stdio.room()
        stdio.write(b"y")
        assert stdio.backlog == 0


@pytest.mark.parametrize("blocking", [True, False])
async def test_the_descriptor_is_given_back_as_it_was(pair: Pair, blocking: bool) -> None:
    _, write_end = pair
    os.set_blocking(write_end, blocking)
    stdio = Stdio(NULL, write_end)
    async with draining(stdio):
        stdio.write(b"x")
        await stdio.flushed()
        assert not os.get_blocking(write_end)
    assert os.get_blocking(write_end) is blocking


async def test_a_terminal_shared_with_a_shell_is_left_as_it_is() -> None:
    main, terminal = os.openpty()
    stdio = Stdio(NULL, terminal)
    async with draining(stdio):
        stdio.write(b"x")
        await stdio.flushed()
        assert os.get_blocking(terminal)
    assert os.read(main, 10) == b"x"
    os.close(main)
    os.close(terminal)


@pytest.mark.parametrize("name", ["out", os.devnull])
async def test_a_file_can_be_written_to(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        stdio = Stdio(NULL, file.fileno())
        async with draining(stdio):
            stdio.write(b"line\n")
            await stdio.flushed()
    if name == "out":
        assert (tmp_path / name).read_bytes() == b"line\n"
