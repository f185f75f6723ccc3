"""Patterns that are compiled when they are first used: of most a start uses none.

Rule 1: it is for what loads on the way to the first answers. A pattern takes a tenth of a
millisecond to compile, and there are a hundred.
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from re import compile as compile_now
from typing import Any, cast


def pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, soon enough; it is called as that is."""
    return cast("re.Pattern[str]", _Pattern(pattern, flags))


@contextmanager
def patterns() -> Generator[None]:
    """Have modules that load meanwhile get such patterns from `re.compile`."""
    try:
        setattr(re, "compile", pattern)  # noqa: B010 (a module has no type of its own)
        yield
    finally:
        setattr(re, "compile", compile_now)  # noqa: B010 (as above)


class _Pattern:
    __class__ = cast("Any", re.Pattern)  # pyright: ignore[reportIncompatibleMethodOverride] (as isinstance asks for it)
    """It passes for what it will be."""

    def __init__(self, source: str, flags: int) -> None:
        self._given = source, flags

    def __getattr__(self, name: str) -> Any:
        made = getattr(compile_now(*self._given), name)
        setattr(self, name, made)  # from now on it is found without coming here
        return made
