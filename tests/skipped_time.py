"""An event loop on which waiting costs nothing: where nobody can do anything, the time moves on.

Rule 1: what runs takes as long as it takes; only waits are skipped, so that one of minutes takes
as long as the code around it.
Rule 2: it is for tests whose parts are all in this loop. A thread or a socket gets a moment of
real time for each step of the skipped time; a process would come too late.
"""

import asyncio
import selectors
from typing import Any

import anyio

_MOMENT, _STEP = 0.002, 60.0
"""Real seconds that others get, for so many seconds that are skipped."""
FOREVER = 100_000.0
"""Seconds for anyio.fail_after: what waits so long here, waits for what will never come."""


class _Impatient(selectors.DefaultSelector):
    """Instead of waiting it notes how long it would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout <= _MOMENT:
            return super().select(timeout)
        ready = super().select(_MOMENT)
        if not ready:
            self.skipped += min(timeout, _STEP)
        return ready


class SkippedTime(asyncio.SelectorEventLoop):
    """The loop; its time is the real one and what was skipped."""

    def __init__(self) -> None:
        self._impatient = _Impatient()
        super().__init__(self._impatient)

    @property
    def skipped(self) -> float:
        """Seconds that nobody had to wait for."""
        return self._impatient.skipped

    def time(self) -> float:
        return super().time() + self.skipped


def skipped() -> float:
    """Seconds skipped so far on the loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SkippedTime)
    return loop.skipped


def stuck() -> Any:
    """A deadline that only what waits for nothing can miss."""
    return anyio.fail_after(FOREVER)


BACKEND = ("asyncio", {"loop_factory": SkippedTime})
"""For the fixture anyio_backend."""
