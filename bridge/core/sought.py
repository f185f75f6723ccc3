"""Whether a command is one that a rule looks for, however it is called.

It must not know what becomes of it.

Rule 1: options may stand anywhere, and take a word; where that decides, the answer is "perhaps".
Rule 2: so it is where a word is not known.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from tools.argv import Argv
from tools.inner import GIT_VALUES, name_of
from tools.late import pattern

Fit = Literal["yes", "perhaps", "no"]

_RENAMES = pattern(r"alias\.|include", re.IGNORECASE)
"""Settings of git that give its commands other names."""
_PIECE = re.compile(r"[^\s\"'`;|&()\[\]{},=:!<>$+%\\]+")
"""What can be a word in a text, whoever reads it."""


def sought(words: Sequence[str], command: Argv) -> Fit:
    """Whether a command is one that a rule names, however it is called and whatever is between."""
    name = name_of(command)
    if name is None:
        return "perhaps"
    if name != _called(words[0]):
        return "no"
    rest = command[1:]
    if name == "git":
        rest, unsure = _without_globals(rest)
        if unsure:
            return "perhaps" if len(words) > 1 else "yes"
    options = [word for word in words[1:] if word.startswith("-")]
    operands = [word for word in words[1:] if not word.startswith("-")]
    return _weaker(_fit_operands(operands, rest), _fit_options(options, rest))


def mentioned(words: Sequence[str], seen: Argv) -> bool:
    """Whether a command that a rule names may stand among these words, or within one of them."""
    pieces = [piece for word in seen for piece in _pieces(word)]
    name = _called(words[0])
    places = [n for n, piece in enumerate(pieces) if piece and _called(piece) == name]
    if not places:
        return False
    after = pieces[places[0] + 1 :]
    if None in after:
        return True
    rest = iter(after)
    return all(
        any(_gives(piece, one) for piece in after) if one.startswith("-") else one in rest
        for one in words[1:]
    )


def _pieces(word: str | None) -> list[str | None]:
    if word is None:
        return [None]
    # An option of one letter may have its value right behind it.
    attached = [word[2:]] if re.match(r"-[A-Za-z].", word) else []
    return [piece for text in (word, *attached) for piece in _PIECE.findall(text)]


def _called(word: str) -> str:
    """The program, whatever folder it is called from."""
    return word.rpartition("/")[2].casefold()


def _weaker(one: Fit, other: Fit) -> Fit:
    if "no" in (one, other):
        return "no"
    return "perhaps" if "perhaps" in (one, other) else "yes"


def _without_globals(rest: Argv) -> tuple[Argv, bool]:
    """The words from git's command on; and whether it may be another than is written there."""
    place = 0
    while place < len(rest):
        word = rest[place]
        if word is None or not word.startswith("-"):
            break
        value = rest[place + 1] if word in GIT_VALUES and place + 1 < len(rest) else ""
        if value is None or word.startswith("--config-env") or _RENAMES.search(f"{word}{value}"):
            return rest, True
        place += 2 if word in GIT_VALUES else 1
    return rest[place:], False


def _fit_operands(wanted: Sequence[str], rest: Argv) -> Fit:
    """The words come first among those that are no options; any option may take one of them."""
    if not wanted:
        return "yes"
    places = [n for n, word in enumerate(rest) if word is None or not word.startswith("-")]
    operands = [rest[n] for n in places]
    fit = _begin(wanted, operands)
    if fit != "no":
        return fit
    for skipped, place in enumerate(places, 1):
        if not _is_option(rest, place - 1):
            return "no"
        if _begin(wanted, operands[skipped:]) != "no":
            return "perhaps"
    return "no"


def _is_option(rest: Argv, place: int) -> bool:
    """Whether an option stands here that may take the next word."""
    word = rest[place] if place >= 0 else None
    return word is not None and word.startswith("-") and "=" not in word


def _begin(wanted: Sequence[str], operands: Sequence[str | None]) -> Fit:
    for one, word in zip(wanted, operands, strict=False):
        if word is None:
            return "perhaps"
        if word != one:
            return "no"
    return "yes" if len(operands) >= len(wanted) else "no"


def _fit_options(wanted: Iterable[str], rest: Argv) -> Fit:
    missing = [option for option in wanted if not any(_gives(word, option) for word in rest)]
    if not missing:
        return "yes"
    return "perhaps" if None in rest else "no"


def _gives(word: str | None, option: str) -> bool:
    """Whether a word gives an option: alone, with its value, or as a letter among others."""
    if word is None:
        return False
    if re.fullmatch(r"-[A-Za-z]", option):
        return re.match(rf"-[A-Za-z]*{option[1]}", word) is not None
    return word == option or word.startswith(f"{option}=")
