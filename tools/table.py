"""What the model can do: every tool, in the order in which the model is offered them."""

from typing import Any

from tools.base import Tool
from tools.edit import EDIT
from tools.exit_plan_mode import EXIT_PLAN_MODE
from tools.glob import GLOB
from tools.grep import GREP
from tools.read import READ
from tools.request_user_input import REQUEST_USER_INPUT
from tools.shell import SHELL
from tools.shell_job import SHELL_JOB
from tools.todo_write import TODO_WRITE
from tools.update_goal import UPDATE_GOAL
from tools.write import WRITE

TOOLS: dict[str, Tool[Any]] = {
    tool.name: tool
    for tool in (
        READ,
        EDIT,
        WRITE,
        SHELL,
        EXIT_PLAN_MODE,
        REQUEST_USER_INPUT,
        UPDATE_GOAL,
        GLOB,
        GREP,
        TODO_WRITE,
        SHELL_JOB,
    )
}
