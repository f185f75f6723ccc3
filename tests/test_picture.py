"""The picture in the README shows what the demo shows."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import picture
from tests.picture import COLUMNS, Span

HOME = Path(__file__).parent.parent
PICTURE = HOME / ".ci" / "demo.svg"
DEMO = [sys.executable, "-I", str(HOME / "bridge" / "__main__.py"), "demo"]


@pytest.mark.slow
def test_the_picture_is_of_this_program(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    drawn = picture.drawn(picture.lines(picture.shown(DEMO, tmp_path)))
    if request.config.getoption("--update"):
        PICTURE.write_text(drawn, encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8").splitlines() == drawn.splitlines()


def test_the_readme_shows_the_picture() -> None:
    assert f"]({PICTURE.relative_to(HOME)})" in (HOME / "README.md").read_text(encoding="utf-8")


def test_the_picture_tells_thoughts_and_changes_apart() -> None:
    root = ElementTree.parse(PICTURE).getroot()
    fills: dict[str, set[str]] = {}
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        fills.setdefault(text.get("fill", ""), set()).add((text.text or "").strip())
    (old,) = (fill for fill, texts in fills.items() if any(one.startswith("-- ") for one in texts))
    (new,) = (fill for fill, texts in fills.items() if any(one.startswith("+- ") for one in texts))
    (thought,) = (fill for fill, texts in fills.items() if "**Refused**" in texts)
    (said,) = (fill for fill, texts in fills.items() if "I look at the file first." in texts)
    assert len({old, new, thought, said}) == 4
    assert "✗ failed: Edit notes.txt" in fills[old]
    assert "✓ completed: Edit notes.txt" in fills[new]


BEGIN, END = "> There is a typo\n", "The file now:\n"


@pytest.mark.parametrize(
    ("sent", "rows"),
    [
        ("said\n\n", [[Span("", "said")]]),
        ("\x1b[2ma\x1b[0m\x1b[2m b\x1b[0m c", [[Span("2", "a b"), Span("", " c")]]),
        ("\x1b[2ma\n\nb\x1b[0m", [[Span("2", "a")], [], [Span("2", "b")]]),
        ("x" * 90 + " " + "y" * 9, [[Span("", "x" * 90)], [Span("", "y" * 9)]]),
        ("    " + "x" * 90 + " yy", [[Span("", "    " + "x" * 90)], [Span("", "    yy")]]),
        ("x" * COLUMNS, [[Span("", "x" * COLUMNS)]]),
    ],
)
def test_what_a_terminal_is_sent_becomes_rows(sent: str, rows: list[picture.Line]) -> None:
    noise = "\x1b[2mbefore\x1b[0m\n"
    assert picture.lines(f"{noise}{BEGIN}{sent}\n{END}after\n")[1:] == rows
