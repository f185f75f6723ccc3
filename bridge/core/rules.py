"""Permission rules: `shell git status`, `edit docs/**`, `mcp__db__*`; what each of them is about.

It must not know modes and presets, nor where rules come from.

Rule 1: a rule is a tool and, behind a blank, the first words of a command or a pattern of paths as
in .gitignore; nothing behind it means all that the tool does.
Rule 2: a rule that allows covers what is certain: every command of the line, the file that a link
leads to, the same case of letters.
Rule 3: a rule that asks or denies is looked for everywhere, and may fit perhaps: then the person is
asked.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TypeAlias

from bridge.core.rule import FOR_PROJECT, FOR_SESSION, Rule, Sort, exactly
from bridge.core.sought import Fit, mentioned, sought
from tools.argv import Line, Word
from tools.base import Access
from tools.globs import Rule as Glob
from tools.globs import rule as glob
from tools.inner import runs_another
from tools.paths import folded, is_inside
from tools.programs import beginning, goes_astray, program

Scope: TypeAlias = Sequence[str]
"""The folders of the workspace, absolute and resolved, and the home folder last."""

_ACTIONS = {"shell": "run", "edit": "edit", "read": "read"}
_MEANT = {"write": "edit", "glob": "read", "grep": "read", "bash": "shell", "run": "shell"}
"""Names that people try, and the tool that a rule for them is written with."""

_RULE = re.compile(r"(\S+)(?:\s+(.*\S))?\s*", re.DOTALL)
_TOOL = re.compile(r"mcp__[A-Za-z0-9_*?.-]+")
_LONGEST_SHOWN = 60
"""Characters of a rule that is to be read at a glance."""
_JOINED = re.compile(r"[;&|<>`\n]|\$[({]")


class BadRule(ValueError):
    """A text that is no rule; what is wrong, as the rest of a sentence that begins with it."""


def fits(rule: Rule, name: str, access: Access, scope: Scope) -> Fit:
    """Whether the rule is about a call of this tool that would touch this."""
    if rule.tool.startswith("mcp__"):
        return "yes" if fnmatchcase(name, rule.tool) else "no"
    if _ACTIONS.get(rule.tool, rule.tool) != access.action:
        return "no"
    if rule.exact:
        return "yes" if access.subject == rule.about else "no"
    if access.action == "run":
        return _fits_line(rule, access.line)
    return "yes" if _fits_path(rule, access, scope) else "no"


def _fits_path(rule: Rule, access: Access, scope: Scope) -> bool:
    hidden = access.action == "read" and access.secret
    if rule.sort != "allow":
        return _is_about(rule, access.subject, scope) or _is_about(rule, access.named, scope)
    if not rule.about:
        return not (access.outside or hidden)
    # Whoever means a file of secrets says more of its name than that there is one.
    blind = hidden and rule.about.rpartition("/")[2].strip("*") == ""
    return not blind and _is_below(access.subject, _bases(rule, scope), _pattern(rule.about))


def _is_about(rule: Rule, path: str, scope: Scope) -> bool:
    """Whether the path, or a folder above it, fits the pattern under any spelling."""
    if not rule.about or not path:
        return path != ""
    bases = map(folded, _bases(rule, scope))
    return _is_below(folded(path), bases, _pattern(folded(rule.about)))


def _bases(rule: Rule, scope: Scope) -> Sequence[str]:
    """The folders that the pattern may start at; that of an answer names a folder of the roots."""
    *roots, home = scope
    if rule.about.startswith("~/"):
        return [home] if home else []
    from_answer = rule.source in (FOR_SESSION, FOR_PROJECT)
    return [*roots, "/"] if rule.about.startswith("/") and not from_answer else roots


def _fits_line(rule: Rule, line: Line | None) -> Fit:
    if not rule.words:
        return "yes"
    if rule.sort == "allow":
        return "no" if line is None or _covering([rule], line) is None else "yes"
    if line is None:
        return "perhaps"
    found = {sought(rule.words, command) for command in line.seen}
    if "yes" in found:
        return "yes"
    guessed = any(mentioned(rule.words, words) for words in line.guessed)
    return "perhaps" if "perhaps" in found or guessed or not line.clear else "no"


def _covers(rule: Rule, command: Sequence[Word]) -> bool:
    """Whether an allowed beginning is that of this command, and the rest leaves it so."""
    inner = _unwrapped(command)
    return _begins(rule.words, command) or (inner is not None and _begins(rule.words, inner))


def _begins(words: tuple[str, ...], command: Sequence[Word]) -> bool:
    if not words:
        return True
    first = command[: len(words)]
    if any(word.pattern for word in first):
        return False
    texts = (program(first[0].text), *(word.text for word in first[1:]))
    return texts == words and not (goes_astray(command, len(first)) or _runs_more(words, command))


def _runs_more(words: tuple[str, ...], command: Sequence[Word]) -> bool:
    """Whether the command runs another one, though its allowed beginning is that of no runner."""
    told = tuple(None if word.pattern else word.text for word in command)
    return runs_another(told) and not (runs_another(words) or runs_another((*words, None)))


def parsed(sort: Sort, text: str, source: str = "") -> Rule:
    """The rule that a text is; BadRule."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise BadRule('is empty; write a tool and what of it, such as "shell git status"')
    tool, rest = found[1], found[2] or ""
    if tool in _MEANT:
        raise BadRule(f'begins with no tool of rules; write "{_MEANT[tool]}" instead')
    if tool.startswith("mcp__"):
        return _remote(sort, text.strip(), source, tool, rest)
    if tool not in _ACTIONS:
        raise BadRule("must begin with shell, edit, read or mcp__SERVER__TOOL")
    if not rest:
        return Rule(sort, tool, source, tool)
    words = _words(rest) if tool == "shell" else ()
    if tool != "shell":
        _checked(rest)
    return Rule(sort, f"{tool} {rest}", source, tool, words)


def first(
    rules: Iterable[Rule], sort: Sort, name: str, access: Access, scope: Scope
) -> tuple[Rule | None, Fit]:
    """The rule of this sort that fits best, the first of those."""
    perhaps: Rule | None = None
    for rule in rules:
        if rule.sort == sort:
            match fits(rule, name, access, scope):
                case "yes":
                    return rule, "yes"
                case "perhaps":
                    perhaps = perhaps or rule
                case "no":
                    pass
    return perhaps, "no" if perhaps is None else "perhaps"


def allowing(rules: Sequence[Rule], name: str, access: Access, scope: Scope) -> Rule | None:
    """The rule by which the call may run; several may allow the commands of one line together."""
    rule, fit = first(rules, "allow", name, access, scope)
    if fit == "yes" or access.action != "run" or access.line is None:
        return rule
    return _covering(rules, access.line)


def _covering(rules: Iterable[Rule], line: Line) -> Rule | None:
    """The first of the rules that allow each command of the line that does more than read."""
    shell = [one for one in rules if (one.sort, one.tool) == ("allow", "shell") and not one.exact]
    found = [next((rule for rule in shell if _covers(rule, one)), None) for one in line.plain]
    if not all(rule or reads for rule, reads in zip(found, line.reads, strict=True)):
        return None
    return next((rule for rule in found if rule is not None), None)


def allowed_for_good(access: Access, roots: Sequence[str], source: str) -> Rule:
    """What an "always" is about: as much of the call as makes sense, and no more."""
    match access.action:
        case "run" if words := _first_words(access.line):
            text = " ".join(map(shlex.quote, words))
            return Rule("allow", f"shell {text}", source, "shell", words=words)
        case "run":
            return exactly("allow", "shell", access.subject, source)
        case "edit" if not access.outside and (folder := _folder(access.subject, roots)):
            return parsed("allow", f"edit {folder}", source)
        case _:
            return exactly("allow", access.action, access.subject, source)


def denied_for_good(name: str, access: Access, source: str) -> Rule:
    """What a "never" is about: this call, whatever stands around it."""
    if access.action == "call":
        return parsed("deny", name, source)
    if access.action != "run":
        return exactly("deny", access.action, access.subject, source)
    acting = [] if access.line is None else _acting(access.line)
    if len(acting) == 1 and not any(word.pattern for word in acting[0]):
        words = tuple(word.text for word in acting[0])
        text = shlex.join((program(words[0]), *words[1:]))
        if len(text) <= _LONGEST_SHOWN and not _JOINED.search(text):
            return parsed("deny", f"shell {text}", source)
    return exactly("deny", "shell", access.subject, source)


def _first_words(line: Line | None) -> tuple[str, ...]:
    acting = [] if line is None else _acting(line)
    return beginning(acting[0]) if len(acting) == 1 else ()


def _folder(path: str, roots: Sequence[str]) -> str:
    """The pattern for all that lies in the folder of a file; nothing, where there is none."""
    root = next((root for root in roots if is_inside(path, root)), None)
    if root is None:
        return ""
    *folders, name = (_SPECIAL.sub(r"\\\g<0>", part) for part in path[len(root) :].split("/")[1:])
    return "/" + "/".join((*folders, "**" if folders else name))


_SPECIAL = re.compile(r"[\\*?\[\] ]")


def _acting(line: Line) -> list[Sequence[Word]]:
    """The commands that a line is about: those that do more than read, if there are any."""
    acting = [command for command, reads in zip(line.plain, line.reads, strict=True) if not reads]
    return [_unwrapped(command) or command for command in acting or line.plain]


def _remote(sort: Sort, text: str, source: str, tool: str, rest: str) -> Rule:
    if rest:
        raise BadRule("must name a tool of an MCP server and nothing behind it")
    if not _TOOL.fullmatch(tool):
        raise BadRule("must be the name of an MCP server's tool, in which * stands for anything")
    return Rule(sort, text, source, tool)


def _words(text: str) -> tuple[str, ...]:
    if _JOINED.search(text):
        raise BadRule("must hold the first words of one command, and nothing that joins several")
    try:
        words = shlex.split(text)
    except ValueError:
        raise BadRule("holds a quote that is not closed") from None
    if not words or not words[0]:
        raise BadRule("must name a program")
    return (program(words[0]), *words[1:])


def _checked(text: str) -> None:
    """BadRule for a text that is no pattern of paths."""
    if text.startswith("!"):
        raise BadRule("must not begin with !; write a rule of another kind")
    if ".." in text.split("/"):
        raise BadRule("must not hold ..; write the whole path, or one that begins with ~/")
    if re.match(r"~[^/]", text):
        raise BadRule("begins with ~, which must be followed by /")
    try:
        _pattern(text)
    except ValueError as error:
        raise BadRule(f"is no pattern: it holds {error}") from None


@lru_cache(256)
def _pattern(text: str) -> Glob:
    """The pattern, as seen from the folder that it starts at."""
    return glob(text.removeprefix("~") if text.startswith("~/") else text)


def _is_below(path: str, bases: Iterable[str], pattern: Glob) -> bool:
    """As git reads it: what fits a folder holds for everything in it."""
    return any(
        pattern.fits(parts[:length]) and (length < len(parts) or not pattern.folders)
        for base in bases
        if is_inside(path, base) and path != base
        for parts in [path[len(base.rstrip("/")) + 1 :].split("/")]
        for length in range(1, len(parts) + 1)
    )


_TRANSPARENT = re.compile(
    r"(?:timeout (?:\d+(?:\.\d+)?[smhd]?)|nice(?: -n \d+)?|nohup|time|command|env)"
)
"""Wrappers, with their words, that leave a command what it is."""


def _unwrapped(command: Sequence[Word]) -> Sequence[Word] | None:
    """The command behind a wrapper that changes nothing of what it does."""
    for length in (1, 2, 3):
        head, rest = command[:length], command[length:]
        text = " ".join(word.text for word in head)
        known = _TRANSPARENT.fullmatch(text) and not any(word.pattern for word in head)
        if known and rest and re.match(r"[A-Za-z0-9_./]+\Z", rest[0].text):
            return rest
    return None
