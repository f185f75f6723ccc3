"""Who may do what: mode, preset, rules, and what a call would touch, in; a decision, out.

Rule 1: a rule that denies wins, then plan mode, then a rule that asks; then what was allowed for
good and the rules that allow; then mode and preset, which core/policy.py knows.
Rule 2: a lasting permission covers what its label says and nothing wider. None widens plan mode,
lets a command out of its sandbox, or changes what other programs would run.
"""

from collections.abc import Sequence

from bridge.core.policy import Allow, Ask, Deny, Mode, Preset, Verdict, judge
from bridge.core.rule import FOR_PROJECT, FOR_SESSION, Offer, Rule
from bridge.core.rules import Scope, allowed_for_good, allowing, denied_for_good, first
from tools.base import Access
from tools.frozen import frozen


@frozen
class Decision:
    """What becomes of a call, and why."""

    verdict: Verdict
    reason: str = ""
    """Why it asks, as a sentence for the person."""
    is_final: bool = False
    """No answer for good would change that it asks."""


def decide(
    mode: Mode, preset: Preset, name: str, access: Access, rules: Sequence[Rule], scope: Scope
) -> Decision:
    """What becomes of a call of this tool that would touch this; answers are among the rules."""
    denying, denied = first(rules, "deny", name, access, scope)
    if denied == "yes":
        return Decision(Deny(_DENIED.format(rule=_named(denying))))
    verdict = judge(mode, preset, access)
    if isinstance(verdict, Deny):
        return Decision(verdict)
    asking, asked = first(rules, "ask", name, access, scope)
    if asked == "yes":
        return Decision(Ask(), f"The rule {_named(asking)} asks.", is_final=True)
    if rule := denying or asking:
        return Decision(Ask(), f"It may be what the rule {_named(rule)} is about.", is_final=True)
    if verdict == Ask() and _may_be_allowed(mode, access):
        allowed = allowing(rules, name, access, scope)
        verdict = Ask() if allowed is None else Allow()
    return Decision(verdict, _reason(mode, preset, access) if verdict == Ask() else "")


_DENIED = (
    "is denied by the permission rule {rule}: do not look for another way, go on without it or "
    "ask the user"
)


def _named(rule: Rule | None) -> str:
    return "" if rule is None else f'"{rule.text}" ({rule.source})'


def _may_be_allowed(mode: Mode, access: Access) -> bool:
    """Whether a rule or an answer may let this run without asking."""
    if access.wider or (access.action == "edit" and access.protected):
        return False
    return not (access.action == "run" and access.outside) and (
        mode != "plan" or access.action == "read"
    )


def _reason(mode: Mode, preset: Preset, access: Access) -> str:
    """Why this mode and this preset ask."""
    for holds, why in (
        (access.wider, "It is to run with fewer limits than other commands."),
        (access.action == "read" and access.secret, "Such a file usually holds credentials."),
        (access.action == "edit" and access.protected, "Other programs run what is written there."),
        (access.outside and access.action == "run", "It runs outside the workspace."),
        (access.outside, "It lies outside the workspace."),
        (access.action == "call", "What tools of MCP servers do cannot be known."),
        (mode == "plan", "In plan mode nothing may change, and this might change something."),
        (preset == "ask", f'The permission "{preset}" asks before every edit and every command.'),
    ):
        if holds:
            return why
    return access.unheld or "No sandbox holds it here."


_ONCE = Offer("allow_once", "allow_once", "Allow once")
_REJECT = Offer("reject_once", "reject_once", "Reject")


def offers(
    mode: Mode, name: str, access: Access, decision: Decision, roots: Sequence[str]
) -> tuple[Offer, ...]:
    """What the person may answer: for good only where it would hold, and as its label says."""
    if decision.is_final or mode == "plan" or not _may_be_allowed(mode, access):
        return _ONCE, _REJECT
    session = allowed_for_good(access, roots, FOR_SESSION)
    if access.action == "edit" and not access.outside:
        session = Rule("allow", "edit", FOR_SESSION, "edit")
    project = allowed_for_good(access, roots, FOR_PROJECT)
    never = denied_for_good(name, access, FOR_SESSION)
    return (
        _ONCE,
        Offer("allow_always", "allow_always", f"Allow {_told(session)} for this session", session),
        Offer(
            "allow_always_project",
            "allow_always",
            f"Allow {_told(project)} in this project from now on",
            project,
        ),
        _REJECT,
        Offer(
            "reject_always", "reject_always", f"Never allow {_told(never)} in this session", never
        ),
    )


def _told(rule: Rule) -> str:
    """What a rule is about, for the person who is to make it."""
    if rule.exact:
        return _EXACTLY[rule.tool]
    match rule.tool:
        case "shell":
            return f"{rule.about} …"
        case "edit":
            return f"edits of {rule.about}" if rule.about else "all edits in the workspace"
        case _:
            return "this tool"


_EXACTLY = {
    "shell": "this exact command",
    "edit": "editing this file",
    "read": "reading this file",
    "call": "this tool, as its server describes it now,",
}
