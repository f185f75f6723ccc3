"""The tool with which the model shows the person its plan: what is done, doing, and to do.

Rule 1: each call gives the whole list, which replaces the one before; an empty one clears it.
"""

from collections import Counter
from typing import Literal

from pydantic import Field

from tools.base import (
    Access,
    Arguments,
    Card,
    Context,
    Prepared,
    Result,
    Step,
    Tool,
)
from tools.spelling import one_line


class Todo(Arguments):
    """One step of the plan."""

    content: str
    status: Literal["pending", "in_progress", "completed"]


class TodoWriteArguments(Arguments):
    """What the model passes to todo_write."""

    todos: list[Todo] = Field(description="All steps, in order; the list replaces the last one.")


def _card(_arguments: TodoWriteArguments, _cwd: str) -> Card:
    return Card("Update todo list")


async def _prepare(arguments: TodoWriteArguments, _context: Context) -> Prepared | Result:
    for number, todo in enumerate(arguments.todos, 1):
        if not todo.content.strip():
            return Result.error(f"todo {number} has no content: say what is to be done")
    steps = tuple(Step(one_line(todo.content, 500), todo.status) for todo in arguments.todos)
    count = Counter(step.status for step in steps)
    text = (
        f"Updated todo list: {count['pending']} pending, {count['in_progress']} in progress, "
        f"{count['completed']} completed."
    )

    async def run() -> Result:
        return Result(text, steps=steps)

    return Prepared(Access("none"), run)


TODO_WRITE = Tool(
    "todo_write",
    "Show the user the steps of longer work and how far each is; keep it current.",
    TodoWriteArguments,
    _card,
    _prepare,
)
