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


def looks_secret(name: str) -> bool:
    """Whether a variable, or a header, of this name usually holds a secret."""
    return _LOOKS_SECRET.search(name) is not None and name not in _HARMLESS


def _is_unwanted(name: str) -> bool:
    return looks_secret(name) or _CHANGES_SHELL.fullmatch(name) is not None


def _reveals(value: str, secrets: tuple[str, ...]) -> bool:
    return any(
        secret in value if len(secret) >= _SHORTEST_SECRET else secret == value
        for secret in secrets
    )
