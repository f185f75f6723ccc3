"""A program: loses its network twice while it talks to a server, and says what became of that.

It wants a network of its own, which it may spoil: test_lines.py gives it one. Client and server
have addresses of one machine; to lose the network is to lose the client's, so that nothing that
either end sends arrives and nobody tells them.
"""

import json
import subprocess
import sys

import anyio

from bridge.errors import Unreachable
from bridge.responses.lines import DEAD_SECONDS
from bridge.responses.transport import Transport
from tests.fake_responses import FakeResponses, Reply, said, stream
from tests.test_transport import Place, read_all

SERVER, FIRST, SECOND = "10.9.0.1", "10.9.0.2", "10.9.0.3"
HELLO = stream(said("Hello"))


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def speak_from(address: str) -> None:
    """Let new connections to the server come from this address."""
    ip("address", "add", f"{address}/32", "dev", "lo")
    ip("route", "replace", "local", SERVER, "dev", "lo", "src", address, "table", "local")


def lose(address: str) -> None:
    ip("address", "delete", f"{address}/32", "dev", "lo")


async def main() -> None:
    ip("link", "set", "lo", "mtu", "1500", "up")
    ip("address", "add", f"{SERVER}/32", "dev", "lo")
    speak_from(FIRST)
    fake = FakeResponses(HELLO, HELLO, HELLO, Reply(HELLO[:5], hold=True))
    async with fake.serve(host=SERVER) as base_url, Transport() as transport:
        place = Place(base_url=base_url, first_event_timeout=None, idle_timeout=1000)
        with anyio.fail_after(10):
            await read_all(transport, place)
            await read_all(transport, place)
            lose(FIRST)
            speak_from(SECOND)
            before = anyio.current_time()
            await read_all(transport, place)
            sys.stderr.write(f"{anyio.current_time() - before:.2f} s for the dead connection\n")
        connections = [asked.connection for asked in fake.asked]
        found: dict[str, object] = {"kept": connections[:2], "lost": connections[2:]}
        before = anyio.current_time()
        with anyio.fail_after(DEAD_SECONDS * 3):
            try:
                async with transport.stream(place, {"model": "m", "input": []}) as batches:
                    async for _ in batches:
                        lose(SECOND) if "cut" not in found else None
                        found["cut"] = []
            except Unreachable as error:
                found["cut"] = error.fault.kind
        sys.stderr.write(f"{anyio.current_time() - before:.1f} s for the dead stream\n")
    sys.stdout.write(json.dumps(found))


anyio.run(main)
