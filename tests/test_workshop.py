"""When the tools load that no call has wanted yet."""

from math import inf
from typing import Any, cast

import anyio
import pytest

from bridge.workbench import ToolPort, Workbench
from bridge.workshop import load_soon
from tests.skipped_time import BACKEND, no_waiting

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> Any:
    return BACKEND


async def test_the_tools_load_soon_but_not_while_an_answer_streams() -> None:
    async def check(words: list[float], expected: float) -> None:
        """words: when the model says something, in seconds from the session's begin."""
        begun, loaded = anyio.current_time(), list[float]()

        def now() -> float:
            return anyio.current_time() - begun

        def quiet_for() -> float:
            return now() - max((word for word in words if word <= now()), default=-inf)

        async def load() -> ToolPort:
            loaded.append(now())
            return cast("ToolPort", None)

        with no_waiting():
            await load_soon(Workbench((), load), quiet_for)
        assert loaded == [pytest.approx(expected, abs=0.05)]

    await check([], 0.5)
    await check([0.1], 0.5)
    await check([0.4], 0.6)
    await check([0.05 * number for number in range(100)], 5.15)
    await check([0.4, 0.5, 3.0], 0.7)
