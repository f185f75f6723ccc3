"""The rules for bodies themselves: each is broken once."""

import copy
from typing import Any

import pytest

from tests import pairing
from tests.pairing import BROKEN, Conversations, violations

Json = dict[str, Any]


def user(text: str = "Hi") -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def assistant(text: str = "Hello", **more: Any) -> Json:
    part: Json = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "content": [part], **more}


def thought(**more: Any) -> Json:
    return {"type": "reasoning", "summary": [], "encrypted_content": "x", **more}


def call(call_id: str = "c", **more: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}", **more}


def output(call_id: str = "c", **more: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": "text", **more}


CUSTOM: Json = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"}
TOOL: Json = {
    "type": "function",
    "name": "read",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"a": {}},
        "required": ["a"],
        "additionalProperties": False,
    },
}


def body(*items: Json, **more: Any) -> Json:
    whole: Json = {"model": "m", "instructions": "i", "input": list(items), "tools": [TOOL]}
    return {**whole, "prompt_cache_key": "s", "store": False, "stream": True, **more}


@pytest.mark.parametrize(
    "items",
    [
        [user()],
        [user(), user()],
        [user(), thought(), assistant(phase="commentary"), user()],
        [user(), thought(), thought(), call(), output()],
        [user(), call(), output(output=[{"type": "input_image", "image_url": "data:"}])],
        [user(), call(), call("d"), output("d"), output(), user()],
        [user(), call(), assistant(), output()],
        [user(), call(), output(), call(), output()],
        [user(), CUSTOM, output(type="custom_tool_call_output")],
        [user(), {"type": "compaction", "id": "cmp", "encrypted_content": "x"}, user()],
        [user(), thought(), {"type": "web_search_call", "id": "ws"}, assistant(), user()],
    ],
)
def test_what_a_server_takes_passes(items: list[Json]) -> None:
    assert violations(body(*items)) == []


ITEMS: list[tuple[str, list[Json]]] = [
    ("nothing to answer", []),
    ("ends with assistant", [user(), assistant()]),
    ("ends with function_call", [user(), call()]),
    ("no output for ['c']", [user(), call()]),
    ("a prompt before the outputs of ['c']", [user(), call(), user(), output()]),
    ("an output without its call c", [user(), output()]),
    ("an output without its call c", [user(), call(), output(), output()]),
    ("an output without its call c", [user(), output(), call(), output()]),
    ("made again before its output", [user(), call(), call(), output(), output()]),
    ("for a call that wants custom_tool_call_output", [user(), CUSTOM, output()]),
    ("is empty or too long", [user(), call("c" * 65), output("c" * 65)]),
    ("is empty or too long", [user(), call(""), output("")]),
    ("no name of a tool", [user(), call(name=""), output()]),
    ("no name of a tool", [user(), call(name="a.b"), output()]),
    ("arguments that are no object", [user(), call(arguments='{"a'), output()]),
    ("arguments that are no object", [user(), call(arguments="[1]"), output()]),
    ("arguments of a function_call is no text", [user(), call(arguments={}), output()]),
    ("output of a function_call_output is no text", [user(), call(), output(output=None)]),
    ("texts alone is one text", [user(), call(), output(output=user()["content"])]),
    ("an empty input_image", [user(), call(), output(output=[{"type": "input_image"}])]),
    ("reasoning at the end", [user(), thought()]),
    ("reasoning before user", [user(), thought(), user()]),
    ("reasoning before function_call_output", [user(), call(), thought(), output()]),
    ("with nothing in it", [user(), thought(encrypted_content=None), assistant(), user()]),
    ("with an empty part", [user(), thought(content=[]), assistant(), user()]),
    ("without a list of summaries", [user(), thought(summary=None), assistant(), user()]),
    ("reasoning carries ['id']", [user(), thought(id="rs"), assistant(), user()]),
    ("message carries ['status']", [user(), assistant(status="completed"), user()]),
    ("carries ['id', 'status']", [user(), call(id="fc", status="completed"), output()]),
    ("an empty output_text", [user(), assistant(""), user()]),
    ("a part output_text in a message of the user", [assistant() | {"role": "user"}]),
    ("a part input_text in a message of the assistant", [user() | {"role": "assistant"}, user()]),
    ("role None", [{"type": "message", "content": []}]),
    ("a message without content", [{"type": "message", "role": "user", "content": []}]),
    ("has no type", [user(), {"role": "user"}]),
]  # fmt: skip


@pytest.mark.parametrize(("broken", "items"), ITEMS, ids=[broken for broken, _ in ITEMS])
def test_an_item_that_a_server_refuses_is_noticed(broken: str, items: list[Json]) -> None:
    assert any(broken in one for one in violations(body(*items))), violations(body(*items))


def test_ids_may_go_back_where_items_go_back_as_they_came() -> None:
    def check(*items: Json, broken: int = 0) -> None:
        assert len(violations(body(user(), *items, user()), verbatim=True)) == broken

    check(thought(id="rs"), assistant(id="msg", status="completed"))
    check(thought(), assistant())
    check(thought(id="rs"), assistant(), broken=1)
    check(thought(), assistant(id="msg"), broken=1)


def test_log_probabilities_stay_behind() -> None:
    said = assistant()
    said["content"][0]["logprobs"] = []
    assert violations(body(user(), said, user())) == ["input[1]: logprobs"]


LOOSE: Json = {**TOOL, "parameters": {**TOOL["parameters"], "required": []}}
FRAMES: list[tuple[str, Json]] = [
    ("leaves nothing", {"store": True}),
    ("leaves nothing", {"stream": False}),
    ("no model", {"model": ""}),
    ("instructions are no text", {"instructions": []}),
    ("is referred to", {"previous_response_id": "r"}),
    ("include", {"include": ["message.output_text.logprobs"]}),
    ("a part that is empty", {"tools": []}),
    ("a part that is empty", {"reasoning": {}}),
    ("names of their own", {"tools": [TOOL, TOOL]}),
    ("names of their own", {"tools": [{"type": "function", "function": {"name": "n"}}]}),
    ("neither strict nor loose", {"tools": [{**TOOL, "strict": None}]}),
    ("strict, but not closed", {"tools": [LOOSE]}),
]


@pytest.mark.parametrize(("broken", "members"), FRAMES)
def test_a_frame_that_a_server_refuses_is_noticed(broken: str, members: Json) -> None:
    assert any(broken in one for one in violations(body(user(), **members)))


def test_a_conversation_goes_on_where_it_was() -> None:
    first = body(user("a"))
    later = body(user("a"), assistant(), user("b"))

    def broken(*bodies: Json, forgets: bool = False) -> list[str]:
        conversations = Conversations(forgets=forgets)
        for one in bodies:
            conversations.check(copy.deepcopy(one))
        found, BROKEN[:] = list(BROKEN), []
        return found

    assert broken(first, first, later, later) == []
    assert broken(first, body(user("b"), prompt_cache_key="other")) == []
    assert broken(later, first, forgets=True) == []
    assert broken(first, body(user("b"), instructions="plan")) == []
    assert "input[1] was" in broken(later, first)[0]
    assert "and is nothing" in broken(later, first)[0]
    assert "input[0] was" in broken(first, body(user("b")))[0]
    turned = {key: first["input"][0][key] for key in ("role", "type", "content")}
    assert "input[0] was" in broken(first, body(turned))[0]


def test_what_is_broken_is_kept_until_the_end_of_the_test() -> None:
    Conversations().check(body())
    assert pairing.BROKEN == ["input: nothing to answer"]
    pairing.BROKEN.clear()
