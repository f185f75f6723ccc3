"""Programs that work on the repository they are in, and words that name one.

It looks at no disk and at no environment, and parses nothing.

Rule 1: a program is here because changing `.git` is what it is for, be it by running git. One that
may do so among other things, a build say, is not.
Rule 2: a word names a repository if the file it is taken for may be `.git`, or lie in it.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from tools.argv import Argv
from tools.inner import inner, name_of

_ALWAYS = frozenset(
    {
        *("git", "gh", "glab", "hub", "jj", "sl", "gt", "stg", "tig", "gitui", "lazygit", "repo"),
        *("pre-commit", "prek", "lefthook", "husky", "overcommit", "lint-staged", "nano-staged"),
        *("cz", "czg", "commitizen", "pretty-quick", "towncrier"),
        *("bumpversion", "bump2version", "bump-my-version", "bumpver", "tbump"),
        *("semantic-release", "standard-version", "commit-and-tag-version", "release-it", "lerna"),
    }
)
"""Version control, what runs for a commit, and what makes a release of one."""

_BEGINNINGS: Mapping[str, tuple[Argv, ...]] = {
    "cargo": (("release",),),
    **dict.fromkeys(("npm", "pnpm", "yarn"), (("version",),)),
    **dict.fromkeys(("python", "python3"), (("-m", "pre_commit"), ("-m", "commitizen"))),
}
"""By program: with which first words it is such a program."""

_NAMED = re.compile(r"(?<![\w.-])\.git(?![\w.-])", re.IGNORECASE)
_ENDS = re.compile(r"[/{},=:]")
"""Between the names in a path, and in what bash makes several paths of."""
_PATTERN = re.compile(r"[*?\[]")


def works_on(command: Argv) -> bool:
    """Whether this, or the command that its last words are, works on the repository."""
    while command:
        name = name_of(command) or ""
        begins = any(command[1 : len(one) + 1] == one for one in _BEGINNINGS.get(name, ()))
        if begins or name in _ALWAYS or name.startswith("git-"):
            return True
        found = inner(command).commands
        if len(found) != 1 or found[0] != command[len(command) - len(found[0]) :]:
            return False
        command = found[0]
    return False


def names(text: str, *, bare: bool) -> bool:
    """Whether a piece of a line names a repository; in a bare one patterns become file names."""
    if _NAMED.search(text):
        return True
    parts = _ENDS.split(text) if bare else ()
    # bash(1), Pathname Expansion: a dot at the beginning must be matched by a dot.
    return any(
        part.startswith(".") and _PATTERN.search(part) and fnmatchcase(".git", part)
        for part in parts
    )
