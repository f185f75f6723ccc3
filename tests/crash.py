"""A conversation that uses tools, cut off by the end of the process: what is left of it.

Nothing is lost if all that the editor was shown can be found again, but for an answer that still
streamed, and if the files are what the session says of them.
"""

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from bridge.core.records import Announced, Changing, Prompted, Record, Responded, Returned, decode
from tests.agent_process import Machine, begin_prompt
from tests.fake_editor import Editor
from tests.laws import Message
from tools.commit import leftovers
from tools.seen import digest

VERSIONS = ("one\n", "two\n", "three\n")
STEPS: tuple[tuple[str, Message], ...] = (
    ("read", {"file_path": "a.txt"}),
    ("edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}),
    ("edit", {"file_path": "a.txt", "old_string": "two", "new_string": "three"}),
    ("write", {"file_path": "new.txt", "content": "new\n"}),
    ("shell", {"command": "echo ran >> log.txt", "description": "Notes that it ran."}),
)
_ENDED = ("completed", "failed")


@dataclass(frozen=True)
class Kill:
    """When a process is killed: so many seconds after the model made a call, or after the start."""

    process: int
    seconds: float
    step: int | None = None


async def play_model(here: Machine, made: Callable[[int], Awaitable[None]]) -> None:
    """Call one tool after the other, and end; made() is told of each call."""
    for number, (tool, arguments) in enumerate(STEPS):
        request = await here.model.request()
        await request.think(f"Step {number}")
        await request.ask_for(f"c{number}", tool, **arguments)
        await made(number)
    await (await here.model.request()).answer()


async def worked(
    here: Machine, editor: Editor, folder: Path, kill: Kill | None = None
) -> tuple[str, float]:
    """The session of one such turn, which may be cut off, and how many seconds it took."""
    await anyio.Path(folder).mkdir()
    await anyio.Path(folder / "a.txt").write_text(VERSIONS[0], encoding="utf-8")
    session = await editor.new_session(folder)
    begun = anyio.current_time()

    async def die_at(step: int | None) -> None:
        if kill is not None and kill.step == step:
            await anyio.sleep(kill.seconds)  # the moment is what is tried
            os.kill(kill.process, signal.SIGKILL)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(play_model, here, die_at)
        call = await begin_prompt(editor, session, "Work")
        await die_at(None)
        if kill is None:
            await editor.result(call)
    return session, anyio.current_time() - begun


@dataclass
class Shown:
    """What an editor has been shown of a session: cards with their status, and texts."""

    cards: dict[str, str] = field(default_factory=dict[str, str])
    texts: dict[str, str] = field(default_factory=dict[str, str])


def shown(editor: Editor, session: str) -> Shown:
    """All that this editor was shown of it."""
    seen = Shown()
    for update in editor.updates(session=session):
        match update:
            case {"toolCallId": card, "status": status}:
                seen.cards[card] = status
            case {"messageId": message, "content": {"text": text}}:
                seen.texts[message] = seen.texts.get(message, "") + text
            case _:
                pass
    return seen


@dataclass
class Left:
    """What a killed process left: the session's file as it is, torn end and all, and the folder."""

    session: str
    folder: Path
    seen: Shown
    records: list[Record]
    files: dict[str, str]

    def check(self) -> None:
        """Every file is whole, no change was made that was not announced, none that ended lost."""
        assert self.files["a.txt"] in VERSIONS
        assert self.files.get("new.txt") in (None, "new\n")
        ended = {one.card_id for one in self.records if isinstance(one, Returned) and one.ok}
        for name, first in (("a.txt", VERSIONS[0]), ("new.txt", None)):
            now = self.files.get(name)
            made = [one for one in self._changes if Path(one.path).name == name]
            assert now == first or _digest(now) in {change.after for change in made}
            done = [one.after for one in made if one.card_id in ended]
            left = [one.after for one in made if one.card_id not in ended]
            if done:
                assert _digest(now) in (done[-1], *left)

    @property
    def cut_off(self) -> str:
        """What was under way."""
        if not any(isinstance(one, Prompted) for one in self.records):
            return "the prompt"
        calls = self._open_calls
        return f"{calls[0].name} {calls[0].card_id}" if calls else "the answer"

    def lost(self, again: Shown, outputs: dict[str, str]) -> list[str]:
        """What cannot be found again: by what a later load shows, and what the model is told."""
        kept = {f"m{one.response}" for one in self.records if isinstance(one, Responded)}
        lost = [
            f"the end of {card}"
            for card, status in self.seen.cards.items()
            if status in _ENDED and again.cards.get(card, "failed") != status
        ]
        lost += [
            f"text {message}"
            for message, text in self.seen.texts.items()
            if message.split(".")[0] in kept and again.texts.get(message) != text
        ]
        lost += [f"an end of {card}" for card, now in again.cards.items() if now not in _ENDED]
        for call in self._open_calls:
            output = outputs.get(call.call_id, "")
            if not self._is_true(call, output):
                lost.append(f"the truth of {call.card_id}: {output}")
        return lost

    @property
    def _changes(self) -> list[Changing]:
        return [one for one in self.records if isinstance(one, Changing)]

    @property
    def _open_calls(self) -> list[Announced]:
        ended = {one.card_id for one in self.records if isinstance(one, Returned)}
        answers = (one for one in self.records if isinstance(one, Responded) and one.items)
        calls = (one for answer in answers for one in answer.seen if isinstance(one, Announced))
        return [call for call in calls if call.card_id not in ended]

    def _is_true(self, call: Announced, output: str) -> bool:
        """Whether what the model is told of a call that was cut off is what the file holds."""
        for change in self._changes:
            if change.card_id == call.card_id:
                now = _digest(self.files.get(Path(change.path).name))
                word = {change.after: "was made", change.before: "was not made"}.get(now)
                return word is not None and word in output
        return "may have had effects" in output


def left(here: Machine, editor: Editor, session: str, folder: Path) -> Left:
    """What there is now."""
    records: list[Record] = []
    for path in here.folder.rglob(f"{session}.jsonl"):
        lines = path.read_bytes().split(b"\n")
        records += [record for line in lines if (record := decode(line)) is not None]
    files = {
        path.name: path.read_text("utf-8")
        for path in folder.iterdir()
        if not path.name.startswith(".responses-acp-")  # of a commit that was cut off
    }
    return Left(session, folder, shown(editor, session), records, files)


async def lost(here: Machine, editor: Editor, before: Left) -> list[str]:
    """Load the session, go on with it in a valid request, and say what is not there."""
    params: Message = {"sessionId": before.session, "cwd": str(before.folder), "mcpServers": []}
    await editor.request("session/load", params)
    again = shown(editor, before.session)
    assert leftovers(str(before.folder / "a.txt")) == []
    call = await begin_prompt(editor, before.session, "What now?")
    request = await here.model.request()
    outputs = {item["call_id"]: item["output"] for item in request.input if "output" in item}
    await request.answer()
    assert (await editor.result(call))["stopReason"] == "end_turn"
    await editor.request("session/close", {"sessionId": before.session})
    return before.lost(again, outputs)


def _digest(text: str | None) -> str | None:
    return None if text is None else digest(text.encode())
