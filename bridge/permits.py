"""What becomes of a session's calls, by all that holds in it: mode, preset, rules, answers.

It must not know how a person is asked.
"""

import os
from collections.abc import Callable

from bridge.core.permission import Decision
from bridge.core.permission import decide as decided
from bridge.core.rules import fits
from bridge.session import Session
from tools.base import Access


def decide(session: Session, name: str, access: Access) -> Decision:
    """What becomes of a call of this tool that would touch this."""
    rules = (*session.answers.rules(), *session.rules)
    return decided(session.mode, session.permission, name, access, rules, _scope(session))


def barred(session: Session) -> Callable[[str], bool]:
    """Tells of the file at a resolved path whether a rule keeps it from being read."""
    known = (*session.answers.rules(), *session.rules)
    rules = [rule for rule in known if (rule.sort, rule.tool) == ("deny", "read")]
    scope = _scope(session)
    return lambda path: any(
        fits(rule, "read", Access("read", path), scope) != "no" for rule in rules
    )


def _scope(session: Session) -> tuple[str, ...]:
    home = os.path.expanduser("~")  # noqa: PTH111 (where there is none, it stays as it is)
    return (*session.roots, home)
