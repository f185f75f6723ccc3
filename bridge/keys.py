"""The keys of the models' servers: read where they are, or printed by a program of the user's.

It must not know what a key is sent with, nor who asks for it.

Rule 1: a program runs when a key is first needed, shortly before the time of the last one ends,
and when a server refused that one. One run serves all who wait meanwhile.
Rule 2: a program finds no standard input, and neither its place nor its folder is the workspace's.
When its time is over, or when nobody waits for it any more, all of its processes are ended.
Rule 3: nothing that a program printed is ever said or written down.
"""

import base64
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import anyio

from bridge.config import Config, Provider, is_key
from bridge.core.wire import load_object
from bridge.errors import BridgeError, ConfigError, LoginRequired
from tools.base import Ended

_MOST_MARGIN = 60.0
_MARGIN = 0.1
"""A new key is got so many seconds, or this part of its time, before the old one ends."""

_NEVER = 1e12
"""Later than anything, in seconds of the epoch."""


@dataclass(eq=False, slots=True)
class _Source:
    """One program, and what came of its last run."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    runs: int = 0
    """How many ended by themselves."""
    key: str | None = None
    until: float = 0.0
    """When the next key is to be got, in seconds of the epoch."""
    failure: BridgeError | None = None


class Keys:
    """The keys of one process; owner of those that programs printed."""

    def __init__(
        self,
        environment: Mapping[str, str],
        on_key: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._environment = environment
        self._on_key = on_key
        """Told of each key that is printed, before anybody gets it."""
        self._clock = clock
        self._sources: dict[tuple[str, ...], _Source] = {}
        self._printed: set[str] = set()

    async def key(self, provider: Provider) -> str | None:
        """The key to use now, None for a server that needs none; LoginRequired or ConfigError."""
        if provider.api_key_command is None:
            return provider.credentials(self._environment)
        source = self._source(provider.api_key_command)
        if source.key is not None and self._clock() < source.until:
            return source.key
        return await self._run(provider, provider.api_key_command)

    async def instead(self, provider: Provider, refused: str | None) -> str | None:
        """The key in the place of one that the server refused; None where there is no other."""
        if provider.api_key_command is None:
            key = provider.key(self._environment)
        else:
            key = self._source(provider.api_key_command).key
            if key in (None, refused):
                key = await self._run(provider, provider.api_key_command)
        return None if key == refused else key

    def forget(self) -> None:
        """Use no key again that a program printed; they stay secret all the same."""
        self._sources.clear()

    def secrets(self, config: Config) -> tuple[str, ...]:
        """Every key that is known now; never raises."""
        return (*config.secrets(self._environment), *self._printed)

    def _source(self, command: tuple[str, ...]) -> _Source:
        return self._sources.setdefault(command, _Source())

    async def _run(self, provider: Provider, command: tuple[str, ...]) -> str:
        """The key of a run that ended after this was asked for."""
        source = self._source(command)
        runs = source.runs
        async with source.lock:
            if source.runs == runs:
                await self._renew(source, provider, command)
        if source.key is None:
            raise _again(source.failure)
        return source.key

    async def _renew(self, source: _Source, provider: Provider, command: tuple[str, ...]) -> None:
        source.key = source.failure = None
        try:
            source.key = await _printed(command, self._environment, provider.api_key_timeout)
        except BridgeError as error:
            source.failure = error
        else:
            self._printed.add(source.key)
            self._on_key(source.key)
            source.until = _renewal(source.key, self._clock(), provider.api_key_ttl)
        source.runs += 1


def expiry(key: str) -> float | None:
    """When a key that is a JSON Web Token ends, in seconds of the epoch; None for any other."""
    parts = key.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = load_object(base64.urlsafe_b64decode(parts[1] + "=="))
    except ValueError:
        return None
    end = claims.get("exp")
    return None if isinstance(end, bool) or not isinstance(end, int | float) else min(end, _NEVER)


def _renewal(key: str, now: float, ttl: float) -> float:
    end = min(now + ttl, expiry(key) or now + ttl)
    return end - min(_MOST_MARGIN, _MARGIN * (end - now))


def _again(failure: BridgeError | None) -> BridgeError:
    """The same failure for one more who waited: an exception belongs to who raised it."""
    kind = LoginRequired if isinstance(failure, LoginRequired) else ConfigError
    return kind(str(failure))


async def _printed(command: tuple[str, ...], environment: Mapping[str, str], seconds: float) -> str:
    """What the program prints, if it can be a key."""
    name = f"api_key_command {command[0]}"
    folders = filter(os.path.isabs, environment.get("PATH", os.defpath).split(os.pathsep))
    program = shutil.which(command[0], path=os.pathsep.join(folders))
    if program is None:
        raise ConfigError(
            f"{name}: there is no such program; name one in PATH, or give its absolute path"
        )
    from tools.process import Launch, follow  # noqa: PLC0415 (few keys are printed by a program)

    launch = Launch((program, *command[1:]), environment, cwd=os.sep)
    try:
        ended = await follow(launch, seconds=seconds, output=_ignore)
    except OSError as error:
        raise ConfigError(f"{name} cannot be started: {error.strerror}") from None
    return _key_of(ended, name, seconds)


def _key_of(ended: Ended, name: str, seconds: float) -> str:
    see = "run it in a terminal to see"
    if ended.timed_out:
        raise LoginRequired(
            f"{name} did not end within {seconds:g} s: {see} what it waits for, "
            "or raise api_key_timeout"
        )
    if ended.code != 0:
        how = f"exit code {ended.code}" if ended.signal is None else ended.signal
        raise LoginRequired(f"{name} failed ({how}): {see} why")
    key = ended.stdout.strip()
    if not key:
        raise LoginRequired(f"{name} printed nothing: it must print the key; {see} why")
    if not is_key(key):
        raise ConfigError(f"{name} printed something else than a key: it must print the key alone")
    return key


def _ignore(_: str) -> None:
    """A key is not shown."""
