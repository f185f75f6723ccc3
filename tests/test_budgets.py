"""What may go out for so much that comes in: exact counts, where a clock would tell less."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from bridge.acp.connection import Connection
from bridge.acp.editor import SessionEditor
from bridge.acp.peer import Peer
from bridge.answer import Answer
from bridge.core.effects import Effect, Finished
from bridge.core.handshake import Capabilities
from bridge.core.response import Response
from bridge.exchange import attempt
from bridge.responses.events import Delta, Event, parse
from tests.fake_responses import FakeResponses, called, said, stream
from tests.stage import stage
from tests.test_session import session

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
    model = FakeResponses(stream(called("c1", "write", given)), stream(said("Done.")))
    async with stage(tmp_path, model) as playing:
        with anyio.fail_after(30):
            await playing.prompt()
        sent = json.dumps(playing.news())
    assert sent.count("@") == size * times
    assert (tmp_path / "ws" / "new.txt").read_text("utf-8") == content
