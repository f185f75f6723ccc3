"""What can confine commands here: as the last start found it, until this one has tried again.

Trying takes as long as half the start, and the first request depends on it: what the model is
offered says whether its commands are confined. What is remembered decides that, and nothing else.

Rule 1: no command starts before the layers have been tried by this process.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bridge.kept import replace_private
from tools.layers import Layers, layers_of
from tools.probe import Probe

_FILE = "sandbox"
_LONGEST = 4096


class Confinement:
    """The layers of this machine; owner of the probe that tries them."""

    def __init__(self, folder: Path | None, probe: Callable[[], Probe] = Probe) -> None:
        """folder: where state is kept; None: nothing is remembered."""
        self._file = None if folder is None else folder / _FILE
        self._new_probe = probe
        self._probe: Probe | None = None
        self._said = "" if self._file is None else _read(self._file)
        self._layers = layers_of(self._said, "")
        self._is_tried = False
        if not self._layers.probed:
            self._probe = probe()  # tries while the rest of the program loads

    def expected(self) -> Layers:
        """What is to be expected; blocks where nothing is remembered."""
        return self._layers if self._layers.probed else self.tried()

    def tried(self) -> Layers:
        """What holds; blocks until it has been tried."""
        if not self._is_tried:
            self._probe = self._probe or self._new_probe()
            said, complaint = self._probe.answer()
            self._layers, self._is_tried = layers_of(said, complaint), True
            if self._file is not None and not complaint and said != self._said:
                with suppress(OSError):  # it is tried at each start then
                    replace_private(self._file, said)
        return self._layers

    def end(self) -> None:
        """Stop trying."""
        if self._probe is not None:
            self._probe.end()


def _read(file: Path) -> str:
    try:
        # O_NONBLOCK: a named pipe in its place must not make us wait.
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(descriptor, _LONGEST).decode("ascii", "replace")
        finally:
            os.close(descriptor)
    except OSError:
        return ""
