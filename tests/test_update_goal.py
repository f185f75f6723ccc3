import pytest

from tests.workspace import context
from tools.base import Access, Card, GoalReport, Prepared, Result, Text
from tools.update_goal import UPDATE_GOAL

pytestmark = pytest.mark.anyio


async def prepared(status: str, reason: str) -> tuple[Card, Prepared | Result]:
    bound = UPDATE_GOAL.bind({"status": status, "reason": reason}, "/work")
    assert not isinstance(bound, Result)
    return bound.card, await bound.prepare(context("/work"))


async def test_a_report_ends_the_goal() -> None:
    async def check(status: str, reason: str, title: str, result: Result) -> None:
        card, call = await prepared(status, reason)
        assert card == Card(title, shown=(Text(reason),))
        assert isinstance(call, Prepared)
        assert call.access == Access("none")
        assert await call.run() == result

    await check(
        "complete",
        "tests pass",
        "Goal complete",
        Result("Goal marked complete.", signal=GoalReport("complete", "tests pass")),
    )
    await check(
        "blocked",
        "no network",
        "Goal blocked",
        Result("Goal marked blocked: no network", signal=GoalReport("blocked", "no network")),
    )


async def test_a_report_needs_a_reason_and_one_of_two_words() -> None:
    _, refused = await prepared("complete", " ")
    assert isinstance(refused, Result)
    assert refused.text.startswith("Error: reason is empty")
    unknown = UPDATE_GOAL.bind({"status": "done", "reason": "x"}, "/work")
    assert isinstance(unknown, Result)
    assert "status" in unknown.text
