"""Keys that the person typed once, kept in a file of our own; and private files in general.

It must not know the configuration, nor what a key is sent with.

Rule 1: a kept key belongs to one address: it is never sent to another one.
Rule 2: what others could read or change is no private file.
"""

import json
import os
import stat
from pathlib import Path
from typing import cast

from bridge.errors import ConfigError

_LONGEST = 64 * 1024
NAME = "keys.json"
"""Of the file, in the folder of the configuration."""


def read_private(file: str, name: str) -> str:
    """The text of a file that is ours alone; ConfigError. name: what the file is to the user."""
    remedy = f"make it a plain file that is yours alone: chmod 600 {file}"
    try:
        # O_NONBLOCK: a named pipe in its place must not make us wait.
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"{name} {file}: {error.strerror}; {remedy}") from None
    try:
        found = os.fstat(descriptor)
        private = stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077
        if not private or found.st_uid != os.geteuid():
            raise ConfigError(f"{name} {file} could be read or changed by others; {remedy}")
        return os.read(descriptor, _LONGEST).decode("utf-8", "replace").strip()
    finally:
        os.close(descriptor)


def key_for(file: Path | None, base_url: str) -> str | None:
    """The kept key for this address, if there is one; ConfigError."""
    return None if file is None else _keys(file).get(base_url)


def keep(file: Path, base_url: str, key: str) -> None:
    """Keep a key from now on; OSError or ConfigError."""
    _write(file, {**_keys(file), base_url: key})


def forget(file: Path | None, base_url: str) -> bool:
    """Keep no key for this address any more; whether there was one. OSError or ConfigError."""
    if file is None:
        return False
    keys = _keys(file)
    if keys.pop(base_url, None) is None:
        return False
    _write(file, keys)
    return True


def _keys(file: Path) -> dict[str, str]:
    try:
        os.lstat(file)
    except OSError:
        return {}
    try:
        found: object = json.loads(read_private(str(file), "the file of kept keys,"))
    except ValueError:
        raise ConfigError(
            f"{file} is damaged: delete it, and run responses-acp login again"
        ) from None
    pairs = cast("dict[object, object]", found).items() if isinstance(found, dict) else ()
    return {str(url): key for url, key in pairs if isinstance(key, str)}


def _write(file: Path, keys: dict[str, str]) -> None:
    """Replace the file, all at once."""
    replace_private(file, json.dumps(keys, indent=1) + "\n")


def replace_private(file: Path, text: str) -> None:
    """Put a file that is ours alone in this place, all at once; OSError."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)  # in a container every process may have the same number
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        fresh.replace(file)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
