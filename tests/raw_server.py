"""A server of which the test plays every byte."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream


class Conversation:
    """One connection of a server that the test plays by hand."""

    def __init__(self, stream: ByteStream) -> None:
        self._reader = BufferedByteReceiveStream(stream)
        self.send = stream.send
        self.some = self._reader.receive

    async def request(self) -> Any:
        """The body of the next request, when it is whole; None where it has none."""
        head = (await self._reader.receive_until(b"\r\n\r\n", 65536)).decode().lower()
        size = next((line[15:] for line in head.split("\r\n") if line[:14] == "content-length"), 0)
        return json.loads(await self._reader.receive_exactly(int(size)) or b"null")


@asynccontextmanager
async def server(
    answer: Callable[[Conversation, int], Awaitable[None]],
) -> AsyncGenerator[tuple[str, list[int]]]:
    """A server whose n-th connection gets answer(conversation, n); gives its URL, and the numbers.

    A connection is hung up when its answer is over.
    """
    numbers: list[int] = []

    async def converse(stream: ByteStream) -> None:
        numbers.append(len(numbers) + 1)
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
            async with stream:
                await answer(Conversation(stream), numbers[-1])

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, converse)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/v1", numbers
        tasks.cancel_scope.cancel()


def http(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
