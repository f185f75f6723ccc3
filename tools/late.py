"""Patterns that are compiled when they are first used: of most a start uses none.

Rule 1: it is for what loads on the way to the first answers. A pattern takes a tenth of a
millisecond to compile, and there are a hundred.
"""

import re
from typing import Any, cast


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, soon enough."""
    return cast("re.Pattern[str]", _Pattern(source, flags))


class _Pattern:
    def __init__(self, source: str, flags: int) -> None:
        self._given = source, flags

    def __getattr__(self, name: str) -> Any:
        made = getattr(re.compile(*self._given), name)
        setattr(self, name, made)  # from now on it is found without coming here
        return made
