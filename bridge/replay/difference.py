"""Where a replay went another way than its recording, as it is told."""

import json

from bridge.core.likeness import MISSING
from tools.frozen import frozen

_MOST_SHOWN = 400


@frozen
class Difference:
    """Where the agent said something else."""

    line: int
    who: str
    place: str
    wanted: object
    got: object

    def __str__(self) -> str:
        place = f", at {self.place}" if self.place else ""
        wanted, got = _around(_text(self.wanted), _text(self.got))
        return f"line {self.line} ({self.who}){place}\n  recorded: {wanted}\n  now:      {got}"


class Differs(Exception):
    """The replay is over."""

    def __init__(self, found: Difference) -> None:
        super().__init__()
        self.found = found


def _text(value: object) -> str:
    return value if value is MISSING else json.dumps(value, ensure_ascii=False)


def _around(wanted: str, got: str) -> tuple[str, str]:
    """Both texts, as much as is shown around the first place where they differ."""
    pairs = enumerate(zip(wanted, got, strict=False))
    start = next((place for place, pair in pairs if pair[0] != pair[1]), min(len(wanted), len(got)))
    start = max(0, start - _MOST_SHOWN // 4)
    return _window(wanted, start), _window(got, start)


def _window(text: str, start: int) -> str:
    shown = text[start : start + _MOST_SHOWN]
    before, after = "…" if start else "", "…" if len(text) > start + _MOST_SHOWN else ""
    return f"{before}{shown}{after}"
