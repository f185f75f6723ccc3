"""What a loaded session shows is what was shown live, for every conversation in transcripts/."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.acp.methods import take
from bridge.acp.peer import Request
from bridge.label import Label
from tests.pairing import Conversations
from tests.test_transcripts import TRANSCRIPTS
from tests.transcript import FakeModel, Line, Player, read

WITHOUT_LOAD = [
    path for path in TRANSCRIPTS if all(line["who"] != "restart" for line in read(path))
]
"""Those that load a session themselves show it twice."""


@pytest.mark.anyio
@pytest.mark.parametrize("path", WITHOUT_LOAD, ids=lambda path: path.stem)
async def test_a_loaded_session_shows_what_was_shown_live(path: Path, tmp_path: Path) -> None:
    player = Player(read(path), tmp_path)
    await player.play()
    live = player.said
    for summary in player.store.summaries():
        again = await loaded(player, summary.label)
        session = summary.label.session
        assert again[-1]["result"].keys() == {"modes", "configOptions"}
        assert shown(again, session) == shown(live, session)


async def loaded(player: Player, label: Label) -> list[Line]:
    """What another agent says when it loads the session."""
    player.heard.clear()
    params: dict[str, Any] = {"sessionId": label.session, "cwd": label.cwd, "mcpServers": []}
    async with anyio.create_task_group() as tasks:
        agent = player.agent(
            player.lines[0], FakeModel(player.heard.append, Conversations()), tasks
        )
        agent.can = player.laws.can
        take(agent, Request("load", "session/load", params))
        await anyio.wait_all_tasks_blocked()
        agent.close()
    said = [json.loads(line["line"]) for line in player.heard]
    (answer,) = [number for number, message in enumerate(said) if message.get("id") == "load"]
    return said[: answer + 1]


def shown(messages: list[Line], session: str) -> list[Line]:
    """What the person sees: texts whole, cards as they stand in the end, terminals as printed."""
    seen: dict[tuple[str, str], Line] = {}
    for message in messages:
        params = message.get("params", {})
        if message.get("method") == "session/update" and params["sessionId"] == session:
            _add(seen, params["update"])
    return list(seen.values())


def _add(seen: dict[tuple[str, str], Line], update: Line) -> None:
    match update["sessionUpdate"]:
        case "agent_message_chunk" | "agent_thought_chunk" as kind:
            text = seen.setdefault((kind, update["messageId"]), {"kind": kind, "text": ""})
            text["text"] += update["content"]["text"]
        case "tool_call" | "tool_call_update":
            card = seen.setdefault(("card", update["toolCallId"]), {"printed": ""})
            meta = update.get("_meta", {})
            card["printed"] += meta.get("terminal_output", {}).get("data", "")
            card |= meta | {key: value for key, value in update.items() if key != "_meta"}
            card.pop("terminal_output", None)
            card.pop("sessionUpdate")
        case "session_info_update":
            seen["title", ""] = update
        case _:
            pass
