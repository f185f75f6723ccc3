"""The conversation as a person wants to see it on a terminal, or in a pipe.

It must not know the protocol's requests: it is shown updates, and shows them.

Rule 1: what the agent sends is text and never a command to the terminal.
Rule 2: colours only where there is a terminal and NO_COLOR is not set.
Rule 3: text that streams appears as it comes, and everything else begins on a line of its own.
"""

import difflib
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

_STYLES = {
    "thought": "2",
    "note": "2",
    "person": "1;36",
    "title": "1",
    "good": "32",
    "bad": "31",
    "at": "36",
}
_MARKS = {"completed": ("✓", "good"), "failed": ("✗", "bad")}
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MOST_LINES = 40
_CONTEXT = 2


class Screen:
    """Owner of the place on the screen; write takes text and must show it at once."""

    def __init__(self, write: Callable[[str], None], *, colour: bool, folder: str) -> None:
        self._write = write
        self._colour = colour
        self._folder = folder
        self._streaming: str | None = None
        self._blank = True
        self._titles: dict[str, str] = {}

    def note(self, text: str) -> None:
        """Say something that is not part of the conversation."""
        self._line(text, "note")

    def person(self, text: str) -> None:
        """Show what the person said."""
        self._gap()
        self._line(f"> {text}", "person")

    def question(self, text: str) -> None:
        """Put a question; the answer is typed behind it."""
        self.end()
        self._write(self._styled(text, "title") + " ")

    def plain(self, text: str) -> None:
        """Show lines as they are."""
        self._line(text)

    def update(self, update: dict[str, Any]) -> None:
        """Show one session update."""
        match update:
            case {"sessionUpdate": "agent_thought_chunk", "content": {"text": str(text)}}:
                self._stream("thought", text)
            case {"sessionUpdate": "agent_message_chunk", "content": {"text": str(text)}}:
                self._stream("message", text)
            case {"sessionUpdate": "tool_call"}:
                self._call(update)
            case {"sessionUpdate": "tool_call_update"}:
                self._change(update)
            case {"sessionUpdate": "current_mode_update", "currentModeId": str(mode)}:
                self.note(f"  [mode: {mode}]")
            case _:
                pass

    def _call(self, call: dict[str, Any]) -> None:
        title = self._clean(str(call.get("title", "")))
        self._titles[str(call.get("toolCallId"))] = title
        self._gap()
        self._line(f"● {title}", "title")
        if call.get("kind") not in ("edit", "execute"):  # theirs is shown when it is known
            self._content(call)

    def _change(self, call: dict[str, Any]) -> None:
        mark = _MARKS.get(str(call.get("status")))
        if mark is None:
            return
        self._content(call)
        title = self._titles.get(str(call.get("toolCallId")), "")
        self._line(f"  {mark[0]} {call['status']}: {title}", mark[1])

    def _content(self, call: dict[str, Any]) -> None:
        blocks: list[dict[str, Any]] = call.get("content") or []
        for block in blocks:
            match block:
                case {"type": "diff", "newText": str(new)}:
                    self._diff(str(block.get("path", "")), block.get("oldText") or "", new)
                case {"content": {"text": str(text)}}:
                    self._indented(text.splitlines())
                case _:
                    pass

    def _diff(self, path: str, old: str, new: str) -> None:
        self._line(f"    {self._clean(self._short(path))}", "at")
        for line in islice(changed_lines(old, new), _MOST_LINES):
            style = {"+": "good", "-": "bad", "@": "at"}.get(line[:1])
            self._line(f"    {self._clean(line)}", style)

    def _indented(self, lines: list[str]) -> None:
        for line in lines[:_MOST_LINES]:
            if not line.startswith("```"):
                self._line(f"    {self._short(self._clean(line))}")
        if len(lines) > _MOST_LINES:
            self.note(f"    … {len(lines) - _MOST_LINES} more lines")

    def _short(self, text: str) -> str:
        return text.replace(f"{self._folder}/", "")

    def _stream(self, kind: str, text: str) -> None:
        if self._streaming != kind:
            self._gap()
            self._streaming = kind
            if kind == "thought" and not self._colour:
                self._write("thinking: ")
        self._write(self._styled(self._clean(text), "thought" if kind == "thought" else None))

    def _line(self, text: str, style: str | None = None) -> None:
        self.end()
        self._write(self._styled(text, style) + "\n")
        self._blank = not text.strip()

    def _gap(self) -> None:
        self.end()
        if not self._blank:
            self._line("")

    def end(self) -> None:
        """End what is streaming."""
        if self._streaming is not None:
            self._streaming = None
            self._write("\n")
            self._blank = False

    def _styled(self, text: str, style: str | None) -> str:
        if not self._colour or style is None or not text:
            return text
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"

    def _clean(self, text: str) -> str:
        return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def changed_lines(old: str, new: str) -> Iterator[str]:
    """The lines of a diff: two lines around each change, no headings."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=_CONTEXT)
    return islice(lines, 2, None)  # behind the names of the files
