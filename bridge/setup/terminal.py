"""The person at the terminal: told something, asked something.

It must not know what about.

Rule: Ctrl-C ends the wait for an answer at once. An event loop would only note it, and wait on.
"""

import getpass
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
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
        with _interruptible():
            write(f"{question} ")
            line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.strip()

    def secret(self, question: str) -> str:
        with _interruptible():
            if self.can_ask:
                return getpass.getpass(f"{question} ").strip()
            return sys.stdin.readline().strip()


@contextmanager
def _interruptible() -> Generator[None]:
    """SIGINT is a KeyboardInterrupt here, whoever else has taken it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
