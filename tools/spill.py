"""Where output goes that is more than a result holds: a file that the model may read.

Rule 1: the file is made when the first byte needs it, is ours alone, and never follows a link.
Rule 2: a full disk costs the file and not the command.
"""

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field

MOST_BYTES = 64 * 1024 * 1024

CUT = b"\n[... the rest was not kept ...]\n"
"""How a file ends that would have been larger."""


@dataclass(eq=False, slots=True)
class Spill:
    """The whole output of one stream; owned by who reads the stream."""

    folder: str
    """An existing folder."""
    name: str
    """What the name of the file begins with."""
    most: int = MOST_BYTES
    path: str | None = field(default=None, init=False)
    """The file, once there is one."""
    _file: int = field(default=-1, init=False)
    _room: int = field(init=False)

    def __post_init__(self) -> None:
        self._room = self.most

    def write(self, data: bytes) -> None:
        """Keep what follows; what cannot be kept is dropped."""
        if self._room < 0:
            return
        cut = CUT if len(data) > self._room else b""
        try:
            if self.path is None:
                made = tempfile.mkstemp(".txt", f"{self.name}-", self.folder)
                self._file, self.path = made
            # Into the system's memory: what waits for a disk is the system.
            os.write(self._file, data[: self._room] + cut)
        except OSError:
            self._room = 0
        self._room -= len(data)

    def close(self) -> None:
        """Nothing more will come."""
        if self.path is not None:
            with suppress(OSError):
                os.close(self._file)
