"""Ends the commands that run when the agent is killed: a small process of its own beside it.

Nothing of ours runs any more after a SIGKILL, and some editors end an agent in no other way. Only
what is in namespaces of its own ends by itself then.

Rule 1: the process waits for the end of a pipe of which the agent alone holds the other end, and
kills what it was told of until then: on Linux all that bears a command's mark, elsewhere its group.
Rule 2: it is told of the end of a command before anyone else can get the command's number.
Rule 3: where there is no such process commands run all the same.
Rule 4: what a command planted is put aside by the process too, once the command is gone.
"""

import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tools.offspring import kill_marked, kill_tree

_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from tools.guardian import end, left, tidy; found = left(sys.stdin); "
    "end(found.running); tidy(found.places)"
)
_TIDY = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from tools.protected import put_aside, watched_of; put_aside(watched_of(sys.stdin))"
)
"""It needs our libraries, which the process itself does without."""
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_PATIENCE = 1.0
_PAUSE = 0.01
"""Seconds between two looks at what is left."""
_WHOLE = 4096
"""pipe(7): so many bytes are written together or not at all."""


@dataclass(slots=True)
class Left:
    """What was begun and not ended."""

    running: dict[int, str] = field(default_factory=dict[int, str])
    """The leaders of commands, and their marks."""
    places: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By mark: what is to be put aside after a command."""


class Guardian:
    """The agent's end; one for the whole process. The other end starts with the first command."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        """patience: seconds that close() gives the process to end."""
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._is_closed = False
        self._told: dict[str, list[str]] = {}
        """What holds now: a process that was killed is followed by one that is told it again."""
        self._number = 0

    def watch(self, leader: int, mark: str) -> None:
        """A command has begun; leader is the process whose group it is."""
        self._begin(f"{leader} {mark}", [f"+ {leader} {mark}\n"])

    def forget(self, leader: int, mark: str) -> None:
        """The command has ended, with all that it started."""
        self._end(f"{leader} {mark}", f"- {leader} {mark}\n")

    @contextmanager
    def tidying(self, places: Iterable[str]) -> Generator[None]:
        """Meanwhile a command may change these places, told as tools/protected.py reads them."""
        self._number += 1
        mark = str(self._number)
        self._begin(mark, [f"= {mark} {place}\n" for place in places])
        try:
            yield
        finally:
            self._end(mark, f"/ {mark}\n")

    def close(self) -> None:
        """End the process; what still runs of what it was told of ends too."""
        self._is_closed = True
        if self._process is not None:
            os.close(self._pipe)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(self._patience)
        self._process = None

    def _begin(self, key: str, lines: list[str]) -> None:
        self._told[key] = lines
        if self._process is not None and self._process.poll() is not None:
            os.close(self._pipe)
            self._process = None
        if self._process is not None:
            self._tell(lines)
        elif not self._is_closed:
            self._start()
            for told in self._told.values():
                self._tell(told)

    def _end(self, key: str, line: str) -> None:
        self._told.pop(key, None)
        self._tell([line])

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

    def _tell(self, lines: Iterable[str]) -> None:
        if self._process is None:
            return
        for line in lines:
            data = line.encode(errors="replace")
            if len(data) <= _WHOLE:
                with suppress(OSError):
                    os.write(self._pipe, data)


def left(lines: Iterable[str]) -> Left:
    """The commands that were begun and have not ended, and what they may have changed."""
    found = Left()
    for line in lines:
        sign, key, *rest = line.split(maxsplit=2)
        if sign == "+":
            found.running[int(key)] = rest[0].strip()
        elif sign == "=":
            found.places.setdefault(key, []).append(rest[0])
        elif sign == "/":
            found.places.pop(key, None)
        else:
            found.running.pop(int(key), None)
    return found


def tidy(places: Mapping[str, list[str]]) -> None:
    """Put aside what commands planted that have ended now."""
    told = "".join(line for lines in places.values() for line in lines)
    if told:
        program = (sys.executable, "-I", "-c", _TIDY, _HOME)
        subprocess.run(program, input=told.encode(), env={}, check=False)  # noqa: S603 (our own)


def end(running: Mapping[int, str], passes: int = 200) -> None:
    """Kill all that is left of these commands, in so many looks at what is there."""
    for leader in running:
        kill_tree(leader)
    for _ in range(passes):
        if not kill_marked(running.values()):
            return
        time.sleep(_PAUSE)
