"""Commands on this machine: started, listened to, ended, and nothing of them left behind.

It knows bash and the kernel; it decides nothing about what may run.

Rule 1: a command is over when its shell has ended. What it left in the background may still
print for a moment, then it is killed.
Rule 2: when a run returns, or is cancelled, no process of the command is left. A process group
does not hold those that left it, so on Linux we adopt orphans and know ours by a mark in their
environment. One that has both left the tree and wiped its environment escapes.
Rule 3: the shell stays unreaped until its group is dead: as long as it is, no other process can
have got the group's number.
"""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TypeAlias

import anyio
import anyio.to_thread

from tools.base import Command, Ended, Hold
from tools.frozen import frozen
from tools.guardian import Guardian
from tools.offspring import MARK, kill_tree, signal_group, sweep
from tools.output import Capture
from tools.spill import Spill

_LONGEST_ARGUMENT = 128 * 1024
"""execve(2): a single argument, with the NUL at its end, holds no more."""

_GRACE = 0.5
"""Seconds between the polite signal and the last one, after a time-out."""

_IDLE = 0.1
_LAST_WORDS = 2.0
"""Seconds: how long a pause, and how long in all, we listen after the shell has ended."""

_BURIAL = 2.0
"""Seconds we wait for killed processes; one that hangs in the kernel takes longer."""

_PIECE = 64 * 1024

_BASH_FOLDERS = ("/bin", "/usr/bin")
"""Looked into before PATH."""


Script: TypeAlias = tuple[tuple[str, ...], tuple[int, ...]]
"""An argv, and the open descriptors it needs."""


@frozen
class Launch:
    """A program and all it is given."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str
    passed: tuple[int, ...] = ()
    """Open descriptors it inherits beside the three."""


@frozen
class LocalShell:
    """Commands run as the user, by bash, without confinement."""

    environment: Mapping[str, str]
    """The whole environment of the commands."""
    scratch: str
    """An existing folder for temporary files."""
    guardian: Guardian | None = field(default=None, kw_only=True)
    """Ends commands when we are killed."""

    async def hold(self) -> Hold:
        return Hold()

    async def run(self, command: Command, output: Callable[[str], None]) -> Ended:
        with script(command.line, self.scratch) as (argv, passed):
            launch = Launch(argv, self.environment, command.cwd, passed)
            return await follow(
                launch,
                seconds=command.seconds,
                output=output,
                spill=self.scratch,
                guardian=self.guardian,
            )


@contextmanager
def script(line: str, scratch: str) -> Generator[Script]:
    """How bash is started to run a command line, however long that is."""
    shell = (bash(), "--noprofile", "--norc")
    if len(line.encode()) < _LONGEST_ARGUMENT:
        yield (*shell, "-c", line), ()
        return
    with tempfile.TemporaryFile(dir=scratch) as file:
        number = file.fileno()
        # Bash reads on through a descriptor of its own; the command must not see this one.
        file.write(f"exec {number}<&-; {line}".encode())
        file.flush()
        file.seek(0)
        yield (*shell, f"/dev/fd/{number}"), (number,)


async def follow(
    launch: Launch,
    *,
    seconds: float,
    output: Callable[[str], None],
    spill: str | None = None,
    guardian: Guardian | None = None,
) -> Ended:
    """Run one program to its end; the contract is that of Shell.run in tools.base.

    seconds: after which it is ended. spill: the folder for output that is more than a result
    holds; None: it is dropped. guardian: ends the program when we are killed; None: the program
    soon ends by itself.
    """
    leader, mark = start(launch)
    if guardian is not None:
        guardian.watch(leader.pid, mark)
    spills = [] if spill is None else [Spill(spill, name) for name in ("stdout", "stderr")]
    captures = [Capture(one.write) for one in spills] or [Capture(), Capture()]
    streams = _Streams(output, captures)
    limit = anyio.move_on_after(seconds)
    try:
        async with anyio.create_task_group() as readers:
            for pipe, capture in zip(pipes(leader), captures, strict=True):
                readers.start_soon(streams.read, pipe, capture)
            with limit:
                await exit_of(leader)
            if limit.cancelled_caught:
                await _terminate(leader)
            await streams.quiet()
            readers.cancel_scope.cancel()
    except anyio.get_cancelled_exc_class():
        for path in _kept(spills):
            output(f"\n[whole output: {path}]\n")
        raise
    finally:
        with anyio.CancelScope(shield=True):
            await bury(leader, mark, guardian)
        for one in spills:
            one.close()
    return _ended(leader.returncode, captures, _kept(spills), timed_out=limit.cancelled_caught)


def _kept(spills: Iterable[Spill]) -> tuple[str, ...]:
    """The files with the whole output."""
    return tuple(one.path for one in spills if one.path is not None)


@dataclass(slots=True)
class _Streams:
    """What one program prints on its two streams, as it comes."""

    output: Callable[[str], None]
    captures: Sequence[Capture]
    _open: int = 2
    _heard: anyio.Event = field(default_factory=anyio.Event)
    """Something came, or a stream ended, since it was last replaced."""

    async def read(self, pipe: IO[bytes], capture: Capture) -> None:
        """Take what comes through the pipe until its other end is closed."""
        while data := await piece(pipe):
            self._show(capture.feed(data))
        self._open -= 1
        self._heard.set()

    async def quiet(self) -> None:
        """Wait until both streams have ended, or have nothing to say for the moment."""
        with anyio.move_on_after(_LAST_WORDS):
            while self._open:
                self._heard = anyio.Event()
                with anyio.move_on_after(_IDLE):
                    await self._heard.wait()
                if not self._heard.is_set():
                    break
        for capture in self.captures:
            self._show(capture.finish())

    def _show(self, text: str) -> None:
        self._heard.set()
        if text:
            self.output(text)


def bash() -> str:
    """Where bash is. A relative entry of PATH would let the workspace say what bash is."""
    folders = [*_BASH_FOLDERS, *filter(os.path.isabs, os.get_exec_path())]
    if path := shutil.which("bash", path=os.pathsep.join(folders)):
        return path
    raise FileNotFoundError("bash is not installed")


def start(launch: Launch, stdin: int = subprocess.DEVNULL) -> "tuple[subprocess.Popen[bytes], str]":
    """The process, which leads a group and a session, and the mark of all that comes of it."""
    mark = secrets.token_hex(16)
    leader = subprocess.Popen(  # noqa: S603 (running what it is told to is its purpose)
        launch.argv,
        bufsize=0,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=launch.cwd,
        env={**launch.environment, MARK: mark},
        pass_fds=launch.passed,
        start_new_session=True,
    )
    return leader, mark


def pipes(leader: "subprocess.Popen[bytes]") -> list[IO[bytes]]:
    """Those of its standard streams, in their order, of which we hold the other end."""
    return [pipe for pipe in (leader.stdin, leader.stdout, leader.stderr) if pipe is not None]


async def piece(pipe: IO[bytes]) -> bytes:
    """What comes through the pipe next; nothing at its end."""
    await anyio.wait_readable(pipe)
    return os.read(pipe.fileno(), _PIECE)


async def exit_of(leader: "subprocess.Popen[bytes]") -> None:
    """Wait until the process has ended; it stays unreaped where the system can tell that."""
    try:
        handle = os.pidfd_open(leader.pid)
    except (AttributeError, OSError):
        await exit_in_thread(leader)
        return
    try:
        await anyio.wait_readable(handle)
    finally:
        os.close(handle)


async def exit_in_thread(leader: "subprocess.Popen[bytes]") -> None:
    """Wait until the process has ended, and reap it."""
    # A thread of its own: many long commands must not keep others from the shared ones.
    await anyio.to_thread.run_sync(
        leader.wait, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
    )


async def _terminate(leader: "subprocess.Popen[bytes]") -> None:
    signal_group(leader.pid, signal.SIGTERM)
    with anyio.move_on_after(_GRACE) as grace:
        await exit_of(leader)
    if grace.cancelled_caught:
        kill_tree(leader.pid)


async def bury(
    leader: "subprocess.Popen[bytes]", mark: str, guardian: Guardian | None = None
) -> None:
    """Kill and reap all that is left of a command."""
    with anyio.move_on_after(_BURIAL):
        dying = kill_tree(leader.pid)
        await exit_of(leader)
        while sweep(leader.pid, mark, dying):  # noqa: ASYNC110 (no event tells of these deaths)
            await anyio.sleep(0.001)
    if guardian is not None:
        guardian.forget(leader.pid, mark)
    leader.poll()
    for pipe in pipes(leader):
        pipe.close()


def _ended(
    code: int | None, captures: Sequence[Capture], whole: tuple[str, ...], *, timed_out: bool
) -> Ended:
    stdout, stderr = captures
    # None: it hangs in the kernel, which does not let go of what we have killed.
    code = -signal.SIGKILL if code is None else code
    return Ended(
        stdout.text(),
        stderr.text(),
        code=code if code >= 0 else None,
        signal=_signal_name(-code) if code < 0 else None,
        timed_out=timed_out,
        truncated=stdout.truncated or stderr.truncated,
        whole=whole,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
