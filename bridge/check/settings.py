"""The settings in force, and where each comes from.

Rule 1: of what may hold a secret (headers, parameters) only the names are shown.
Rule 2: what is set has a line of its own; the defaults share one.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from pydantic import BaseModel

from bridge.check.finding import Finding, ok
from bridge.complaints import Where, line_numbers, line_of
from bridge.config import Config
from bridge.core.wire import dump
from bridge.responses import quirks

_NAMES_ONLY = ("headers", "query", "extra_body")
_TABLES = ("models", "providers", "mcp", "sandbox")
_MOST = 80
_DEFAULT = "default"
_VARIABLES = {"base_url": "OPENAI_BASE_URL", "model": "OPENAI_MODEL"}
"""Where a setting comes from when there is no file."""
_BY_KIND = ("strict", "parallel_tool_calls", "replay_reasoning")
"""What the kind of server decides where the user does not."""


class Origins:
    """Where settings come from: the lines of a file, or else the environment."""

    def __init__(self, file: Path | None, text: str, environment: Mapping[str, str]) -> None:
        self._file = file
        self._lines = line_numbers(text)
        self._environment = environment

    def of(self, where: Where) -> str:
        """The origin of a setting that does not have its default."""
        if self._file is None:
            variable = _VARIABLES.get(where[-1], "")
            return variable if self._environment.get(variable) else _DEFAULT
        line = line_of(where, self._lines)
        return _DEFAULT if line is None else f"{self._file.name}:{line}"


def general(config: Config, origins: Origins) -> Finding:
    """The settings that belong to no model."""
    lines = (*_lines((), config, origins), *_lines(("sandbox",), config.sandbox, origins))
    return ok(f"default model {config.default_model}", *lines)


def of_model(config: Config, key: str, origins: Origins) -> Finding:
    """The settings of a model and its server."""
    model = config.models[key]
    provider = config.providers[model.provider]
    decided = quirks.in_force(provider, model)
    by_kind = {name: getattr(decided, name) for name in _BY_KIND if getattr(model, name) is None}
    return ok(
        f"{key}: {model.model} of {model.provider}",
        *_lines(("models", key), model, origins),
        *_lines(("providers", model.provider), provider, origins),
        f"by the kind of server: {_folded(by_kind)}",
    )


def _lines(where: Where, table: BaseModel, origins: Origins) -> Iterator[str]:
    """What was set, a line each; then the defaults, in one."""
    defaults: dict[str, object] = {}
    prefix = "sandbox." if where == ("sandbox",) else ""
    for name, field in type(table).model_fields.items():
        value, key = getattr(table, name), field.alias or name
        if value is None or value in ((), {}) or name in _TABLES:
            continue
        origin = origins.of((*where, key)) if name in table.model_fields_set else _DEFAULT
        if origin == _DEFAULT:
            defaults[f"{prefix}{key}"] = value
        else:
            yield f"{prefix}{key} = {_text(name, value)}  ({origin})"
    if defaults:
        yield f"by default: {_folded(defaults)}"


def _folded(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {_text(name, value)}" for name, value in values.items())


def _text(name: str, value: object) -> str:
    if name == "system_prompt":
        return f"{len(str(value))} characters"
    if name in _NAMES_ONLY:
        return f"{', '.join(cast('Mapping[str, object]', value))} (values not shown)"
    plain = value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value
    text = dump(plain).decode()
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"
