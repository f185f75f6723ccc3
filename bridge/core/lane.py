"""What of an answer stands before the person, and what a new attempt at it repeats of that.

It must not know effects or events: texts come in, and what of them is new goes out.

Rule 1: an attempt's texts of one kind are held against the earlier ones in order: first to first.
Rule 2: what was shown is not shown again; what differs is shown whole, as a text of its own.
"""

from dataclasses import dataclass, field
from itertools import count


@dataclass(eq=False, slots=True)
class Growing:
    """A text that comes in pieces; joined when somebody asks for it, not at every piece."""

    pieces: list[str] = field(default_factory=list[str])
    length: int = 0

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)

    def whole(self) -> str:
        if len(self.pieces) != 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def copy(self) -> "Growing":
        return Growing([self.whole()], self.length)

    def set(self, text: str) -> None:
        self.pieces, self.length = [text], len(text)


@dataclass(eq=False, slots=True)
class Line:
    """One text before the person."""

    number: int
    """Of the item it was first shown for."""
    text: Growing = field(default_factory=Growing)
    repeated: int | None = None
    """How much of it the new attempt has said so far; None: it is the new attempt's own by now."""
    follows: bool = False
    """Another text of its kind was shown before it."""

    def repeat(self, text: str) -> str | None:
        """What of the attempt's next piece was not shown yet; None if the piece differs."""
        done, shown = self.repeated or 0, self.text.whole()
        if shown.startswith(text, done):
            self.repeated = done + len(text)
            return ""
        rest = shown[done:]
        if not text.startswith(rest):
            return None
        self.repeated = None
        new = text[len(rest) :]
        self.text.add(new)
        return new

    def said(self) -> str:
        """What the new attempt has said of it."""
        return self.text.whole()[: self.repeated]

    def is_longer(self) -> bool:
        """Whether more of it was shown than the new attempt has said."""
        return self.repeated is not None and self.repeated < self.text.length


class Lane:
    """All texts of one kind; owned by one attempt, which may follow an earlier one."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._begun = 0

    def next_attempt(self) -> "Lane":
        """A lane for another attempt, which has all of this one before it and nothing said."""
        lane = Lane()
        lane._lines = [Line(line.number, line.text.copy(), 0) for line in self._lines]
        return lane

    def begin(self, number: int) -> Line:
        """The line for the attempt's next text: an earlier one as long as there is one."""
        if self._begun == len(self._lines):
            self._lines.append(Line(number, follows=bool(self._lines)))
        self._begun += 1
        return self._lines[self._begun - 1]

    def anew(self, line: Line, number: int) -> Line:
        """A line of its own for a text that differs; the earlier one and all after it are void."""
        before = self._lines[: self._lines.index(line)] if line in self._lines else self._lines
        fresh = Line(number, follows=True)
        self._lines = [*before, fresh]
        self._begun = len(self._lines)
        return fresh


class Stage:
    """All of one answer that stands before the person, and the numbers of its items."""

    def __init__(self) -> None:
        self.messages = Lane()
        self.thoughts = Lane()
        self.numbers = count()

    def next_attempt(self) -> "Stage":
        """The stage for another attempt at the same answer."""
        stage = Stage()
        stage.messages, stage.thoughts = self.messages.next_attempt(), self.thoughts.next_attempt()
        stage.numbers = self.numbers
        return stage
