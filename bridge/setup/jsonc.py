"""JSON with comments, changed in one place: text in, text out.

It must not know editors or files.

Rule 1: nothing but the named member changes, to the byte: comments, order, blanks, line ends and
trailing commas stay. A new member stands first in its object, where nothing else has to move.
Rule 2: what was put in and is taken out again leaves no trace, if its object was there before.
Rule 3: what is not understood is Odd, and so is a change whose result would not be what was meant.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias, cast

from tools.frozen import frozen

Value: TypeAlias = object
Path: TypeAlias = tuple[str, ...]
"""The names that lead from the outermost object to a member."""

_DEEPEST = 200
_UNIT = "  "

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)", re.DOTALL)
_SAME_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*.*?\*/)", re.DOTALL)
_BREAK = re.compile(r"[ \t]*\r?\n")
_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_OTHER = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_BLANK = " \t\r\n"
_BOM = "\ufeff"


class Odd(Exception):
    """The text is not what it should be; says in what way, to be read after its name."""


@frozen
class Node:
    """A value, and where it stands."""

    start: int
    end: int
    value: Value
    members: "tuple[Member, ...] | None" = None
    """Of an object."""


@frozen
class Member:
    """A name and its value; comma: where the comma behind it stands, if there is one."""

    name: str
    start: int
    node: Node
    comma: int | None


@frozen
class Document:
    """A whole text. root: None where it holds nothing but blanks and comments."""

    root: Node | None
    comments: tuple[tuple[int, str], ...]
    """Where each begins, and its text."""


def parse(text: str) -> Document:
    """What a text holds; raises Odd."""
    return _Reader(text).document()


def found(text: str, path: Path) -> Value | None:
    """The value of a member, None where there is none; raises Odd."""
    node = _at(parse(text).root, path)
    return None if node is None else node.value


def put(text: str, path: Path, value: Value) -> str:
    """The text with this member, be it new or not; raises Odd."""
    document = parse(text)
    if document.root is None:
        gap = _newline(text) if text.strip(_BOM) and not text.endswith("\n") else ""
        return f"{text}{gap}{_written(_nested(path, value), '', _UNIT, _newline(text))}\n"
    style = _Style(_unit(text, document.root), _newline(text))
    changed = _put(text, document.root, path, value, style)
    old = _at(document.root, path)
    lost = range(0) if old is None else range(old.start, old.end)
    kept = tuple(comment for at, comment in document.comments if at not in lost)
    return _sure(changed, _with(document.root.value, path, value), kept)


def take_out(text: str, path: Path) -> str:
    """The text without this member; the same text where there is none. Raises Odd."""
    document = parse(text)
    node = _at(document.root, path[:-1])
    member = None if node is None else _member(node, path[-1])
    if document.root is None or node is None or member is None:
        return text
    outside = ((at, said) for at, said in document.comments)
    kept = tuple(said for at, said in outside if not member.start <= at < member.node.end)
    expected = _lacking(document.root.value, path)
    try:
        return _sure(_without(text, node, member, tightly=True), expected, kept)
    except Odd:  # the line end before it may be the end of a comment
        return _sure(_without(text, node, member, tightly=False), expected, kept)


@frozen
class _Style:
    unit: str
    newline: str


def _put(text: str, node: Node, path: Path, value: Value, style: _Style) -> str:
    member = _member(node, path[0])
    if member is None:
        return _inserted(text, node, path, value, style)
    if len(path) > 1:
        return _put(text, member.node, path[1:], value, style)
    new = _written(value, _indent(text, member.start), style.unit, style.newline)
    return text[: member.node.start] + new + text[member.node.end :]


def _inserted(text: str, node: Node, path: Path, value: Value, style: _Style) -> str:
    """With a new first member in this object."""
    name, rest = path[0], path[1:]
    members = node.members or ()
    place, end = node.start + 1, members[0].start if members else node.end - 1
    after = place
    while comment := _SAME_LINE.match(text, after, end):
        after = comment.end()
    if _BREAK.match(text, after, end):
        place, outer = after, _indent(text, node.start)
        indent = _indent(text, members[0].start) if members else outer + style.unit
        lead, tail = style.newline + indent, ""
    elif place == end and rest:  # an empty object that gets a whole tree
        indent = _indent(text, node.start) + style.unit
        lead, tail = style.newline + indent, style.newline + _indent(text, node.start)
    else:
        indent, lead, tail = _indent(text, node.start), _blanks(text, place, end), ""
    inner = _written(_nested(rest, value), indent, style.unit, style.newline)
    comma = "," if members else ""
    return f"{text[:place]}{lead}{_quoted(name)}: {inner}{comma}{tail}{text[place:]}"


def _without(text: str, node: Node, member: Member, *, tightly: bool) -> str:
    """Without this member and a comma; tightly: without the blanks before it, too."""
    begin, end = member.start, member.node.end
    while tightly and text[begin - 1] in _BLANK:
        begin -= 1
    commas = [member.comma]
    if member.comma is None:
        earlier = [one.comma for one in node.members or () if one.start < member.start]
        commas = earlier[-1:]
    cuts = [(begin, end), *((at, at + 1) for at in commas if at is not None)]
    for first, last in sorted(cuts, reverse=True):
        text = text[:first] + text[last:]
    return text


def _sure(text: str, expected: Value, comments: tuple[str, ...]) -> str:
    """The text, if it holds what it should; raises Odd."""
    document = parse(text)
    kept = tuple(comment for _, comment in document.comments)
    value = None if document.root is None else document.root.value
    if kept != comments or _plain(value) != _plain(expected):
        raise Odd("cannot be changed safely: change it by hand")
    return text


def _plain(value: Value) -> str:
    """As text, so that 1, 1.0 and true are told apart."""
    return json.dumps(value)


def _at(node: Node | None, path: Path) -> Node | None:
    for name in path:
        member = None if node is None else _member(node, name)
        node = None if member is None else member.node
    return node


def _member(node: Node, name: str) -> Member | None:
    """The member of an object; raises Odd where it is no object, or has two of that name."""
    if node.members is None:
        raise Odd(f"holds something else than an object where {_quoted(name)} belongs")
    same = [member for member in node.members if member.name == name]
    if len(same) > 1:
        raise Odd(f"has {_quoted(name)} twice: take one of them out")
    return same[0] if same else None


def _nested(path: Path, value: Value) -> Value:
    for name in reversed(path):
        value = {name: value}
    return value


def _with(whole: Value, path: Path, value: Value) -> Value:
    """The value of the whole with a member, which stands first if it is new."""
    if not path:
        return value
    members = cast("Mapping[str, Value]", whole)
    inner = _with(members.get(path[0], {}), path[1:], value)
    if path[0] in members:
        return {name: inner if name == path[0] else one for name, one in members.items()}
    return {path[0]: inner, **members}


def _lacking(whole: Value, path: Path) -> Value:
    members = cast("Mapping[str, Value]", whole)
    if len(path) == 1:
        return {name: one for name, one in members.items() if name != path[0]}
    inner = _lacking(members[path[0]], path[1:])
    return {name: inner if name == path[0] else one for name, one in members.items()}


def _written(value: Value, indent: str, unit: str, newline: str) -> str:
    text = json.dumps(value, indent=unit, ensure_ascii=False)
    return text.replace("\n", newline + indent)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent(text: str, place: int) -> str:
    """The blanks at the beginning of the line."""
    line = text[text.rfind("\n", 0, place) + 1 : place].lstrip(_BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str, root: Node) -> str:
    """What a level is indented by."""
    first = root.members[0] if root.members else None
    indent = "" if first is None else _indent(text, first.start)
    return indent if indent and "\n" in text[root.start : first.start if first else 0] else _UNIT


def _blanks(text: str, place: int, end: int) -> str:
    begin = place
    while place < end and text[place] in " \t":
        place += 1
    return text[begin:place]


class _Reader:
    """Reads one text from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 1 if text.startswith(_BOM) else 0
        self._depth = 0
        self._comments: list[tuple[int, str]] = []

    def document(self) -> Document:
        self._skip()
        root = None if self._at == len(self._text) else self._value()
        self._skip()
        if self._at < len(self._text):
            raise self._odd("there is more after its end")
        return Document(root, tuple(self._comments))

    def _skip(self) -> None:
        while trivia := _TRIVIA.match(self._text, self._at):
            if trivia[0][0] == "/":
                self._comments.append((self._at, trivia[0]))
            self._at = trivia.end()

    def _value(self) -> Node:
        start = self._at
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._odd("it is nested too deep")
        match self._text[start : start + 1]:
            case "{":
                members = tuple(self._members())
                value = {member.name: member.node.value for member in members}
                node = Node(start, self._at, value, members)
            case "[":
                items = list(self._items())
                node = Node(start, self._at, items)
            case '"':
                text = self._string()
                node = Node(start, self._at, text)
            case _:
                node = self._other()
        self._depth -= 1
        return node

    def _members(self) -> Iterator[Member]:
        for _ in self._between("}"):
            start = self._at
            name = self._string()
            self._skip()
            self._take(":")
            self._skip()
            node = self._value()
            self._skip()
            comma = self._at if self._text.startswith(",", self._at) else None
            yield Member(name, start, node, comma)

    def _items(self) -> Iterator[Value]:
        for _ in self._between("]"):
            yield self._value().value
            self._skip()

    def _between(self, end: str) -> Iterator[None]:
        """Once for each element, up to the bracket at the end; a comma may stand before that."""
        self._at += 1
        self._skip()
        while not self._text.startswith(end, self._at):
            yield
            if not self._text.startswith(end, self._at):
                self._take(",")
                self._skip()
        self._at += 1

    def _string(self) -> str:
        text = _TEXT.match(self._text, self._at)
        if text is None:
            raise self._odd("a text in quotes is expected")
        try:
            value = json.loads(text[0])
        except ValueError:
            raise self._odd("a text is not well written") from None
        self._at = text.end()
        return str(value)

    def _other(self) -> Node:
        start, word = self._at, _OTHER.match(self._text, self._at)
        if word is None:
            raise self._odd("a value is expected")
        try:
            value = json.loads(word[0])
        except ValueError:
            raise self._odd("a number has too many digits") from None
        self._at = word.end()
        return Node(start, self._at, value)

    def _take(self, mark: str) -> None:
        if not self._text.startswith(mark, self._at):
            raise self._odd(f"{mark} is expected")
        self._at += 1

    def _odd(self, why: str) -> Odd:
        line = self._text.count("\n", 0, self._at) + 1
        return Odd(f"is not JSON as editors write it: line {line}: {why}")
