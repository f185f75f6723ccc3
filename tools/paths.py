"""Paths as the model writes them: what they mean, how they look, and what is delicate about them.

It looks at no disk. Paths are compared by their parts, never by their beginnings as text.
"""

import posixpath
import re
import unicodedata

from tools.base import Place
from tools.late import pattern

_SECRET_NAME = pattern(
    r"\.env|\.env\..*(?<!\.example)(?<!\.sample)(?<!\.template)"
    r"|id_[^.]*|.*\.(pem|key|p12|kdbx)"
    r"|\.netrc|\.npmrc|\.pypirc|\.git-credentials|credentials"
)
_SECRET_FOLDER = frozenset({".aws", ".ssh", ".gnupg", ".kube"})
_SECRET_END = ((".docker", "config.json"), ("responses-acp", "config.toml"))

PROTECTED = frozenset(
    {
        ".git", ".vscode", ".idea", ".zed", ".envrc", ".mcp.json", ".responses-acp.toml",
        ".claude", ".codex", ".cursor", ".gemini",
    },
)  # fmt: skip
"""Names of what other programs run: hooks, tasks, servers, settings of editors and agents."""

_PROCESS = pattern(r"/proc/(self|thread-self|\d+)(/.*)?")
"""Memory, environment and open files of processes, ours among them."""

_UNSEEN = pattern(
    "[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that would change how the text around them looks."""

_URL_OR_DRIVE = pattern(r"[A-Za-z][A-Za-z0-9+.-]*://|[A-Za-z]:[\\/]|file:")


def absolute(path: str, cwd: str) -> str:
    """The path without `.` and `..`, from the session's working directory on."""
    plain = posixpath.normpath(posixpath.join(cwd, path))
    return "/" + plain.lstrip("/")


def shown(path: str, cwd: str) -> str:
    """The path for a title: relative inside the working directory, without unseen characters."""
    whole = absolute(path, cwd)
    short = posixpath.relpath(whole, cwd) if is_inside(whole, cwd) else whole
    return _UNSEEN.sub("\ufffd", short)


def places(path: str, cwd: str, line: int | None = None) -> tuple[Place, ...]:
    """The file for editors that follow along; none where its name could not be shown."""
    whole = absolute(path, cwd)
    return (Place(whole, line),) if path.strip() and not _UNSEEN.search(whole) else ()


def is_inside(path: str, *roots: str) -> bool:
    """The path is one of the roots or lies below one; all are absolute and plain."""
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def fault(path: str) -> str:
    """What is wrong with a path before anything is looked up; nothing, if it can be tried."""
    if not path.strip():
        return "file_path is empty"
    if re.search("[\0\ud800-\udfff]", path):
        return "file_path holds a character that no path can hold"
    if re.match(r"~[^/]*/|~$", path):
        return f'"{path}" is not a path: ~ stands for no folder here, give an absolute path'
    if _URL_OR_DRIVE.match(path):
        return f'"{path}" is not a path here: give a plain path, absolute or relative'
    return ""


def is_off_limits(path: str) -> bool:
    """A resolved path that no tool opens, whoever allows it."""
    return _PROCESS.fullmatch(path) is not None


def is_secret(path: str) -> bool:
    """The name is one that usually holds credentials."""
    parts = _parts(path)
    return (
        _SECRET_NAME.fullmatch(parts[-1]) is not None
        or not _SECRET_FOLDER.isdisjoint(parts[:-1])
        or tuple(parts[-2:]) in _SECRET_END
    )


def is_protected(path: str) -> bool:
    """Other programs may run what stands there: hooks, tasks, servers, our own settings."""
    return not PROTECTED.isdisjoint(_parts(path))


def folded(path: str) -> str:
    """The path as a file system that ignores case and invisible characters compares it."""
    visible = "".join(mark for mark in path if unicodedata.category(mark) != "Cf")
    return unicodedata.normalize("NFC", visible.casefold())


def _parts(path: str) -> list[str]:
    return folded(path).split("/")
