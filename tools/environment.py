"""The environment a command gets: the user's own, without keys and without what changes a shell.

Pure: environment in, environment out.
"""

import re
from collections.abc import Iterable, Mapping

_LOOKS_SECRET = re.compile(
    r"KEY|SECRET|TOKEN|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE
)
_HARMLESS = frozenset(
    {"SSH_AUTH_SOCK", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"},
)
"""Names that only look secret. A command that may use the user's agent for ssh is as free as one
the user types; what confines commands drops that variable too."""

_CHANGES_SHELL = re.compile(
    r"BASH_ENV|ENV|PROMPT_COMMAND|PS4|SHELLOPTS|BASHOPTS|BASH_XTRACEFD|CDPATH|BASH_FUNC_.*"
)
"""bash(1), Shell Variables: each of these makes a plain command do something else."""

_SHORTEST_SECRET = 8
"""Anything shorter occurs in other values by chance: it must be the whole value."""

_FIXED = {
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "false",
}
"""Nobody sits at a terminal: no colours, no pager, no editor, no password prompt."""

_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def child_environment(
    inherited: Mapping[str, str], secrets: Iterable[str], key_names: Iterable[str], scratch: str
) -> dict[str, str]:
    """The environment of a command.

    secrets are the loaded keys, key_names the variables that the configuration reads keys from,
    scratch is the folder for temporary files.
    """
    known = tuple(secret for secret in secrets if secret)
    dropped = frozenset(key_names)
    kept = {
        name: value
        for name, value in inherited.items()
        if name not in dropped and not _is_unwanted(name) and not _reveals(value, known)
    }
    return {"PATH": _DEFAULT_PATH, **kept, **_FIXED, "TMPDIR": scratch}


_LEADS_OUT = frozenset(
    {"SSH_AUTH_SOCK", "SSH_AGENT_PID", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY"}
    | {"WAYLAND_DISPLAY", "XAUTHORITY", "DOCKER_HOST", "GPG_AGENT_INFO"}
)
"""Ways to programs that act for the user; in a sandbox they lead nowhere."""

_CACHES = {
    "XDG_CACHE_HOME": "",
    "UV_CACHE_DIR": "uv",
    "PIP_CACHE_DIR": "pip",
    "npm_config_cache": "npm",
    "GOCACHE": "go-build",
}
"""Variable -> folder of the session's own cache."""

_DOWNLOADS = {"CARGO_HOME": "cargo", "GOMODCACHE": "go-mod"}
"""The same for tools that work from a cache they cannot write to, as long as it has everything."""


def confined_environment(
    environment: Mapping[str, str], scratch: str, *, network: bool
) -> dict[str, str]:
    """The environment of a command that can write to its own folders only.

    The user's caches stay readable where they are; what tools want to add goes to the session's.
    """
    kept = {name: value for name, value in environment.items() if name not in _LEADS_OUT}
    folders = {**_CACHES, **(_DOWNLOADS if network else {})}
    cache = f"{scratch}/cache"
    caches = {name: f"{cache}/{folder}".rstrip("/") for name, folder in folders.items()}
    # git-status(1): without it looking writes, and would complain that it cannot.
    return {**kept, **caches, "GIT_OPTIONAL_LOCKS": "0"}


def _is_unwanted(name: str) -> bool:
    looks_secret = _LOOKS_SECRET.search(name) is not None and name not in _HARMLESS
    return looks_secret or _CHANGES_SHELL.fullmatch(name) is not None


def _reveals(value: str, secrets: tuple[str, ...]) -> bool:
    return any(
        secret in value if len(secret) >= _SHORTEST_SECRET else secret == value
        for secret in secrets
    )
