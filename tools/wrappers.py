"""Programs that run the command they are given: which command that is.

It looks at no disk and at no environment, and parses nothing: text that a shell would read is
handed out.

Rule 1: what cannot be told is said to be hidden; nothing is passed over.
Rule 2: where the options of a wrapper end is a guess as soon as one is not known: then every rest
of its words may be the command.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from tools.argv import Seen
from tools.frozen import frozen

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.DOTALL)


@frozen
class Inner:
    """What a command runs besides itself."""

    commands: tuple[Seen, ...] = ()
    guesses: tuple[Seen, ...] = ()
    """Any of these may be the command."""
    texts: tuple[str, ...] = ()
    """Read by a shell."""
    hidden: bool = False
    """It runs what does not stand in the line."""


@frozen
class _Wrapper:
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


def name_of(command: Seen) -> str | None:
    """The program, whatever folder it is called from; None: it cannot be told."""
    if not command or command[0] is None:
        return None
    return command[0].rpartition("/")[2].casefold()


def inner(command: Seen) -> Inner:
    """What this command runs besides itself."""
    name = name_of(command)
    if name is None or name in _RESERVED:
        return Inner(hidden=True)
    rest = command[1:]
    if name in _WRAPPERS:
        return _wrapped(_WRAPPERS[name], rest)
    if found := _RUNNERS.get(name, {}).get(next(iter(rest), None) or ""):
        return _wrapped(found, rest[1:])
    if name.startswith("git-"):
        return Inner(commands=(("git", name[4:], *rest),))
    special = _SPECIAL.get(name)
    return Inner() if special is None else special(rest)


def _wrapped(wrapper: _Wrapper, rest: Seen) -> Inner:
    start, sure = _start(wrapper, rest)
    end: Seen = (None,) if wrapper.more else ()
    command = rest[start:]
    guesses = () if sure else tuple(rest[n:] + end for n in range(len(rest)))
    return Inner(commands=(command + end,) if command else (), guesses=guesses)


def _start(wrapper: _Wrapper, rest: Seen) -> tuple[int, bool]:
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


def _option(wrapper: _Wrapper, word: str) -> tuple[int, bool]:
    """How many words an option takes, and whether it is known."""
    if word.startswith("--"):
        if "=" in word:
            return 1, True
        return (2, True) if word[2:] in wrapper.long else (1, word[2:] in wrapper.flags)
    last = next((n for n, letter in enumerate(word[1:], 1) if letter in wrapper.values), None)
    if last is None:
        return 1, wrapper.values != ""
    return (2 if last == len(word) - 1 else 1), True


def _env(rest: Seen) -> Inner:
    splits = any(word is not None and re.match(r"-[^-]*S|--split", word) for word in rest)
    found = _wrapped(_Wrapper("uC", ("unset", "chdir"), flags=("ignore-environment",)), rest)
    return Inner(found.commands, found.guesses, hidden=splits)


def _shell(rest: Seen) -> Inner:
    """A shell: the text behind -c, a script, or what comes on standard input."""
    wants_text = False
    words = iter(rest)
    for word in words:
        if word is None:
            return Inner(hidden=True)
        if word in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file"):
            next(words, None)
        elif word.startswith(("-", "+")):
            wants_text = wants_text or (not word.startswith("--") and "c" in word)
        else:
            return Inner(texts=(word,)) if wants_text else Inner()
    return Inner(hidden=True)


def _text(rest: Seen) -> Inner:
    """Its words, joined, are read by the shell."""
    known = [word for word in rest if word is not None]
    return Inner(texts=(" ".join(known),), hidden=len(known) < len(rest))


def _first_text(rest: Seen) -> Inner:
    operands = [word for word in rest if word is None or not word.startswith("-")]
    first = operands[0] if operands else ""
    return Inner(hidden=True) if first is None else Inner(texts=(first,))


def _find(rest: Seen) -> Inner:
    """What stands between -exec and its end; an expansion may hold another one."""
    starts = [n for n, word in enumerate(rest, 1) if word in _ACTIONS]
    commands = tuple(tuple(_until_end(rest[start:])) for start in starts)
    return Inner(commands=commands, hidden=None in rest)


def _until_end(words: Sequence[str | None]) -> Iterator[str | None]:
    for word in words:
        if word in (";", "+"):
            return
        yield word


def _hidden(_rest: Seen) -> Inner:
    return Inner(hidden=True)


def _su(rest: Seen) -> Inner:
    texts = tuple(
        word
        for option, word in pairwise(rest)
        if option in ("-c", "--command", "--session-command") and word is not None
    )
    return Inner(texts=texts, hidden=not texts)


def _option_text(*options: str, wrapper: _Wrapper | None = None) -> Callable[[Seen], Inner]:
    """A program that has a shell read what follows such an option, or else runs its words."""

    def read(rest: Seen) -> Inner:
        for option, word in pairwise(rest):
            # script -qc TEXT: the letter may stand among others.
            short = option is not None and re.match(r"-[A-Za-z]+\Z", option) and option[-1]
            if option in options or (short and f"-{short}" in options):
                return Inner(hidden=True) if word is None else Inner(texts=(word,))
        return Inner() if wrapper is None else _wrapped(wrapper, rest)

    return read


def _git(rest: Seen) -> Inner:
    """The ways of git to run a command for each of some things."""
    words = list(rest)
    for runner in ("foreach", "run"):
        if words[:1] in (["submodule"], ["bisect"]) and runner in words:
            after = words[words.index(runner) + 1 :]
            while after[:1] and (after[0] or "").startswith("-"):
                del after[0]
            return Inner((tuple(after),), texts=_text(tuple(after)).texts)
    return _option_text("-x", "--exec")(rest) if words[:1] == ["rebase"] else Inner()


_RESERVED = frozenset(
    {
        *("!", "{", "}", "(", ")", "[[", "case", "do", "done", "elif", "else", "esac", "fi", "for"),
        *("function", "if", "in", "select", "then", "until", "while"),
    }
)
"""bash(1), Reserved Words: where one stands in the place of a program, bash read on."""

_ACTIONS = ("-exec", "-execdir", "-ok", "-okdir")

_WRAPPERS: Mapping[str, _Wrapper] = {
    **dict.fromkeys(
        (
            *("arch", "builtin", "busybox", "bunx", "caffeinate", "coproc", "dbus-run-session"),
            *("eatmydata", "fakeroot", "firejail", "i386", "linux32", "linux64", "ltrace"),
            *("nohup", "npx", "nsenter", "numactl", "pipx", "pkexec", "prlimit", "proot"),
            *("proxychains", "rlwrap", "run0", "setarch", "setpriv", "setsid", "systemd-run"),
            *("torsocks", "toybox", "unbuffer", "unshare", "uvx", "valgrind", "xvfb-run"),
        ),
        _Wrapper(),
    ),
    "chroot": _Wrapper(operands=1),
    "chrt": _Wrapper("TPD", operands=1),
    "command": _Wrapper("-"),
    "doas": _Wrapper("uC"),
    "exec": _Wrapper("a"),
    "ionice": _Wrapper("cnpPu"),
    "nice": _Wrapper("n", ("adjustment",)),
    "stdbuf": _Wrapper("ioe", ("input", "output", "error")),
    "strace": _Wrapper("abeEIoOpPsSuX"),
    "sudo": _Wrapper(
        "CDghpRrtTuU",
        ("user", "group", "chdir", "host", "prompt", "role", "type"),
        flags=("preserve-env", "login", "non-interactive", "set-home", "stdin"),
    ),
    "taskset": _Wrapper("-", operands=1),
    "time": _Wrapper("fo", ("format", "output"), flags=("portability", "verbose")),
    "timeout": _Wrapper(
        "ks",
        ("kill-after", "signal"),
        operands=1,
        flags=("foreground", "preserve-status", "verbose"),
    ),
    "xargs": _Wrapper(
        "adEILnPs",
        ("arg-file", "delimiter", "max-args", "max-procs", "max-chars", "max-lines", "replace"),
        more=True,
        flags=("null", "no-run-if-empty", "verbose", "exit", "interactive"),
    ),
}
"""By name: programs whose further words, after their options, are a command."""

_RUN: Mapping[str, _Wrapper] = {"run": _Wrapper()}
_EXEC: Mapping[str, _Wrapper] = dict.fromkeys(("dlx", "exec", "x"), _Wrapper())

_RUNNERS: Mapping[str, Mapping[str, _Wrapper]] = {
    **dict.fromkeys(("hatch", "pdm", "pipenv", "poetry", "rye", "uv"), _RUN),
    **dict.fromkeys(("asdf", "bundle", "mise", "npm", "pnpm", "pyenv", "rbenv", "yarn"), _EXEC),
    "conda": {"run": _Wrapper("np", ("name", "prefix", "cwd"))},
    "direnv": {"exec": _Wrapper(operands=1)},
}
"""By name and first word: programs of which some command runs the words that follow."""

_SPECIAL: Mapping[str, Callable[[Seen], Inner]] = {
    **dict.fromkeys(("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash"), _shell),
    **dict.fromkeys(
        (".", "alias", "enable", "fc", "hash", "mapfile", "parallel", "readarray", "source"),
        _hidden,
    ),
    "env": _env,
    "eval": _text,
    "find": _find,
    "flock": _option_text("-c", "--command", wrapper=_Wrapper("wE", operands=1)),
    "git": _git,
    "script": _option_text("-c", "--command"),
    "sg": _option_text("-c"),
    "su": _su,
    "runuser": _su,
    "trap": _first_text,
    "watch": _text,
}
"""By name: programs that come to a command in a way of their own."""
