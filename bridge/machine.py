"""The tools on this machine: its files, its commands in their sandbox, for each session.

It is apart from workshop.py because it loads while the model is thinking, or when a call first
needs it.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeAlias

from bridge.calls import Toolbox
from bridge.core import policy
from bridge.errors import ConfigError
from bridge.keys import Keys
from bridge.session import Session
from tools.base import Command, Ended, Hold, Tool
from tools.confined import ConfinedShell
from tools.environment import child_environment
from tools.frozen import frozen
from tools.guardian import Guardian
from tools.layers import Layers
from tools.local import LocalFiles
from tools.login_shell import login_environment
from tools.sandbox import Fence
from tools.shell import CONFINED_SHELL
from tools.table import TOOLS

Tools: TypeAlias = Mapping[str, Tool[Any]]


@frozen
class SessionShell:
    """The shell of one session: without our secrets, inside what its mode and preset allow."""

    keys: Keys
    session: Session
    layers: Layers
    private: tuple[str, ...] = ()
    """Files and folders of our own, which commands must not read."""
    guardian: Guardian | None = None

    async def hold(self) -> Hold:
        """How a command that starts now would be held."""
        try:
            hold = await self._shell(os.environ).hold()
        except ConfigError as error:
            return Hold(refusal=f"no command runs: {error}")
        is_open = hold.strength == "none" and hold.reach != "danger-full-access"
        if not (is_open and self.session.config.sandbox.require):
            return hold
        why = f"no command runs without a sandbox, and there is none: {'; '.join(hold.gaps)}"
        return replace(hold, refusal=why)

    async def run(self, command: Command, output: Callable[[str], None]) -> Ended:
        """Run one command; what it may touch is settled now, since most calls run none."""
        inherited = await self.session.login.environment(os.environ)
        return await self._shell(inherited).run(command, output)

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """What commands get of this environment."""
        config = self.session.config
        secrets = (*self.keys.secrets(config), *self.session.remote.secrets)
        return child_environment(inherited, secrets, config.key_variables(), self.session.scratch)

    def _shell(self, inherited: Mapping[str, str]) -> ConfinedShell:
        session = self.session
        config, scratch = session.config, session.scratch
        environment = self.environment(inherited)
        kept = {name: os.environ[name] for name in config.sandbox.env_keep if name in os.environ}
        fence = Fence(
            policy.reach(session.mode, session.permission),
            session.roots,
            scratch,
            config.sandbox.network,
            git=config.sandbox.git,
            hidden=(*self.private, *config.key_files()),
            home=os.environ.get("HOME", ""),
        )
        layers = self.layers
        if config.sandbox.mode == "off":
            layers = replace(layers, working="", failures=("it is switched off",))
        return ConfinedShell({**environment, **kept}, fence, layers, guardian=self.guardian)


@frozen
class Machine:
    """What sessions share on this machine."""

    keys: Keys
    layers: Layers
    private: tuple[str, ...] = ()
    """Files and folders of our own, which commands must not read."""
    guardian: Guardian = field(default_factory=Guardian)

    def close(self) -> None:
        """No command runs any more."""
        self.guardian.close()

    def shell(self, session: Session) -> SessionShell:
        """How commands of this session run."""
        return SessionShell(self.keys, session, self.layers, self.private, self.guardian)

    async def log_in(self, session: Session) -> None:
        """Find out what the user's login shell makes of the environment."""
        done = session.login.begin()
        try:
            with suppress(ConfigError):  # then no shell runs, as the first command will say
                own = self.shell(session).environment(os.environ)
                await session.login.read(own, partial(login_environment, own, session.cwd))
        finally:
            done.set()

    def toolboxes(
        self, user_folder: str | None, taped: Callable[[Tools], Tools] | None
    ) -> tuple[Toolbox, Toolbox]:
        """The tools without and with a sandbox; taped gives those whose use is noted."""
        files, private = LocalFiles(), tuple(map(os.path.realpath, self.private))
        both: list[Tools] = [TOOLS, {**TOOLS, CONFINED_SHELL.name: CONFINED_SHELL}]
        plain, confined = both if taped is None else map(taped, both)
        return (
            Toolbox(plain, files, self.shell, user_folder, private),
            Toolbox(confined, files, self.shell, user_folder, private),
        )
