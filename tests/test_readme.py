"""What the README shows works as it stands there: commands, settings, entries of editors."""

import json
import os
import re
import shlex
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bridge.cli import _parser  # pyright: ignore[reportPrivateUsage] (what reads command lines)
from bridge.config import load
from bridge.core import own_command
from bridge.demo.client import Client
from bridge.demo.model import scripted_model
from bridge.demo.screen import Screen
from bridge.setup.editors import EDITORS, Launch
from tests.npm import installed, node
from tests.picture import QUESTION, in_a_terminal
from tests.terminal import Terminal
from tests.toad import TYPING, Toad
from tests.wheels import BESIDE, HOME, PYTHON, bare, offline

README = (HOME / "README.md").read_text(encoding="utf-8")


def shown(language: str) -> list[str]:
    """The blocks in this language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


# -- commands -------------------------------------------------------------------------------------

COMMANDS = [
    re.sub(r" +#.*", "", line) for block in shown("sh") for line in block.strip().splitlines()
]
FOLLOWED = {
    "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/responses-acp demo":
        "Done: line 2 of `notes.txt` now says “hello world”",
    "uv tool install .": "Installed 1 executable: responses-acp",
    "pipx install .": "installed package responses-acp",
    "responses-acp setup zed": '"agent_servers"',
    "responses-acp setup zed --write": "settings.json is changed",
    "responses-acp setup zed --remove": "settings.json is changed",
    "responses-acp check": "ok       streaming",
}  # fmt: skip
"""Each command, and what is shown when it did what it is there for."""
AFTER_A_TURN = {
    "responses-acp replay FILE": "The same: the agent says",
    "responses-acp sessions list": "hello",
    "responses-acp sessions show ID": "That is what is here",
    "responses-acp sessions export ID": "That is what is here",
    "responses-acp sessions delete ID": "",
}
ELSEWHERE = {"sh .ci/test"}
"""What runs the tests themselves."""


def test_every_command_is_followed() -> None:
    assert [one for one in COMMANDS if one not in ELSEWHERE] == [*FOLLOWED, *AFTER_A_TURN]


@pytest.fixture
def desk(built: Path, tmp_path: Path) -> Path:
    """A folder with a checkout, a home that knows Zed, and programs that people have."""
    desk = tmp_path / "desk"
    desk.mkdir()
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(desk, filter="data")
    next(desk.glob("responses_acp-*")).rename(desk / "checkout")
    (desk / "bin").mkdir()
    for name, program in (("python3", PYTHON), ("uv", BESIDE / "uv"), ("pipx", BESIDE / "pipx")):
        (desk / "bin" / name).symlink_to(program)
    (desk / "home" / ".config" / "zed").mkdir(parents=True)
    return desk


class Newcomer:
    """Somebody at this desk, with a model on the same machine that serves under this URL."""

    def __init__(self, desk: Path, house: Path, url: str) -> None:
        self.home, self.checkout = desk / "home", desk / "checkout"
        self.program = self.home / ".local" / "bin" / "responses-acp"
        self.record = desk / "record"
        # pipx gets a place of its own: the README offers it beside uv, not after it.
        self.environment = {
            **bare(self.home, self.program.parent, desk / "bin"),
            **offline(house, PYTHON),
            "TERM": "xterm",
            "PIPX_BIN_DIR": str(desk / "pipx"),
        }
        file = self.home / ".config" / "responses-acp" / "config.toml"
        file.parent.mkdir()
        settings = shown("toml")[1].replace("http://127.0.0.1:8080/v1", url)
        file.write_text(settings, encoding="utf-8")

    def follow(self, command: str, expected: str) -> None:
        """Run a command as it stands in the README, and say yes where it asks."""
        line = ["sh", "-c", command]
        code, text = in_a_terminal(line, self.environment, self.checkout, QUESTION)
        assert code == 0, text
        assert expected in re.sub(r"\x1b\[[0-9;]*m", "", text), text

    def converse(self) -> str:
        """Have one turn; the id of its session."""
        screen = Screen(lambda _: None, colour=False, folder="")
        command = [str(self.program), "--record", str(self.record)]
        with Client(command, self.environment, screen, lambda _: "yes") as client:
            client.open(str(self.checkout), "default")
            assert client.prompt("hello") == "end_turn"
        (kept,) = self.sessions()
        return kept.stem

    def sessions(self) -> list[Path]:
        """The files of stored sessions."""
        return list(self.home.glob(".local/state/responses-acp/sessions/*.jsonl"))

    def zed(self) -> Any:
        """Zed's settings."""
        file = self.home / ".config" / "zed" / "settings.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


@pytest.mark.slow
def test_a_newcomer_follows_the_readme_to_a_working_agent(desk: Path, house: Path) -> None:
    with scripted_model() as url:
        newcomer = Newcomer(desk, house, url)
        entries: list[Any] = []
        for command, expected in FOLLOWED.items():
            newcomer.follow(command, expected)
            entries.append(newcomer.zed())
        session = newcomer.converse()
        for command, expected in AFTER_A_TURN.items():
            line = command.replace("ID", session).replace("FILE", str(newcomer.record))
            newcomer.follow(line, expected)
    shown_only, written, removed, _ = entries[-4:]
    program = str(newcomer.program)
    assert shown_only is None
    assert written["agent_servers"]["Responses"]["command"] == program
    assert removed == {"agent_servers": {}}
    assert newcomer.sessions() == []
    assert os.access(desk / "pipx" / "responses-acp", os.X_OK)


@pytest.mark.slow
def test_a_newcomer_has_a_turn_in_acpx_and_in_toad(desk: Path, house: Path, toad: Toad) -> None:
    with scripted_model() as url:
        newcomer = Newcomer(desk, house, url)
        newcomer.follow("uv tool install .", FOLLOWED["uv tool install ."])
        newcomer.follow("responses-acp setup acpx --write", "config.json is changed")
        acpx = installed("acpx@0.19.1", desk / "npm") / "acpx" / "dist" / "cli.js"
        (desk / "bin" / "acpx").write_text(f'#!/bin/sh\nexec {node()} {acpx} "$@"\n')
        (desk / "bin" / "acpx").chmod(0o755)
        newcomer.follow(in_the_text("acpx responses exec .+?"), "That is what is here")
        line = in_the_text("toad acp .+?").replace("/path/to/responses-acp", str(newcomer.program))
        command = shlex.split(line.replace("PROJECT", str(newcomer.checkout)))
        command[0] = str(toad.program)
        with Terminal(toad.tmux, desk / "tmux", command, newcomer.environment) as terminal:
            terminal.see(" default")
            terminal.type("hello", lambda screen: f"{TYPING} hello" in screen)
            terminal.press("Enter", lambda screen: "That is what is here" in screen)
            terminal.press("C-q", lambda screen: not screen)
    assert len(newcomer.sessions()) == 2


def in_the_text(words: str) -> str:
    """The one command line of this kind that stands within a sentence."""
    (found,) = re.findall(f"`({words})`", README)
    return found


def test_every_command_line_in_the_text_is_one_that_is_read() -> None:
    lines = re.findall(r"`responses-acp ([^`]+)`", README)
    assert len(lines) > 4
    for line in lines:
        if line not in ("--help", "--version", "sessions"):
            _parser().parse_args(line.split())


# -- settings -------------------------------------------------------------------------------------

ANY_MODEL = '[providers.p]\nbase_url = "https://p.example/v1"\n[models.m]\nprovider = "p"\n'


def test_the_settings_work(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    found: list[str] = []
    for text in shown("toml"):
        file.write_text(text if "[models" in text else text + ANY_MODEL, encoding="utf-8")
        found.append(load(str(file), {}).default_model)
    assert found == ["gpt", "local", "m", "m"]


def test_the_command_of_ones_own_works() -> None:
    (text,) = shown("markdown")
    command = own_command.read(text)
    assert isinstance(command, own_command.OwnCommand)
    assert command.hint == "<file> [why]"
    assert command.prompt("a.py it fails").startswith("Mend a.py and run its tests.")


def test_no_block_is_without_a_reader() -> None:
    languages = set(re.findall(r"^```(.*)\n(?:(?!```).*\n)*```$", README, re.MULTILINE))
    assert languages == {"sh", "toml", "json", "markdown", "lua", "elisp"}


# -- entries of editors ---------------------------------------------------------------------------

OURS = Launch("/path/to/responses-acp")


def test_the_entries_are_what_setup_shows() -> None:
    texts = {name: editor.text(OURS) for name, editor in EDITORS.items()}
    assert f"**Toad**, in a terminal: `{texts.pop('toad')}`" in README
    blocks = [text.strip() for language in ("json", "lua", "elisp") for text in shown(language)]
    assert sorted(blocks) == sorted(texts.values())
