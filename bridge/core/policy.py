"""What mode and preset by themselves make of a call: what it would touch, in; a verdict, out.

Rule 1: plan mode and the presets live here and nowhere else.
Rule 2: the first row of PRESETS that fits decides; a call that no row fits is asked for.
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
class Row:
    """One row: None in a column fits everything."""

    action: Literal["none", "read", "edit", "run", "call"]
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

PRESETS: tuple[Row, ...] = (
    Row("none", Allow()),
    Row("call", Allow(), harmless=True),
    Row("call", NOT_IN_PLAN_MODE, mode="plan"),
    Row("edit", NOT_IN_PLAN_MODE, mode="plan"),
    Row("run", Allow(), mode="plan", inside=True, held=True),
    Row("run", Allow(), mode="plan", inside=True, harmless=True),
    Row("run", Ask(), mode="plan"),
    Row("read", Allow(), preset="danger-full-access"),
    Row("edit", Allow(), preset="danger-full-access"),
    Row("run", Allow(), preset="danger-full-access"),
    Row("call", Allow(), preset="danger-full-access"),
    Row("read", Allow(), inside=True),
    Row("edit", Allow(), preset="workspace-write", inside=True),
    Row("run", Allow(), preset="workspace-write", inside=True, held=True),
)


def judge(mode: Mode, preset: Preset, access: Access) -> Verdict:
    """What mode and preset by themselves make of a call that would touch this."""
    for row in PRESETS:
        if (
            row.action == access.action
            and row.mode in (None, mode)
            and row.preset in (None, preset)
            and row.inside in (None, _inside(access))
            and row.harmless in (None, access.harmless)
            and row.held in (None, access.held)
        ):
            return row.verdict
    return Ask()


def reach(mode: Mode, preset: Preset) -> Reach:
    """What a command may change, allowed or not, unless the person allows it more."""
    if mode == "plan":
        return "read-only"
    return "danger-full-access" if preset == "danger-full-access" else "workspace-write"


def refusal(mode: Mode, *, mutates: bool) -> Deny | None:
    """What a tool that changes things is told in plan mode, before it looks at anything."""
    return NOT_IN_PLAN_MODE if mutates and mode == "plan" else None


def _inside(access: Access) -> bool:
    barred = access.secret if access.action == "read" else access.protected
    return not (access.outside or barred)
