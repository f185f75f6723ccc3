"""What becomes of a session's calls, by all that holds in it: mode, preset, rules, answers.

It must not know how a person is asked.
"""

import os
from collections.abc import Callable

from bridge.core.permission import Decision
from bridge.core.permission import decide as decided
from bridge.core.rule import Rule
from bridge.core.rules import fits
from bridge.session import Session
from tools.base import Access


def decide(session: Session, name: str, access: Access) -> Decision:
    """What becomes of a call of this tool that would touch this."""
    rules, scope = _rules(session), _scope(session)
    return decided(session.mode, session.permission, name, access, rules, scope)


def barred(session: Session) -> Callable[[str], bool]:
    """Tells of the file at a resolved path whether a rule keeps it from being read."""
    rules = [rule for rule in _rules(session) if (rule.sort, rule.tool) == ("deny", "read")]
    scope = _scope(session)
    return lambda path: any(
        fits(rule, "read", Access("read", path), scope) != "no" for rule in rules
    )


def _rules(session: Session) -> tuple[Rule, ...]:
    return (*session.answers.rules(), *session.rules)


def _scope(session: Session) -> tuple[str, ...]:
    home = os.path.expanduser("~")  # noqa: PTH111 (where there is none, it stays as it is)
    return (*session.roots, home)
