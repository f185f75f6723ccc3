"""What stands between dashes at the start of a Markdown file."""

import pytest

from bridge.core.front_matter import Page, parted


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("", {}, ""),
        ("name: a\n", {}, "name: a\n"),
        ("---\n---\nB", {}, "B"),
        ("--- \r\nname: a\r\n---\r\nB\r\n", {"name": "a"}, "B\r\n"),
        ("---\nname: a\nother:\n  c\ndescription: 'd e'\n---\n",
         {"name": "a", "other": "c", "description": "d e"}, ""),
        ("---\ndescription: |\n  one\n  two\nx\n y\n---", {"description": "one two"}, ""),
        ('---\na: "b\nc: \'d\' or \'e\'\nf: "\ng:h\ni: ""\n---\n',
         {"a": '"b', "c": "'d' or 'e'", "f": '"', "g": "h", "i": ""}, ""),
        ("---\nargument-hint: [a] <b>\n---\n---\n", {"argument-hint": "[a] <b>"}, "---\n"),
    ],
)  # fmt: skip
def test_a_file_is_parted(text: str, fields: dict[str, str], body: str) -> None:
    assert parted(text) == Page(fields, body)


@pytest.mark.parametrize("text", ["---\nname: a\n", "---", "---\nname: a\n--- x"])
def test_fields_that_do_not_end_are_none(text: str) -> None:
    assert parted(text) is None
