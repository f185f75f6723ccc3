"""What a shell line would do: which commands it runs.

The only importer of tree-sitter. It looks at no disk and at no environment.

Rule 1: a line counts as plain commands only if every byte of it was understood.
Rule 2: a word counts as what bash would make of it: quotes and backslashes are undone first.
Rule 3: what is to be refused is looked for everywhere: in substitutions, in loops, behind wrappers.
What cannot be told there makes the line unclear, which is never a yes.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Protocol

from tools.argv import Argv, Line, Word
from tools.frozen import frozen
from tools.git_work import names, works_on
from tools.inner import inner
from tools.programs import only_reads
from tools.quiet import runs_none

_LONGEST = 8 * 1024
"""Characters; a longer line is not worth a proof."""
_LONGEST_SEEN = 128 * 1024
"""Characters; in a longer line nothing is looked for."""
_DEEPEST = 8
"""Shells within shells that are followed."""
_MOST_SEEN = 1000
"""Commands that are followed through their wrappers."""

_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_DISGUISE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Characters that make a line look other than what it is."""
_ARGUMENTS = frozenset(
    {
        *("word", "number", "string", "raw_string", "ansi_c_string", "translated_string"),
        *("concatenation", "expansion", "simple_expansion", "command_substitution"),
        *("process_substitution", "arithmetic_expansion", "brace_expression"),
    }
)
_LEAVES = frozenset(
    {"word", "string_content", "raw_string", "ansi_c_string", "heredoc_body", "heredoc_content"}
)
_JOINS = frozenset({"&&", "||", ";", "|"})
_GROUPS = frozenset({"program", "list", "pipeline"})
_SEPARATED = _GROUPS | {
    "command",
    "compound_statement",
    "do_group",
    "redirected_statement",
    "subshell",
}

# bash(1), QUOTING. Other characters keep the backslash before them inside double quotes.
_ESCAPE_IN_QUOTES = re.compile(r'\\([$`"\\])')
_EXPANSION_IN_QUOTES = re.compile(r"`|\$(?![\s|)]|$)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_META = re.compile(r"[\s$`{}()<>&;|'\"\\]")
"""Not in a bare word. The parser lets white space into some, where bash begins another."""
_GLUED = re.compile(r"[\s;&|<>()]")
"""Where bash begins another word, or another command, though the parser goes on."""
_PATTERN = re.compile(r"[*?\[]")
_SPLIT_WORD = re.compile(r"[^ \t]\\\n")
"""bash joins what stands before and after; the parser does not."""


class Node(Protocol):
    """A piece of parsed shell, as tree-sitter gives it."""

    @property
    def type(self) -> str: ...
    @property
    def has_error(self) -> bool: ...
    @property
    def start_byte(self) -> int: ...
    @property
    def end_byte(self) -> int: ...
    @property
    def children(self) -> "Sequence[Node]": ...


def is_disguised(line: str) -> bool:
    """Whether there is something in the line that a person would not see as what it is."""
    return _DISGUISE.search(line) is not None


def look(line: str) -> Line:
    """All that the line would run, as far as that can be told without running it."""
    plain = tuple(tuple(words) for words in commands(line))
    sight = _Sight([], [], [])
    clear = sight.add(line, 0)
    git = not any(sight.strays) and any(map(works_on, sight.seen))
    return Line(plain, (False,) * len(plain), tuple(sight.seen), tuple(sight.guessed), clear, git)


def commands(line: str) -> list[list[Word]]:
    """The simple commands of a line in their order; none at all if there is anything else in it."""
    parse = load_parser()
    if parse is None or len(line) > _LONGEST or not _is_visible(line):
        return []
    source = line.strip(" \t\n").encode()
    root = parse(source)
    return [] if root.has_error else _commands(root, source)


@frozen
class _Sight:
    """The commands that were seen in a line, and in the lines that it hands to shells."""

    seen: list[Argv]
    guessed: list[Argv]
    strays: list[bool]
    """Of each line: something in it that is not for git may write to what it names: `.git`."""

    def add(self, line: str, depth: int) -> bool:
        """Look for the commands of one line; False: it may run others as well."""
        parse = load_parser()
        if parse is None or depth > _DEEPEST or len(line) > _LONGEST_SEEN:
            return False
        source = line.strip(" \t\n").encode(errors="replace")
        root = parse(source)
        self.strays.append(any(_may_write(one, source) for one in _naming(root, source)))
        clear = not (root.has_error or is_disguised(line) or _SPLIT_WORD.search(line))
        for node in _everywhere(root):
            if node.type in _SEPARATED and any(map(_is_odd, _gaps(node, source))):
                clear = False
            if node.type == "word" and _GLUED.search(_ESCAPE.sub("", _text(node, source))):
                clear = False
            if node.type in ("command", "declaration_command"):
                self.guessed.extend(_set_before(node, source))
            if node.type in ("command", "redirected_statement"):
                self.guessed.extend(_fed(node, source))
            if (words := _argv(node, source)) is not None:
                clear = self._follow(words, depth) and clear
        return clear

    def _follow(self, words: Argv, depth: int) -> bool:
        """Take in a command, and those that it runs."""
        pending, clear = [words], True
        while pending:
            command = pending.pop()
            self.seen.append(command)
            if len(self.seen) > _MOST_SEEN:
                return False
            found = inner(command)
            self.guessed.extend(found.guesses)
            pending.extend(found.commands)
            clear = clear and not found.hidden
            for text in found.texts:
                clear = self.add(text, depth + 1) and clear
        return clear


def _naming(root: Node, source: bytes) -> Iterator[Node | None]:
    """Of each word that names a repository: the command it is for, or None where it is for none."""
    pending: list[tuple[Node, Node | None]] = [(root, None)]
    while pending:
        node, command = pending.pop()
        if node.type == "command":
            command = node
        elif _is_redirected(node):
            command = node.children[0]
        elif node.type == "file_redirect":
            command = None
        if node.type in _LEAVES and names(_text(node, source), bare=node.type == "word"):
            yield command
        pending.extend((child, command) for child in node.children)


def _may_write(command: Node | None, source: bytes) -> bool:
    """Whether a command that a repository is named to may change it, and is not meant to."""
    if command is None:
        return True
    words = tuple(_told_words(command, source))
    if works_on(words):
        return False
    found = inner(words)
    if found.texts and not found.hidden:
        return False  # they are looked at by themselves
    plain = _words(command, source)
    return not plain or plain[0].text == "cd" or not only_reads(plain)


def _everywhere(root: Node) -> Iterator[Node]:
    """Every node of the tree, however deep."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.children))


def _is_odd(gap: bytes) -> bool:
    """Something stands between two nodes that the parser made nothing of."""
    return gap.replace(b"\\\n", b"").strip(b" \t\n") != b""


def _text(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode(errors="replace")


def _is_redirected(node: Node) -> bool:
    """Whether this is a command with redirections; another node is the command alone."""
    return node.type == "redirected_statement" and node.children[0].type == "command"


def _argv(node: Node, source: bytes) -> Argv | None:
    """All words of a command, some of which may stand behind a redirection; None: it is none."""
    if _is_redirected(node):
        command, *redirections = node.children
        more = (word for one in redirections for word in _behind(one, source))
        return (*_told_words(command, source), *more)
    return tuple(_told_words(node, source)) if node.type == "command" else None


def _behind(redirection: Node, source: bytes) -> Iterator[str | None]:
    """Words that the parser takes for further places to write to, and bash for the command's."""
    words = [node for node in redirection.children if node.type in _ARGUMENTS]
    opens = any(node.type in (">&-", "<&-", "<<", "<<-") for node in redirection.children)
    yield from (_told(node, source) for node in words[0 if opens else 1 :])


def _set_before(command: Node, source: bytes) -> Iterator[Argv]:
    """The values of variables that a command gets: programs run what EDITOR and others hold."""
    for node in command.children:
        if node.type == "variable_assignment":
            yield (_text(node, source).partition("=")[2],)


def _fed(node: Node, source: bytes) -> Iterator[Argv]:
    """The texts that a program gets on its standard input, if it may run what it is told."""
    fed = [_text(one, source) for one in node.children if one.type.startswith("here")]
    words = _argv(node, source)
    if not (words and runs_none(words)):
        yield from ((text,) for text in fed)


def _told_words(command: Node, source: bytes) -> Iterator[str | None]:
    for node in command.children:
        if node.type.endswith("_redirect"):
            yield from _behind(node, source)
        elif node.type == "command_name":
            yield _told(node.children[0], source) if len(node.children) == 1 else None
        elif node.type != "variable_assignment":
            yield _told(node, source)


def _told(node: Node, source: bytes) -> str | None:
    word = _word(node, source)
    return None if word is None or word.pattern else word.text


@cache
def load_parser() -> Callable[[bytes], Node] | None:
    """Loaded when the first command is judged; None where tree-sitter cannot be had."""
    try:
        import tree_sitter  # noqa: PLC0415 (most sessions never need it)
        import tree_sitter_bash  # noqa: PLC0415 (most sessions never need it)
    except ImportError:
        return None
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    return lambda source: parser.parse(source).root_node


def _is_visible(line: str) -> bool:
    # bash joins what stands before and after an escaped line end; the parser does not.
    return "\\\n" not in line and not any(
        unicodedata.category(char) in _INVISIBLE for char in set(line) - set(" \t\n")
    )


def _commands(root: Node, source: bytes) -> list[list[Word]]:
    found: list[list[Word]] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if node.type == "command" and (words := _words(node, source)):
            found.append(words)
        elif node.type in _GROUPS and not b"".join(_gaps(node, source)).strip(b" \t\n"):
            pending.extend(reversed(node.children))
        elif node.type not in _JOINS:
            return []
    return found


def _words(command: Node, source: bytes) -> list[Word]:
    """Name and arguments; empty if one of them is not plain."""
    name, *arguments = command.children
    if not all(gap and not gap.strip(b" \t") for gap in _gaps(command, source)):
        return []
    if name.type != "command_name" or len(name.children) != 1:
        return []
    words = [_word(node, source) for node in (name.children[0], *arguments)]
    plain = [word for word in words if word is not None]
    return plain if len(plain) == len(words) else []


def _gaps(node: Node, source: bytes) -> list[bytes]:
    """What stands between the children of a node."""
    return [source[one.end_byte : two.start_byte] for one, two in pairwise(node.children)]


def _word(node: Node, source: bytes) -> Word | None:
    if node.type == "concatenation":
        return None if any(_gaps(node, source)) else _joined(node.children, source)
    undo = _UNQUOTE.get(node.type)
    return undo(_text(node, source)) if undo else None


def _joined(nodes: Sequence[Node], source: bytes) -> Word | None:
    texts = [_text(node, source) for node in nodes]
    # bash(1), Brace Expansion: {} stays as it is.
    empty = {
        n + side for n in range(len(texts)) if texts[n : n + 2] == ["{", "}"] for side in (0, 1)
    }
    pieces = [Word(texts[n]) if n in empty else _word(node, source) for n, node in enumerate(nodes)]
    text = "".join(piece.text for piece in pieces if piece)
    pattern = any(piece.pattern for piece in pieces if piece)
    return Word(text, pattern) if None not in pieces else None


def _bare(text: str) -> Word | None:
    unescaped = _ESCAPE.sub("", text)
    if _META.search(unescaped):
        return None
    return Word(_ESCAPE.sub(r"\1", text), _PATTERN.search(unescaped) is not None)


def _double_quoted(text: str) -> Word | None:
    inside = text[1:-1]
    if _EXPANSION_IN_QUOTES.search(_ESCAPE.sub("", inside)):
        return None
    return Word(_ESCAPE_IN_QUOTES.sub(r"\1", inside))


def _single_quoted(text: str) -> Word:
    return Word(text[1:-1])


_UNQUOTE: Mapping[str, Callable[[str], Word | None]] = {
    "word": _bare,
    "number": _bare,
    "string": _double_quoted,
    "raw_string": _single_quoted,
}
