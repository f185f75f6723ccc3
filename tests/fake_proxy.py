"""A proxy on this machine that tunnels to one server, whichever name it is asked for."""

import base64
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream


class FakeProxy:
    """Tunnels (CONNECT) to `server`; with a password it wants that of every client.

    What is asked for by its whole address, which only plain HTTP is, it looks into: nothing of an
    answer goes on before it has all of it.
    """

    def __init__(self, server: str, password: str | None = None) -> None:
        self.asked: list[str] = []
        """The first line of each request."""
        self._port = urlsplit(server).port
        self._wanted = password and base64.b64encode(password.encode()).decode()

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[str]:
        """Listen as long as the context is open; gives HOST:PORT."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, self._converse)
            yield f"127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
            tasks.cancel_scope.cancel()

    async def _converse(self, client: ByteStream) -> None:
        async with client:
            reader = BufferedByteReceiveStream(client)
            head = (await reader.receive_until(b"\r\n\r\n", 9999)).decode()
            first, *headers = head.split("\r\n")
            self.asked.append(first)
            if self._wanted and not any(line.endswith(self._wanted) for line in headers):
                refusal = "407 Proxy Authentication Required\r\nproxy-authenticate: Basic realm=p"
                await client.send(f"HTTP/1.1 {refusal}\r\ncontent-length: 0\r\n\r\n".encode())
                return
            async with await anyio.connect_tcp("127.0.0.1", self._port or 0) as server:
                if not first.startswith("CONNECT"):
                    await _hold(reader, head, client, server)
                    return
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_pump, client, server)
                    await _pump(server, client)
                    tasks.cancel_scope.cancel()


async def _hold(
    reader: BufferedByteReceiveStream, head: str, client: ByteStream, server: ByteStream
) -> None:
    """Pass on one request, and then its whole answer in one piece."""
    length = re.search(r"(?i)\ncontent-length: *(\d+)", head)
    body = await reader.receive_exactly(int(length[1]) if length else 0)
    await server.send(f"{head}\r\n\r\n".encode() + body)
    answer = await BufferedByteReceiveStream(server).receive_until(b"\r\n0\r\n\r\n", 10**6)
    await client.send(answer + b"\r\n0\r\n\r\n")


async def _pump(source: ByteStream, target: ByteStream) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
        async for data in source:
            await target.send(data)
        await target.send_eof()
