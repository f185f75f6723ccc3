"""Notices when the model makes the same call again and again.

Rule 1: nothing is ever refused for it; the model is reminded, and may have its reasons.
"""

from collections.abc import Iterable

from bridge.core.effects import FunctionCall

_REMINDED_AT = (3, 5, 8)
_REMINDER = (
    "You have made the same call of `{name}` with the same arguments {times} times in a row. "
    "Unless something has changed in between, its result does not change either: try something "
    "else, or tell the user what keeps you from going on."
)


class Repeats:
    """How often the last call was made in a row; owned by one turn."""

    def __init__(self) -> None:
        self._last: tuple[str, str] | None = None
        self._times = 0

    def feed(self, calls: Iterable[FunctionCall]) -> str | None:
        """What the model is to be reminded of after these calls; None: nothing."""
        reminder = None
        for call in calls:
            this = call.name, call.arguments
            self._times = self._times + 1 if this == self._last else 1
            self._last = this
            if self._times in _REMINDED_AT:
                reminder = _REMINDER.format(name=call.name, times=self._times)
        return reminder
