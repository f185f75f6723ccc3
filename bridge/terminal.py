"""The person at the terminal: told something, asked something.

It must not know what about.

Rule 1: what the terminal's encoding lacks is replaced, and never a failure.
Rule 2: Ctrl-C ends the wait for an answer at once. An event loop would only note it, and wait on.
"""

import getpass
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol


def write(text: str) -> None:
    """Show text on standard output, in whatever encoding that has."""
    encoding = sys.stdout.encoding
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def say_no_more() -> None:
    """Let go what could not be written; Python would try it once more at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def is_colourful() -> bool:
    """Whether standard output is a terminal that shows colours to someone who wants them."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
    )


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


def agrees(terminal: Terminal, question: str, *, by_default: bool = False) -> bool:
    """Whether the answer is yes; by_default: whatever is not clearly no."""
    choices, clear = ("Y/n", ("n", "no")) if by_default else ("y/N", ("y", "yes"))
    return (terminal.ask(f"{question} [{choices}]").lower() in clear) != by_default


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
