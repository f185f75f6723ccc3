"""How long a server asks us to wait: in headers, or in the words of its error.

It must not know what failed, nor what is done with the answer.

Rule 1: a header says more than the words; among headers the finest unit counts.
Rule 2: whatever is in them, nothing is raised: what cannot be read is no hint.
"""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_SPAN = r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|milliseconds?|s|seconds?|m|minutes?|h|hours?)(?![a-z])"
_WORDS = re.compile(
    rf"(?:try again|retry|wait)(?: in| after| for)? ((?:{_SPAN} ?)+)", re.IGNORECASE
)
_SPANS = re.compile(_SPAN, re.IGNORECASE)
_SECONDS = {"ms": 0.001, "mil": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0}
"""Seconds by the first letters of a unit; hours are the rest."""


def of_headers(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the headers ask for; `now`: seconds of the epoch."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None or given is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def of_words(text: str) -> float | None:
    """Seconds that the words ask for, such as "try again in 6m0s"."""
    found = _WORDS.search(text)
    if found is None:
        return None
    return sum(float(number) * _scale(unit.lower()) for number, unit in _SPANS.findall(found[1]))


def _scale(unit: str) -> float:
    return _SECONDS.get(unit, _SECONDS.get(unit[:3], 3600.0))


def _number(text: str | None) -> float | None:
    return None if text is None or not _NUMBER.fullmatch(text.strip()) else float(text)
