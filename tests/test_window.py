"""How long a conversation is, and what is cut of one that is too long."""

import json

import pytest

from bridge.core.content import message
from bridge.core.records import Item
from bridge.core.window import limit, shortened, tokens

LONG = "x" * 9000


@pytest.mark.parametrize(
    ("window", "answer", "expected"),
    [
        (100_000, None, 100_000 - 12_500 - 5_000),
        (1_000_000, None, 1_000_000 - 32_000 - 50_000),
        (100_000, 20_000, 100_000 - 20_000 - 5_000),
        (8_000, 8_000, 8_000 - 4_000 - 400),
    ],
)
def test_room_is_left_for_an_answer(window: int, answer: int | None, expected: int):
    assert limit(window, answer) == expected


def test_a_picture_counts_by_what_it_costs_and_not_by_its_bytes():
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + LONG}
    item: Item = {"role": "user", "content": [{"type": "input_text", "text": "see"}, picture]}
    assert 1500 < tokens(item) < 1600


def test_a_file_counts_by_its_pages():
    data = "data:application/pdf;base64," + "x" * 300_000
    item = message("see", {"type": "input_file", "filename": "a", "file_data": data})
    assert 10_000 < tokens(item) < 10_100


def test_texts_count_by_their_bytes():
    assert tokens(message("ä" * 3000)) > tokens(message("a" * 3000)) > 1000


def test_what_is_long_is_cut_and_thoughts_are_left_out():
    call: Item = {"type": "function_call", "call_id": "c", "arguments": json.dumps({"a": LONG})}
    output: Item = {"type": "function_call_output", "call_id": "c", "output": LONG}
    short = message("Hi")
    items = shortened([short, {"type": "reasoning"}, call, output, message(LONG)])
    assert items[0] == short
    assert [item["type"] for item in items] == ["message", call["type"], output["type"], "message"]
    assert json.loads(str(items[1]["arguments"])) == {"left_out": "9009 characters"}
    assert all("left out" in str(item) and len(str(item)) < 2500 for item in items[2:])


def test_what_is_cut_keeps_both_ends_and_says_how_much_is_gone():
    fits = "a" * 1000 + "b" * 1000
    call: Item = {"type": "function_call", "call_id": "c", "arguments": fits}
    assert shortened([call, message(fits)]) == [call, message(fits)]
    cut = "a" * 1000 + "\n[… 1 characters left out …]\n" + "b" * 1000
    assert shortened([message("a" * 1000 + "x" + "b" * 1000)]) == [message(cut)]
    longer = {**call, "arguments": fits + "b"}
    assert shortened([longer]) == [{**call, "arguments": '{"left_out":"2001 characters"}'}]


def test_a_picture_is_not_cut_but_left_out():
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + LONG}
    item: Item = {"type": "message", "role": "user", "content": [picture]}
    assert "An image stood here" in str(shortened([item]))
