"""Commands inside a fence: the port Shell with a sandbox around every command.

Rule 1: a command runs inside the fence or not at all; it is never run again without one.
Rule 2: a command may change `.git` where the fence allows that to all commands, or where it allows
that to commands that work on the repository and this is one.
Rule 3: what the helper says on its own descriptor decides whether the command ran, never what was
printed.
"""

import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import field, replace

import anyio
from anyio.to_thread import run_sync

from tools.base import Command, Ended, Hold
from tools.environment import confined_environment
from tools.frozen import frozen
from tools.guardian import Guardian
from tools.layers import Layers
from tools.process import Launch, LocalShell, follow, script
from tools.protected import Survey, Watched, put_aside, told
from tools.sandbox import Fence, denials, is_held, start, survey

_READY = "ready"


class SandboxFailed(OSError):
    """The sandbox could not be put in force; the command did not run."""


@frozen
class ConfinedShell:
    """Commands run as the user, by bash, each inside the fence."""

    environment: Mapping[str, str]
    """What they would get without a sandbox."""
    fence: Fence
    layers: Layers
    guardian: Guardian | None = field(default=None, kw_only=True)
    """Ends commands when we are killed, and puts aside what they planted."""

    async def hold(self) -> Hold:
        """How a command is held where it asks for nothing wider."""
        if self.fence.reach == "danger-full-access":
            return Hold()
        tmp = self.fence.scratch if "N" in self.layers.working else ""
        return replace(self.layers.hold, reach=self.fence.reach, tmp=tmp, git=self.fence.git)

    async def run(self, command: Command, output: Callable[[str], None]) -> Ended:
        """Run one command; SandboxFailed, an OSError, where it could not be confined."""
        fence = self._fence(command)
        held = is_held(self.layers, fence)
        # Without the helper root could read our memory, keys and all.
        if not held and not (self.layers.probed and os.geteuid() == 0):
            shell = LocalShell(self.environment, fence.scratch, guardian=self.guardian)
            return await shell.run(command, output)
        found, environment = Survey(), self.environment
        if held:
            found = await run_sync(survey, fence, command.cwd)
            environment = confined_environment(environment, fence.scratch, network=fence.network)
        with script(command.line, fence.scratch) as (argv, passed), _channel() as (hear, say):
            started = (*start(self.layers, fence, found, command.cwd, say), *argv)
            launch = Launch(started, environment, "/", (*passed, say))
            async with self._tidied(found.watched) as moved:
                ended = await follow(
                    launch,
                    seconds=command.seconds,
                    output=output,
                    spill=fence.scratch,
                    guardian=self.guardian,
                )
            said = _heard(hear)
        if said != _READY and not ended.timed_out:
            raise SandboxFailed(said or ended.stderr.strip() or "the sandbox did not start")
        return replace(ended, notes=(*(denials(ended, fence) if held else ()), *moved))

    @asynccontextmanager
    async def _tidied(self, watched: tuple[Watched, ...]) -> AsyncGenerator[list[str]]:
        """At the end, however it comes, what was planted is put aside; then the list tells it."""
        moved: list[str] = []
        with nullcontext() if self.guardian is None else self.guardian.tidying(told(watched)):
            try:
                yield moved
            finally:
                with anyio.CancelScope(shield=True):
                    moved += await run_sync(put_aside, watched)

    def _fence(self, command: Command) -> Fence:
        """What holds for one command."""
        fence = self.fence
        if command.reach is not None:
            fence = replace(fence, reach=command.reach)
        if command.git and fence.git == "commands":
            fence = replace(fence, git="always")
        return fence


@contextmanager
def _channel() -> Generator[tuple[int, int]]:
    """A pipe for the helper's one line: the end to read, and the one it inherits."""
    hear, say = os.pipe()
    os.set_blocking(hear, False)
    try:
        yield hear, say
    finally:
        os.close(hear)
        os.close(say)


def _heard(descriptor: int) -> str:
    try:
        return os.read(descriptor, 4096).decode(errors="replace")
    except BlockingIOError:
        return ""
