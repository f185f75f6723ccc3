"""The real agent with a real server, where the environment names one; nothing is scripted.

RESPONSES_ACP_LIVE_URL     its base URL, as in base_url
RESPONSES_ACP_LIVE_MODEL   the model's name
RESPONSES_ACP_LIVE_KEY     its key, where it wants one
RESPONSES_ACP_LIVE_CALL    a prompt that makes this model read notes.txt, if ours does not

What a model says cannot be foretold: the tests demand that it says something, that the protocol's
laws hold, and that turns end as they should. Settings suit every server that keeps nothing.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.agent_process import Machine, begin_prompt, cancel, machine
from tests.fake_editor import Agent
from tests.transcript import toml

PREFIX = "RESPONSES_ACP_LIVE_"
URL, MODEL, KEY = (os.environ.get(PREFIX + name, "") for name in ("URL", "MODEL", "KEY"))
CALL = os.environ.get(
    f"{PREFIX}CALL", "Call the tool read with the file_path notes.txt. Then say its first word."
)
_MINUTES = 10 * 60.0
"""A small model on a busy machine reads a long prompt slowly."""

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (URL and MODEL), reason=f"{PREFIX}URL and {PREFIX}MODEL name no server to talk to"
    ),
]


@asynccontextmanager
async def talking(folder: Path) -> AsyncGenerator[tuple[Machine, Agent, str]]:
    """The agent with that server, and a session of it."""
    async with machine(folder, deadline=_MINUTES) as here:
        key = {"api_key_env": f"{PREFIX}KEY"} if KEY else {}
        model = {"provider": "live", "model": MODEL, "replay_reasoning": "content"}
        config = {
            "permission": "danger-full-access",
            "max_turn_requests": 3,
            "providers": {"live": {"base_url": URL, **key}},
            "models": {"live": {**model, "max_output_tokens": 256}},
        }
        here.config.write_text(toml(config), encoding="utf-8")
        here.secrets += [KEY] if KEY else []
        (here.workspace / "notes.txt").write_text("Elderflower is in bloom.\n", encoding="utf-8")
        environment = {**here.environment, f"{PREFIX}KEY": KEY}
        async with here.agent(env=environment, session={"notices": {}}) as agent:
            yield here, agent, await agent.editor.new_session(here.workspace)


async def test_it_says_something(tmp_path: Path) -> None:
    async with talking(tmp_path) as (_, agent, session):
        stop = await agent.editor.prompt(session, "Say hello in one short sentence.")
        assert stop in ("end_turn", "max_tokens")
        assert agent.editor.text().strip()


async def test_it_calls_a_tool_and_goes_on_with_the_result(tmp_path: Path) -> None:
    async with talking(tmp_path) as (_, agent, session):
        stop = await agent.editor.prompt(session, CALL)
        assert stop in ("end_turn", "max_tokens", "max_turn_requests")
        (card, *_) = agent.editor.updates("tool_call")
        assert card["name"] == "read"
        assert card["rawInput"] == {**card["rawInput"], "file_path": "notes.txt"}
        ends = [one.get("status") for one in agent.editor.updates("tool_call_update")]
        assert "completed" in ends


async def test_it_stops_when_cancelled_and_answers_the_next_prompt(tmp_path: Path) -> None:
    async with talking(tmp_path) as (_, agent, session):
        count = "Count from 1 to 500 in words, and do nothing else."
        call = await begin_prompt(agent.editor, session, count)
        chunks = ("agent_message_chunk", "agent_thought_chunk", "tool_call")
        await agent.editor.message(
            lambda message: (
                message.get("method") == "session/update"
                and message["params"]["update"]["sessionUpdate"] in chunks
            )
        )
        await cancel(agent.editor, session)
        assert (await agent.editor.result(call))["stopReason"] == "cancelled"
        stop = await agent.editor.prompt(session, "Say hello in one short sentence.")
        assert stop in ("end_turn", "max_tokens")
