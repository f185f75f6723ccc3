"""The file of a recording, read and held to its form before anything of it is played."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bridge.config import Config
from bridge.core.likeness import Line
from bridge.core.recorded import FORMAT
from bridge.core.records import Learned
from bridge.core.wire import load_object
from bridge.errors import Fault
from tools.base import Access, Result, Shown

_NEEDED: dict[str, dict[str, type]] = {
    "start": {"format": int},
    "editor": {},
    "agent": {"message": dict},
    "ask": {"ask": int, "body": dict},
    "model": {"ask": int},
    "tool": {},
    "end": {},
}
"""What a line of each kind must hold."""


class Unusable(Exception):
    """The file is no recording that can be played; the text says why."""


def read(file: str) -> list[Line]:
    """The lines of a recording; Unusable."""
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise Unusable(error.strerror or "cannot be read") from None
    *rows, torn = data.split(b"\n")  # what stands after the last line end was never finished
    lines = [_line(number, row) for number, row in enumerate(rows, 1)]
    if not lines:
        raise Unusable("line 1: torn" if torn else "it is empty")
    if lines[0]["who"] != "start":
        raise Unusable("line 1: no beginning of a recording")
    if lines[0]["format"] != FORMAT:
        raise Unusable(f"it is of format {lines[0]['format']}, this version plays {FORMAT}")
    return lines


def _line(number: int, row: bytes) -> Line:
    try:
        line: Line = load_object(row)
    except ValueError as error:
        raise Unusable(f"line {number}: {error}") from None
    who = str(line.get("who"))
    if who not in _NEEDED:
        raise Unusable(f'line {number}: it is nobody\'s ("who" is {who[:40]})')
    for name, kind in _NEEDED[who].items():
        if not isinstance(line.get(name), kind):
            raise Unusable(f"line {number}: {who} without {name}")
    for name, kind in _PARTS.items():
        if name in line and (who == "tool" or name != "result"):
            try:
                line[name] = _reader(_result_of(line) if name == "result" else kind)(line[name])
            except ValidationError as error:
                fault = error.errors(include_url=False, include_input=False)[0]["msg"]
                raise Unusable(f"line {number}: {name}: {fault}") from None
    return line


_PARTS: dict[str, Any] = {
    "access": Access,
    "shown": tuple[Shown, ...] | None,
    "result": Result,
    "fault": Fault,
    "config": Config,
    "event": dict[str, Any],
    "headers": dict[str, str],
    "status": int,
}
RESULTS: dict[str, Any] = {"knowledge": list[Learned], "links": list[dict[str, Any]]}


def _result_of(line: Line) -> Any:
    return RESULTS.get(str(line.get("name")), Result)


@cache
def _reader(kind: Any) -> Callable[[object], Any]:
    # As JSON: the configuration is strict, and takes lists for tuples from JSON alone.
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return lambda value: adapter.validate_json(json.dumps(value))
