"""Which parameter of a request a server refuses, so that the request can be made without it.

It must not know what is done about it, nor which parameters a request had.

Rule 1: only a refusal of the parameter itself counts. A value that is refused is the user's to
change, and leaving it out in silence would hide that.
Rule 2: what no request can do without is never named.
"""

import re
from collections.abc import Iterator
from typing import cast

from bridge.core.wire import Json, JsonObject, list_of, objects_of, text_of

_NEEDED = frozenset({"model", "input", "instructions", "tools", "stream"})

_OTHER_NAMES = {
    "reasoning_effort": "reasoning",
    "verbosity": "text",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
}
"""What gateways to other APIs call the parameter they made of ours."""

_CODES = frozenset({"unsupported_parameter", "unknown_parameter", "extra_forbidden"})
# Patterns are compiled when a server refuses something, which most never do.
_VALUE = r"(?i)(?:unsupported|invalid) value|(?:un|not )supported value"
_WORDS = (
    r"(?i)unsupported|unknown|unrecognized|unexpected|not (?:supported|permitted|allowed|known)"
    r"|does not support"
)

_NAME = r"""['"`\[]*([A-Za-z][\w.]*)"""
_KIND = r"(?:parameter|argument|field|name)s?"
_FORMS = (
    rf"(?:un(?:supported|known|recognized|expected)) (?:\w+ )?{_KIND}(?: supplied)?:? {_NAME}",
    rf"{_KIND} (?:is |are )?not supported(?: \w+)*: {_NAME}",
    rf"does not support (?:the )?{_KIND}:? {_NAME}",
    rf"{_KIND} {_NAME}['\"`]? (?:is|are) not (?:supported|permitted|allowed)",
    r"['\"`](\w[\w.]*)['\"`] (?:is|are) not (?:supported|permitted|allowed)",
    rf"{_NAME}['\"`]?:?\s+extra inputs are not permitted",
    r"""['"]loc['"]: [\[(]['"]body['"], ['"](\w+)['"].*extra inputs are not permitted""",
    r'"param": ?"(\w[\w.]*)',  # a gateway that repeats the whole body it was answered
)
"""How servers say it, the name last in the words before it or first in those behind."""


def refused_parameter(body: Json) -> str | None:
    """The parameter of the request that this body of an error refuses; None if it is not that."""
    for place in _places(body):
        name = _of_list(place) or _of_field(place) or _of_words(_message(place))
        if name is not None:
            break
    else:
        name = _of_words(body) if isinstance(body, str) else None
    return None if name in _NEEDED else name


def _places(body: Json) -> Iterator[JsonObject]:
    """The error object, however deep it lies, the innermost first."""
    if isinstance(body, list):
        body = body[0] if body else None
    if isinstance(body, dict):
        yield from _places(body.get("error"))
        yield body


def _of_list(place: JsonObject) -> str | None:
    """As FastAPI lists what it found: the parameter is the first name behind "body"."""
    for fault in objects_of(place, "detail"):
        names = [one for one in list_of(fault, "loc") if one != "body"]
        if names and fault.get("type") == "extra_forbidden":
            return _ours(str(names[0]))
    return None


def _of_field(place: JsonObject) -> str | None:
    """As OpenAI says it: the parameter has a field of its own."""
    name, message = text_of(place, "param"), _message(place)
    if not name or re.search(_VALUE, message):
        return None
    is_refused = place.get("code") in _CODES or re.search(_WORDS, message)
    return _ours(name) if is_refused else None


def _of_words(message: str) -> str | None:
    if re.search(_VALUE, message) or not re.search(_WORDS, message):
        return None
    found = (re.search(form, message, re.IGNORECASE) for form in _FORMS)
    return next((_ours(cast("str", one[1])) for one in found if one is not None), None)


def _message(place: JsonObject) -> str:
    given = (place.get(name) for name in ("message", "detail", "error", "msg"))
    return next((text for text in given if isinstance(text, str)), "")


def _ours(name: str) -> str:
    """The top-level parameter as a request spells it."""
    top = re.split(r"[.\[]", name, maxsplit=1)[0]
    top = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", top).lower()
    return _OTHER_NAMES.get(top, top)
