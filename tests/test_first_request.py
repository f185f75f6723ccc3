"""What every conversation pays for before its first word: instructions and tools."""

from pathlib import Path
from typing import Any, cast

from bridge import context
from bridge.core.wire import dump
from bridge.responses import request
from tests.test_session import session
from tools.table import TOOLS

MOST_OF_PREFIX = 10 * 1024
MOST_OF_BODY = 12 * 1024

NAMES = (
    "read edit write shell exit_plan_mode request_user_input update_goal glob grep todo_write "
    "shell_job"
)


def test_the_tools_stand_in_their_order() -> None:
    assert list(TOOLS) == NAMES.split()


def test_the_first_request_is_small(tmp_path: Path) -> None:
    mine = session(tmp_path)
    mine.mode = "plan"
    text = context.instructions(mine)
    for strict in (True, False):
        tools = [
            request.function_tool(tool.name, tool.description, tool.offer.parameters, strict=strict)
            for tool in TOOLS.values()
        ]
        assert len(dump(tools)) + len(text.encode()) < MOST_OF_PREFIX
        body = request.body(
            mine.model,
            mine.quirks_of(mine.model),
            effort=mine.effort,
            instructions=text,
            input=[{"type": "message", "role": "user", "content": "x" * 200}],
            tools=tools,
            cache_key=mine.id,
        )
        assert len(dump(body)) < MOST_OF_BODY


def test_in_loose_form_every_part_of_a_schema_has_one_type() -> None:
    """Chat templates of open models look the type up as a word, and fail on a list of them."""

    def check(schema: dict[str, Any], where: str) -> None:
        assert isinstance(schema.get("type"), str), where
        for name, inner in schema.get("properties", {}).items():
            check(inner, f"{where}.{name}")
        if "items" in schema:
            check(schema["items"], f"{where}[]")

    for tool in TOOLS.values():
        made = request.function_tool(tool.name, "", tool.offer.parameters, strict=False)
        check(cast("dict[str, Any]", made["parameters"]), tool.name)
