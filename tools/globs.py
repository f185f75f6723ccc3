"""Patterns of file names, read as git reads those of .gitignore.

It looks at no disk; paths come as their parts.

Rule 1: a pattern without a slash before its end is about a name at any depth, one with a slash
about a path that starts at the pattern's own folder.
Rule 2: a pattern judges one entry and says nothing of what lies below it: what an ignored folder
holds is never asked about.
Rule 3: no pattern takes more than about (its length x the length of the path) steps.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from tools.frozen import frozen

Parts = Sequence[str]

_MOST_ALTERNATIVES = 100

_TOKEN = re.compile(
    r"\\(?P<escaped>.)"
    r"|(?P<stars>\*+)"
    r"|(?P<any>\?)"
    r"|\[(?P<not>[!^]?+)(?P<members>(?:\\.|[^\\])(?:\\.|[^\]\\])*)\]"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_MEMBER = re.compile(r"\\?(.)(?:-\\?(.))?", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")

_ANY_NAME = re.compile(".*", re.DOTALL)
_NO_NAME = re.compile("(?!)")


@frozen
class Rule:
    """One pattern, made by rule()."""

    names: tuple[re.Pattern[str] | None, ...]
    """What each part of a path must be; None: any number of parts, also none."""
    folders: bool
    """It is about folders alone."""
    ignores: bool
    """False: it takes back what an earlier rule ignored."""

    def fits(self, parts: Parts) -> bool:
        """Whether the pattern is about this entry."""
        # Most patterns are about a name at any depth: there is no need to go down to it.
        if len(self.names) == 2 and self.names[0] is None and self.names[1] is not None:
            return self.names[1].fullmatch(parts[-1]) is not None
        return _fits(self.names, parts)


def rule(line: str) -> Rule:
    """The rule on one line of a .gitignore; ValueError if no entry can ever fit it."""
    ignores = not line.startswith("!")
    text = line.removeprefix("!")
    folders = text.endswith("/")
    text = text.removesuffix("/")
    anchored = "/" in text
    segments = text.removeprefix("/").split("/")
    if not all(segments):
        raise ValueError("an empty part of a path")
    names = [None if segment == "**" else _name(segment) for segment in segments]
    if not anchored:
        names = [None, names[0] or _ANY_NAME]
    elif names[-1] is None:
        names.append(_ANY_NAME)
    return Rule(tuple(names), folders, ignores)


def rules(text: str) -> tuple[Rule, ...]:
    """The rules of a .gitignore; lines that are none are left out."""
    return tuple(_rules(text.removeprefix("\ufeff").split("\n")))


def is_ignored(rules: Iterable[Rule], parts: Parts, *, folder: bool) -> bool | None:
    """What these rules say of one entry, the last that fits first; None: nothing."""
    for one in reversed(tuple(rules)):
        if (folder or not one.folders) and one.fits(parts):
            return one.ignores
    return None


def fault(pattern: str) -> str:
    """What is wrong with a pattern of wanted(); nothing, if files can fit it."""
    try:
        wanted(pattern)
    except ValueError as error:
        return str(error)
    return ""


def wanted(pattern: str) -> Callable[[Parts], bool]:
    """Whether a file fits a pattern, in which {a,b} stands for alternatives; ValueError."""
    made = [rule(one) for one in _alternatives(pattern.removeprefix("./"))]
    if any(one.folders or not one.ignores for one in made):
        raise ValueError("it must name files: no ! at the start, no / at the end")
    return lambda parts: any(one.fits(parts) for one in made)


def _rules(lines: Iterable[str]) -> Iterator[Rule]:
    for line in lines:
        text = re.sub(r"(?<!\\) +\Z", "", line.removesuffix("\r"))
        if text and not text.startswith("#"):
            try:
                yield rule(text)
            except ValueError:
                continue


def _alternatives(pattern: str) -> list[str]:
    """The pattern once for each choice that its braces offer, from the innermost out."""
    open_ones, done = [pattern], list[str]()
    while open_ones:
        if len(open_ones) + len(done) > _MOST_ALTERNATIVES:
            raise ValueError(f"its braces offer more than {_MOST_ALTERNATIVES} alternatives")
        one = open_ones.pop()
        braces = _BRACES.search(one)
        if braces is None:
            done.append(one)
            continue
        before, after = one[: braces.start()], one[braces.end() :]
        open_ones += [f"{before}{choice}{after}" for choice in braces[1].split(",")]
    return done


def _fits(names: Sequence[re.Pattern[str] | None], parts: Parts) -> bool:
    """Part by part; where one does not fit, the last `any number of parts` takes one more."""
    name = part = 0
    resume: tuple[int, int] | None = None
    while part < len(parts):
        wanted_name = names[name] if name < len(names) else _NO_NAME
        if wanted_name is None:
            name += 1
            resume = name, part
        elif wanted_name.fullmatch(parts[part]):
            name, part = name + 1, part + 1
        elif resume is not None:
            resume = resume[0], resume[1] + 1
            name, part = resume
        else:
            return False
    return all(rest is None for rest in names[name:])


def _name(segment: str) -> re.Pattern[str]:
    """One part of a path. What follows a star is taken where it first fits: that is enough."""
    pieces = [""]
    for token in _TOKEN.finditer(segment):
        if token["stars"]:
            pieces.append("")
        else:
            pieces[-1] += _one(token)
    first, *middle = pieces
    last = f".*{middle.pop()}" if middle else ""
    return re.compile(first + "".join(f"(?>.*?{piece})" for piece in middle) + last, re.DOTALL)


def _one(token: re.Match[str]) -> str:
    if token["any"]:
        return "."
    if token["members"]:
        members = "".join(_member(low, high) for low, high in _MEMBER.findall(token["members"]))
        return f"[{'^' if token['not'] else ''}{members}]"
    if token["plain"] in ("[", "\\"):
        raise ValueError(
            f"a {token['plain']} that nothing follows up; a \\ before it makes it plain"
        )
    return re.escape(token["escaped"] or token["plain"])


def _member(low: str, high: str) -> str:
    if not high:
        return re.escape(low)
    if low > high:
        raise ValueError(f"the range {low}-{high} is empty")
    return f"{re.escape(low)}-{re.escape(high)}"
