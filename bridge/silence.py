"""Tells the person that the model has been silent for long, and that we still wait for it.

It must not know what is waited for, nor end the wait: time-outs are the transport's.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from bridge.beside import beside

_SECONDS = (20, 60, 180)
_EVERY = 300
"""Seconds of silence after which something is said: these, and from then on after so many more."""

T = TypeVar("T")


class Silence:
    """How long nothing was heard; owned by the turn that waits."""

    def __init__(
        self,
        tell: Callable[[str], None],
        *,
        clock: Callable[[], float] = anyio.current_time,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._sleep = sleep
        self._since = clock()

    def heard(self) -> None:
        """Something was heard: the silence begins anew."""
        self._since = self._clock()

    def announced(self, seconds: float) -> None:
        """The person knows that nothing comes for so many seconds."""
        self._since = self._clock() + seconds

    async def during(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work, and tell of silence meanwhile."""
        async with beside() as tasks:
            tasks.start_soon(self._watch)
            return await work()

    async def _watch(self) -> None:
        since, said = self._since, 0
        while True:
            if since != self._since:
                since, said = self._since, 0
            due = _SECONDS[said] if said < len(_SECONDS) else _SECONDS[-1] + _EVERY * (said - 2)
            left = since + due - self._clock()
            if left > 0:
                await self._sleep(min(left, _SECONDS[0]))  # a new silence may begin meanwhile
            else:
                self._tell(f"No word from the model for {_span(due)}; still waiting")
                said += 1


def _span(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
