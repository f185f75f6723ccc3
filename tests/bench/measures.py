"""What is measured, one function each: a bench in, figures out. MEASURES is the table.

Each says in its figures' names what they are; less is better in all of them.
"""

import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import TypeAlias

from tests.bench.client import Client
from tools.frozen import frozen

Figures: TypeAlias = dict[str, float]

_GAP = re.compile(r"gap (\d+);")
_MS = 1e6


@frozen
class Bench:
    """One program to be measured; spawn: starts it."""

    spawn: Callable[[], Client]
    short: bool

    def times(self, long: int, short: int) -> int:
        """How often, or how many."""
        return short if self.short else long

    def session(self) -> tuple[Client, str]:
        """A client with a session that is warm."""
        client = self.spawn()
        client.initialize()
        session, _ = client.new()
        client.prompt(session, "[[text 5]]")
        return client, session


def start(bench: Bench) -> Figures:
    """From nothing to each of the first answers."""
    hello: list[int] = []
    ready: list[int] = []
    spoke: list[int] = []
    for _ in range(bench.times(9, 1)):
        with bench.spawn() as client:
            hello.append(client.initialize() - client.begun)
            session, moment = client.new()
            ready.append(moment - client.begun)
            client.finish(client.begin(session, "[[text 5]]"))
            spoke.append(client.first_text[session] - client.begun)
    return {
        "start: initialize answered, ms": median(hello) / _MS,
        "start: session/new answered, ms": median(ready) / _MS,
        "start: first token of the first prompt, ms": median(spoke) / _MS,
    }


def relay(bench: Bench) -> Figures:
    """One delta every 5 ms, from the server's write to the editor's read."""
    client, session = bench.session()
    with client:
        client.prompt(session, f"[[paced {bench.times(600, 40)}]]")
        return _spread("relay of a paced delta", client.delays)


def burst(bench: Bench) -> Figures:
    """As many deltas as the line carries; the server's buffers are warm."""
    client, session = bench.session()
    with client:
        number = bench.times(10_000, 2_000)
        took = [client.prompt(session, f"[[text {number}]]") for _ in range(bench.times(7, 2))]
    return {"burst of deltas, us each": median(took) / number / 1e3}


def arguments(bench: Bench) -> Figures:
    """A call with 200 KB of streamed arguments, to the end of its turn."""
    client, session = bench.session()
    with client:
        before, times = client.bytes, bench.times(5, 1)
        took: list[int] = []
        for _ in range(times):
            (client.cwd / "long.txt").unlink(missing_ok=True)
            took.append(client.prompt(session, "[[arguments 200000]]"))
        sent = (client.bytes - before) / times
    return {
        "200 KB of streamed arguments, ms": median(took) / _MS,
        "200 KB of streamed arguments, KB to the editor": sent / 1e3,
    }


def rounds(bench: Bench) -> Figures:
    """From an answer with a call to the request with its output."""
    client, session = bench.session()
    with client:
        gaps: dict[str, list[int]] = {"read": [], "shell": []}
        for _ in range(bench.times(15, 2)):
            for name, found in gaps.items():
                client.prompt(session, f"[[{name} 1]]")
                told = _GAP.search("".join(client.said[session]))
                assert told is not None
                found.append(int(told[1]))
    return {f"{name}: call to next request, ms": median(gaps[name]) / _MS for name in gaps}


def growth(bench: Bench) -> Figures:
    """One conversation that grows, and what is left of it in a new process."""
    turns = bench.times(200, 30)
    client, session = bench.session()
    with client:
        took = [client.prompt(session, f"[[text 20]] turn {turn}") for turn in range(turns)]
        client.leave()
    with bench.spawn() as client:
        client.initialize()
        begun = time.monotonic_ns()
        cwd = str(client.cwd)
        moment, _ = client.call("session/load", sessionId=session, cwd=cwd, mcpServers=[])
    early = median(took[3:8])
    figures = {f"session/load of {turns} turns, ms": (moment - begun) / _MS}
    for turn in (50, turns):
        if turn <= turns:
            late = median(took[turn - 5 : turn])
            figures[f"time of turn {turn} : turn 5"] = late / early
    return figures


def many(bench: Bench) -> Figures:
    """Twenty sessions in one process, each with a delta every 5 ms."""
    with bench.spawn() as client:
        client.initialize()
        client.new()
        begun = time.monotonic_ns()
        sessions = [client.new()[0] for _ in range(20)]
        each = (time.monotonic_ns() - begun) / len(sessions)
        for session in sessions:
            client.prompt(session, "[[text 5]]")
        paced = f"[[paced {bench.times(200, 20)}]]"
        for number in [client.begin(session, paced) for session in sessions]:
            client.finish(number)
        spread = _spread("twenty sessions: relay of a delta", client.delays)
    return {"twenty sessions: each new one, ms": each / _MS, **spread}


def memory(bench: Bench) -> Figures:
    """What an idle process holds; on Linux alone, which tells."""
    if sys.platform != "linux":
        return {}
    with bench.spawn() as client:
        client.initialize()
        client.new()
        time.sleep(0.5)  # for what loads after the answer
        before = _held(client)
        for _ in range(20):
            client.new()
        time.sleep(0.2)
        each = (_held(client) - before) / 20
    return {"memory after session/new, MiB": before, "memory of one more session, MiB": each}


def ends(bench: Bench) -> Figures:
    """A cancel while text streams, and the end of the line while nothing runs."""
    client, session = bench.session()
    with client:
        took: list[int] = []
        for _ in range(bench.times(5, 1)):
            number = client.begin(session, "[[paced 2000]]")
            client.until(lambda: session in client.first_text)
            begun = time.monotonic_ns()
            client.notify("session/cancel", sessionId=session)
            took.append(client.finish(number)[0] - begun)
        left = client.leave()
    return {"cancel while text streams, ms": median(took) / _MS, "exit, ms": left / _MS}


MEASURES = (start, relay, burst, arguments, rounds, growth, many, memory, ends)


def _spread(what: str, delays: list[int]) -> Figures:
    ordered = sorted(delays)
    last = ordered[int(0.99 * len(ordered))]
    return {f"{what}, p50, ms": median(ordered) / _MS, f"{what}, p99, ms": last / _MS}


def _held(client: Client) -> float:
    """MiB that are in memory for this process, its share of what others hold as well."""
    with suppress(OSError):
        told = Path(f"/proc/{client.process.pid}/smaps_rollup").read_text(encoding="utf-8")
        found = re.search(r"\nPss: +(\d+)", told)
        return int(found[1]) / 1024 if found else 0.0
    return 0.0
