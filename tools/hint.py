"""Why a text is not in a file, as far as a look at near misses can tell.

It only tells: nothing here ever makes a text match that does not match byte for byte.

Rule 1: a hint names the line and what differs there, so that the next attempt can be right.
Rule 2: no hint is better than a guess; a file too large to compare quickly gets none.
"""

import json
import re
import unicodedata
from collections.abc import Callable
from difflib import get_close_matches

_MOST_TEXT = 1_000_000
"""Characters up to which a file is compared."""

_MOST_LINES = 2_000
"""Lines among which the most similar one is looked for."""

_MOST_STARTS = 100
"""Places from which lines are compared."""

_MOST_QUOTED = 160
"""Characters of a line that are quoted."""

_LOOKALIKES = {
    " ": "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000",
    "'": "\u2018\u2019\u201b\u2032",
    '"': "\u201c\u201d\u201f\u2033",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2212",
}
_PLAIN = str.maketrans({other: plain for plain, others in _LOOKALIKES.items() for other in others})

_NUMBER = re.compile(r"^[ \t]*\d+(?:: ?|\t|\u2192)", re.MULTILINE)
"""What read puts before each line, and what other programs put there."""


def hint(text: str, wanted: str) -> str:
    """Why wanted is not in text, to be read after a semicolon; nothing if that is unclear.

    Line ends in both are LF.
    """
    if len(text) > _MOST_TEXT or not wanted.strip():
        return ""
    reasons = (look(text, wanted) for look in _LOOKS)
    return next(filter(None, reasons), "")


def _numbered(text: str, wanted: str) -> str:
    bare, numbers = _NUMBER.subn("", wanted)
    if numbers and bare in text:
        return "leave out the line numbers that read puts before the lines"
    return ""


def _escaped(text: str, wanted: str) -> str:
    if wanted.replace("\\n", "\n").replace("\\t", "\t") in text:
        return "the file has line ends or tabs where old_string has a backslash and a letter"
    return ""


def _lookalike(text: str, wanted: str) -> str:
    place = text.translate(_PLAIN).find(wanted.translate(_PLAIN))
    if place < 0:
        return ""
    pairs = zip(text[place:], wanted, strict=False)
    offset, (there, here) = next(found for found in enumerate(pairs) if found[1][0] != found[1][1])
    line = text.count("\n", 0, place + offset) + 1
    return f"line {line} has {_named(there)} where old_string has {_named(here)}"


def _normal_form(text: str, wanted: str) -> str:
    composed = unicodedata.normalize("NFC", text)
    place = composed.find(unicodedata.normalize("NFC", wanted))
    if place < 0:
        return ""
    line = composed.count("\n", 0, place) + 1
    return f"line {line} differs only in Unicode normal form (composed or decomposed letters)"


def _blanks(text: str, wanted: str) -> str:
    """Lines that are the same but for blank space."""
    lines, asked = text.split("\n"), _core(wanted)
    folded, folded_asked = ([" ".join(line.split()) for line in each] for each in (lines, asked))
    for start in _starts(folded, folded_asked[0]):
        if folded[start : start + len(asked)] == folded_asked:
            return f"only blank space differs: {_quoted(lines, start + _run(lines, asked, start))}"
    return ""


def _nearest(text: str, wanted: str) -> str:
    """Where the file goes on otherwise than wanted does, or the line most like its first."""
    lines = [line.strip() for line in text.split("\n")]
    asked = [line.strip() for line in _core(wanted)]
    if starts := _starts(lines, asked[0]):
        run, start = max((_run(lines, asked, start), -start) for start in starts)
        return f"it begins like line {1 - start}, but then {_quoted(lines, run - start)}"
    near = get_close_matches(asked[0], lines[:_MOST_LINES], 1)
    return f"the closest: {_quoted(lines, lines.index(near[0]))}" if near else ""


def _core(wanted: str) -> list[str]:
    """Its lines, without blank ones at both ends."""
    return re.sub(r"\A\s*\n|\n\s*\Z", "", wanted).split("\n")


def _starts(lines: list[str], first: str) -> list[int]:
    """Where the first line stands, as often as it is worth comparing what follows."""
    return [at for at, line in enumerate(lines) if line == first][:_MOST_STARTS]


def _run(lines: list[str], asked: list[str], start: int) -> int:
    """How many lines are the same from there on."""
    pairs = zip(lines[start : start + len(asked)], asked, strict=False)
    return next((at for at, (there, here) in enumerate(pairs) if there != here), len(asked))


def _quoted(lines: list[str], at: int) -> str:
    if at >= len(lines):
        return "the file ends"
    line = lines[at] if len(lines[at]) <= _MOST_QUOTED else lines[at][:_MOST_QUOTED] + "\u2026"
    return f"line {at + 1} is {json.dumps(line, ensure_ascii=False)}"


def _named(character: str) -> str:
    return f"U+{ord(character):04X} ({unicodedata.name(character, 'unnamed')})"


_LOOKS: tuple[Callable[[str, str], str], ...] = (
    _numbered, _escaped, _lookalike, _normal_form, _blanks, _nearest,
)  # fmt: skip
"""From the surest to the vaguest."""
