import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.hint import hint

FILE = "def area(r):\n\treturn 3 * r\n\ndef name():\n    return 'circle'\n"


@pytest.mark.parametrize(
    ("text", "wanted", "expected"),
    [
        (FILE, "1: def area(r):", "leave out the line numbers that read puts before the lines"),
        (
            FILE,
            "1: def area(r):\n2: \treturn 3 * r",
            "leave out the line numbers that read puts before the lines",
        ),
        (
            FILE,
            "def area(r):\\n\\treturn",
            "the file has line ends or tabs where old_string has a backslash and a letter",
        ),
        (
            "one\na\u00a0b\n",
            "a b",
            "line 2 has U+00A0 (NO-BREAK SPACE) where old_string has U+0020 (SPACE)",
        ),
        (
            "a\u00a0b\n",
            "a b",
            "line 1 has U+00A0 (NO-BREAK SPACE) where old_string has U+0020 (SPACE)",
        ),
        (
            "\na\u00a0b\n",
            "a b",
            "line 2 has U+00A0 (NO-BREAK SPACE) where old_string has U+0020 (SPACE)",
        ),
        (
            FILE,
            "def name():\n    return \u2018circle'",
            "line 5 has U+0027 (APOSTROPHE) where old_string has U+2018 "
            "(LEFT SINGLE QUOTATION MARK)",
        ),
        (
            "x\ncafe\u0301\n",
            "caf\u00e9",
            "line 2 differs only in Unicode normal form (composed or decomposed letters)",
        ),
        (
            "cafe\u0301\n",
            "caf\u00e9",
            "line 1 differs only in Unicode normal form (composed or decomposed letters)",
        ),
        (
            FILE,
            "def area(r):\n    return 3 * r",
            'only blank space differs: line 2 is "\\treturn 3 * r"',
        ),
        ("a  b\n", "a b", 'only blank space differs: line 1 is "a  b"'),
        ("a\nb\n", " \na\nb\n \n", 'only blank space differs: line 3 is ""'),
        (
            FILE,
            "def area(r):\n\treturn 4 * r",
            'it begins like line 1, but then line 2 is "return 3 * r"',
        ),
        ("a\nb", "a\nb\nc", "it begins like line 1, but then the file ends"),
        ("a\nb\na\nc\nd\n", "a\nc\ne\n", 'it begins like line 3, but then line 5 is "d"'),
        (FILE, "def area(radius):", 'the closest: line 1 is "def area(r):"'),
        ("x" * 400, "x" * 350 + "y" * 50, f'the closest: line 1 is "{"x" * 160}\u2026"'),
        (FILE, "completely different", ""),
        (FILE, " \n", ""),
        ("", "a", ""),
        ("a\u00a0b" * 400_000, "a b", ""),
    ],
)
def test_a_near_miss_is_named(text: str, wanted: str, expected: str) -> None:
    assert wanted not in text
    assert hint(text, wanted) == expected


LETTERS = st.text("ab \t\n\\n\u00a0\u00e9e\u03011: \u2019'", max_size=20)


@given(LETTERS, LETTERS)
def test_a_hint_is_one_line_whatever_the_texts_are(text: str, wanted: str) -> None:
    if wanted not in text:
        assert "\n" not in hint(text, wanted)
