"""Settings that can only narrow the user's: a file of the machine's, and one of the project's.

Rule 1: both are read by the same code. What would widen anything is left out, and told.
Rule 2: a mistake in what narrows is an error: a rule that was meant to deny is never passed over.
Rule 3: such a file is read once, when a session is opened.
"""

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from bridge.complaints import line_numbers, sentence, syntax, unfit
from bridge.config import KEYS, Config, Permissions
from bridge.core.rule import Rule, Sort
from bridge.errors import ConfigError
from tools.frozen import frozen

PROJECT_FILE = ".responses-acp.toml"

_LONGEST = 256 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_STRICTER = {
    "default_mode": ("default", "plan"),
    "permission": ("danger-full-access", "workspace-write", "ask"),
}
"""The values of a setting, the wide ones first."""


class _Narrower(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    default_model: str | None = None
    default_mode: Literal["default", "plan"] | None = None
    permission: Literal["ask", "workspace-write", "danger-full-access"] | None = None
    permissions: Permissions = Permissions()


_KEYS = {"": tuple(_Narrower.model_fields), "permissions": KEYS["permissions"]}


@frozen
class Narrowed:
    """What holds in a folder."""

    config: Config
    rules: tuple[Rule, ...]
    remarks: tuple[str, ...] = ()
    """What was left out, each as a sentence."""


def narrowed(config: Config, machine_file: Path | None, cwd: str) -> Narrowed:
    """The settings in this folder, as machine and project narrow the user's; ConfigError."""
    rules = list(_rules(config.permissions, "config.toml", ("deny", "ask", "allow")))
    remarks: list[str] = []
    for file, shown in ((machine_file, None), (Path(cwd) / PROJECT_FILE, PROJECT_FILE)):
        text = None if file is None else _text(file)
        if file is None or text is None:
            continue
        found, left_out = _parsed(file, text)
        config, widening = _with_narrower(config, found)
        rules += _rules(found.permissions, shown or str(file), ("deny", "ask"))
        remarks += _remarks(file, text, {**left_out, **widening})
    return Narrowed(config, tuple(rules), tuple(remarks))


def _remarks(file: Path, text: str, reasons: Mapping[str, str]) -> Iterator[str]:
    """What is said of the settings that are left out, by their dotted names."""
    lines = line_numbers(text)
    for key, why in reasons.items():
        where = tuple(key.split("."))
        line = min((at for path, at in lines.items() if path[: len(where)] == where), default=1)
        yield f"{file}:{line}: {key} is left out: {why}"


def _with_narrower(config: Config, found: _Narrower) -> tuple[Config, dict[str, str]]:
    """The configuration with each setting that is not wider than it was; why others are not."""
    changed: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for key, values in _STRICTER.items():
        value = getattr(found, key)
        if value is not None and values.index(value) >= values.index(getattr(config, key)):
            changed[key] = value
        elif value is not None:
            left_out[key] = "it would widen what your config.toml allows"
    if found.default_model is not None and found.default_model in config.models:
        changed["default_model"] = found.default_model
    elif found.default_model is not None:
        left_out["default_model"] = "your config.toml has no such model"
    if found.permissions.allow:
        left_out["permissions.allow"] = "only your own config.toml may allow something"
    return config.model_copy(update=changed) if changed else config, left_out


def _rules(table: Permissions, source: str, sorts: tuple[Sort, ...]) -> Iterator[Rule]:
    texts: list[tuple[Sort, str]] = [
        (sort, text) for sort in sorts for text in getattr(table, sort)
    ]
    if texts:
        from bridge.core.rules import parsed  # noqa: PLC0415 (most users have none)

        yield from (parsed(sort, text, source) for sort, text in texts)


def _text(file: Path) -> str | None:
    """What the file holds; None if there is none. ConfigError where it cannot be read."""
    try:
        descriptor = os.open(file, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}; make it a plain file, or remove it") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LONGEST:
            raise ConfigError(f"{file}: not a plain file of settings; remove it")
        return os.read(descriptor, _LONGEST).decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}; make it readable, or remove it") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: not UTF-8; save the file as UTF-8") from None
    finally:
        os.close(descriptor)


def _parsed(file: Path, text: str) -> tuple[_Narrower, dict[str, str]]:
    """What narrows, and why other settings are left out."""
    try:
        tables: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(syntax(file, text, str(error))) from None
    own = [key for key in tables if key in KEYS[""] and key not in _KEYS[""]]
    left_out = dict.fromkeys(own, "only your own config.toml may set it")
    kept = {key: value for key, value in tables.items() if key not in left_out}
    try:
        return _Narrower.model_validate(kept), left_out
    except ValidationError as error:
        complaints = [unfit(fault, _KEYS) for fault in error.errors(include_input=False)]
        raise ConfigError(sentence(file, text, complaints)) from None
