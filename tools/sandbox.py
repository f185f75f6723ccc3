"""What commands may touch, and how they are therefore started.

It knows places and layers; what the kernel has to do for them is in tools/confine.py.

Rule 1: what a command may touch is a Fence; how it is started is a pure function of the fence, of
what was found on disk, and of what this machine can enforce.
Rule 2: what this machine can enforce is found by trying to break out of it, once.
Rule 3: no environment variable and nothing the model says makes a fence wider.
"""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import field

from tools.base import Ended, Git, Reach
from tools.frozen import frozen
from tools.git_work import names
from tools.layers import Layers
from tools.paths import is_inside
from tools.probe import HELPER
from tools.protected import Place, Survey, guard

_HIDDEN = ("/run", "/var/run")
"""Where programs listen: containers, desktops, agents for keys."""
_HIDDEN_AT_HOME = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".password-store", ".mozilla",
    ".config/gcloud", ".config/gh", ".config/google-chrome", ".config/chromium",
    ".local/share/keyrings",
    ".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials", ".Xauthority",
    ".config/git/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".vault-token",
)  # fmt: skip
"""Keys and what opens other accounts."""
_TMP = "/tmp"  # noqa: S108 (the name that programs know)
_SHOWN = ("/run/current-system", "/run/wrappers", "/run/opengl-driver")
"""Parts of /run that hold the programs themselves on some systems."""

_REVEALING = (19, 21, 38)
"""capabilities(7): SYS_PTRACE, SYS_ADMIN, PERFMON. With one of them root looks into any process."""


@frozen
class Fence:
    """What the commands of one session may touch."""

    reach: Reach
    roots: tuple[str, ...]
    """Absolute and resolved."""
    scratch: str
    """The session's own temporary folder: what commands see as /tmp."""
    network: bool = False
    git: Git = field(default="always", kw_only=True)
    """Which commands may change the repositories of the roots."""
    hidden: tuple[str, ...] = field(default=(), kw_only=True)
    """More that must not be read: our own settings, sessions and keys."""
    home: str = field(default="", kw_only=True)
    """Empty: the user has none."""

    @property
    def writable(self) -> tuple[str, ...]:
        """The folders that may be changed. The root of all files never is one."""
        roots = self.roots if self.reach == "workspace-write" else ()
        return tuple(dict.fromkeys(root for root in (*roots, self.scratch) if root != "/"))


def survey(fence: Fence, cwd: str) -> Survey:
    """Look at the places that a fence is about."""
    roots = [root for root in fence.roots if root not in ("/", fence.scratch)]
    held = guard(roots, sealed=fence.git != "always")
    if fence.reach == "read-only":
        beside = (path for kind, path in held.places if kind in ("write", "read"))
        held = Survey(tuple(("read", path) for path in beside))
    at_home = [f"{fence.home}/{name}" for name in _HIDDEN_AT_HOME] if fence.home else []
    hidden = [*_HIDDEN, *at_home, *fence.hidden]
    shown = [*_SHOWN, *([os.path.realpath("/etc/resolv.conf")] if fence.network else [])]
    places = {os.path.realpath(path): "hide" for path in hidden if os.path.lexists(path)}
    covers = [*places, _TMP]
    for path in (*map(os.path.realpath, shown), *fence.roots, cwd):
        is_hidden = is_inside(path, *covers) and not is_inside(path, *fence.writable)
        if is_hidden and os.path.exists(path):
            places[path] = "read"
    # A folder that was opened is shown, whatever its name.
    places |= dict.fromkeys(fence.writable, "write")
    places |= {path: kind for kind, path in held.places}
    return Survey(tuple((kind, path) for path, kind in places.items()), held.watched)


def is_held(layers: Layers, fence: Fence) -> bool:
    """Whether anything but its user's rights limits a command inside this fence."""
    return fence.reach != "danger-full-access" and layers.hold.strength != "none"


def start(layers: Layers, fence: Fence, found: Survey, cwd: str, status: int) -> tuple[str, ...]:
    """What to put before a program's argv so that it runs inside the fence.

    status: the descriptor on which the helper says "ready", or why the program does not run.
    """
    helper = (sys.executable, *HELPER, f"status={status}", f"cwd={cwd}")
    if not is_held(layers, fence):
        return (*helper, f"shed={','.join(map(str, _REVEALING))}", "--")
    places = _ordered(found.places, fence.scratch)
    return (
        *helper,
        f"layers={layers.working}",
        f"network={'on' if fence.network else 'off'}",
        f"abi={layers.version}",
        *(f"{kind}={path}" for kind, path in places),
        "--",
    )


def _ordered(places: Sequence[Place], scratch: str) -> list[Place]:
    """Outer places before those inside them, with /tmp among them, and none that is in vain."""
    at = {path: kind for kind, path in places}
    covers = {_TMP: "tmp", **at}

    def is_visible(path: str) -> bool:
        around = [cover for cover in covers if cover != path and is_inside(path, cover)]
        return not around or covers[max(around, key=len)] not in ("hide", "tmp")

    kept = {path: kind for path, kind in at.items() if kind != "hide" or is_visible(path)}
    ordered = sorted({*kept, _TMP}, key=lambda path: path.split("/"))
    return [(kept[path], path) if path in kept else ("tmp", scratch) for path in ordered]


_REFUSED = re.compile(
    r"Read-only file system|Permission denied|Operation not permitted|Device or resource busy"
    r"|EROFS|EACCES|EPERM"
)
_UNREACHED = re.compile(
    r"Network is unreachable|Could not resolve host|Temporary failure in name resolution"
    r"|Name or service not known|Connection refused|ENETUNREACH|EAI_AGAIN|No route to host"
)
_SEALED = {
    "commands": ".git can be changed only by a line that runs git itself, and names .git nowhere "
    'else, or with sandbox_permissions "git-write"',
    "never": ".git can be changed by no command here: the user has it so",
    "always": "hooks and settings of git stay as they are, and so does what belongs to worktrees "
    'elsewhere: "git-write" does not change that',
}
"""By who may change repositories: what is said where a command could not."""
_FIXED = re.compile(r"\b(config|hooks|info|worktrees)\b")
_TAIL = 4000
"""Characters at the end of the output in which a reason is looked for."""


def denials(ended: Ended, fence: Fence) -> tuple[str, ...]:
    """What the sandbox seems to have refused. It is a guess: the kernel tells only the program."""
    if not ended.code:
        return ()
    text = ended.stdout[-_TAIL:] + ended.stderr[-_TAIL:]
    under = f"under {fence.reach} mode"
    notes: list[str] = []
    if _REFUSED.search(text):
        notes.append(f"file access denied {under}")
    if fence.reach == "workspace-write" and _is_of_git(text, fence.git):
        notes.append(_SEALED[fence.git])
    if not fence.network and _UNREACHED.search(text):
        notes.append(f"network access denied {under}")
    return tuple(notes)


def _is_of_git(text: str, git: Git) -> bool:
    """Whether something in a repository was refused; of an open one, a part that stays as it is."""
    lines = (line for line in text.splitlines() if _REFUSED.search(line))
    return any(names(it, bare=False) and (git != "always" or _FIXED.search(it)) for it in lines)
