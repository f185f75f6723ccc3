"""The command `demo`: puts model, agent and client together on a temporary workspace.

Rule 1: nothing of the user's is read or written: workspace, configuration and sessions are in a
temporary folder that goes with the demo.
Rule 2: the agent is the real one, started as an editor starts it.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from bridge.demo.client import AgentFailed, Client
from bridge.demo.model import scripted_model
from bridge.demo.screen import Screen
from bridge.demo.script import MENDED, NOTES, PROMPT
from bridge.folders import default_file
from bridge.starting import agent_command, script
from bridge.terminal import is_colourful, say_no_more, write

_PACE = 0.015
"""Seconds between two words, for a person who watches."""

_CONFIG = """\
default_model = "scripted"
[providers.demo]
base_url = "{url}"
[models.scripted]
provider = "demo"
name = "scripted model of the demo"
context_window = 32_000
"""

_INTRODUCTION = """\
responses-acp demo. The model is a script in this program: no key, no network. All else is real:
the agent, both protocols, the tools and the file they work on, {folder}/notes.txt:
"""

_NEXT = """\
That was a whole turn: plan, approval, an edit that was refused because the file had not been
read, the reading, the edit. Next:

 1. {program} setup
    asks for server, key and model, and writes {config}
 2. {program} check
    says whether all of it works, and what to do where it does not
 3. {program} setup zed --write
    tells your editor; or jetbrains, vscode, acpx, and others: see --help
    To try an editor without a model, start it with the arguments: demo --agent
"""


def play(*, yes: bool) -> int:
    """Play the conversation on the terminal; the exit code."""
    watched = sys.stdout.isatty()
    ask = _agree if yes or not sys.stdin.isatty() else _asked
    try:
        with (
            tempfile.TemporaryDirectory(prefix="responses-acp-demo-") as folder,
            scripted_model(_PACE if watched else 0.0) as url,
        ):
            return _play(Path(folder).resolve(), url, ask)
    except KeyboardInterrupt:
        sys.stderr.write("\nresponses-acp demo: stopped\n")
    except AgentFailed as error:
        sys.stderr.write(f"\nresponses-acp demo: {error}\n")
    except BrokenPipeError:  # whoever reads our output has seen enough
        say_no_more()
    return 1


def _play(folder: Path, url: str, ask: Callable[[Screen, str], str]) -> int:
    workspace = folder / "workspace"
    workspace.mkdir()
    notes = workspace / "notes.txt"
    notes.write_bytes(NOTES)
    screen = Screen(write, colour=is_colourful(), folder=str(workspace))
    screen.note(_INTRODUCTION.format(folder=workspace))
    screen.plain(_quoted(notes))
    answers: list[str] = []

    def answer(question: str) -> str:
        answers.append(ask(screen, question))
        return answers[-1]

    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    with Client(agent_command(_configure(folder, url)), environment, screen, answer) as client:
        client.open(str(workspace), "plan")
        screen.person(PROMPT)
        reason = client.prompt(PROMPT)
    check(reason, notes.read_bytes(), agreed=all(said == "yes" for said in answers))
    screen.note("\nThe file now:\n")
    screen.plain(_quoted(notes))
    program = script(sys.argv[0], None) or "responses-acp"
    screen.note("\n" + _NEXT.format(config=_config_file(), program=program))
    return 0


def check(reason: str, notes: bytes, *, agreed: bool) -> None:
    """AgentFailed if the turn did not end, or the file does not hold, as it should."""
    if reason != "end_turn":
        raise AgentFailed(f"the turn ended with {reason}")
    if notes not in ({MENDED} if agreed else {NOTES, MENDED}):
        raise AgentFailed("notes.txt does not hold what was agreed on")


def agent() -> int:
    """Run the agent on stdin and stdout with the scripted model behind it; the exit code."""
    with (
        tempfile.TemporaryDirectory(prefix="responses-acp-demo-") as folder,
        scripted_model(_PACE) as url,
        subprocess.Popen(agent_command(_configure(Path(folder), url))) as process,  # noqa: S603 (ourselves)
    ):

        def stop(_signal: int, _frame: FrameType | None) -> None:
            process.terminate()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        return 0 if process.wait() == 0 else 1


def _configure(folder: Path, url: str) -> str:
    file = folder / "config.toml"
    file.write_text(_CONFIG.format(url=url), encoding="utf-8")
    return str(file)


def _asked(screen: Screen, question: str) -> str:
    """Ask the person at the terminal."""
    screen.question(f"{question} [y]es, [n]o, or say what to change:")
    said = sys.stdin.readline().strip()
    return {"": "no", "n": "no", "y": "yes"}.get(said.lower(), said)


def _agree(screen: Screen, question: str) -> str:
    """Answer for a person who is not there."""
    screen.question(question)
    screen.plain("yes (nobody is asked)")
    return "yes"


def _quoted(file: Path) -> str:
    lines = file.read_text(encoding="utf-8").splitlines()
    return "\n".join(f"    {number}  {line}" for number, line in enumerate(lines, 1))


def _config_file() -> str:
    file = default_file(os.environ)
    return "a file of your choice (--config FILE)" if file is None else shlex.quote(str(file))
