"""An event loop on which waiting costs nothing: where nobody can do anything, the time moves on.

Rule 1: what runs takes as long as it takes; only waits are skipped, so that one of minutes takes
as long as the code around it.
Rule 2: a thread of anyio's that works is waited for, and a socket of this same loop is given a
moment. What another process does would come too late.
"""

import asyncio
import selectors
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio.to_thread import current_default_thread_limiter

_MOMENT = 0.002
"""Real seconds for what is on its way between two ends of this loop."""
_FOREVER = 1e6
"""Seconds after which what is waited for will never come."""


class _Impatient(selectors.DefaultSelector):
    """Instead of waiting it notes how long it would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0
        self.threads: anyio.CapacityLimiter | None = None
        """Those that may be at work; None: no wait is skipped."""

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout <= _MOMENT or self.threads is None:
            return super().select(timeout)
        if self.threads.borrowed_tokens:
            return super().select(min(timeout, 1))
        ready = super().select(_MOMENT)
        if not ready:
            self.skipped += timeout
        return ready


class SkippedTime(asyncio.SelectorEventLoop):
    """The loop; its time is the real one and what was skipped."""

    def __init__(self) -> None:
        self.impatient = _Impatient()
        super().__init__(self.impatient)

    def time(self) -> float:
        return super().time() + self.impatient.skipped


BACKEND = ("asyncio", {"loop_factory": SkippedTime})
"""For the fixture anyio_backend."""


@contextmanager
def no_waiting() -> Generator[None]:
    """Skip all waits inside; what waits for nothing is a TimeoutError."""
    impatient = _running().impatient
    impatient.threads = current_default_thread_limiter()
    try:
        with anyio.fail_after(_FOREVER):
            yield
    finally:
        impatient.threads = None


def skipped() -> float:
    """Seconds that were skipped so far."""
    return _running().impatient.skipped


def _running() -> SkippedTime:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SkippedTime)
    return loop
