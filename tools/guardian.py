"""Ends the commands that run when the agent is killed: a small process of its own beside it.

Nothing of ours runs any more after a SIGKILL, and some editors end an agent in no other way. Only
what is in namespaces of its own ends by itself then.

Rule 1: the process waits for the end of a pipe of which the agent alone holds the other end, and
kills what it was told of until then: on Linux all that bears a command's mark, elsewhere its group.
Rule 2: it is told of the end of a command before anyone else can get the command's number.
Rule 3: where there is no such process commands run all the same.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from tools.offspring import kill_marked, kill_tree

_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from tools.guardian import end, left; end(left(sys.stdin))"
)
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_PATIENCE = 1.0
"""Seconds that it has to end."""
_PAUSE = 0.01
"""Seconds between two looks at what is left."""


class Guardian:
    """The agent's end; one for the whole process. The other end starts with the first command."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._is_closed = False

    def watch(self, leader: int, mark: str) -> None:
        """A command has begun; leader is the process whose group it is."""
        if self._process is None and not self._is_closed:
            self._start()
        self._tell(f"+ {leader} {mark}\n")

    def forget(self, leader: int, mark: str) -> None:
        """The command has ended, with all that it started."""
        self._tell(f"- {leader} {mark}\n")

    def close(self) -> None:
        """End the process; what still runs of what it was told of ends too."""
        self._is_closed = True
        if self._process is not None:
            os.close(self._pipe)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE)
        self._process = None

    def _start(self) -> None:
        hear, tell = os.pipe()
        os.set_blocking(tell, False)
        try:
            self._process = subprocess.Popen(  # noqa: S603 (it is this file)
                (sys.executable, "-I", "-S", "-c", _PROGRAM, _HOME),
                stdin=hear,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
            )
            self._pipe = tell
        except OSError:
            os.close(tell)
        finally:
            os.close(hear)

    def _tell(self, line: str) -> None:
        if self._process is not None:
            with suppress(OSError):
                os.write(self._pipe, line.encode())


def left(lines: Iterable[str]) -> dict[int, str]:
    """The commands that were begun and have not ended: the leader of each, and its mark."""
    running: dict[int, str] = {}
    for line in lines:
        sign, leader, mark = line.split()
        if sign == "+":
            running[int(leader)] = mark
        else:
            running.pop(int(leader), None)
    return running


def end(running: Mapping[int, str], passes: int = 200) -> None:
    """Kill all that is left of these commands, in so many looks at what is there."""
    for leader in running:
        kill_tree(leader)
    for _ in range(passes):
        if not kill_marked(running.values()):
            return
        time.sleep(_PAUSE)
