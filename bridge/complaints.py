"""What is wrong with a configuration file, as one sentence with file, line, key and remedy.

It must not know the settings: which keys there are, it is told.

Rule 1: no value is ever repeated: people paste keys into the wrong places.
Rule 2: of several faults the first in the file is named, the rest are counted.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

from pydantic_core import ErrorDetails

from bridge.fields import KEY_SOURCES

Where: TypeAlias = tuple[str, ...]
"""The names of tables that lead to a key, and the key."""

_NAMED = ("providers", "models", "mcp")
"""The tables of which there are as many as the user likes, each with a name."""

_LONGEST_NAME = 40
"""A longer name is no name of ours and may be a key in the wrong place."""

# Patterns are compiled on first use: a file without faults needs none of them.
_BARE = r"[A-Za-z0-9_-]+"
_FOR_KEYS = r"(?i)((api|auth|access|secret|bearer)[_-]?)?(key|token|secret|password)"
_LINE = r"\s*\(at (?:line (\d+), column \d+|end of document)\)$"
_PART = rf"""(?:{_BARE}|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_NAME = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_STATEMENT = rf"[ \t]*(?:\[\[?[ \t]*(?P<table>{_NAME})|(?P<key>{_NAME})[ \t]*=)"
_LEXEME = (
    r'(?s)"""(?:\\.|[^\\])*?"{3,5}|' r"""'{3}.*?'{3,5}|"""
    r'"(?:\\.|[^"\\\n])*"|' r"'[^'\n]*'|"
    r"#[^\n]*|[^\"'#\[\]{}\n]+|."
)  # fmt: skip

_WRONG = {
    "missing": "is missing",
    "string_type": "must be a text in quotes",
    "string_too_short": "must not be empty",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
    "literal_error": "must be {expected}",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:.0f}",
    "value_error": "{error}",
}
"""Our words for the checks of pydantic that settings use."""


class Complaint(NamedTuple):
    """One fault: the key it is about, and the rest of a sentence that begins with the key."""

    where: Where
    what: str
    type: str = ""
    """Pydantic's name for the fault, where it was found by pydantic."""


def wrong(fault: ErrorDetails) -> str:
    """What a check found, as the rest of a sentence that begins with the key."""
    text = _WRONG.get(fault["type"], "has a value of the wrong kind")
    return text.format(**fault.get("ctx", {}))


def unfit(fault: ErrorDetails, keys: Mapping[str, Iterable[str]]) -> Complaint:
    """The complaint about one finding of pydantic.

    keys: the keys of each kind of table, by its first name; the top level has the name "".
    """
    where = tuple(str(part) for part in fault["loc"])
    if fault["type"] != "extra_forbidden":
        return Complaint(where, wrong(fault), fault["type"])
    *tables, name = where
    kind = ".".join(tables[:1] + tables[2:])  # without the table's own name
    return Complaint(where, f"is not known; {_remedy(name, kind, keys)}", fault["type"])


def nearest(name: str, names: Iterable[str]) -> str:
    """The names that may have been meant, or all there are."""
    from difflib import get_close_matches  # noqa: PLC0415 (it loads slowly, and faults are rare)

    known = list(names)
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"nearest: {close[0]}" if close else f"known are: {', '.join(known) or 'none'}"


def _remedy(name: str, kind: str, keys: Mapping[str, Iterable[str]]) -> str:
    if re.fullmatch(_FOR_KEYS, name):
        return f"a key does not belong in this file, say where it is: {KEY_SOURCES}"
    for other, names in keys.items():
        if name in names:
            return f"it belongs {_where(other)}"
    return nearest(name, keys[kind])


def _where(kind: str) -> str:
    if not kind:
        return "at the top of the file, before the first table"
    first, *rest = kind.split(".")
    named = (first, "NAME", *rest) if first in _NAMED else (first,)
    return f"in [{'.'.join(named)}]"


def sentence(file: Path, text: str, complaints: Iterable[Complaint]) -> str:
    """The first complaint with its place in the file.

    A key that is missing beside one that is not known was misspelt: the latter is told.
    """
    lines = line_numbers(text)
    found = list(complaints)
    misspelt = {one.where[:-1] for one in found if one.type == "extra_forbidden"}

    def rank(one: Complaint) -> tuple[bool, bool, int]:
        line = line_of(one.where, lines)
        explained = one.type == "missing" and one.where[:-1] in misspelt
        return explained, line is None, line or 0

    first = min(found, key=rank)
    line = line_of(first.where, lines)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{_place(file, line)}: {_dotted(first.where)} {first.what}{more}"


def syntax(file: Path, text: str, reason: str) -> str:
    """The sentence for a file that is not TOML."""
    found = re.search(_LINE, reason)
    if found is None:
        return f"{file}: not TOML: it holds a number too long or tables too deep"
    line = int(found[1]) if found[1] else text.count("\n") + 1
    return f"{_place(file, line)}: not TOML: {reason[: found.start()].rstrip('.')}"


def line_numbers(text: str) -> dict[Where, int]:
    """The line of every table and key of a TOML text; what stands inside of braces has none."""
    lines: dict[Where, int] = {}
    table: Where = ()
    place, line = 0, 1
    beginning = re.compile(_STATEMENT)
    while place < len(text):
        statement = beginning.match(text, place)
        if statement is not None:
            if statement["table"]:
                table = path = _names(statement["table"])
            else:
                path = (*table, *_names(statement["key"]))
            lines.setdefault(path, line)
        end = _end(text, place)
        line += text.count("\n", place, end)
        place = end
    return lines


def line_of(where: Where, lines: Mapping[Where, int]) -> int | None:
    """The line of this key, or of the innermost table around it."""
    inner = (where[:length] for length in range(len(where), 0, -1))
    return next((lines[one] for one in inner if one in lines), None)


def _end(text: str, place: int) -> int:
    """Where the statement that begins here has ended: behind its last line."""
    depth = 0
    for token in re.compile(_LEXEME).finditer(text, place):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if depth <= 0:
                return token.end()
            case _:
                pass
    return len(text)


def _names(name: str) -> Where:
    """The parts of a dotted name, which may be quoted."""
    names: list[str] = []
    inner: Any = tomllib.loads(f"{name} = 0")
    while isinstance(inner, dict):
        ((part, inner),) = cast("dict[str, Any]", inner).items()
        names.append(part)
    return tuple(names)


def _place(file: Path, line: int | None) -> str:
    return str(file) if line is None else f"{file}:{line}"


def _dotted(where: Where) -> str:
    return ".".join(_shown(name) for name in where)


def _shown(name: str) -> str:
    if len(name) > _LONGEST_NAME:
        return f"(a name of {len(name)} characters)"
    return name if re.fullmatch(_BARE, name) else json.dumps(name)
