"""How /status tells what commands are held to."""

import pytest

from bridge.config import load
from bridge.core.records import Opened
from bridge.session import Session
from bridge.session_commands import status
from bridge.store import Store
from tools.base import Hold


@pytest.mark.parametrize(
    ("hold", "said"),
    [
        (Hold(), "none: commands may do all that you may"),
        (Hold("read-only", "full"), "commands are held to read-only"),
        (Hold("workspace-write", "partial", ("no network", "old kernel")),
         "commands are partly held to workspace-write: no network; old kernel"),
        (Hold("workspace-write", gaps=("bwrap is missing",)), "none: bwrap is missing"),
        (Hold("workspace-write"), "none"),
        (Hold("workspace-write", refusal="no command runs"), "no command runs"),
    ],
)  # fmt: skip
def test_the_sandbox_is_told_as_it_is(hold: Hold, said: str) -> None:
    opened = Opened("s", "/w", "t", "default", "m", None, "ask")
    config = load(None, {"OPENAI_MODEL": "m", "XDG_CONFIG_HOME": "/nowhere"})
    lines = status(Session(config, opened, Store(None).create(opened)), hold).splitlines()
    assert f"- Sandbox: {said}" in lines
    assert "- Session file: none: it is not kept" in lines
