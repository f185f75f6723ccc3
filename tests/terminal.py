"""A terminal of tmux: what a program shows on it, and what a person types.

Rule 1: nothing is waited for by the clock: tmux tells of every change of the screen, and the
screen is looked at then.
Rule 2: what takes too long is ended, and what was on the screen is in the complaint.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Self

_WIDTH, _HEIGHT = 160, 60
_PATIENCE, _TIMES = 60.0, 20


class Terminal:
    """One program on a terminal of its own, as long as the context."""

    def __init__(
        self, tmux: Path, socket: Path, command: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self._tmux = [str(tmux), "-u", "-f", "/dev/null", "-S", str(socket)]
        self._command, self._environment = command, dict(environment)
        self._changed = threading.Event()

    def __enter__(self) -> Self:
        size = ["-x", str(_WIDTH), "-y", str(_HEIGHT)]
        start = [*self._tmux, "-C", "new-session", *size, *self._command]
        self._events = subprocess.Popen(
            start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment
        )
        self._watch = threading.Thread(target=self._follow, args=(self._events.stdout,))
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._asked("kill-server")
        self._watch.join()
        self._events.communicate()

    def wait(self, is_so: Callable[[str], bool]) -> str:
        """Wait until this is so of what is on the screen, which is given."""
        screen = self._look(is_so, _PATIENCE)
        assert is_so(screen), f"this takes too long:\n{screen}"
        return screen

    def see(self, text: str) -> str:
        """Wait until this is on the screen, which is given."""
        return self.wait(lambda screen: text in screen)

    def type(self, text: str, is_so: Callable[[str], bool]) -> None:
        """Type this until this is so: what a program does not expect yet, it may lose."""
        self._insist(["-l", text], is_so)

    def press(self, keys: str, is_so: Callable[[str], bool]) -> None:
        """Press the keys that tmux calls so, one after another, until this is so."""
        self._insist(keys.split(), is_so)

    def _insist(self, keys: Sequence[str], is_so: Callable[[str], bool]) -> None:
        for _ in range(_TIMES):
            self._asked("send-keys", *keys)
            if is_so(self._look(is_so, _PATIENCE / _TIMES)):
                return
        self.wait(is_so)

    def _look(self, is_so: Callable[[str], bool], patience: float) -> str:
        """Look at each screen until this is so, or patience ends; the last one."""
        end = time.monotonic() + patience
        while not is_so(screen := self._asked("capture-pane", "-p")):
            if not self._changed.wait(end - time.monotonic()):
                break
            self._changed.clear()
        return screen

    def _asked(self, *words: str) -> str:
        ended = subprocess.run(
            [*self._tmux, *words], capture_output=True, timeout=_PATIENCE, check=False
        )
        return ended.stdout.decode()

    def _follow(self, events: IO[bytes]) -> None:
        for _ in events:
            self._changed.set()
