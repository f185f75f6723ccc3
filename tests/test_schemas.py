"""The schemas that the product carries are those that pydantic would write.

`pytest tests/test_schemas.py --update` writes them anew; `ruff format` then breaks the lines.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools import schemas
from tools.base import Arguments, Tool
from tools.shell import CONFINED_SHELL
from tools.table import TOOLS

EVERY: tuple[Tool[Any], ...] = (*TOOLS.values(), CONFINED_SHELL)

HEAD = '''"""The JSON schemas of the tools' arguments, by the class that they come from.

They are written by `pytest tests/test_schemas.py --update`: making them takes pydantic longer than
loading all tools, and the first request would wait for it. A class without one here gets its own
then.
"""

from typing import Any

SCHEMAS: dict[str, dict[str, Any]] = '''


def test_each_tool_has_its_schema_ready(request: pytest.FixtureRequest) -> None:
    made = {
        f"{tool.arguments.__module__}.{tool.arguments.__qualname__}": (
            tool.arguments.model_json_schema()
        )
        for tool in EVERY
    }
    if request.config.getoption("--update"):
        Path(schemas.__file__).write_text(f"{HEAD}{made!r}\n", encoding="utf-8")
        return
    assert made == schemas.SCHEMAS


def test_a_tool_without_one_gets_its_own() -> None:
    class Unknown(Arguments):
        count: int

    assert replace(EVERY[0], arguments=Unknown).parameters() == Unknown.model_json_schema()
