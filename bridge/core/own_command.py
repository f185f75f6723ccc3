"""A command that the user wrote: a Markdown file whose text is a prompt with places to fill.

Rule 1: it is text for the model and nothing else; no part of it is run or read as a setting.
Rule 2: what is filled in is not looked at again: a `$1` in an argument stays as it is.
"""

import re
import shlex

from bridge.core import front_matter
from tools.frozen import frozen
from tools.late import pattern

NAME = pattern(r"[A-Za-z][A-Za-z0-9_-]*")
"""What a slash command can be called."""

_PLACE = pattern(r"\$(?:(ARGUMENTS)(?![A-Za-z0-9_])|([1-9])(?![0-9]))")
_LONGEST_DESCRIPTION = 300
_LONGEST_HINT = 100
_LONGEST_LINE = 100


@frozen
class OwnCommand:
    """One command of the user's."""

    description: str
    hint: str
    """What may follow the name; empty: nothing is expected."""
    template: str

    def prompt(self, argument: str) -> str:
        """What the model is asked; an argument that has no place in the text comes after it."""
        words = _words(argument)

        def filled(place: re.Match[str]) -> str:
            if place[1]:
                return argument
            number = int(place[2])
            return words[number - 1] if number <= len(words) else ""

        if argument and not _PLACE.search(self.template):
            return f"{self.template}\n\n{argument}"
        return _PLACE.sub(filled, self.template)


def read(text: str) -> OwnCommand | str:
    """The command that a file holds; or what is wrong with it, as the end of a sentence."""
    page = front_matter.parted(text)
    if page is None:
        return "its front matter has no closing line of dashes"
    template = page.body.strip()
    if not template:
        return "it holds no prompt"
    first = template.splitlines()[0].lstrip("# ")
    description = " ".join(page.fields.get("description", "").split()) or first[:_LONGEST_LINE]
    hint = page.fields.get("argument-hint", "")
    if not hint and _PLACE.search(template):
        hint = "[arguments]"
    return OwnCommand(description[:_LONGEST_DESCRIPTION], hint[:_LONGEST_HINT], template)


def _words(argument: str) -> list[str]:
    """The words of an argument; quotes hold one together, as in a shell."""
    try:
        return shlex.split(argument)
    except ValueError:  # a quote that stands for itself
        return argument.split()
