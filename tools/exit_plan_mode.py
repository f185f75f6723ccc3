"""The tool with which the model presents its plan, so that a person may end plan mode."""

import re
from dataclasses import replace

from pydantic import Field

from tools.base import (
    Access,
    Arguments,
    Card,
    Context,
    NoAnswer,
    PlanApproved,
    Prepared,
    Rejected,
    Result,
    Text,
    Tool,
)
from tools.spelling import one_line

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#*)?[ \t]*$", re.MULTILINE)
"""CommonMark, ATX headings."""

_REVIEW = "Plan review"


class ExitPlanModeArguments(Arguments):
    """What the model passes to present its plan."""

    plan: str = Field(description="The whole plan in markdown; begins with `# ` and a title.")


def _card(arguments: ExitPlanModeArguments, _cwd: str) -> Card:
    headings = (one_line(title) for title in _HEADING.findall(arguments.plan))
    return Card(title=next(filter(None, headings), "Plan"), shown=(Text(arguments.plan),))


async def _prepare(arguments: ExitPlanModeArguments, context: Context) -> Prepared | Result:
    plan = arguments.plan
    if not context.planning:
        return Result.error("exit_plan_mode is only available in plan mode")
    if not plan.startswith("# "):
        return Result.error(
            "exit_plan_mode requires a non-empty markdown plan starting with a # heading"
        )

    async def run() -> Result:
        verdict = await context.person.review(plan)
        if isinstance(verdict, NoAnswer):
            return Result.error(verdict.text)
        if isinstance(verdict, Rejected):
            return _kept_planning(verdict.feedback)
        return Result(
            "Plan approved — plan mode exited; carry out the plan starting with your next step.",
            title=_REVIEW,
            signal=PlanApproved(),
        )

    return Prepared(Access("none"), run)


def _kept_planning(feedback: str) -> Result:
    then = (
        f"their feedback: {feedback}"
        if feedback.strip()
        else "revise the plan and present it again."
    )
    result = Result.error(f"The user chose to keep planning; {then}")
    return replace(result, title=_REVIEW)


EXIT_PLAN_MODE = Tool(
    name="exit_plan_mode",
    description=(
        "Present the plan to the user and ask to leave plan mode. Call it once the plan is "
        "complete; nothing is changed before the user has approved."
    ),
    arguments=ExitPlanModeArguments,
    card=_card,
    prepare=_prepare,
)
