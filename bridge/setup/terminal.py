"""The person at the terminal: told something, asked something.

It must not know what about.
"""

import getpass
import sys
from typing import Protocol

from bridge.demo.play import write


class Terminal(Protocol):
    """Who is told and asked."""

    @property
    def can_ask(self) -> bool:
        """Somebody is there to answer."""
        ...

    def say(self, text: str) -> None:
        """Show text as it is."""
        ...

    def ask(self, question: str) -> str:
        """One line, without blanks around it; EOFError when nobody answers any more."""
        ...

    def secret(self, question: str) -> str:
        """Like ask(), for what nobody else is to see."""
        ...


class Person:
    """The terminal that this process was started in."""

    @property
    def can_ask(self) -> bool:
        return sys.stdin.isatty()

    def say(self, text: str) -> None:
        write(text)

    def ask(self, question: str) -> str:
        write(f"{question} ")
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.strip()

    def secret(self, question: str) -> str:
        if self.can_ask:
            return getpass.getpass(f"{question} ").strip()
        return sys.stdin.readline().strip()
