"""Text that a person must be able to trust: what cannot be seen in it is spelled out.

Pure: text in, text out.
"""

import re
import unicodedata

from tools.late import pattern

_MOST_SPELLED = 16 * 1024
"""Characters."""

_GAP = pattern(r"[ \t]{40,}|\n(?:[ \t]*\n){4,}")

_EMPTY_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""They count as letters and marks, and show nothing."""


def one_line(text: str, limit: int = 200) -> str:
    """Text for a title: one line, not too long, and nothing in it that cannot be seen."""
    visible = "".join(map(_visible, text.strip()))
    return visible if len(visible) <= limit else visible[: limit - 1] + "…"


def spelled(text: str) -> str:
    """The lines of a text for someone who must see all of it: nothing can hide in it.

    Long gaps are named, since what comes after them would be out of sight. Of a text that is too
    long the middle is left out, and how much that is stands there.
    """
    visible = "".join(char if char in "\n\t" else _visible(char) for char in text.strip())
    short = _GAP.sub(_named_gap, visible)
    if len(short) <= _MOST_SPELLED:
        return short
    half = _MOST_SPELLED // 2
    return f"{short[:half]}\n[… {len(short) - 2 * half} characters …]\n{short[-half:]}"


def holds_unseen(text: str) -> bool:
    """Whether something is in the text that shows nothing, or shows the rest otherwise."""
    return any(_visible(char) != char for char in set(text) - set("\n\t"))


def _named_gap(gap: re.Match[str]) -> str:
    ends = gap[0].count("\n")
    return f"\n[{ends - 1} empty lines]\n" if ends else f" [{len(gap[0])} blanks] "


def _visible(char: str) -> str:
    if char == "\n":
        return " ↵ "
    # Controls, formats (bidi among them), surrogates, and every space but the usual one.
    unseen = unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}
    if (unseen and char != " ") or char in _EMPTY_LETTERS:
        return ascii(char)[1:-1]
    return char
