from dataclasses import replace

import pytest

from tests.workspace import Nobody, context
from tools.base import (
    Access,
    Approved,
    Card,
    NoAnswer,
    PlanApproved,
    Prepared,
    Rejected,
    Result,
    Text,
)
from tools.exit_plan_mode import EXIT_PLAN_MODE

pytestmark = pytest.mark.anyio


class Reviewer(Nobody):
    def __init__(self, verdict: Approved | Rejected | NoAnswer) -> None:
        super().__init__()
        self.verdict = verdict
        self.plans: list[str] = []

    async def review(self, plan: str) -> Approved | Rejected | NoAnswer:
        self.plans.append(plan)
        return self.verdict


async def prepared(plan: str, person: Reviewer, *, planning: bool = True) -> Prepared | Result:
    bound = EXIT_PLAN_MODE.bind({"plan": plan}, "/work")
    assert not isinstance(bound, Result)
    return await bound.prepare(replace(context("/work"), person=person, planning=planning))


def test_the_card_shows_the_plan_under_its_first_heading() -> None:
    def check(plan: str, title: str) -> None:
        bound = EXIT_PLAN_MODE.bind({"plan": plan}, "/work")
        assert not isinstance(bound, Result)
        assert bound.card == Card(title, shown=(Text(plan),))

    check("# Fix the greeting typo\n\n## Single step\n1. x", "Fix the greeting typo")
    check("text\n### Deep ##\n# Later", "Deep")
    check("#no heading\n#\n# \n## C# and F#", "C# and F#")
    check("no heading", "Plan")
    check("", "Plan")
    check("# a\u202eb", "a\\u202eb")


async def test_a_plan_needs_plan_mode_and_a_heading() -> None:
    async def check(plan: str, text: str, *, planning: bool = True) -> None:
        person = Reviewer(Approved())
        assert await prepared(plan, person, planning=planning) == Result.error(text)
        assert person.plans == []

    await check("# P", "exit_plan_mode is only available in plan mode", planning=False)
    for plan in ("", "text", "## P", " # P", "#P"):
        await check(
            plan, "exit_plan_mode requires a non-empty markdown plan starting with a # heading"
        )


async def test_the_verdict_of_the_person_is_told() -> None:
    async def check(verdict: Approved | Rejected | NoAnswer, result: Result) -> None:
        person = Reviewer(verdict)
        call = await prepared("# P\n", person)
        assert isinstance(call, Prepared)
        assert call.access == Access("none")
        assert person.plans == []
        assert await call.run() == result
        assert person.plans == ["# P\n"]

    await check(
        Approved(),
        Result(
            "Plan approved — plan mode exited; carry out the plan starting with your next step.",
            title="Plan review",
            signal=PlanApproved(),
        ),
    )
    keep = "Error: The user chose to keep planning; "
    again = f"{keep}revise the plan and present it again."
    await check(Rejected(), Result(again, ok=False, title="Plan review"))
    await check(Rejected(" "), Result(again, ok=False, title="Plan review"))
    feedback = f"{keep}their feedback: smaller steps"
    await check(Rejected("smaller steps"), Result(feedback, ok=False, title="Plan review"))
    await check(NoAnswer("nobody is there"), Result("Error: nobody is there", ok=False))
