"""What is known of programs: when they only read, and by which arguments they do something else.

It looks at no disk and at no environment.

Rule 1: only reading is proven by name and by arguments; what SAFE does not know is not proven.
Rule 2: a pattern may become any file name, also one that looks like an option; it passes only
where no file name could do harm.
Rule 3: which files are read is not judged here.
Rule 4: a permission for the beginning of a command ends where its further words make the program
run another one, or write where nobody said.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from typing import TypeAlias

from tools.argv import Words

_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/")


def only_reads(command: Words) -> bool:
    """The command is proven to do nothing but read."""
    name, *arguments = command
    judge = SAFE.get(program(name.text))
    return judge is not None and judge(arguments)


def program(name: str) -> str:
    """The name of a program that is called by its name, or from where the system has it."""
    for folder in _SYSTEM_FOLDERS:
        name = name.removeprefix(folder)
    return name


def _always(_arguments: Words) -> bool:
    return True


def _without(arguments: Words, *, letters: str = "", words: tuple[str, ...] = ()) -> bool:
    """None of these options is given, also not among others or (as GNU allows) abbreviated."""
    for argument in arguments:
        text = argument.text
        name = text[2:].partition("=")[0]
        if argument.may_be_option():
            return False
        if text.startswith("--"):
            if name and any(word.startswith(name) for word in words):
                return False
        elif text.startswith("-") and (
            # go(1) and others write long names behind one dash too.
            text[1:].partition("=")[0] in words or not set(letters).isdisjoint(text)
        ):
            return False
    return True


def _find(arguments: Words) -> bool:
    acts = ("-delete", "-exec", "-fls", "-fprint", "-ok")
    return not any(
        argument.may_be_option() or argument.text.startswith(acts) for argument in arguments
    )


def _uniq(arguments: Words) -> bool:
    """At most one operand: the second is the file it writes."""
    operands = [word for word in arguments if word.text == "-" or not word.text.startswith("-")]
    return len(operands) <= 1 and not any(word.pattern for word in arguments)


_PRINTS = re.compile(r"(\d+|\$)(,(\d+|\$))?p")
_SUBSTITUTES = re.compile(
    r"s([/|,#@:!])((?:\\[^\n]|(?!\1)[^\\\n])*)\1((?:\\[^\n]|(?!\1)[^\\\n])*)\1[gpI\d]*"
)
"""sed(1): without the flags e and w, which run and write."""


def _sed(arguments: Words) -> bool:
    """Only `sed -n 3,5p FILE…` and `sed s/old/new/ FILE…`."""
    texts = (word.text for word in arguments)
    options = list(takewhile(lambda text: text.startswith("-"), texts))
    script, files = arguments[len(options) : len(options) + 1], arguments[len(options) + 1 :]
    return (
        set(options) <= {"-n", "-E", "-r"}
        and any(not word.pattern and _is_plain_script(word.text) for word in script)
        and not any(file.may_be_option() or file.text.startswith("-") for file in files)
    )


def is_plain_edit(arguments: Words) -> bool:
    """What sed(1) is given only reads and substitutes, be it in place."""
    texts = [word.text for word in arguments]
    aside = re.compile(r"-i.*|--in-place(=.*)?" + "|-e" * (texts.count("-e") == 1))
    return _sed([word for word in arguments if not aside.fullmatch(word.text)])


def _is_plain_script(text: str) -> bool:
    return any(form.fullmatch(text) for form in (_PRINTS, _SUBSTITUTES))


def _date(arguments: Words) -> bool:
    """Only options that show a date; an operand without `+` sets the clock."""
    shows = r"\+.*|-[uR]|-I.*|--(utc|iso-8601.*|rfc-.*|date=.*|reference=.*)"
    words = [word.text for word in arguments]
    for option in {"-d", "-r"} & set(words[:-1]):
        at = words.index(option)
        del words[at : at + 2]
    return not any(word.may_be_option() for word in arguments) and all(
        re.fullmatch(shows, word, re.DOTALL) for word in words
    )


SAFE: Mapping[str, Callable[[Words], bool]] = {
    **dict.fromkeys(
        (
            *("basename", "cat", "cd", "cut", "df", "diff", "dirname", "du", "echo", "false"),
            *("grep", "head", "ls", "nl", "pwd", "readlink", "realpath", "stat", "tail", "tr"),
            *("true", "type", "wc", "which"),
        ),
        _always,
    ),
    "date": _date,
    "file": partial(_without, letters="CzZ", words=("compile", "uncompress-noreport")),
    "find": _find,
    "printf": partial(_without, letters="v"),
    "rg": partial(_without, letters="z", words=("hostname-bin", "pre", "search-zip")),
    "sed": _sed,
    "sort": partial(
        _without, letters="oT", words=("compress-program", "output", "temporary-directory")
    ),
    "test": partial(_without, letters="vR"),
    "tree": partial(_without, letters="oR", words=("output",)),
    "uniq": _uniq,
}
"""By program: whether it only reads when it gets these arguments.

git is not here: the configuration of a repository makes it start other programs. printf -v and
test -v evaluate what they are given, as bash(1) says of array subscripts.
"""


_PARTS = frozenset(
    {
        "action", "cmd", "command", "config", "editor", "eval", "exec", "extcmd", "filter", "hook",
        "hooks", "import", "init", "interpreter", "loader", "pack", "pager", "plugin", "preload",
        "program", "prog", "rcfile", "require", "rsh", "run", "runner", "script", "shell",
        "toolexec", "vettool", "wrapper",
    }
)  # fmt: skip
"""Parts of names of options that, of one program or another, name what it runs or obeys."""

_PERIL: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(("apt", "apt-get", "aptitude"), ("oc", ("option", "config-file"))),
    "cargo": ("CZ", ("manifest-path",)),
    "curl": (
        "oOKTDcJ",
        (
            *("output", "remote-name", "upload-file", "dump-header", "cookie-jar", "trace"),
            *("libcurl", "stderr", "etag-save", "hsts", "alt-svc", "remote-header-name"),
        ),
    ),
    **dict.fromkeys(("fd", "fdfind"), ("xX", ("exec", "exec-batch"))),
    "git": (
        "",
        (
            *("config-env", "exec-path", "ext-diff", "extcmd", "output", "textconv", "template"),
            *("open-files-in-pager", "receive-pack", "upload-pack", "git-dir", "work-tree"),
        ),
    ),
    "git clone": ("cu", ()),
    "git grep": ("O", ()),
    "git rebase": ("x", ()),
    "go": ("C", ("overlay", "modfile")),
    "man": ("CPH", ("html", "browser")),
    "make": ("CEfI", ("directory", "file", "include-dir", "makefile")),
    "npm": ("C", ("prefix", "node-options", "userconfig", "globalconfig", "git", "viewer")),
    "rsync": ("e", ()),
    "ssh": ("oF", ()),
    "tar": ("FI", ("to-command", "use-compress-program", "info-script", "new-volume-script")),
    "uv": ("p", ("directory", "project", "python", "with", "with-requirements", "with-editable")),
    "wget": ("oO", ("output-document", "output-file", "use-askpass")),
    "zip": ("T", ("unzip-command",)),
}
"""By program, or program and its command: letters and long names of options that have it run, obey
or write something else."""


def goes_astray(words: Words, named: int) -> bool:
    """Whether what follows the first words, which were allowed, makes it another command."""
    name, rest = program(words[0].text), words[named:]
    return (
        _is_unsafe(name, words, named)
        or not all(_without(rest, letters=letters, words=long) for letters, long in _perils(words))
        or (name == "make" and any("=" in word.text for word in rest))
        or (name == "tar" and named == 1 and _is_old_style(rest))
        or any(_is_perilous(word.text) for word in rest)
    )


def _is_unsafe(name: str, words: Words, named: int) -> bool:
    """A program that may only read does more, and no option of it was allowed by name."""
    safe = SAFE.get(name)
    bare = not any(word.text.startswith("-") for word in words[1:named])
    return safe is not None and bare and not safe(words[1:])


def _perils(words: Words) -> list[tuple[str, tuple[str, ...]]]:
    """What is known of the program, and of its command."""
    name = program(words[0].text)
    names = (name, *(f"{name} {word.text}" for word in words[1:2]))
    return [_PERIL[one] for one in names if one in _PERIL]


def _is_old_style(rest: Words) -> bool:
    """tar(1): the first word may be letters of options without their dash."""
    return bool(rest) and not {"F", "I"}.isdisjoint(rest[0].text)


def _is_perilous(word: str) -> bool:
    # git-remote-ext(1): such an address is a command.
    if not word.startswith("-"):
        return word.startswith("ext::")
    name = word.lstrip("-").partition("=")[0].lower()
    return not _PARTS.isdisjoint(name.split("-"))


_Depth: TypeAlias = "int | Mapping[str, _Depth]"

_CHECKS: Mapping[str, _Depth] = {
    **dict.fromkeys(
        (
            *("black", "ctest", "eslint", "gofmt", "isort", "jest", "mypy", "prettier", "pyflakes"),
            *("pylint", "pyright", "pytest", "rustfmt", "shellcheck", "tsc", "unittest", "vitest"),
        ),
        1,
    ),
    "ruff": {"check": 1, "format": 1},
}
"""Programs that look at a project, its tests and its types."""

_RUN: Mapping[str, _Depth] = {"run": _CHECKS, "sync": 1, "lock": 1}
_SCRIPTS: Mapping[str, _Depth] = {
    **dict.fromkeys(("add", "build", "ci", "i", "install", "lint", "start", "test"), 1),
    "run": 2,
}

_LASTING: Mapping[str, _Depth] = {
    **_CHECKS,
    "cargo": dict.fromkeys(
        ("add", "bench", "build", "check", "clippy", "doc", "fetch", "fmt", "test", "tree"), 1
    ),
    "git": dict.fromkeys(
        (
            *("add", "blame", "branch", "commit", "diff", "fetch", "log", "ls-files", "merge"),
            *("mv", "pull", "show", "status", "switch"),
        ),
        1,
    ),
    "go": dict.fromkeys(("build", "fmt", "list", "mod", "test", "vet"), 1),
    "hatch": _RUN,
    "npm": _SCRIPTS,
    "pdm": _RUN,
    "pnpm": _SCRIPTS,
    "poetry": _RUN,
    "python": {"-m": _CHECKS},
    "python3": {"-m": _CHECKS},
    "uv": _RUN,
    "yarn": _SCRIPTS,
}
"""What may be allowed by its first words: by each word, which may follow it; a number: how many
words it makes of them, itself included.

A shell, an interpreter or whatever runs what it is told is not here, nor is a program of which
more words make something worse, as they do of rm.
"""


def beginning(words: Words) -> tuple[str, ...]:
    """The first words by which a command may be allowed for good; none: only as it is."""
    texts = [program(words[0].text), *(word.text for word in words[1:])]
    known: _Depth = _LASTING
    for place, text in enumerate(texts):
        following = None if isinstance(known, int) else known.get(text)
        if following is None:
            return ()
        if isinstance(following, int):
            return _whole(words, tuple(texts[: place + following]), place, place + following)
        known = following
    return ()


def _whole(words: Words, first: tuple[str, ...], place: int, length: int) -> tuple[str, ...]:
    """The first words, if there are so many, and the others leave the command what it is."""
    if len(first) < length or any(text.startswith("-") for text in first[place:]):
        return ()
    is_fit = not any(word.pattern for word in words[:length]) and not goes_astray(words, length)
    return first if is_fit else ()
