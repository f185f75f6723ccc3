"""A Markdown file becomes a command, and its places are filled."""

import pytest

from bridge.core.own_command import OwnCommand, read


def check(text: str, expected: OwnCommand | str) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "it holds no prompt"),
        (" \n\t\n", "it holds no prompt"),
        ("---\ndescription: d\n---\n\n", "it holds no prompt"),
        ("---\ndescription: d\n", "its front matter has no closing line of dashes"),
        ("# Say hello\n\nHello.\n", OwnCommand("Say hello", "", "# Say hello\n\nHello.")),
        ("Fix $1.", OwnCommand("Fix $1.", "[arguments]", "Fix $1.")),
        ("---\ndescription: D\nargument-hint: <file>\nmodel: opus\n---\nFix.",
         OwnCommand("D", "<file>", "Fix.")),
        (f"---\ndescription: {'d ' * 400}\nargument-hint: {'h' * 400}\n---\nF",
         OwnCommand(("d " * 150)[:300], "h" * 100, "F")),
        ("x" * 300, OwnCommand("x" * 100, "", "x" * 300)),
    ],
)  # fmt: skip
def test_a_file_is_read(text: str, expected: OwnCommand | str) -> None:
    check(text, expected)


@pytest.mark.parametrize(
    ("template", "argument", "expected"),
    [
        ("Go.", "", "Go."),
        ("Go.", "now", "Go.\n\nnow"),
        ("Do $ARGUMENTS!", 'a "b c"', 'Do a "b c"!'),
        ("Do $ARGUMENTS!", "", "Do !"),
        ("$2, then $1; no $3", 'a "b c"', "b c, then a; no "),
        ("$1", "it's", "it's"),
        ("$1", r"$2 $ARGUMENTS \1", "$2"),
        ("$ARGUMENTS", r"$1 \1 \g<0>", r"$1 \1 \g<0>"),
        ("$10 $0 $ARGUMENTS_X $ARGUMENTS2 $", "a", "$10 $0 $ARGUMENTS_X $ARGUMENTS2 $\n\na"),
        ("$ARGUMENTS.", "a\nb", "a\nb."),
    ],
)
def test_the_places_of_a_prompt_are_filled(template: str, argument: str, expected: str) -> None:
    assert OwnCommand("", "", template).prompt(argument) == expected
