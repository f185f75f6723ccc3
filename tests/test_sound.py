"""What a model made, as a server takes it back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.sound import sound
from tests import pairing

Item = dict[str, Any]


def call(**more: object) -> Item:
    return {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}", **more}


def message(*parts: object, **more: object) -> Item:
    return {"type": "message", "role": "assistant", "content": list(parts), **more}


def reasoning(**more: object) -> Item:
    return {"type": "reasoning", "summary": [], **more}


SAID: Item = {"type": "output_text", "text": "a", "annotations": []}
REFUSED = {"type": "refusal", "refusal": "no"}
THOUGHT = {"type": "summary_text", "text": "Hm"}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (call(name="functions.read"), call(name="functions_read")),
        (call(name="read the file"), call(name="read_the_file")),
        (call(name="lésen"), call(name="l_sen")),
        (call(name="n" * 65), call(name="n" * 64)),
        (call(name=""), call(name="_")),
        (call(arguments='{"a": "b'), call(arguments='{"arguments":"{\\"a\\": \\"b"}')),
        (call(arguments="[1]"), call(arguments='{"arguments":"[1]"}')),
        (call(arguments='{"a": NaN}'), call(arguments='{"arguments":"{\\"a\\": NaN}"}')),
        (call(arguments=""), call()),
        (call(arguments=" \n"), call()),
        (call(arguments={"a": 1}), call()),
        ({"type": "custom_tool_call", "call_id": "c", "name": "a.b", "input": "{"},
         {"type": "custom_tool_call", "call_id": "c", "name": "a_b", "input": "{"}),
        (message(None, 5, {"type": "output_text", "text": None}, SAID), message(SAID)),
        (message(SAID, {"type": "output_text", "text": ""}, REFUSED), message(SAID, REFUSED)),
        (message({"type": "text", "text": "a"}), message({"type": "output_text", "text": "a"})),
        (message({"type": "output_audio", "data": "x"}, SAID), message(SAID)),
        (message(SAID, role=None), message(SAID)),
        (message(SAID, role="user", phase="p"), message(SAID, phase="p")),
        (message(content="a"), message({"type": "output_text", "text": "a"})),
        (reasoning(summary="Hm"), reasoning(summary=[THOUGHT])),
        (reasoning(summary=None, content=None), reasoning(content=[])),
        (reasoning(summary=[THOUGHT, 1, {"type": "summary_text"}]), reasoning(summary=[THOUGHT])),
        (reasoning(content="raw"), reasoning(content=[{"type": "reasoning_text", "text": "raw"}])),
        (reasoning(encrypted_content=5), reasoning(encrypted_content="")),
    ],
)  # fmt: skip
def test_what_a_server_would_refuse_is_mended(item: Item, expected: Item) -> None:
    assert sound(item) == expected


@pytest.mark.parametrize(
    "item",
    [
        call(arguments='{ "a" : 1.0 }', id="fc", status="completed", namespace="n"),
        message(SAID, REFUSED, id="m", phase="commentary"),
        reasoning(summary=[THOUGHT], content=[THOUGHT], encrypted_content="e", id="r"),
        {"type": "vendor:thing", "name": "a.b", "content": None},
        {"type": "compaction", "id": "c", "encrypted_content": 5},
    ],
)
def test_what_is_sound_stays_as_it_is(item: Item) -> None:
    assert json.dumps(sound(item)) == json.dumps(item)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
_PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["output_text", "text", "refusal", "summary_text", "x"])},
    optional={"text": _JSON, "refusal": _JSON},
)
_ITEM = st.fixed_dictionaries(
    {"type": st.sampled_from(["function_call", "message", "reasoning"])},
    optional={
        "name": _JSON,
        "arguments": _JSON,
        "role": _JSON,
        "content": _JSON | st.lists(_PART | _JSON, max_size=3),
        "summary": _JSON | st.lists(_PART | _JSON, max_size=3),
        "encrypted_content": _JSON,
    },
)


@given(_ITEM)
def test_whatever_a_server_sent_can_go_back(item: Item) -> None:
    said: Item = {"type": "message", "role": "assistant", "content": [SAID]}
    call_id = {"call_id": "c"} if item["type"] == "function_call" else {}
    mended = {**sound({**item, **call_id}), **call_id}
    if mended.get("content") == [] and item["type"] == "message":
        return  # it said nothing: none of it is kept
    body: Item = {"model": "m", "stream": True, "store": False, "input": [_filled(mended), said]}
    broken = [one for one in pairing.violations(body) if one.startswith("input[0]: ")]
    assert [one for one in broken if "carries" not in one] == []


def _filled(item: Item) -> Item:
    """Without what history.py leaves out of a thought."""
    if item["type"] != "reasoning":
        return item
    kept = {key: value for key, value in item.items() if value != [] and value != ""}
    return {"encrypted_content": "e", **kept, "summary": item["summary"]}
