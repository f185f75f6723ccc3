from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.workspace import context
from tools.base import Access, Card, Result, Step
from tools.todo_write import TODO_WRITE

pytestmark = pytest.mark.anyio


async def called(folder: Path, todos: list[dict[str, Any]]) -> Result:
    bound = TODO_WRITE.bind({"todos": todos}, str(folder))
    if isinstance(bound, Result):
        return bound
    assert bound.card == Card("Update todo list")
    prepared = await bound.prepare(replace(context(str(folder)), planning=True))
    if isinstance(prepared, Result):
        return prepared
    assert prepared.access == Access("none")
    return await prepared.run()


async def test_the_list_is_shown_whole(tmp_path: Path) -> None:
    async def check(todos: list[tuple[str, Any]], text: str) -> None:
        result = await called(tmp_path, [{"content": c, "status": s} for c, s in todos])
        steps = tuple(Step(content, status) for content, status in todos)
        assert result == Result(f"Updated todo list: {text}.", steps=steps)

    await check([], "0 pending, 0 in progress, 0 completed")
    await check([("Look", "in_progress"), ("Leap", "pending"), ("Land", "pending")],
                "2 pending, 1 in progress, 0 completed")  # fmt: skip
    await check([("Look", "completed")], "0 pending, 0 in progress, 1 completed")


@pytest.mark.parametrize(
    ("todo", "wrong"),
    [
        ({"content": " ", "status": "pending"}, "todo 1 has no content"),
        ({"content": "x", "status": "cancelled"}, "todos.0.status"),
        ({"content": "x"}, "todos.0.status"),
    ],
)
async def test_what_is_no_step_is_named(tmp_path: Path, todo: dict[str, Any], wrong: str) -> None:
    result = await called(tmp_path, [todo])
    assert not result.ok
    assert wrong in result.text
    assert result.steps is None


async def test_a_step_is_one_line(tmp_path: Path) -> None:
    result = await called(tmp_path, [{"content": "a\nb " + "c" * 600, "status": "pending"}])
    assert result.steps is not None
    assert result.steps[0].content.startswith("a ↵ b ccc")
    assert len(result.steps[0].content) == 500
