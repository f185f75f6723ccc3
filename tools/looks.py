"""What one session found its files to be, and when it may have changed them itself.

It knows neither disk nor editor: it is told what was found, and asked which of two texts is newer.

Rule 1: texts are known by their digests.
Rule 2: a file that changed while the model waited for a command was changed by that command. Of
one that goes on in the background nobody can say so: meanwhile the person works on.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tools.seen import Stamp

_TICK_NS = 20_000_000
"""How far the time of a file may lag behind the clock."""


@dataclass(eq=False, slots=True)
class Looks:
    """What one session found on disk and in the editor; the session owns it."""

    silent: bool = False
    """The editor did not answer once."""
    agreed: dict[str, str] = field(default_factory=dict[str, str])
    """Path -> the text on disk when it was last the editor's too, as its digest."""
    earlier: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """Path -> every text that was found or put on disk."""
    ours: dict[str, str] = field(default_factory=dict[str, str])
    """Path -> the text that a tool of ours put on disk."""
    _commands: list[list[int]] = field(default_factory=list[list[int]])
    """When commands were waited for: from, and to as far as it is known; in nanoseconds."""

    @contextmanager
    def command(self) -> Generator[None]:
        """While the model waits for a command, the command may change any file."""
        span = [time.time_ns() - _TICK_NS, 0]
        self._commands.append(span)
        try:
            yield
        finally:
            span[1] = time.time_ns()

    def wrote(self, path: str, text: str) -> None:
        """A tool of ours put this text on disk."""
        self.ours[path] = text
        self.earlier.setdefault(path, set()).add(text)

    def ran_at(self, moment: int) -> bool:
        """A command of ours ran at this moment."""
        return any(
            first <= moment and (not last or moment <= last) for first, last in self._commands
        )

    def overtakes(self, path: str, stamp: Stamp, disk: str, held: str) -> bool:
        """Whether the text on disk is newer than another one, which the editor holds."""
        if self.agreed.get(path) == disk:
            return False
        return (
            held in self.earlier.get(path, ())
            or self.ours.get(path) == disk
            or self.ran_at(stamp.version[3])
        )
