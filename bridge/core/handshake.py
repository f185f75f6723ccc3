"""What the client says of itself in `initialize`, and what that means for us; hello.py answers it.

Rule 1: garbage anywhere in the client's capabilities is "not supported", never an error.
"""

from collections.abc import Mapping
from typing import cast

from tools.frozen import frozen


@frozen
class Capabilities:
    """What may be asked of the client, and shown to it."""

    form: bool = False
    """It shows forms: elicitation in form mode."""
    fs_read: bool = False
    fs_write: bool = False
    terminal: bool = False
    """It runs commands for us."""
    terminal_output: bool = False
    """It shows a terminal for a command that we run; an extension, announced in _meta."""
    boolean_options: bool = False
    notices: bool = False
    compaction: bool = False


_TRUE: dict[str, tuple[str, ...]] = {
    "fs_read": ("fs", "readTextFile"),
    "fs_write": ("fs", "writeTextFile"),
    "terminal": ("terminal",),
    "terminal_output": ("_meta", "terminal_output"),
}
"""Capabilities that are `true`, and where."""

_OBJECT: dict[str, tuple[str, ...]] = {
    "form": ("elicitation", "form"),
    "boolean_options": ("session", "configOptions", "boolean"),
    "notices": ("session", "notices"),
    "compaction": ("session", "compaction"),
}
"""Capabilities that are an object, be it empty."""

_SHARED_WITH_V2 = ("elicitation", "_meta")
"""Means the same in the `capabilities` of version 2, which knows no fs and no terminal."""


def client_capabilities(params: object) -> Capabilities:
    """What the params of an `initialize` say that the client can do; never raises."""
    said = _at(params, ("clientCapabilities",))
    if said is None:
        said = {key: _at(params, ("capabilities", key)) for key in _SHARED_WITH_V2}
    true = {name: _at(said, path) is True for name, path in _TRUE.items()}
    objects = {name: isinstance(_at(said, path), dict) for name, path in _OBJECT.items()}
    return Capabilities(**true, **objects)


def _at(value: object, path: tuple[str, ...]) -> object:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = cast("Mapping[str, object]", value).get(key)
    return value
