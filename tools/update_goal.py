"""The tool with which the model reports on the goal it works towards."""

from typing import Literal

from pydantic import Field

from tools.base import (
    Access,
    Arguments,
    Card,
    Context,
    GoalReport,
    Prepared,
    Result,
    Text,
    Tool,
)


class UpdateGoalArguments(Arguments):
    """What the model passes to report on the goal."""

    status: Literal["complete", "blocked"]
    reason: str = Field(description="What was verified, or what stands in the way.")


def _card(arguments: UpdateGoalArguments, _cwd: str) -> Card:
    return Card(title=f"Goal {arguments.status}", shown=(Text(arguments.reason),))


async def _prepare(arguments: UpdateGoalArguments, _context: Context) -> Prepared | Result:
    status, reason = arguments.status, arguments.reason.strip()
    if not reason:
        return Result.error("reason is empty: say what was verified, or what stands in the way")
    text = "Goal marked complete." if status == "complete" else f"Goal marked blocked: {reason}"

    async def run() -> Result:
        return Result(text, signal=GoalReport(status, reason))

    return Prepared(Access("none"), run)


UPDATE_GOAL = Tool(
    name="update_goal",
    description=(
        "End work on the user's goal: complete only when it is reached and verified, blocked only "
        "when you cannot go on without the user."
    ),
    arguments=UpdateGoalArguments,
    card=_card,
    prepare=_prepare,
)
