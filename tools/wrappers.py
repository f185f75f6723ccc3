"""Programs whose further words are a command, as a table; and where in them the command begins.

It looks at no disk and at no environment.

Rule 1: an option that is not known makes the beginning a guess, and the guess is said to be one.
"""

import re
from collections.abc import Mapping

from tools.argv import Argv
from tools.frozen import frozen

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.DOTALL)


@frozen
class Wrapper:
    """How the words of a wrapper are read."""

    values: str = ""
    """Letters of options that take the next word."""
    long: tuple[str, ...] = ()
    """Long options that do."""
    operands: int = 0
    """Words before the command that are none of it."""
    more: bool = False
    """Further words come from elsewhere."""
    flags: tuple[str, ...] = ()
    """Long options without a value."""


def start(wrapper: Wrapper, rest: Argv) -> tuple[int, bool]:
    """Where the command begins, and whether every word before it is known."""
    place, sure, operands = 0, True, wrapper.operands
    while place < len(rest):
        word = rest[place]
        if word is None:
            return place, sure
        if word == "--":
            place += 1
        elif word.startswith("-") and len(word) > 1:
            taken, known = _option(wrapper, word)
            place, sure = place + taken, sure and known
        elif _ASSIGNMENT.match(word):
            place += 1
        elif operands:
            place, operands = place + 1, operands - 1
        else:
            return place, sure
    return place, sure


def _option(wrapper: Wrapper, word: str) -> tuple[int, bool]:
    """How many words an option takes, and whether it is known."""
    if word.startswith("--"):
        if "=" in word:
            return 1, True
        return (2, True) if word[2:] in wrapper.long else (1, word[2:] in wrapper.flags)
    last = next((n for n, letter in enumerate(word[1:], 1) if letter in wrapper.values), None)
    if last is None:
        return 1, wrapper.values != ""
    return (2 if last == len(word) - 1 else 1), True


LOADER = re.compile(r"ld(-[\w.-]+)?\.so(\.\d+)*")
"""ld.so(8): the loader runs the program it is given."""

LOADING = Wrapper(long=("argv0", "audit", "library-path", "preload"))

WRAPPERS: Mapping[str, Wrapper] = {
    **dict.fromkeys(
        (
            *("arch", "builtin", "busybox", "bunx", "bwrap", "caffeinate", "catatonit", "ccache"),
            *("catchsegv", "coproc", "coreutils", "cross-env", "dbus-launch", "dbus-run-session"),
            *("distcc", "dumb-init", "eatmydata", "fakechroot", "fakeroot", "firejail"),
            *("heaptrack", "i386", "landrun", "linux32", "linux64", "ltrace", "nohup", "nsenter"),
            *("nsjail", "numactl", "pgrphack", "pipx", "pkexec", "prlimit", "proot", "proxychains"),
            *("proxychains4", "reflex", "retry", "rlwrap", "run0", "setarch", "setpriv", "setsid"),
            *("systemd-inhibit", "systemd-run", "tini", "torsocks", "toybox", "tsocks", "unbuffer"),
            *("unshare", "uvx", "valgrind", "watchexec", "wine", "xvfb-run"),
        ),
        Wrapper(),
    ),
    **dict.fromkeys(
        ("envdir", "envuidgid", "gosu", "s6-setuidgid", "setuidgid", "su-exec"),
        Wrapper("-", operands=1),
    ),
    "cgexec": Wrapper("g", flags=("sticky",)),
    "choom": Wrapper("np", ("adjust", "pid")),
    "chpst": Wrapper("uUbe/CnlLmdopfcrt"),
    "chroot": Wrapper(operands=1),
    "chrt": Wrapper("TPD", operands=1),
    "command": Wrapper("-"),
    "cpulimit": Wrapper("lepP", ("limit", "exe", "pid", "path")),
    "doas": Wrapper("uC"),
    "exec": Wrapper("a"),
    "faketime": Wrapper("p", operands=1),
    "ionice": Wrapper("cnpPu"),
    "nice": Wrapper("n", ("adjustment",)),
    "screen": Wrapper("ceEhpsStT"),
    "setlock": Wrapper("-", operands=1),
    "softlimit": Wrapper("acdflmoprst"),
    "sshpass": Wrapper("dfpP"),
    "stdbuf": Wrapper("ioe", ("input", "output", "error")),
    "strace": Wrapper("abeEIoOpPsSuX"),
    "sudo": Wrapper(
        "CDghpRrtTuU",
        ("user", "group", "chdir", "host", "prompt", "role", "type"),
        flags=("preserve-env", "login", "non-interactive", "set-home", "stdin"),
    ),
    "taskset": Wrapper("-", operands=1),
    "time": Wrapper("fo", ("format", "output"), flags=("portability", "verbose")),
    "timelimit": Wrapper("tTsS"),
    "timeout": Wrapper(
        "ks",
        ("kill-after", "signal"),
        operands=1,
        flags=("foreground", "preserve-status", "verbose"),
    ),
    "uclampset": Wrapper("mMp"),
    "xargs": Wrapper(
        "adEILnPs",
        ("arg-file", "delimiter", "max-args", "max-procs", "max-chars", "max-lines", "replace"),
        more=True,
        flags=("null", "no-run-if-empty", "verbose", "exit", "interactive"),
    ),
}
"""By name: programs whose further words, after their options, are a command."""

_RUN: Mapping[str, Wrapper] = {"run": Wrapper()}
_EXEC: Mapping[str, Wrapper] = dict.fromkeys(("dlx", "exec", "x"), Wrapper())
_IN_CONDA: Mapping[str, Wrapper] = {"run": Wrapper("np", ("name", "prefix", "cwd"))}

RUNNERS: Mapping[str, Mapping[str, Wrapper]] = {
    **dict.fromkeys(
        (
            *("dotenv", "doppler", "foreman", "hatch", "honcho", "infisical", "op", "pdm"),
            *("pipenv", "pixi", "poetry", "rye", "uv"),
        ),
        _RUN,
    ),
    **dict.fromkeys(
        ("asdf", "bun", "bundle", "mise", "npm", "pnpm", "pyenv", "rbenv", "tox", "yarn"), _EXEC
    ),
    **dict.fromkeys(("conda", "mamba", "micromamba"), _IN_CONDA),
    "direnv": {"exec": Wrapper(operands=1)},
    "perf": {"record": Wrapper(), "stat": Wrapper(), "trace": Wrapper()},
    "rr": {"record": Wrapper()},
}
"""By name and first word: programs of which some command runs the words that follow."""
