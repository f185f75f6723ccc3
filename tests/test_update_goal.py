from collections.abc import Mapping

import pytest

from tools.base import (
    Access,
    Answers,
    Approved,
    Card,
    Context,
    Filled,
    GoalReport,
    NoAnswer,
    Prepared,
    Question,
    Rejected,
    Result,
    Text,
)
from tools.local import LocalFiles
from tools.process import LocalShell
from tools.seen import Seen
from tools.update_goal import UPDATE_GOAL

pytestmark = pytest.mark.anyio


class Nobody:
    async def review(self, plan: str) -> Approved | Rejected | NoAnswer:
        raise AssertionError

    async def ask(
        self, title: str, message: str, questions: tuple[Question, ...]
    ) -> Answers | NoAnswer:
        raise AssertionError

    async def fill(self, message: str, form: Mapping[str, object]) -> Filled:
        raise AssertionError


async def prepared(status: str, reason: str) -> tuple[Card, Prepared | Result]:
    bound = UPDATE_GOAL.bind({"status": status, "reason": reason}, "/work")
    assert not isinstance(bound, Result)
    context = Context(
        cwd="/work",
        roots=("/work",),
        files=LocalFiles(),
        shell=LocalShell({}, "/tmp"),
        seen=Seen(),
        person=Nobody(),
        planning=False,
        output=lambda _: None,
    )
    return bound.card, await bound.prepare(context)


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
