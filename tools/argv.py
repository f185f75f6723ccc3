"""Commands of a shell line as plain data: words, and what is known of the whole line.

It must not know how they are found.
"""

from collections.abc import Sequence
from typing import TypeAlias

from tools.frozen import frozen


@frozen
class Word:
    """One argument as the program gets it."""

    text: str
    pattern: bool = False
    """An unquoted `*`, `?` or `[` is in it: bash may put file names in its place."""

    def may_be_option(self) -> bool:
        """A file name put in its place could start with a dash."""
        return self.pattern and self.text[0] in "-*?["


Words: TypeAlias = Sequence[Word]

Argv: TypeAlias = tuple[str | None, ...]
"""The words of a command; None: it cannot be told which words stand there, or how many."""


@frozen
class Line:
    """What a shell line would run."""

    plain: tuple[tuple[Word, ...], ...] = ()
    """All of it, if it is nothing but simple commands, one after the other; else nothing."""
    reads: tuple[bool, ...] = ()
    """Of each of these: it is proven to only read, and nothing that is private."""
    seen: tuple[Argv, ...] = ()
    """Every command that stands anywhere in it, those behind wrappers by themselves too."""
    guessed: tuple[Argv, ...] = ()
    """Words among which, or within which, a command may stand that runs as well."""
    clear: bool = True
    """It runs nothing that is not seen; what programs run by themselves aside."""
    git: bool = False
    """A command of it works on the repository, and no other one that may write names it."""
