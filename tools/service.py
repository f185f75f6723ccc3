"""A program that is talked to over its standard streams, for as long as it is needed.

It knows processes and lines; what the lines say is another's business.

Rule 1: nothing the program prints reaches our own streams. The end of its error output is kept,
to say why it ended; the rest is dropped, however much it is.
Rule 2: when a service is over, no process of it is left: it may leave by itself when its input
ends, is asked to, and is killed.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import IO

import anyio

from tools.offspring import signal_group
from tools.process import Launch, bury, exit_of, piece, pipes, start

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes; a line that is longer is dropped, and so is all of it that still comes."""

_FAREWELL = 0.5
"""Seconds a program gets to leave after its input has ended, and again after it was asked to."""

_LAST_WORDS = 4 * 1024
"""Bytes of error output that are kept."""


@dataclass(eq=False, slots=True)
class Service:
    """A running program; owned by the context that started it."""

    leader: "subprocess.Popen[bytes]"
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]
    _errors: bytearray = field(default_factory=bytearray, init=False)
    _silent: anyio.Event = field(default_factory=anyio.Event, init=False)
    """Its error output has ended."""

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of its output, without line ends, until it closes it."""
        rest, dropping = bytearray(), False
        while data := await piece(self.stdout):
            *whole, last = data.split(b"\n")
            for part in whole:
                if not dropping:
                    yield bytes(rest + part)
                rest, dropping = bytearray(), False
            rest += last
            if dropping or len(rest) > LONGEST_LINE:
                rest, dropping = bytearray(), True

    async def send(self, line: bytes) -> None:
        """Write one line; OSError when nobody reads any more."""
        rest = memoryview(line + b"\n")
        while rest:
            try:
                rest = rest[os.write(self.stdin.fileno(), rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self.stdin)

    async def last_words(self) -> str:
        """The last line of its error output, for a program that is about to end."""
        with anyio.move_on_after(_FAREWELL):
            await self._silent.wait()
        said = self._errors.decode("utf-8", "replace").split("\n")
        line = next((line.strip() for line in reversed(said) if line.strip()), "")
        printable = "".join(character for character in line if character.isprintable())
        return printable[:300]

    async def keep_errors(self) -> None:
        """Read its error output to the end, so that it never has to wait for a reader."""
        while data := await piece(self.stderr):
            self._errors += data
            del self._errors[:-_LAST_WORDS]
        self._silent.set()


@asynccontextmanager
async def service(launch: Launch) -> AsyncGenerator[Service]:
    """The program, running for as long as the context is open; OSError if it cannot be started."""
    leader, mark = start(launch, stdin=subprocess.PIPE)
    try:
        running = Service(leader, *pipes(leader))
        os.set_blocking(running.stdin.fileno(), False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.keep_errors)
            try:
                yield running
            finally:
                with anyio.CancelScope(shield=True):
                    await _dismiss(running)
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await bury(leader, mark)


def program(command: str, environment: Mapping[str, str]) -> str:
    """The file behind a command's name. A relative entry of PATH would let the workspace choose."""
    if os.sep in command:
        return command
    folders = filter(os.path.isabs, os.get_exec_path(environment))
    if found := shutil.which(command, path=os.pathsep.join(folders)):
        return found
    raise FileNotFoundError(f"there is no program {command}")


async def _dismiss(running: Service) -> None:
    """Let it leave by itself, or ask it to."""
    running.stdin.close()
    with anyio.move_on_after(_FAREWELL) as patience:
        await exit_of(running.leader)
    if patience.cancelled_caught:
        signal_group(running.leader.pid, signal.SIGTERM)
        with anyio.move_on_after(_FAREWELL):
            await exit_of(running.leader)
