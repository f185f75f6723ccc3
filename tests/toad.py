"""Toad, a client for agents in the terminal, installed as its user installs it.

It needs a newer Python than the program does, and a terminal; where this machine has none and uv
cannot fetch it, both come from Debian.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tests import debian
from tests.npm import missing
from tests.wheels import BESIDE
from tools.frozen import frozen

_TOAD = "batrachian-toad==0.6.20"
_PYTHON = "3.14"
_PATIENCE = 300

TYPING = "▊ \N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
"""What it shows before a prompt that is being typed."""


@frozen
class Toad:
    """Where it is, and the tmux that shows it."""

    program: Path
    tmux: Path


def installed(folder: Path) -> Toad:
    """Install Toad into this folder, and what it needs that is not here."""
    found = shutil.which("tmux")
    if found is not None and _environment(folder, _PYTHON):
        tmux = Path(found)
    else:
        programs = debian.unpacked(folder, f"python{_PYTHON}", "tmux")
        tmux = debian.settled(programs / "tmux")
        assert _environment(folder, str(debian.settled(programs / f"python{_PYTHON}")))
    python = folder / "toad" / "bin" / "python"
    if not _uv("pip", "install", "--python", str(python), _TOAD):
        missing(f"{_TOAD} from the package index")
    return Toad(python.with_name("toad"), tmux)


def _environment(folder: Path, python: str) -> bool:
    """Make an environment of that Python; whether there is one."""
    return _uv("venv", "--python", python, str(folder / "toad"))


def _uv(*words: str) -> bool:
    ended = subprocess.run(
        [str(BESIDE / "uv"), *words],
        capture_output=True,
        env={**os.environ, "UV_HTTP_RETRIES": "0"},
        timeout=_PATIENCE,
        check=False,
    )
    return not ended.returncode
