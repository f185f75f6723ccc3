"""A picture of the demo: what a terminal shows of a real run, as SVG.

Rule 1: the run decides what is in the picture; here it is only laid out.
Rule 2: the same run gives the same bytes: nothing of the place and the time of the run is shown.

`pytest tests/test_picture.py --update` draws it anew.
"""

import os
import pty
import re
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias
from xml.sax.saxutils import escape

from tools.frozen import frozen

COLUMNS = 96
_FROM, _TO = "> There is a typo", "The file now:"
"""What the picture begins and ends with: the conversation, without what the demo says around it."""
QUESTION = re.compile(rb"say what to change:|\[y/N\]")
"""How the demo and `setup` ask."""
_PATIENCE = 240.0
_COLOURS = {
    "": "#d7dae0",
    "1": "#ffffff",
    "2": "#8b919d",
    "1;36": "#63c7d8",
    "31": "#f07178",
    "32": "#8fd16f",
    "36": "#63c7d8",
}
"""By the numbers of the terminal's colours."""
_WIDTH, _HEIGHT, _EDGE = 8, 19, 18
"""Of one character and of the frame, in pixels."""
_ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")


@frozen
class Span:
    """Characters of one colour."""

    style: str
    text: str


Line: TypeAlias = list[Span]


def shown(command: Sequence[str], home: Path) -> str:
    """What a terminal is sent when a person plays the demo and approves the plan."""
    environment = {"PATH": os.defpath, "HOME": str(home), "TMPDIR": str(home), "TERM": "xterm"}
    code, text = in_a_terminal(command, environment, home, QUESTION)
    assert code == 0, text
    return text


def in_a_terminal(
    command: Sequence[str], environment: Mapping[str, str], cwd: Path, question: re.Pattern[bytes]
) -> tuple[int, str]:
    """Run a program on a terminal, and answer these questions with yes: exit code and output."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        cwd=cwd,
        start_new_session=True,
    ) as process:
        os.close(slave)
        try:
            text = b"".join(_read(master, question))
            code = process.wait(_PATIENCE)
        finally:
            process.kill()
            os.close(master)
    return code, text.decode().replace("\r\n", "\n")


def _read(master: int, question: re.Pattern[bytes]) -> Iterator[bytes]:
    recent = b""
    while select.select([master], [], [], _PATIENCE)[0]:
        try:
            data = os.read(master, 65536)
        except OSError:  # Linux, pty(7): EIO once the other end is closed
            return
        if not data:
            return
        yield data
        recent += data
        if question.search(recent):
            os.write(master, b"y\n")
            recent = b""


def lines(text: str) -> list[Line]:
    """The lines of the conversation, as wide as the picture at most."""
    found: list[Line] = [[]]
    style = ""
    for number, piece in enumerate(_ESCAPE.split(text)):
        if number % 2:
            style = "" if piece == "0" else piece
            continue
        for count, part in enumerate(piece.split("\n")):
            if count:
                found.append([])
            if part:
                found[-1].append(Span(style, part))
    plain = [_text(line) for line in found]
    first = next(n for n, line in enumerate(plain) if line.startswith(_FROM))
    last = plain.index(_TO)
    while not plain[last - 1].strip():
        last -= 1
    return [row for line in found[first:last] for row in _wrapped(line)]


def _text(line: Line) -> str:
    return "".join(span.text for span in line)


def _wrapped(line: Line) -> Iterator[Line]:
    """The rows of a line: broken at blanks, as far in as the line is."""
    text = _text(line)
    styles = [span.style for span in line for _ in span.text]
    indent = len(text) - len(text.lstrip(" "))
    begin = 0
    while True:
        margin = indent if begin else 0
        end = len(text)
        if end - begin > COLUMNS - margin:
            end = text.rindex(" ", begin + 1, begin + COLUMNS - margin + 1)
        yield [*_spans(" " * margin + text[begin:end], [""] * margin + styles[begin:end])]
        if end == len(text):
            return
        begin = end + 1


def _spans(text: str, styles: Sequence[str]) -> Iterator[Span]:
    begin = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or styles[place] != styles[begin]:
            yield Span(styles[begin], text[begin:place])
            begin = place


def drawn(rows: Sequence[Line]) -> str:
    """The picture of these rows."""
    width, height = 2 * _EDGE + COLUMNS * _WIDTH, 2 * _EDGE + len(rows) * _HEIGHT
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-size="13.3" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace">'
    )
    title = "<title>A turn of responses-acp demo in a terminal</title>"
    frame = f'<rect width="{width}" height="{height}" rx="10" fill="#1b1e24"/>'
    texts = [text for number, row in enumerate(rows) for text in _row(number, row)]
    return "\n".join([head, title, frame, *texts, "</svg>", ""])


def _row(number: int, row: Line) -> Iterator[str]:
    y = _EDGE + number * _HEIGHT + _HEIGHT - 5
    column = 0
    for span in row:
        text = span.text.lstrip(" ")
        x = _EDGE + (column + len(span.text) - len(text)) * _WIDTH
        column += len(span.text)
        if text := text.rstrip(" "):
            weight = ' font-weight="bold"' if span.style.startswith("1") else ""
            yield (
                f'<text x="{x}" y="{y}" fill="{_COLOURS[span.style]}"{weight} '
                f'textLength="{len(text) * _WIDTH}" xml:space="preserve">{escape(text)}</text>'
            )
