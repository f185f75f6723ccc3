"""An event loop on which waiting costs nothing: where nobody can do anything, the time moves on.

Rule 1: time passes only here; what runs takes none. A wait of minutes takes as long as the code
around it.
Rule 2: it is for tests whose parts are all in this loop. What comes from a thread, a process or
another loop would come late, and what waits for it would be given up.
"""

import asyncio
import selectors
from typing import Any

_GRACE = 0.002
"""Real seconds that sockets of this same loop may take to deliver."""


class _Impatient(selectors.DefaultSelector):
    """Instead of waiting it notes how long it would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(min(timeout, _GRACE if len(self.get_map()) > 1 else 0))
        if not ready:
            self.skipped += timeout
        return ready


class SkippedTime(asyncio.SelectorEventLoop):
    """The loop; its time is the real one and what was skipped."""

    def __init__(self) -> None:
        self._impatient = _Impatient()
        super().__init__(self._impatient)

    def time(self) -> float:
        return super().time() + self._impatient.skipped


BACKEND = ("asyncio", {"loop_factory": SkippedTime})
"""For the fixture anyio_backend."""
