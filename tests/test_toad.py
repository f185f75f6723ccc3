"""Toad, a client in the terminal, has the demo's agent mend a file, is asked, cancels, goes on."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.sdk_stage import TURNS, check_demo, demo, surroundings
from tests.terminal import Terminal
from tests.toad import TYPING, Toad

pytestmark = pytest.mark.slow


class Person:
    """Somebody before Toad, which shows this workspace."""

    def __init__(self, terminal: Terminal, record: Path) -> None:
        self.terminal = terminal
        self._record = record
        self.terminal.see(" default")  # the mode, once the session is there

    def answers(self, key: str) -> list[str]:
        """What the agent has answered under this key."""
        return [one["result"][key] for one in self._said("agent") if key in one.get("result", {})]

    def ask(self, prompt: str) -> None:
        """Type a prompt, and send it."""
        made = len(self._asked())
        self.terminal.type(prompt, lambda screen: f"{TYPING} {prompt[:20]}" in screen)
        self.terminal.press("Enter", lambda _: len(self._asked()) > made)

    def decide(self, key: str, outcome: str) -> None:
        """Press a key when Toad asks, until the agent has been told."""
        self.terminal.see("a Allow once")
        told = len(self._outcomes())
        self.terminal.press(key, lambda _: len(self._outcomes()) > told)
        assert self._outcomes()[-1].get("optionId") == outcome

    def _asked(self) -> list[str]:
        made = [one for one in self._said("editor") if one.get("method") == "session/prompt"]
        return [one["params"]["prompt"][0]["text"] for one in made]

    def _outcomes(self) -> list[dict[str, str]]:
        results: list[Any] = [one.get("result") or {} for one in self._said("editor")]
        return [one["outcome"] for one in results if "outcome" in one]

    def _said(self, who: str) -> list[dict[str, Any]]:
        if not self._record.exists():
            return []
        whole = self._record.read_text(encoding="utf-8").rpartition("\n")[0]
        lines: list[list[str]] = [json.loads(line) for line in whole.splitlines()]
        return [json.loads(said) for speaker, said in lines if speaker == who]


def ended(person: Person, *reasons: str) -> None:
    """Wait until this many turns have ended, and look how."""
    person.terminal.wait(lambda _: len(person.answers("stopReason")) == len(reasons))
    assert person.answers("stopReason") == [*reasons]


def test_an_edit_a_permission_a_cancel_and_another_prompt(toad: Toad, tmp_path: Path) -> None:
    agent, work = demo(tmp_path), tmp_path / "work"
    # Toad shows modes and no other option: the project asks before edits and commands.
    (work / ".responses-acp.toml").write_text('permission = "ask"\n', encoding="utf-8")
    command = [str(toad.program), "acp", shlex.join(agent), str(work)]
    environment = {"PATH": os.environ["PATH"], **surroundings(tmp_path)}
    with Terminal(toad.tmux, tmp_path / "tmux", command, environment) as terminal:
        person = Person(terminal, tmp_path / "record")
        person.ask(TURNS[0])
        person.decide("a", "allow_once")
        screen = terminal.see("hello world")
        assert '- the start page greets new users with "hello world"' in screen
        person.decide("a", "allow_once")
        ended(person, "end_turn")
        terminal.see("nothing else in the file has changed")
        person.ask(TURNS[1])
        terminal.see("a Allow once")
        terminal.press("Escape Escape", lambda _: len(person.answers("stopReason")) == 2)
        ended(person, "end_turn", "cancelled")
        person.decide("r", "reject_once")  # Toad leaves the question there, and the answer is late
        person.ask(TURNS[2])
        person.decide("a", "allow_once")
        ended(person, "end_turn", "cancelled", "end_turn")
        terminal.press("C-q", lambda screen: not screen)
    check_demo(tmp_path, TURNS)
