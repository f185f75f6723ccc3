"""The user's login shell, asked for its environment.

Rule 1: it runs as the user would run it, in the session's folder: its own files decide what it does
there, and tools like direnv only load what the user has allowed.
Rule 2: it has a few seconds; nothing it started is left.
"""

import os
import tempfile
from collections.abc import Mapping

from anyio.to_thread import run_sync

from tools.offspring import MARK
from tools.process import Launch, follow

PATIENCE = 3.0
"""Seconds."""

_FILE = "RESPONSES_ACP_ENVIRONMENT"

_PRINT = f'env -0 >"${_FILE}"'
_HOOKS = {
    "bash": 'for hook in "${PROMPT_COMMAND[@]}"; do eval "$hook"; done; ',
    "zsh": "for hook in $chpwd_functions $precmd_functions; do $hook; done; ",
    "fish": "emit fish_prompt; ",
}
"""What these shells do before a prompt: there direnv and its like come in."""


async def login_environment(
    own: Mapping[str, str], cwd: str, patience: float = PATIENCE
) -> dict[str, str] | None:
    """The environment in this folder; None where the shell did not say in time."""
    shell, home = await run_sync(_user, own)
    with tempfile.TemporaryDirectory(prefix="responses-acp-") as folder:
        file = f"{folder}/environment"
        hooks = _HOOKS.get(os.path.basename(shell), "")
        argv = (shell, "-l", "-i", "-c", f"{hooks}{_PRINT}")
        launch = Launch(argv, {"HOME": home, **own, _FILE: file}, cwd)
        try:
            await follow(launch, seconds=patience, output=lambda _: None)
            return await run_sync(_read, file)
        except OSError:
            return None


def _user(own: Mapping[str, str]) -> tuple[str, str]:
    """The shell and the home of the user."""
    try:
        import pwd  # noqa: PLC0415 (not on Windows, where nobody comes here)

        entry = pwd.getpwuid(os.getuid())
        shell, home = entry.pw_shell, entry.pw_dir
    except KeyError:
        shell, home = "", "/"
    named = own.get("SHELL", "")
    return (named if os.path.isabs(named) else shell) or "/bin/sh", home


def _read(file: str) -> dict[str, str] | None:
    """What env wrote; None where it did not come to that."""
    with open(file, encoding="utf-8", errors="surrogateescape", newline="") as opened:
        pairs = [line.partition("=") for line in opened.read().split("\0") if "=" in line]
    found = {name: text for name, _, text in pairs if name not in (_FILE, MARK)}
    return found if "PATH" in found else None
