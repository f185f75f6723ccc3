"""The calls of one answer, run by the whole agent."""

import json
from pathlib import Path

import anyio
import pytest

from tests.fake_responses import FakeResponses, called, said, stream
from tests.stage import stage

pytestmark = pytest.mark.anyio


async def test_an_edit_after_a_read_in_one_answer_is_made(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    file = tmp_path / "ws" / "f"
    file.write_text("old\n", encoding="utf-8")
    change = json.dumps({"file_path": "f", "old_string": "old", "new_string": "new"})
    again = json.dumps({"file_path": "f", "old_string": "new", "new_string": "newer"})
    model = FakeResponses(
        stream(
            called("c1", "read", '{"file_path":"f"}'),
            called("c2", "edit", change),
            called("c3", "shell", '{"command":"echo other > f","description":"d"}'),
            called("c4", "edit", again),
        ),
        stream(said("Done")),
    )
    with anyio.fail_after(20):
        async with stage(tmp_path, model) as play:
            await play.prompt()
    outputs = [item["output"] for item in model.asked[-1].body["input"] if "output" in item]
    assert outputs[1] == f"The file {file} has been updated successfully."
    assert outputs[2] == "(no output)\n[changed since you read it: f]"
    assert "file changed since it was read by a command of yours" in outputs[3]
    assert file.read_text(encoding="utf-8") == "other\n"
