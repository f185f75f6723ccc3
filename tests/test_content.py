"""Content blocks of the editor's become input parts."""

import base64

import pytest

from bridge.core.content import (
    MOST_DATA,
    attached,
    media_of,
    message,
    output,
    unfit,
    user_content,
    without_media,
)
from bridge.core.records import Item
from tests.pictures import GIF, PDF, PNG
from tools.base import Media


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ["ab"]),
        ([{"type": "text", "text": "See "},
          {"type": "resource_link", "uri": "zed:///x", "name": "n"}],
         ['See \n[resource_link name="n" uri="zed:///x"]\n']),
        ([{"type": "resource", "resource": {"uri": "file:///a", "text": "T"}}],
         ['\n<resource uri="file:///a">\nT\n</resource>\n']),
        ([{"type": "resource",
           "resource": {"uri": "u", "blob": base64.b64encode("ä".encode()).decode()}}],
         ['\n<resource uri="u">\nä\n</resource>\n']),
        ([{"type": "resource", "resource": {"uri": "u", "blob": "/w==", "mimeType": "x/y"}}],
         ['\n[resource uri="u" holds data of type x/y, not text]\n']),
        ([{"type": "resource", "resource": {"uri": "u", "blob": "%%%"}}],
         ['\n[resource uri="u" holds data of type unknown, not text]\n']),
        ([{"type": "text", "text": "a"}, {"type": "image", "data": "QQ==", "mimeType": "image/png"},
          {"type": "text", "text": "b"}], ["a", "data:image/png;base64,QQ==", "b"]),
        ([{"type": "image", "data": f" {PNG[:9]}\n{PNG[9:]}", "mimeType": "image/jpeg"}],
         [f"data:image/png;base64,{PNG}"]),
        ([{"type": "image", "data": "%", "mimeType": "image/png"}], ["data:image/png;base64,%"]),
        ([{"type": "resource", "resource": {"uri": "u", "blob": GIF, "mimeType": "text/plain"}}],
         [f"data:image/gif;base64,{GIF}"]),
        ([{"type": "resource", "resource": {"uri": "u", "mimeType": "image/svg+xml",
           "blob": base64.b64encode(b"<svg/>").decode()}}],
         ['\n<resource uri="u">\n<svg/>\n</resource>\n']),
        ([{"type": "unheard of"}], []),
        ([], []),
    ],
)  # fmt: skip
def test_a_prompt_becomes_input_parts(blocks: list[Item], expected: list[str]) -> None:
    parts = user_content(blocks)
    assert [part.get("text", part.get("image_url")) for part in parts] == expected


HUGE = PNG[:-4] + "A" * (MOST_DATA // 3 * 4 + 4)


def blob(data: str, mime: str = "image/png") -> Item:
    return {"type": "resource", "resource": {"uri": "u", "blob": data, "mimeType": mime}}


@pytest.mark.parametrize(
    ("block", "images", "why"),
    [
        ({"type": "text", "text": ""}, False, None),
        ({"type": "resource_link", "uri": "u", "name": "n"}, False, None),
        ({"type": "audio", "data": "QQ=="}, True, "not supported"),
        ({"type": "image", "data": PNG, "mimeType": "x"}, True, None),
        ({"type": "image", "data": PNG}, False, "the model in use takes no images"),
        ({"type": "image", "data": "QQ==", "mimeType": "image/png"}, True,
         "it is no PNG, JPEG, GIF or WebP"),
        ({"type": "image", "data": PDF, "mimeType": "image/png"}, True,
         "it is no PNG, JPEG, GIF or WebP"),
        ({"type": "image", "data": "", "mimeType": "image/png"}, True,
         "it is no PNG, JPEG, GIF or WebP"),
        ({"type": "image", "data": PNG[:-3], "mimeType": "image/png"}, True,
         "its data is not base64"),
        ({"type": "image", "data": "ä"}, True, "its data is not base64"),
        ({"type": "image", "data": HUGE}, True, "it has more than 20 MB"),
        (blob(PNG, "text/plain"), True, None),
        (blob(PNG, "text/plain"), False, "the model in use takes no images"),
        (blob(HUGE), True, "it has more than 20 MB"),
        (blob("QQ=="), False, None),
        (blob("%%%"), False, None),
        (blob(PDF), False, None),
        ({"type": "resource", "resource": {"uri": "u", "text": "t"}}, False, None),
    ],
)  # fmt: skip
def test_a_block_is_sent_or_refused(block: Item, *, images: bool, why: str | None) -> None:
    assert unfit(block, images=images) == why


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///a/report%201.pdf#page=2", "report 1.pdf"),
        ("https://h/a.PDF?x=/y", "a.PDF"),
        ("file:///a/report/", "report.pdf"),
        ("", "file.pdf"),
    ],
)
def test_a_pdf_goes_as_a_file_with_a_name_that_tells_its_type(uri: str, name: str) -> None:
    block = {"type": "resource", "resource": {"uri": uri, "blob": PDF, "mimeType": "x/y"}}
    data = f"data:application/pdf;base64,{PDF}"
    assert user_content([block]) == ({"type": "input_file", "filename": name, "file_data": data},)


def test_a_pdf_that_is_too_big_is_named() -> None:
    big = base64.b64encode(b"%PDF-\xff" + bytes(MOST_DATA)).decode()
    (part,) = user_content([blob(big, "application/pdf")])
    assert part["text"] == '\n[resource uri="u" holds data of type application/pdf, not text]\n'


IMAGE = attached(Media("image/png", PNG))
FILE = attached(Media("application/pdf", PDF, "a.pdf"))
NO_IMAGE = "[An image stood here, which the model's server does not take.]"
NO_FILE = "[The file a.pdf stood here, which the model's server does not take.]"


def returned(*media: Item) -> Item:
    return {"type": "function_call_output", "call_id": "c", "output": output("out", media)}


def text(words: str) -> Item:
    return {"type": "input_text", "text": words}


def test_what_a_model_does_not_take_is_a_note_in_its_place() -> None:
    item = message("Hi", IMAGE, FILE)
    assert without_media(item, images=True, files=True) is item
    assert without_media(item, images=True) == message("Hi", IMAGE, text(NO_FILE))
    assert without_media(item) == message("Hi", text(NO_IMAGE), text(NO_FILE))
    both = returned(IMAGE, FILE)
    assert without_media(both, files=True)["output"] == [text("out"), text(NO_IMAGE), FILE]
    assert without_media(both)["output"] == f"out\n{NO_IMAGE}\n{NO_FILE}", "text alone again"


def test_items_without_media_stay_as_they_are() -> None:
    answer: Item = {"type": "message", "role": "assistant", "content": [text("text")]}
    thought: Item = {"type": "reasoning", "summary": ""}
    for item in (answer, message("Hi"), returned(), thought):
        assert without_media(item) is item
        assert media_of(item) == ()
    assert media_of(returned(IMAGE)) == media_of(message("Hi", IMAGE)) == (IMAGE,)
