"""What the person wrote, told from what came along."""

import pytest

from bridge.core.records import Item
from bridge.core.written import company, title_of, typed, with_names, with_places


def text(given: str) -> Item:
    return {"type": "text", "text": given}


def link(uri: str, name: str = "n") -> Item:
    return {"type": "resource_link", "uri": uri, "name": name}


FILE: Item = {"type": "resource", "resource": {"uri": "file:///a", "text": "/goal clear"}}
PICTURE: Item = {"type": "image", "data": "QQ==", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("blocks", "alone", "places", "names"),
    [
        ([], "", "", ""),
        ([text("/plan "), text("off")], "/plan off", "/plan off", "/plan off"),
        ([text("/plan off"), FILE, PICTURE], "/plan off", "/plan off", "/plan off"),
        ([FILE, link("/b", "b"), text("/plan off")], "/plan off", "/plan off", "b/plan off"),
        ([text("/fix "), link("file:///b%20c", "b c"), text(", now")],
         "/fix , now", "/fix '/b c', now", "/fix b c, now"),
        ([text("see"), link("file:///b#L3-5"), link("/b:7")],
         "see", "see /b:3-5 /b:7", "see n n"),
        ([text("see\n"), link("zed:///x?y")], "see\n", "see\nzed:///x?y", "see\nn"),
        ([link("/b", "b")], "", "", "b"),
    ],
)  # fmt: skip
def test_links_stand_in_the_text_and_nothing_embedded_does(
    blocks: list[Item], alone: str, places: str, names: str
) -> None:
    assert (typed(blocks), with_places(blocks), with_names(blocks)) == (alone, places, names)


def test_the_company_is_all_but_what_was_written() -> None:
    written = [text("/fix"), FILE, link("/b")]
    shown = [*written, text("what the link shows"), PICTURE]
    assert company(shown, written) == (FILE, link("/b"), text("what the link shows"), PICTURE)


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("Fix the build of this project", "Fix the build of this"),
        ("<rules>Short.</rules>\n<user_request>\nFix\nit\n</user_request> now", "Fix it"),
        ("a\x1b[31mb\u202ec\x00d", "abcd"),
        ("é" * 30, "é" * 20),
        ("x" * 39 + "é", "x" * 39),
        ("\ud800 half", "? half"),
        (" \n", ""),
    ],
)
def test_a_title_is_the_first_words_short_and_printable(asked: str, title: str) -> None:
    assert title_of(asked) == title
