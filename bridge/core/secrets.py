"""Secrets in what is written down: found and replaced.

Rule 1: a loaded key is replaced wherever it stands in a line of JSON, also in JSON within a text.
Rule 2: only what is long enough to be a secret counts: "none" is a word, and keys of local servers
are often such words.
"""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import cast

from bridge.core.wire import Json, load

HIDDEN = "[secret removed]"
"""What stands in a secret's place."""

_SHORTEST = 8
"""Characters from which on a value may be a secret."""


def loaded(values: Iterable[str]) -> tuple[str, ...]:
    """What must not be written down of these keys and header values, longest first."""
    parts = {part for value in values for part in (value, value.rpartition(" ")[2])}
    return tuple(sorted((part for part in parts if len(part) >= _SHORTEST), key=len, reverse=True))


def conceal(line: bytes, secrets: Iterable[str]) -> bytes:
    """The line of ASCII JSON, line end included, with every secret in its texts replaced."""
    found = [secret for secret in secrets if any(form in line for form in _in_a_line(secret))]
    if not found:
        return line
    value = _replaced(load(line), [form for secret in found for form in _in_a_text(secret)])
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


@lru_cache
def _in_a_line(secret: str) -> frozenset[bytes]:
    return frozenset(_escaped(form).encode("ascii") for form in _in_a_text(secret))


def _in_a_text(secret: str) -> tuple[str, ...]:
    """As it is, and as it stands in JSON."""
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    return tuple(dict.fromkeys((secret, _escaped(secret), plain)))


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


def _replaced(value: Json, secrets: Iterable[str]) -> Json:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return value
    if isinstance(value, dict):
        return {
            cast("str", _replaced(key, secrets)): _replaced(item, secrets)
            for key, item in value.items()
        }
    return [_replaced(item, secrets) for item in value] if isinstance(value, list) else value
