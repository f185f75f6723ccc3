"""The clock of other tests itself."""

from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from tests.skipped_time import BACKEND, no_waiting, skipped

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> Any:
    return BACKEND


async def test_a_wait_passes_at_once_and_in_full() -> None:
    with no_waiting():
        begun = anyio.current_time()
        await anyio.sleep(400)
        assert anyio.current_time() - begun >= 400
        assert round(skipped()) == 400


async def test_waits_end_in_the_order_of_their_times() -> None:
    ended: list[int] = []

    async def wait(seconds: int) -> None:
        await anyio.sleep(seconds)
        ended.append(seconds)

    with no_waiting():
        async with anyio.create_task_group() as tasks:
            for seconds in (30, 10, 20):
                tasks.start_soon(wait, seconds)
    assert ended == [10, 20, 30]


async def test_a_thread_is_waited_for_and_nothing_skipped() -> None:
    with no_waiting(), anyio.fail_after(60):
        ready = anyio.Event()

        def work() -> None:
            for _ in range(200):
                anyio.from_thread.run_sync(ready.is_set)

        await anyio.to_thread.run_sync(work)
    assert skipped() == 0


async def test_what_waits_for_nothing_is_found_out() -> None:
    with pytest.raises(TimeoutError), no_waiting():
        await anyio.Event().wait()
