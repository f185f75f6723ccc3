"""What was found: one line each for a person, one object each for a program.

Rule 1: a finding that is not ok says what is wrong and what to do.
Rule 2: nothing secret enters a finding; where a key comes from does.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from bridge.core.wire import JsonObject
from tools.frozen import frozen

Level: TypeAlias = Literal["ok", "warning", "fault"]


@frozen
class Finding:
    """One thing that was looked at."""

    level: Level
    text: str
    remedy: str = ""
    details: tuple[str, ...] = ()
    """Lines of their own below it."""
    name: str = ""
    """What was looked at; the table of checks fills it in."""


def ok(text: str, *details: str) -> Finding:
    """All is well."""
    return Finding("ok", text, details=details)


def warning(text: str, remedy: str = "") -> Finding:
    """It works, but not as well as it could."""
    return Finding("warning", text, remedy)


def fault(text: str, remedy: str = "") -> Finding:
    """It does not work."""
    return Finding("fault", text, remedy)


def line(found: Finding) -> str:
    """The finding for a person, with a newline at its end."""
    text = f"{found.text}; {found.remedy}" if found.remedy else found.text
    lines = [f"{found.level:<8} {found.name:<11} {text}"]
    lines += [f"{'':<20} {detail}" for detail in found.details]
    return "".join(f"{_printable(one)}\n" for one in lines)


def entry(found: Finding) -> JsonObject:
    """The finding for a program."""
    given: JsonObject = {"check": found.name, "level": found.level, "text": found.text}
    return {
        **given,
        **({"remedy": found.remedy} if found.remedy else {}),
        **({"details": list(found.details)} if found.details else {}),
    }


def exit_code(findings: Iterable[Finding], *, configured: bool) -> int:
    """0: no fault, 1: some fault, 2: the configuration cannot be read."""
    if not configured:
        return 2
    return int(any(one.level == "fault" for one in findings))


def _printable(text: str) -> str:
    """What servers say may hold anything; a terminal is to show it and not to obey it."""
    return "".join(c if c.isprintable() else " " for c in text)
