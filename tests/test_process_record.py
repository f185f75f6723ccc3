"""`--record` and `replay` on the real agent, and what a start without them does not load."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent_process import KEY, PROGRAM, begin_prompt, machine

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs bash"),
]


async def test_a_recording_of_the_process_plays_the_same(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    async with machine(tmp_path) as here:
        program = (*PROGRAM, "--record", str(file))
        async with here.agent(program=program) as agent:
            session = await agent.editor.new_session(here.workspace)
            request = await begin_prompt(
                agent.editor, session, f"Please have a look at this: {KEY}."
            )
            asked = await here.model.request()
            await asked.ask_for("c1", "shell", command="env; echo $0", description="Look.")
            asked = await here.model.request()
            await asked.answer("I see.")
            assert (await agent.editor.result(request))["stopReason"] == "end_turn"
        text = file.read_text(encoding="ascii")
        assert KEY not in text
        assert json.loads(text.splitlines()[1])["message"]["method"] == "initialize"
        assert json.loads(text.splitlines()[-1])["who"] == "end"
        command = [*PROGRAM, "replay", str(file)]
        ended = subprocess.run(  # noqa: ASYNC221 (nothing else runs)
            command, capture_output=True, env=here.environment, check=False, timeout=30
        )
        assert (ended.returncode, ended.stderr) == (0, b""), ended.stdout


@pytest.mark.parametrize("config", [(), ("--config", "/none")])
def test_a_file_that_is_there_is_kept_and_named(tmp_path: Path, config: tuple[str, ...]) -> None:
    file = tmp_path / "recording.jsonl"
    file.write_text("mine", encoding="utf-8")
    command = [*PROGRAM, *config, "--record", str(file)]
    ended = subprocess.run(command, capture_output=True, check=False, input=b"", timeout=30)
    told = f"responses-acp: {file}: File exists; name a new file for the recording\n"
    assert (ended.returncode, ended.stdout, ended.stderr.decode()) == (2, b"", told)
    assert file.read_text(encoding="utf-8") == "mine"


def test_nothing_of_it_is_loaded_unless_it_is_asked_for() -> None:
    look = "import sys, bridge.app, bridge.workshop; print([*sys.modules])"
    command = [sys.executable, "-c", look]
    ended = subprocess.run(command, capture_output=True, check=True, timeout=30)
    for name in (b"bridge.recording", b"bridge.replay", b"bridge.core.scrub"):
        assert b"'" + name + b"'" not in ended.stdout
