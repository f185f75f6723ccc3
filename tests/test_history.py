"""What goes back to the model: shaped for the server, paired, and a prefix of what comes later."""

import base64
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.history import INTERRUPTED, Dialect, History, plain_text, user_content
from bridge.core.records import Forgotten, Item, Noted, Prompted, Record, Responded, Returned, Told

OWN = "openai/gpt"
PORTABLE = Dialect(OWN)
VERBATIM = Dialect(OWN, "verbatim")
USER: Item = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Hi"}],
}


def prompted(number: int = 1, text: str = "Hi", *, forwarded: bool = True) -> Prompted:
    content = ({"type": "input_text", "text": text},)
    return Prompted(number, (), content, "t", forwarded)


def responded(*items: Item, maker: str = OWN) -> Responded:
    return Responded(1, maker, (), items)


def returned(call_id: str, text: str = "out", *, custom: bool = False) -> Returned:
    return Returned(call_id, call_id, custom, text, ok=True)


def call(call_id: str, **more: object) -> Item:
    return {"type": "function_call", "call_id": call_id, "name": "n", "arguments": "{}", **more}


def output(call_id: str, text: str = "out") -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def message(text: str, **more: object) -> Item:
    part = {"type": "output_text", "text": text}
    return {"type": "message", "role": "assistant", "content": [part], **more}


def reasoning(**more: object) -> Item:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}], **more}


def sent(records: Iterable[Record], dialect: Dialect = PORTABLE) -> list[Item]:
    history = History()
    for record in records:
        history.add(record)
    return history.input(dialect)


# -- shaping


@pytest.mark.parametrize(
    ("dialect", "item", "expected"),
    [
        (PORTABLE, message("a", id="m", status="completed", phase="commentary"),
         message("a", phase="commentary")),
        (VERBATIM, message("a", id="m", status="completed"),
         message("a", id="m", status="completed")),
        (PORTABLE, reasoning(id="r", status="x", encrypted_content="e"),
         reasoning(encrypted_content="e")),
        (VERBATIM, reasoning(id="r", status="x", encrypted_content="e"),
         reasoning(id="r", status="x", encrypted_content="e")),
        (PORTABLE, reasoning(encrypted_content="", content=[{"text": "raw"}]), reasoning()),
        (Dialect(OWN, reasoning="content"), reasoning(encrypted_content="e", content=[1]),
         reasoning(content=[1])),
        (Dialect(OWN, reasoning="both"), reasoning(encrypted_content="e", content=[1]),
         reasoning(content=[1], encrypted_content="e")),
        (Dialect(OWN, reasoning="none"), reasoning(encrypted_content="e"), None),
        (Dialect("xai/grok"), reasoning(encrypted_content="e"), reasoning()),
        (Dialect("xai/grok"), {"type": "reasoning", "summary": [], "encrypted_content": "e"}, None),
        # a signed thought
        (Dialect(OWN, reasoning="both"), reasoning(content=[1], signature="s", format="f"),
         reasoning(content=[1], signature="s", format="f")),
        (PORTABLE, reasoning(content=[1], signature="s", format="f"), reasoning(format="f")),
        (Dialect("xai/grok", reasoning="both"), reasoning(content=[1], signature="s", format="f"),
         reasoning(content=[1])),
        (PORTABLE, {"type": "reasoning", "encrypted_content": "e"},
         {"type": "reasoning", "encrypted_content": "e", "summary": []}),
        (PORTABLE, {"type": "compaction", "id": "c", "encrypted_content": "e"},
         {"type": "compaction", "id": "c", "encrypted_content": "e"}),
        (Dialect("xai/grok"), {"type": "compaction", "id": "c"}, None),
        (PORTABLE, {"role": "assistant", "content": "plain", "id": "x"},
         {"role": "assistant", "content": "plain"}),
    ],
)  # fmt: skip
def test_an_item_goes_back_as_its_server_wants_it(
    dialect: Dialect, item: Item, expected: Item | None
) -> None:
    history = sent([prompted(), responded(item, message("end"))], dialect)
    assert history[1:] == [*([] if expected is None else [expected]), message("end")]


def test_log_probabilities_do_not_go_back() -> None:
    part = {"type": "output_text", "text": "a", "annotations": [], "logprobs": [1]}
    item = {"type": "message", "role": "assistant", "content": [part, "odd"]}
    shaped = sent([responded(item)])[0]
    assert shaped["content"] == [{"type": "output_text", "text": "a", "annotations": []}, "odd"]
    assert part["logprobs"] == [1]


def test_a_call_id_that_is_too_long_is_the_same_short_one_on_both_items() -> None:
    long = "x" * 65
    items = sent([responded(call(long)), returned(long)])
    assert items[0]["call_id"] == items[1]["call_id"]
    assert len(str(items[0]["call_id"])) <= 64
    assert sent([responded(call("x" * 64))])[0]["call_id"] == "x" * 64
    other = sent([responded(call("x" * 66))])[0]["call_id"]
    assert other != items[0]["call_id"]


# -- pairing


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([responded(call("a"), call("b")), returned("a"), returned("b")],
         [call("a"), call("b"), output("a"), output("b")]),
        ([responded(call("a"))], [call("a"), output("a", INTERRUPTED)]),
        ([responded(call("a")), prompted()], [call("a"), output("a", INTERRUPTED), USER]),
        ([returned("a"), prompted()], [USER]),
        ([responded(call("a")), returned("a"), returned("a")], [call("a"), output("a")]),
        ([responded(call("a")), returned("a"), responded(call("a")), returned("a", "2")],
         [call("a"), output("a"), call("a"), output("a", "2")]),
        ([responded({"type": "custom_tool_call", "call_id": "a", "name": "n", "input": "i"}),
          returned("a", custom=True)],
         [{"type": "custom_tool_call", "call_id": "a", "name": "n", "input": "i"},
          {"type": "custom_tool_call_output", "call_id": "a", "output": "out"}]),
        ([responded(reasoning())], []),
        ([responded(reasoning()), prompted()], [USER]),
        ([responded(reasoning(), reasoning(), message("a"))],
         [reasoning(), reasoning(), message("a")]),
        ([responded(message("a"), reasoning()), returned("z"), prompted()], [message("a"), USER]),
        ([prompted(forwarded=False), Told("n1", "text")], []),
        ([Noted("Hi")], [USER]),
    ],
)  # fmt: skip
def test_what_servers_refuse_is_put_right(records: list[Record], expected: list[Item]) -> None:
    assert sent(records) == expected


def test_a_forgotten_prompt_goes_with_all_that_followed() -> None:
    records = [prompted(1), responded(message("a")), prompted(2), responded(message("b"))]
    assert sent([*records, Forgotten(2)]) == [USER, message("a")]
    assert sent([*records, Forgotten(2), prompted(3)]) == [USER, message("a"), USER]


rounds = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.booleans(), st.booleans()), max_size=6
)


@given(rounds, st.sampled_from([PORTABLE, VERBATIM, Dialect(OWN, reasoning="content")]))
def test_an_earlier_input_is_a_prefix_of_a_later_one(
    plan: list[tuple[bool, int, bool, bool]], dialect: Dialect
) -> None:
    history, inputs, number = History(), [list[Item]()], 0
    for prompt, calls, thinks, speaks in plan:
        if prompt:
            history.add(prompted(len(inputs)))
        ids = [f"c{number + n}" for n in range(calls)]
        number += calls
        thought = [reasoning(encrypted_content="e")] if thinks else []
        said = [message("a", id="m")] if speaks else []
        history.add(responded(*thought, *said, *(call(one) for one in ids)))
        for one in ids:
            history.add(returned(one))
        inputs.append(history.input(dialect))
    for earlier, later in pairwise(inputs):
        assert later[: len(earlier)] == earlier


# -- prompts


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
