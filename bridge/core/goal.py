"""The goal of a session: what the person set, how far it is, and what the two sides are told.

Rule 1: nothing here starts anything. A goal is worked on in the turn of the prompt that set it.
"""

from dataclasses import replace

from bridge.core.records import GoalChanged
from tools.base import GoalReport

USAGE = "Usage: /goal [<objective>|clear|edit <objective>|pause|resume]"
NO_GOAL = GoalChanged(None)


def view(goal: GoalChanged, title: str, *, armed: bool, most_rounds: int) -> str:
    """The goal as the person sees it."""
    lines = [title, f"Status: {goal.status}"]
    if goal.status == "blocked" and goal.blocker:
        lines.append(f"Blocker: {goal.blocker}")
    activation = "armed" if armed else "disarmed, /goal resume goes on"
    lines += [
        f"Objective: {goal.objective}",
        f"Rounds: {goal.rounds}/{most_rounds}",
        f"Activation: {activation}",
        "",
        "Commands: /goal edit <objective>, /goal pause, /goal resume, /goal clear",
    ]
    return "\n".join(lines)


def task(goal: GoalChanged) -> str:
    """What the model is told at the start of each round."""
    return (
        f"The user set a goal for this session:\n{goal.objective}\n\n"
        "Work towards it now. When it is reached, or when you cannot go on without the user, "
        "call update_goal; otherwise the work goes on in a further round."
    )


def reported(goal: GoalChanged, report: GoalReport) -> GoalChanged:
    """The goal after the model's report."""
    blocker = report.reason if report.status == "blocked" else ""
    return replace(goal, status=report.status, blocker=blocker)
