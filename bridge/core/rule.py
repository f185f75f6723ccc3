"""A permission rule, and an answer that makes one, as plain data.

It must not know how rules are read or what they fit: sessions hold rules from their start on, and
that is needed only when a tool is called.
"""

from typing import Literal

from tools.frozen import frozen

Sort = Literal["allow", "ask", "deny"]

FOR_SESSION, FOR_PROJECT = "your answer for this session", "your answer for this project"
"""Where a rule comes from that the person made by an answer."""


@frozen
class Rule:
    """One rule; made by exactly(), or from a text in core/rules.py."""

    sort: Sort
    text: str
    """As it was written."""
    source: str = ""
    """Where: a file, or an answer of the person's."""
    tool: str = ""
    words: tuple[str, ...] = ()
    """The beginning of a command."""
    exact: bool = False
    """About this very command line, file or tool, and no other."""

    @property
    def about(self) -> str:
        """What follows the tool."""
        return self.text.partition(" ")[2]


def exactly(sort: Sort, tool: str, subject: str, source: str) -> Rule:
    """The rule about one command line, file or tool, and no other."""
    return Rule(sort, f"{tool} {subject}", source, tool, exact=True)


@frozen
class Offer:
    """One answer that the person may give."""

    id: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]
    label: str
    """With its scope, if it lasts."""
    rule: Rule | None = None
    """What it means from now on."""

    @property
    def allows(self) -> bool:
        """Whether the call runs."""
        return self.kind.startswith("allow")
