"""What may go out for so much that comes in: exact counts, where a clock would tell less."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from bridge.acp.connection import Connection
from bridge.acp.editor import SessionEditor
from bridge.acp.peer import Peer
from bridge.answer import Answer
from bridge.context import request_body
from bridge.core.effects import Effect, Finished
from bridge.core.handshake import Capabilities
from bridge.core.records import Noted
from bridge.core.response import Response
from bridge.core.wire import list_pieces
from bridge.exchange import attempt
from bridge.responses.events import Delta, Event, parse
from bridge.workbench import Workbench
from tests.fake_responses import FakeResponses, called, said, stream
from tests.stage import stage
from tests.test_session import session
from tools.table import TOOLS

pytestmark = pytest.mark.anyio

DELTAS = 1000
TEXT = "12345" * DELTAS
SESSION = "7a66ca07-3e24-4d54-a0b0-bf6c84b0857c"
AROUND = 210
"""Bytes of a line beside the text of its delta."""


class Writes(list[bytes]):
    """What is given to the editor's line, write by write."""

    def write(self, data: bytes) -> None:
        self.append(data)

    async def room(self) -> None:
        await anyio.lowlevel.checkpoint()


async def shown(folder: Path, reads: Sequence[list[Event]]) -> Writes:
    """What goes out for an answer that comes in these network reads."""
    writes = Writes()
    editor = SessionEditor(Connection(Peer(), cast("Any", writes)), Capabilities(), SESSION)
    answer = Answer(session(folder), editor)

    @asynccontextmanager
    async def asking() -> AsyncGenerator[AsyncIterator[list[Event]]]:
        async def batches() -> AsyncIterator[list[Event]]:
            for read in reads:
                yield read

        yield batches()

    async def show(effects: list[Effect]) -> None:
        answer.show(effects)
        await editor.room()

    with anyio.fail_after(10):
        assert isinstance(await attempt(asking(), Response(), show), Finished)
    return writes


@pytest.mark.parametrize("per_read", [1, 10, 2 * DELTAS])
async def test_deltas_cost_one_line_for_each_network_read(tmp_path: Path, per_read: int) -> None:
    events = [parse(event) for event in stream(said(TEXT))]
    reads = [events[at : at + per_read] for at in range(0, len(events), per_read)]
    with_text = [read for read in reads if any(isinstance(one, Delta) for one in read)]
    writes = await shown(tmp_path, reads)
    assert len(writes) == len(with_text)
    assert sum(map(len, writes)) == len(TEXT) + AROUND * len(writes)


@pytest.mark.parametrize(
    ("size", "times"),
    [
        # As it came in rawInput, as a change to come, and as the change that was made.
        (3_000, 3),
        # The change to come says no more than rawInput does.
        (200_000, 2),
    ],
)
async def test_a_byte_of_an_argument_is_sent_so_often(
    tmp_path: Path, size: int, times: int
) -> None:
    content = "@" * size
    given = json.dumps({"file_path": "new.txt", "content": content})
    answers = stream(called("c1", "write", given)), stream(said("Done."))
    model = FakeResponses(*answers, cut=65_536)  # as a network hands it on
    async with stage(tmp_path, model) as playing:
        with anyio.fail_after(30):
            await playing.prompt()
        sent = json.dumps(playing.news())
    assert sent.count("@") == size * times
    assert (tmp_path / "ws" / "new.txt").read_text("utf-8") == content


class Hops:
    """How often work was handed to a thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        limiters = type(anyio.to_thread.current_default_thread_limiter())
        acquire = limiters.acquire_on_behalf_of

        async def counted(limiter: anyio.CapacityLimiter, borrower: object) -> None:
            self.made += 1
            await acquire(limiter, borrower)

        monkeypatch.setattr(limiters, "acquire_on_behalf_of", counted)


@pytest.mark.parametrize(
    ("tool", "arguments", "hops", "records"),
    [
        # Where the path leads, the same once more before the deed, the deed;
        # the answer, its result, what was seen of the file.
        ("read", {"file_path": "f1"}, 3, 3),
        # Where it runs, where each of its words leads, and all that was written down so far is on
        # disk; the answer, its result.
        ("shell", {"command": "true x", "description": "Do nothing"}, 3, 2),
        ("todo_write", {"todos": []}, 0, 3),
    ],
)
async def test_a_round_with_a_tool_costs_so_many_thread_hops_and_lines_of_the_journal(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    arguments: dict[str, object],
    hops: int,
    records: int,
) -> None:
    rounds = [stream(called(f"c{n}", tool, json.dumps(arguments))) for n in range(3)]
    model = FakeResponses(rounds[0], stream(said("Done.")), *rounds[1:], stream(said("Done.")))
    async with stage(tmp_path, model) as playing:
        (tmp_path / "ws" / "f1").write_text("one\n", encoding="utf-8")
        with anyio.fail_after(30):
            await playing.prompt()
            counted, before = Hops(monkeypatch), _lines(tmp_path)
            await playing.prompt()
        # Beside the rounds: the prompt and the last answer.
        assert (counted.made, _lines(tmp_path) - before) == (2 * hops, 2 * records + 2)


def _lines(folder: Path) -> int:
    """Of the session's file, where each one is one write."""
    (file,) = (folder / "state").rglob("*.jsonl")
    return file.read_bytes().count(b"\n")


async def test_what_an_earlier_request_held_is_not_written_again(tmp_path: Path) -> None:
    asking = session(tmp_path)
    bench = Workbench([tool.offer for tool in TOOLS.values()], cast("Any", None))

    def pieces() -> list[bytes]:
        items = asking.history.input(asking.dialect)
        body = request_body(asking, bench, items, asking.model)
        lists = (body["tools"], body["input"])
        return [piece for one in lists for piece in list_pieces(cast("list[object]", one))]

    for number in range(3):
        asking.history.add(Noted(f"note {number}"))
    before = pieces()
    asking.history.add(Noted("one more"))
    assert len(before) > 2 * (len(TOOLS) + 3)
    assert all(old is new for old, new in zip(before[:-1], pieces(), strict=False))
