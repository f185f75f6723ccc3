"""What a shell line would do: proven to only read, or unknown.

The only importer of tree-sitter. It looks at no disk and at no environment.

Rule 1: harmless means proven. What this file does not know by name is not harmless, and every
byte of the line must be one that was understood.
Rule 2: a word counts as what bash would make of it: quotes and backslashes are undone first.
Rule 3: a pattern may become any file name, also one that looks like an option; it passes only
where no file name could do harm.
Rule 4: which files are read is not judged here.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Protocol, TypeAlias

from tools.frozen import frozen

_LONGEST = 8 * 1024
"""Characters; a longer line is not worth a proof."""

_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_JOINS = frozenset({"&&", "||", ";", "|"})
_GROUPS = frozenset({"program", "list", "pipeline"})
_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/")

# bash(1), QUOTING. Other characters keep the backslash before them inside double quotes.
_ESCAPE_IN_QUOTES = re.compile(r'\\([$`"\\])')
_EXPANSION_IN_QUOTES = re.compile(r"`|\$(?![\s|)]|$)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_META = re.compile(r"[\s$`{}()<>&;|'\"\\]")
"""Not in a bare word. The parser lets white space into some, where bash begins another."""
_PATTERN = re.compile(r"[*?\[]")


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


@frozen
class Word:
    """One argument as the program gets it."""

    text: str
    pattern: bool = False
    """An unquoted `*`, `?` or `[` is in it: bash may put file names in its place."""

    def may_be_option(self) -> bool:
        """A file name put in its place could start with a dash."""
        return self.pattern and self.text[0] in "-*?["


Words: TypeAlias = Sequence[Word]


def is_harmless(command: str) -> bool:
    """The line is proven to do nothing but read."""
    simple = commands(command)
    return bool(simple) and all(map(_only_reads, simple))


def commands(line: str) -> list[list[Word]]:
    """The simple commands of a line in their order; none at all if there is anything else in it."""
    parse = load_parser()
    if parse is None or len(line) > _LONGEST or not _is_visible(line):
        return []
    source = line.strip(" \t\n").encode()
    root = parse(source)
    return [] if root.has_error else _commands(root, source)


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
    return undo(source[node.start_byte : node.end_byte].decode()) if undo else None


def _joined(nodes: Iterable[Node], source: bytes) -> Word | None:
    pieces = [_word(node, source) for node in nodes]
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


def _only_reads(command: Words) -> bool:
    name, *arguments = command
    program = name.text
    for folder in _SYSTEM_FOLDERS:
        program = program.removeprefix(folder)
    judge = SAFE.get(program)
    return judge is not None and judge(arguments)


def _always(_arguments: Words) -> bool:
    return True


def _without(arguments: Words, *, letters: str = "", words: tuple[str, ...] = ()) -> bool:
    """None of these options is given, also not among others or (as GNU allows) abbreviated."""
    for argument in arguments:
        text = argument.text
        name = text[2:].partition("=")[0]
        if argument.may_be_option():
            return False
        if text.startswith("--"):
            if name and any(word.startswith(name) for word in words):
                return False
        elif text.startswith("-") and not set(letters).isdisjoint(text):
            return False
    return True


def _find(arguments: Words) -> bool:
    acts = ("-delete", "-exec", "-fls", "-fprint", "-ok")
    return not any(
        argument.may_be_option() or argument.text.startswith(acts) for argument in arguments
    )


def _uniq(arguments: Words) -> bool:
    """At most one operand: the second is the file it writes."""
    operands = [word for word in arguments if word.text == "-" or not word.text.startswith("-")]
    return len(operands) <= 1 and not any(word.pattern for word in arguments)


def _sed(arguments: Words) -> bool:
    """Only `sed -n 3,5p FILE…`."""
    if len(arguments) < 2:
        return False
    option, program, *files = arguments
    return (
        option.text == "-n"
        and re.fullmatch(r"(\d+|\$)(,(\d+|\$))?p", program.text) is not None
        and not any(file.may_be_option() or file.text.startswith("-") for file in files)
    )


def _date(arguments: Words) -> bool:
    """Only options that show a date; an operand without `+` sets the clock."""
    shows = r"\+.*|-[uR]|-I.*|--(utc|iso-8601.*|rfc-.*|date=.*|reference=.*)"
    words = [word.text for word in arguments]
    for option in {"-d", "-r"} & set(words[:-1]):
        at = words.index(option)
        del words[at : at + 2]
    return not any(word.may_be_option() for word in arguments) and all(
        re.fullmatch(shows, word, re.DOTALL) for word in words
    )


SAFE: Mapping[str, Callable[[Words], bool]] = {
    **dict.fromkeys(
        (
            *("basename", "cat", "cd", "cut", "df", "diff", "dirname", "du", "echo", "false"),
            *("grep", "head", "ls", "nl", "pwd", "readlink", "realpath", "stat", "tail", "tr"),
            *("true", "type", "wc", "which"),
        ),
        _always,
    ),
    "date": _date,
    "file": partial(_without, letters="CzZ", words=("compile", "uncompress-noreport")),
    "find": _find,
    "printf": partial(_without, letters="v"),
    "rg": partial(_without, letters="z", words=("hostname-bin", "pre", "search-zip")),
    "sed": _sed,
    "sort": partial(
        _without, letters="oT", words=("compress-program", "output", "temporary-directory")
    ),
    "test": partial(_without, letters="vR"),
    "tree": partial(_without, letters="oR", words=("output",)),
    "uniq": _uniq,
}
"""By program: whether it only reads when it gets these arguments.

git is not here: the configuration of a repository makes it start other programs. printf -v and
test -v evaluate what they are given, as bash(1) says of array subscripts.
"""
