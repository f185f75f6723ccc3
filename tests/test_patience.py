"""How long we wait for a server that may or may not be alive; all of it in skipped time."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute

from bridge.errors import Busy, Unreachable
from bridge.responses.events import Ended, Event
from bridge.responses.transport import Transport
from tests.fake_responses import FakeResponses, Pause, Piece, Reply, said, stream
from tests.skipped_time import BACKEND, no_waiting, skipped
from tests.stage import stage
from tests.test_transport import BODY, CERTIFICATE, Place, read_all, secure

pytestmark = pytest.mark.anyio

HELLO = stream(said("Hello"))
DEAF = Reply(HELLO, deaf=True)
"""The last answer on a connection that dies without a word."""


@pytest.fixture
def anyio_backend() -> Any:
    return BACKEND


async def test_a_local_server_may_read_a_long_prompt_for_as_long_as_it_takes(
    tmp_path: Path,
) -> None:
    async def check(seconds: int, *script: Piece) -> None:
        folder = tmp_path / str(seconds)
        folder.mkdir()
        model = FakeResponses(list(script))
        async with model.serve() as base_url:
            with no_waiting():
                async with stage(
                    folder, model, provider={"base_url": base_url}, wired=True
                ) as play:
                    before = skipped()
                    assert await play.prompt() == {"stopReason": "end_turn"}
                    assert play.editor.text() == "Hello"
                    # The part that went by while something else was at work is not skipped.
                    assert 0.9 * seconds < skipped() - before < seconds + 1
                    assert len(model.asked) == 1

    await check(400, Pause(400), *HELLO)
    await check(7200, Pause(7200), *HELLO)
    # Once it has begun, a sign of life every few minutes is what it takes.
    await check(800, b": prefill\n\n", *[Pause(200), b": prefill\n\n"] * 4, *HELLO)


async def test_a_server_that_falls_silent_is_given_up() -> None:
    async def check(*script: Piece, quiet: float) -> None:
        fake = FakeResponses([*script, Pause(1000)])
        async with fake.serve() as base_url:
            place = Place(base_url=base_url, first_event_timeout=None, idle_timeout=100)
            with no_waiting():
                async with Transport() as transport:
                    before = skipped()
                    with pytest.raises(Unreachable, match=r"sent nothing for 100 s"):
                        await read_all(transport, place)
                    assert round(skipped() - before) == quiet

    await check(b": alive\n\n", quiet=100)
    await check(Pause(300), b": alive\n\n", Pause(90), *HELLO[:-2], quiet=490)


async def test_whoever_reads_slowly_makes_a_server_no_more_silent_than_it_is() -> None:
    """An editor that takes nothing for a while holds up the reading, and not the server."""
    signs = [Pause(90), b": alive\n\n"]
    script = [*HELLO[:-1], *signs * 4, *HELLO[-1:]]

    async def check(*seconds: float) -> None:
        fake = FakeResponses(script)
        async with fake.serve() as base_url:
            place = Place(base_url=base_url, idle_timeout=100)
            with no_waiting():
                async with Transport() as transport, transport.stream(place, BODY) as batches:
                    pauses = iter(seconds)
                    events: list[Event] = []
                    async for batch in batches:
                        events += batch
                        await anyio.sleep(next(pauses, 0))
        assert isinstance(events[-1], Ended)

    for quick in range(6):  # batches that are taken at once
        await check(*[0] * quick, 95)
        await check(*[0] * quick, 500)


async def test_a_connection_that_died_while_idle_costs_no_wait() -> None:
    """A network that was left, a machine that slept: the other end never says that it is gone."""

    async def check(base_url: str, fake: FakeResponses) -> None:
        now = 1000.0
        place = Place(base_url=base_url, ca_file=str(CERTIFICATE), is_local=True)
        with no_waiting():
            async with Transport(clock=lambda: now) as transport:
                await read_all(transport, place)
                now += 61.0
                await read_all(transport, place)
        assert [asked.connection for asked in fake.asked] == [1, 2]
        assert skipped() < 1

    fake = FakeResponses(DEAF, HELLO)
    async with fake.serve() as base_url:
        await check(base_url, fake)
    fake = FakeResponses(DEAF, HELLO)
    async with secure(fake) as base_url:
        await check(base_url, fake)


async def test_a_connection_that_died_just_now_costs_the_wait_for_the_first_event() -> None:
    """Nothing tells it from a server that thinks; the next attempt has a connection of its own."""
    fake = FakeResponses(DEAF, HELLO)
    async with fake.serve() as base_url:
        place = Place(base_url=base_url, first_event_timeout=300, max_retries=1)
        with no_waiting():
            async with Transport() as transport:
                await read_all(transport, place)
                before = skipped()
                await read_all(transport, place)
                assert 300 <= round(skipped() - before) <= 301
    assert [asked.connection for asked in fake.asked] == [1, 2]


async def test_a_local_server_that_died_without_a_word_is_given_up_where_a_limit_is_set() -> None:
    fake = FakeResponses(DEAF)
    async with fake.serve() as base_url:
        place = Place(base_url=base_url, is_local=True, first_event_timeout=30, max_retries=4)
        with no_waiting():
            async with Transport() as transport:
                await read_all(transport, place)
                with pytest.raises(Unreachable, match="raise first_event_timeout"):
                    await read_all(transport, place)


async def test_the_words_of_an_error_are_not_waited_for_long() -> None:
    async def check(*words: bytes, local: bool) -> None:
        fake = FakeResponses(Reply(words, 503, hold=True))
        async with fake.serve() as base_url:
            first = None if local else 300
            place = Place(base_url=base_url, idle_timeout=300, first_event_timeout=first)
            with no_waiting():
                async with Transport() as transport:
                    before = skipped()
                    with pytest.raises(Busy, match="HTTP 503"):
                        await read_all(transport, place)
                    assert skipped() - before < 10

    await check(local=True)
    await check(b'{"error":', local=False)


async def test_a_server_that_takes_no_connection_is_given_up() -> None:
    """It is alive enough to be connected to, and never says hello."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(SocketAttribute.local_port)
        place = Place(
            base_url=f"https://127.0.0.1:{port}/v1", connect_timeout=10, first_event_timeout=None
        )
        with no_waiting():
            async with Transport() as transport:
                with pytest.raises(Unreachable, match="within 10 s"):
                    await read_all(transport, place)
                assert 8 < skipped() < 11  # what ran meanwhile is not skipped
