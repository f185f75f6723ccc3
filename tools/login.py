"""The environment that the user's login shell makes: mise, direnv, nvm and virtual environments.

Editors that were started from a menu pass on none of it. It knows no processes: who reads the
environment is tools/login_shell.py.

Rule 1: it is read once per session, beside everything else; a command waits for the end of that.
Rule 2: where nothing could be read, commands get the environment that the agent has.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import anyio

Source = Literal["auto", "login", "agent"]

_BARE = frozenset(
    {"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}
    | {"/usr/games", "/usr/local/games", "/snap/bin"}
)
"""What PATH holds where no shell of the user's has added to it."""

_OWN = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
"""What every shell has for itself."""


def is_wanted(source: Source, environment: Mapping[str, str]) -> bool:
    """Whether the login shell is to be asked."""
    folders = environment.get("PATH", "").split(os.pathsep)
    is_bare = all(folder.rstrip("/") in _BARE for folder in folders if folder)
    return source == "login" or (source == "auto" and is_bare)


class Login:
    """What the login shell says in the folder of one session, which owns this."""

    def __init__(self) -> None:
        self.changed: tuple[str, ...] = ()
        """The variables that are not as the agent has them."""
        self._found: Mapping[str, str] | None = None
        self._read: anyio.Event | None = None
        """Set when the shell has answered, or will not; None: it is not asked."""

    @property
    def was_asked(self) -> bool:
        """The login shell was asked, whatever came of it."""
        return self._read is not None

    def begin(self) -> anyio.Event:
        """From now on commands wait for this, which read() sets."""
        self._read = self._read or anyio.Event()
        return self._read

    async def read(
        self, own: Mapping[str, str], ask: Callable[[], Awaitable[Mapping[str, str] | None]]
    ) -> None:
        """Ask the shell, once."""
        done = self.begin()
        try:
            found = await ask()
            if found is not None:
                self._found = {name: text for name, text in found.items() if name not in _OWN}
                self.changed = tuple(_changed(own, self._found))
        finally:
            done.set()

    async def environment(self, own: Mapping[str, str]) -> Mapping[str, str]:
        """The shell's, as soon as it is known; our own where there is no other."""
        if self._read is not None:
            await self._read.wait()
        return own if self._found is None else self._found


def _changed(own: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    names = sorted({*own, *found} - _OWN)
    return [name for name in names if own.get(name) != found.get(name)]
