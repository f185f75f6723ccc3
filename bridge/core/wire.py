"""JSON as both wires carry it: lenient in what is read, strict in what is written.

Rule 1: load() raises only ValueError, whatever the bytes are.
Rule 2: dump() never raises for a value that load() gave: numbers that JSON cannot say become null
and lone surrogates U+FFFD, since strict parsers refuse a line that carries either.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]


class Settled(dict[str, object]):
    """An object that changes no more, and remembers how it is written."""

    __slots__ = ("_written",)

    @property
    def written(self) -> bytes:
        """As dump() writes it."""
        try:
            return self._written
        except AttributeError:
            self._written = dump(self)
            return self._written


_MOST_LEVELS = 200
"""Deeper nesting than this is nobody's message; it would only exhaust the stack further on."""


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


# Made once: json.loads() and json.dumps() make one per call when they are given options.
_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def load(data: bytes | str) -> Json:
    """One JSON text as Python values; raises ValueError with a short reason."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        value = cast("Json", _DECODER.decode(text))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > _MOST_LEVELS and _depth(value) > _MOST_LEVELS:
        raise ValueError("nested too deeply")
    return value


def dump(value: object) -> bytes:
    """One line of UTF-8 JSON without a line end."""
    try:
        return encode(_ENCODER.encode(value))
    except ValueError:
        return encode(_ENCODER.encode(_finite(value)))


def dump_lists(value: Mapping[str, object]) -> bytes:
    """Like dump(), for an object with lists: what is settled in them is not written again."""
    return b"".join(_pieces(value))


def written(value: object) -> bytes:
    """Like dump(); what is settled is not written again."""
    return value.written if isinstance(value, Settled) else dump(value)


def quoted(text: str) -> str:
    """One JSON string; what streams is put together around it."""
    return _ENCODER.encode(text)


def encode(text: str) -> bytes:
    """UTF-8, with every lone surrogate replaced by U+FFFD."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def load_object(data: bytes | str) -> JsonObject:
    """Like load(), for a text that must be an object."""
    value = load(data)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 (callers catch one class)
    return value


def text_of(given: JsonObject, name: str) -> str:
    """The text under a name; empty where there is none."""
    value = given.get(name)
    return value if isinstance(value, str) else ""


def object_of(given: JsonObject, name: str) -> JsonObject:
    """The object under a name; empty where there is none."""
    value = given.get(name)
    return value if isinstance(value, dict) else {}


def list_of(given: JsonObject, name: str) -> list[Json]:
    """The list under a name; empty where there is none."""
    value = given.get(name)
    return value if isinstance(value, list) else []


def objects_of(given: JsonObject, name: str) -> list[JsonObject]:
    """The objects in the list under a name."""
    return [value for value in list_of(given, name) if isinstance(value, dict)]


def cut(value: object, longest: int) -> Any:
    """The value with every text in it that is longer than this cut in the middle."""
    if isinstance(value, str):
        return value if len(value) <= longest else ends(value, longest // 2, longest // 2)
    if isinstance(value, Mapping):
        return {key: cut(item, longest) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [cut(item, longest) for item in cast("list[Any]", value)]
    return value


def ends(text: str, head: int, tail: int) -> str:
    """So many characters of a long text's beginning and of its end, and what is missing between."""
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:]}"


def _pieces(value: Mapping[str, object]) -> Iterator[bytes]:
    """What is long comes alone, so that joining copies it once."""
    lead = b"{"
    for name, member in value.items():
        yield lead + dump(name) + b":"
        lead = b","
        if isinstance(member, list):
            yield from list_pieces(cast("list[object]", member))
        else:
            yield dump(member)
    yield b"}" if value else b"{}"


def list_pieces(items: Iterable[object]) -> Iterator[bytes]:
    """Like dump(), for a list; what is settled in it is not written again."""
    lead = b"["
    for item in items:
        yield lead
        yield written(item)
        lead = b","
    yield b"]" if lead == b"," else b"[]"


def _depth(value: Json) -> int:
    level, depth = [value], 0
    while level and depth <= _MOST_LEVELS:
        depth += 1
        level = [child for parent in level for child in _children(parent)]
    return depth


def _children(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast("list[object]", value)]
    return value
