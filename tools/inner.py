"""What a command runs besides itself: wrappers, shells, and others that run what they are given.

It looks at no disk and at no environment, and parses nothing: text that a shell would read is
handed out. Wrappers are a table of their own, in tools/wrappers.py.

Rule 1: what cannot be told is said to be hidden; nothing is passed over.
Rule 2: where the options of a wrapper end is a guess as soon as one is not known: then the command
may stand anywhere among its words.
Rule 3: so it may in what is told to any program that is not known to run none of its words.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from tools.argv import Argv
from tools.frozen import frozen
from tools.quiet import runs_none
from tools.wrappers import LOADER, LOADING, RUNNERS, WRAPPERS, Wrapper, start

_Reader: TypeAlias = "Callable[[Argv], Inner]"


@frozen
class Inner:
    """What a command runs besides itself."""

    commands: tuple[Argv, ...] = ()
    guesses: tuple[Argv, ...] = ()
    """A command may stand among these words, or within one of them."""
    texts: tuple[str, ...] = ()
    """Read by a shell."""
    hidden: bool = False
    """It runs what does not stand in the line."""


def name_of(command: Argv) -> str | None:
    """The program, whatever folder it is called from; None: it cannot be told."""
    if not command or command[0] is None:
        return None
    return command[0].rpartition("/")[2].casefold()


def runs_another(command: Argv) -> bool:
    """Whether this command is seen to run another one."""
    found = inner(command)
    return bool(found.commands or found.texts or found.hidden)


def inner(command: Argv) -> Inner:
    """What this command runs besides itself."""
    name = name_of(command)
    if name is None or name in _RESERVED:
        return Inner(hidden=True)
    rest = command[1:]
    if name in WRAPPERS:
        return _wrapped(WRAPPERS[name], rest)
    if LOADER.fullmatch(name):
        return _wrapped(LOADING, rest)
    if found := RUNNERS.get(name, {}).get(next(iter(rest), None) or ""):
        return _wrapped(found, rest[1:])
    if name.startswith("git-"):
        return Inner(commands=(("git", name[4:], *rest),))
    if name == "git":
        return _git(rest)
    special = _SPECIAL.get(name)
    known = Inner() if special is None else special(rest)
    return _guessed(command) if known == Inner() else known


def _guessed(command: Argv) -> Inner:
    if runs_none(command):
        return Inner()
    # sed(1), the command s: a slash ends what is to be run.
    apart = tuple(word and word.replace("/", " ") for word in command[1:])
    return Inner(guesses=(command[1:], apart) if name_of(command) == "sed" else (command[1:],))


def _wrapped(wrapper: Wrapper, rest: Argv) -> Inner:
    begin, sure = start(wrapper, rest)
    end: Argv = (None,) if wrapper.more else ()
    command = rest[begin:]
    # Some of them, as hatch does, hand a text to a shell.
    is_text = bool(command) and re.search(r"\s", command[0] or "") is not None
    guesses = () if sure and not is_text else (rest + end,)
    return Inner((command + end,) if command else (), guesses, hidden=not sure and None in rest)


def _env(rest: Argv) -> Inner:
    splits = any(word is not None and re.match(r"-[^-]*S|--split", word) for word in rest)
    found = _wrapped(Wrapper("uC", ("unset", "chdir"), flags=("ignore-environment",)), rest)
    return Inner(found.commands, found.guesses, hidden=splits)


def _shell(rest: Argv) -> Inner:
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


def _text(rest: Argv) -> Inner:
    """Its words, joined, are read by the shell."""
    known = [word for word in rest if word is not None]
    return Inner(texts=(" ".join(known),), hidden=len(known) < len(rest))


def _first_text(rest: Argv) -> Inner:
    operands = [word for word in rest if word is None or not word.startswith("-")]
    first = operands[0] if operands else ""
    return Inner(hidden=True) if first is None else Inner(texts=(first,))


def _find(rest: Argv) -> Inner:
    """What stands between -exec and its end; an expansion may hold another one."""
    starts = [n for n, word in enumerate(rest, 1) if word in _ACTIONS]
    commands = tuple(tuple(_until_end(rest[start:])) for start in starts)
    return Inner(commands=commands, hidden=None in rest)


def _until_end(words: Sequence[str | None]) -> Iterator[str | None]:
    for word in words:
        if word in (";", "+"):
            return
        yield word


def _hidden(_rest: Argv) -> Inner:
    return Inner(hidden=True)


def _interpreter(rest: Argv) -> Inner:
    """What a language's interpreter runs without a program comes on standard input."""
    return Inner(hidden=not rest or "-" in rest)


def _su(rest: Argv) -> Inner:
    texts = tuple(
        word
        for option, word in pairwise(rest)
        if option in ("-c", "--command", "--session-command") and word is not None
    )
    return Inner(texts=texts, hidden=not texts)


def _option_text(*options: str, wrapper: Wrapper | None = None) -> _Reader:
    """A program that has a shell read what follows such an option, or else runs its words."""

    def read(rest: Argv) -> Inner:
        for option, word in pairwise((*rest, "")):
            long, is_joined, value = (option or "").partition("=")
            if is_joined and long in options:
                return Inner(texts=(value,))
            if option is not None and _is_given(option, options):
                return Inner(hidden=True) if word is None else Inner(texts=(word,))
        return Inner() if wrapper is None else _wrapped(wrapper, rest)

    return read


def _is_given(word: str, options: Sequence[str]) -> bool:
    # script -qc TEXT: the letter may stand among others.
    short = re.fullmatch(r"-[A-Za-z]+", word) is not None
    return word in options or (short and f"-{word[-1]}" in options)


def _after(*options: str) -> _Reader:
    """A program that runs the words behind such an option, up to a semicolon."""

    def read(rest: Argv) -> Inner:
        starts = [n for n, word in enumerate(rest, 1) if word and _is_given(word, options)]
        return Inner(
            tuple(tuple(_until_end(rest[start:])) for start in starts if start < len(rest))
        )

    return read


def _told(wrapper: Wrapper) -> _Reader:
    """The words behind its options, joined, are read by the shell."""

    def read(rest: Argv) -> Inner:
        begin, sure = start(wrapper, rest)
        found = _text(rest[begin:])
        return Inner((), () if sure else (rest,), found.texts, found.hidden)

    return read


def _typed(rest: Argv) -> Inner:
    """Each of its words may be a line for a shell, or all of them together."""
    texts = tuple(word for word in rest if word is not None and re.search(r"\s", word))
    return Inner(guesses=(rest,), texts=texts, hidden=None in rest)


def _git(rest: Argv) -> Inner:
    """The ways of git to run a command for each of some things, or in the place of its own."""
    settings, words = _settings(list(rest))
    values = [(one or "").partition("=")[2] for one in settings]
    texts = tuple(value[1:] for value in values if value.startswith("!"))
    found = _git_command(tuple(words))
    guesses = (*found.guesses, *((value,) for value in values if value))
    return Inner(found.commands, guesses, (*texts, *found.texts), found.hidden or None in settings)


def _settings(words: list[str | None]) -> tuple[Argv, list[str | None]]:
    """What -c sets; and the words from git's command on."""
    settings: list[str | None] = []
    while words and (words[0] or "").startswith("-"):
        option = words.pop(0)
        if option in GIT_VALUES and words:
            value = words.pop(0)
            settings += [value] * (option == "-c")
    return tuple(settings), words


def _git_command(words: Argv) -> Inner:
    for runner in ("foreach", "run"):
        if words[:1] in (("submodule",), ("bisect",)) and runner in words:
            after = list(words[words.index(runner) + 1 :])
            while after[:1] and (after[0] or "").startswith("-"):
                del after[0]
            return Inner((tuple(after),), texts=_text(tuple(after)).texts)
    found = _option_text("-x", "--exec")(words) if words[:1] == ("rebase",) else Inner()
    if found != Inner() or runs_none(("git", *words)):
        return found
    return Inner(guesses=(words[1:],))


_RESERVED = frozenset(
    {
        *("!", "{", "}", "(", ")", "[[", "case", "do", "done", "elif", "else", "esac", "fi", "for"),
        *("function", "if", "in", "select", "then", "until", "while"),
    }
)
"""bash(1), Reserved Words: where one stands in the place of a program, bash read on."""

GIT_VALUES = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix")
"""git(1): options before its command that take the next word."""

_ACTIONS = ("-exec", "-execdir", "-ok", "-okdir")

_SPECIAL: Mapping[str, _Reader] = {
    **dict.fromkeys(
        (
            *("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash", "csh", "tcsh"),
            *("oksh", "yash"),
        ),
        _shell,
    ),
    **dict.fromkeys(
        (
            *(".", "alias", "at", "batch", "enable", "fc", "hash", "mapfile", "parallel"),
            *("readarray", "source"),
        ),
        _hidden,
    ),
    **dict.fromkeys(
        ("lua", "node", "perl", "php", "python", "python3", "ruby", "tclsh"), _interpreter
    ),
    **dict.fromkeys(("fd", "fdfind"), _after("-x", "-X", "--exec", "--exec-batch")),
    "entr": _option_text("-s", wrapper=Wrapper("-")),
    "env": _env,
    "eval": _text,
    "find": _find,
    "flock": _option_text("-c", "--command", wrapper=Wrapper("wE", operands=1)),
    "gdb": _after("--args", "-args"),
    "nix": _after("-c", "--command"),
    "nix-shell": _option_text("--run", "--command"),
    "npx": _option_text("-c", "--call", wrapper=Wrapper()),
    "script": _option_text("-c", "--command"),
    "sg": _option_text("-c"),
    "su": _su,
    "runuser": _su,
    "tmux": _typed,
    "trap": _first_text,
    "watch": _told(Wrapper("nqs", ("interval", "equexit", "shotsdir"))),
}
"""By name: programs that come to a command in a way of their own."""
