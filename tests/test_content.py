"""Content blocks of the editor's become input parts."""

import base64

import pytest

from bridge.core.content import message, plain_text, user_content, without_images
from bridge.core.records import Item


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
        ([{"type": "resource", "resource": {"uri": "u", "blob": "QQ==", "mimeType": "image/gif"}}],
         ["data:image/gif;base64,QQ=="]),
        ([{"type": "unheard of"}], []),
        ([], []),
    ],
)  # fmt: skip
def test_a_prompt_becomes_input_parts(blocks: list[Item], expected: list[str]) -> None:
    parts = user_content(blocks)
    assert [part.get("text", part.get("image_url")) for part in parts] == expected
    texts = [part["text"] for part in parts if part["type"] == "input_text"]
    assert plain_text(parts) == "".join(map(str, texts))


def test_only_what_is_the_user_s_can_hold_a_picture_of_ours():
    answer: Item = {"type": "message", "role": "assistant", "content": "text"}
    assert without_images(answer) is answer
    assert without_images(message("Hi")) == message("Hi")
