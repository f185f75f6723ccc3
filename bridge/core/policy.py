"""Who may do what: mode, permission preset and what a call would touch, in; a verdict, out.

Rule 1: plan mode and the presets live here and nowhere else.
Rule 2: the first row of RULES that fits decides; a call that no row fits is asked for.
Rule 3: a lasting permission covers what its label says and nothing wider.
"""

from typing import Literal, TypeAlias

from tools.base import Access, Reach
from tools.frozen import frozen

Mode = Literal["default", "plan"]
Preset = Literal["ask", "workspace-write", "danger-full-access"]


@frozen
class Allow:
    """The call runs."""


@frozen
class Ask:
    """The person decides."""


@frozen
class Deny:
    """The call does not run; the text is for the model."""

    text: str


Verdict: TypeAlias = Allow | Ask | Deny


@frozen
class Rule:
    """One row: None in a column fits everything."""

    action: Literal["none", "read", "edit", "run"]
    verdict: Verdict
    mode: Mode | None = None
    preset: Preset | None = None
    inside: bool | None = None
    """In the roots, and neither secret (reading) nor protected (editing)."""
    harmless: bool | None = None
    held: bool | None = None


NOT_IN_PLAN_MODE = Deny(
    "is not available in plan mode: hand in a plan with exit_plan_mode and wait for its approval"
)

RULES: tuple[Rule, ...] = (
    Rule("none", Allow()),
    Rule("edit", NOT_IN_PLAN_MODE, mode="plan"),
    Rule("run", Allow(), mode="plan", inside=True, held=True),
    Rule("run", Allow(), mode="plan", inside=True, harmless=True),
    Rule("run", Ask(), mode="plan"),
    Rule("read", Allow(), preset="danger-full-access"),
    Rule("edit", Allow(), preset="danger-full-access"),
    Rule("run", Allow(), preset="danger-full-access"),
    Rule("read", Allow(), inside=True),
    Rule("edit", Allow(), preset="workspace-write", inside=True),
    Rule("run", Allow(), preset="workspace-write", inside=True, held=True),
)


def judge(mode: Mode, preset: Preset, access: Access) -> Verdict:
    """What becomes of a call that would touch this."""
    for rule in RULES:
        if (
            rule.action == access.action
            and rule.mode in (None, mode)
            and rule.preset in (None, preset)
            and rule.inside in (None, _inside(access))
            and rule.harmless in (None, access.harmless)
            and rule.held in (None, access.held)
        ):
            return rule.verdict
    return Ask()


def reach(mode: Mode, preset: Preset) -> Reach:
    """What a command may change, allowed or not, unless the person allows it more."""
    if mode == "plan":
        return "read-only"
    return "danger-full-access" if preset == "danger-full-access" else "workspace-write"


def refusal(mode: Mode, *, mutates: bool) -> Deny | None:
    """What a tool that changes things is told in plan mode, before it looks at anything."""
    return NOT_IN_PLAN_MODE if mutates and mode == "plan" else None


@frozen
class Grant:
    """A permission that lasts as long as its session."""

    action: Literal["read", "edit", "run"]
    subject: str
    """The exact command or path; empty: every edit in the workspace."""

    def covers(self, access: Access) -> bool:
        """Whether the person has allowed this already."""
        if self.action != access.action or access.protected or access.wider:
            return False
        return self.subject == access.subject if self.subject else not access.outside

    @property
    def label(self) -> str:
        """What the person is offered, scope included."""
        return _LABELS["all edits" if not self.subject else self.action]


_LABELS = {
    "all edits": "Allow all edits in the workspace for this session",
    "edit": "Allow editing this file for this session",
    "read": "Allow reading this file for this session",
    "run": "Allow this exact command for this session",
}


def lasting(mode: Mode, access: Access) -> Grant | None:
    """The widest permission that may be offered for the session, or None."""
    if access.action == "none" or access.protected or access.wider or mode == "plan":
        return None
    if access.action == "edit" and not access.outside:
        return Grant("edit", "")
    return Grant(access.action, access.subject)


def _inside(access: Access) -> bool:
    barred = access.secret if access.action == "read" else access.protected
    return not (access.outside or barred)
