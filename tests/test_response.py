import json
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bridge.core.effects import (
    Call,
    Effect,
    Failed,
    Finished,
    FunctionCall,
    HostedCall,
    Restart,
    Say,
    Think,
    Usage,
    joined,
)
from bridge.core.item import kind_of
from bridge.core.response import EARLY, Response
from bridge.core.wire import JsonObject, load_object
from bridge.errors import Fault
from bridge.responses import faults
from bridge.responses.events import IGNORED, Event, Failure, Served, parse
from bridge.responses.sse import Frames
from bridge.responses.transport import frames_in
from tests.fake_responses import (
    Item,
    called,
    failed,
    incomplete,
    refused,
    said,
    stream,
    thought,
)

FIXTURES = Path(__file__).parent / "fixtures" / "responses"
STREAMS = sorted(path.stem for path in FIXTURES.glob("*.sse"))
WHOLE = sys.maxsize

Raw = dict[str, Any]


def fed(response: Response, events: Iterable[Event]) -> list[Effect]:
    effects = list(chain.from_iterable(response.feed(event) for event in events))
    return effects + response.end()


def effects_of(events: Iterable[Raw], after: Response | None = None) -> list[Effect]:
    return fed(Response(after), parsed(events))


def parsed(events: Iterable[Raw]) -> list[Event]:
    return [parse(cast("JsonObject", event)) for event in events]


def thought_in(effects: Iterable[Effect]) -> str:
    return "".join(effect.text for effect in effects if isinstance(effect, Think))


def said_in(effects: Iterable[Effect]) -> str:
    return "".join(effect.text for effect in effects if isinstance(effect, Say))


def end_of(effects: Sequence[Effect]) -> Finished | Failed:
    """The one end that there must be."""
    assert [isinstance(effect, Finished | Failed) for effect in effects].count(True) == 1
    last = effects[-1]
    assert isinstance(last, Finished | Failed)
    return last


def finished(events: Iterable[Raw]) -> Finished:
    end = end_of(effects_of(events))
    assert isinstance(end, Finished)
    return end


def check_laws(effects: Sequence[Effect]) -> None:
    """What holds for whatever a server sends."""
    end = end_of(effects)
    announced: dict[str, Call] = {}
    hosted: dict[int, str] = {}
    for effect in effects:
        if isinstance(effect, Say | Think):
            assert effect.text
        if isinstance(effect, Call):
            earlier = announced.get(effect.call.call_id)
            assert effect.call.name
            assert earlier is None or (effect.complete and not earlier.complete)
            announced[effect.call.call_id] = effect
        if isinstance(effect, HostedCall):
            before = ("", "in_progress") if effect.status != "in_progress" else ("",)
            assert hosted.get(effect.item, "") in before
            hosted[effect.item] = effect.status
    if isinstance(end, Finished):
        assert all(announced[call.call_id] == Call(call, complete=True) for call in end.calls)
        assert len({call.call_id for call in end.calls}) == len(end.calls)
        assert "in_progress" not in hosted.values()
        kept = [item["call_id"] for item in end.items if kind_of(item) == "call"]
        assert sorted(map(str, kept)) == sorted(announced)
        assert not end.calls or end.outcome == "completed"


# -- streams of real servers


def received(body: bytes, cut: int) -> list[Event]:
    """The events of a body that comes in pieces of so many bytes."""
    frames = Frames()
    cuts = range(0, len(body), cut) if cut < len(body) else range(1)
    parts = [frames.feed(body[at : at + cut]) for at in cuts] + [frames.end()]
    texts = [text for part in parts for _, text in frames_in(part)]
    return [parse(load_object(text)) for text in texts if text != "[DONE]"]


@pytest.mark.parametrize("cut", [WHOLE, 7, 1])
@pytest.mark.parametrize("name", [name for name in STREAMS if not name.startswith("35")])
def test_a_recorded_stream_means_what_is_written_beside_it(name: str, cut: int) -> None:
    body = (FIXTURES / f"{name}.sse").read_bytes()
    expected = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))["expect"]
    effects = fed(Response(), received(body, cut))
    check_laws(effects)
    end = end_of(effects)
    assert thought_in(effects) == expected["thought"]
    assert said_in(effects) == expected["message"]
    assert outcome_of(end) == expected["outcome"]
    calls = end.calls if isinstance(end, Finished) else ()
    for call, wanted in zip(calls, expected["tool_calls"], strict=True):
        check_call(call, wanted)
    if isinstance(end, Failed):
        check_fault(end.fault, expected.get("error", {}))
    elif "replay_types" in expected:
        assert [item["type"] for item in end.items] == expected["replay_types"]
    if "usage" in expected:
        usage = {key: n for key, n in expected["usage"].items() if key != "total_tokens"}
        assert isinstance(end, Finished)
        assert end.usage == Usage(**usage)


def test_an_error_that_is_framed_as_a_stream_is_read() -> None:
    name = next(name for name in STREAMS if name.startswith("35"))
    wanted = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))["expect"]["error"]
    fault = faults.of_response(500, {}, (FIXTURES / f"{name}.sse").read_bytes(), 0.0)
    assert (fault.status, fault.retryable) == (wanted["http_status"], True)
    check_fault(fault, wanted)


def outcome_of(end: Finished | Failed) -> str:
    if isinstance(end, Failed):
        return "retryable_error" if end.fault.retryable else "fatal_error"
    return "tool_calls" if end.calls else end.outcome


def check_call(call: FunctionCall, wanted: Raw) -> None:
    assert (call.call_id, call.name) == (wanted["call_id"], wanted["name"])
    if "input" in wanted:
        assert call.custom
        assert call.arguments == wanted["input"]
    else:
        assert json.loads(call.arguments or "{}") == wanted["arguments"]


def check_fault(fault: Fault, wanted: Raw) -> None:
    assert fault.code == wanted.get("code", fault.code)
    assert fault.kind == wanted.get("kind", fault.kind)
    assert fault.retry_after == wanted.get("retry_after_s")
    assert wanted.get("message_contains", "") in fault.message


CAPTURED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "litellm-bridge-tool": ("", "", ('{"path": "a.txt"}', '{"path": "b.txt"}')),
    "llama-server-reasoning": ("\n\nThe answer is yes.", "", ()),
    "llama-server-text": ("", "I'm sorry for any confusion.", ()),
    "llama-server-tool": ("", "", ('{"path": "src/app.py"}',)),
}


@pytest.mark.parametrize("cut", [WHOLE, 7, 1])
@pytest.mark.parametrize("name", CAPTURED)
def test_a_capture_of_a_real_server_is_read(name: str, cut: int) -> None:
    head, _, body = (FIXTURES / f"{name}.http").read_bytes().partition(b"\n\n")
    assert b"200 OK" in head
    effects = fed(Response(), received(body, cut))
    check_laws(effects)
    end = end_of(effects)
    assert isinstance(end, Finished)
    thinks, says, arguments = CAPTURED[name]
    assert (thought_in(effects), said_in(effects)) == (thinks, says)
    assert tuple(call.arguments for call in end.calls) == arguments
    assert end.outcome == "completed"
    assert end.usage
    assert end.usage.input_tokens > 0


# -- what is shown


def test_thoughts_text_and_calls_come_as_they_stream() -> None:
    effects = effects_of(stream(thought("Think hard"), said("Hello you"), called("c", "read")))
    call = FunctionCall(2, "c", "read", "{}")
    assert effects[:-1] == [
        Think(0, "Think"),
        Think(0, " hard"),
        Say(1, "Hello"),
        Say(1, " you"),
        Call(call, complete=True),
    ]
    end = end_of(effects)
    assert isinstance(end, Finished)
    assert end.calls == (call,)
    assert (end.outcome, end.usage) == ("completed", Usage(20, 9, 8, 4))


def test_parts_and_items_of_thought_are_a_blank_line_apart() -> None:
    def check(text: str, *items: Item) -> None:
        assert thought_in(effects_of(stream(*items))) == text
        assert thought_in(effects_of(without_deltas(stream(*items)))) == text

    check("a", thought("a"))
    check("a\n\nb", thought("a", "b"))
    check("a\n\nb\n\nc", thought("a", "b"), said("x"), thought("c"))
    check("\n\nled", thought("\n\nled"))
    check("", thought())


def without_deltas(events: Iterable[Raw]) -> list[Raw]:
    return [event for event in events if not event["type"].endswith(".delta")]


def test_of_summary_and_raw_thought_the_one_that_comes_first_is_shown() -> None:
    item = {"type": "reasoning", "id": "r", "summary": [summary("Sum.")], "content": [raw("Raw.")]}
    delta = {"type": "response.reasoning_text.delta", "item_id": "r", "delta": "Raw."}
    done = {"type": "response.output_item.done", "item": item}
    assert effects_of([done])[:-1] == [Think(0, "Sum.")]
    assert effects_of([delta, done])[:-1] == [Think(0, "Raw.")]
    both = {**delta, "type": "response.reasoning_summary_text.delta", "delta": "Sum."}
    effects = effects_of([delta, both, {**both, "delta": " More."}, {**delta, "delta": " Go."}])
    assert thought_in(effects) == "Raw. Go."


def test_a_text_that_stands_where_a_list_should_is_shown() -> None:
    def check(thought: str, words: str, **item: Any) -> None:
        done = item_done(item, output_index=0)
        effects = effects_of([done, ended(item)])
        assert (thought_in(effects), text_of(effects)) == (thought, [words] * bool(words))
        delta = text_delta(words, output_index=0)
        if words:
            assert text_of(effects_of([delta, done, ended(item)])) == [words]

    check("", "Hi", type="message", content="Hi")
    check("Hm", "", type="reasoning", summary="Hm")
    check("raw", "", type="reasoning", summary=[], content="raw")
    check("", "", type="message", content="")


def summary(text: str) -> Raw:
    return {"type": "summary_text", "text": text}


def raw(text: str) -> Raw:
    return {"type": "reasoning_text", "text": text}


def text_delta(text: str, **key: Any) -> Raw:
    return {"type": "response.output_text.delta", **key, "delta": text}


def item_done(item: Raw, **key: Any) -> Raw:
    return {"type": "response.output_item.done", **key, "item": item}


def item_added(item: Raw, **key: Any) -> Raw:
    return {"type": "response.output_item.added", **key, "item": item}


def part(text: str) -> Raw:
    return {"type": "output_text", "text": text}


def message(text: str, **more: Any) -> Raw:
    return {"type": "message", "role": "assistant", "content": [part(text)], **more}


def call_item(arguments: str = "", **more: Any) -> Raw:
    return {"type": "function_call", "call_id": "c", "name": "n", "arguments": arguments, **more}


def ended(*output: Raw, status: str = "completed", **more: Any) -> Raw:
    response = {"status": status, "output": list(output), **more}
    return {"type": f"response.{status}", "response": response}


def test_of_a_fuller_text_only_what_is_missing_is_shown() -> None:
    def check(shown: str, *events: Raw) -> None:
        assert said_in(effects_of(events)) == shown

    at = {"output_index": 0}
    done = {"type": "response.output_text.done", **at, "text": "Hello"}
    parted = {"type": "response.content_part.done", **at, "part": part("Hello")}
    check("Hello", text_delta("Hel", **at), done, parted, item_done(message("Hello"), **at))
    check("Hello", text_delta("Hel", **at), item_done(message("Hello"), **at))
    check("Hello", text_delta("Hel", **at), ended(message("Hello")))
    check("Hello", item_done(message(""), **at), ended(message("Hello")))
    check("Hello", item_done(message("Hell"), **at), ended(message("Hello")))
    check("Hello", ended(message("Hello")))
    check("Help", text_delta("Help", **at), done, item_done(message("Hello"), **at))
    check("Hello!", text_delta("Hello!", **at), done)
    check("", text_delta("", **at), item_done(message(""), **at))
    check("ac", item_done({**message(""), "content": [part("a"), {"type": "image"}, part("c")]}))


def test_text_inside_other_items_is_not_the_answer() -> None:
    for kind in ("mcp_list_tools", "program_output", "compaction"):
        assert effects_of([item_done({**message("secret"), "type": kind})])[:-1] == []


def test_neighbouring_texts_of_one_item_are_joined() -> None:
    def check(given: list[Effect], expected: list[Effect]) -> None:
        assert joined(list(given)) == expected

    call = Call(FunctionCall(3, "c", "n", ""), complete=True)
    check([], [])
    check([Say(0, "a")], [Say(0, "a")])
    check([Say(0, "a"), Say(0, "b"), Say(0, "c")], [Say(0, "abc")])
    check([Say(0, "a"), Say(1, "b"), Say(1, "c")], [Say(0, "a"), Say(1, "bc")])
    check([Think(0, "a"), Say(0, "b"), Say(0, "c")], [Think(0, "a"), Say(0, "bc")])
    check([Say(0, "a"), call, Say(0, "b")], [Say(0, "a"), call, Say(0, "b")])
    check([Restart(), Say(0, "a"), Say(0, "b"), call], [Restart(), Say(0, "ab"), call])


# -- which item is which


def test_an_item_is_known_by_whatever_key_its_server_gives() -> None:
    def check(*events: Raw, texts: tuple[str, ...]) -> None:
        end = finished([*events, ended()])
        assert tuple(item["content"][0]["text"] for item in cast("Any", end.items)) == texts

    # by index, under ids that change with every event
    first, second = {"output_index": 0}, {"output_index": 1}
    check(text_delta("a", **first, item_id="x1"), text_delta("b", **first, item_id="x2"),
          item_done(message("ab", id="x3"), **first), texts=("ab",))  # fmt: skip
    # by id alone
    check(text_delta("a", item_id="x"), text_delta("c", item_id="y"), text_delta("b", item_id="x"),
          texts=("ab", "c"))  # fmt: skip
    # by index, under one id for all
    check(text_delta("a", **first, item_id="x"), text_delta("c", **second, item_id="x"),
          texts=("a", "c"))  # fmt: skip
    # first by id, then also by index
    check(text_delta("a", item_id="x"), text_delta("b", item_id="x", output_index=4),
          text_delta("c", output_index=4), texts=("abc",))  # fmt: skip
    # without any key: the open one, and a new one once it is closed
    check(text_delta("a"), text_delta("b"), item_done(message("ab")), text_delta("c"),
          texts=("ab", "c"))  # fmt: skip
    check(item_added(message("")), text_delta("a"), item_added(message("")), text_delta("b"),
          texts=("a", "b"))  # fmt: skip
    # deltas without a key, the whole with one
    check(text_delta("a"), item_done(message("ab", id="x"), output_index=0), texts=("ab",))
    check(text_delta("a", item_id="x"), text_delta("b"), texts=("ab",))
    # a message and a thought under one index and id
    thinking = {"type": "response.reasoning_text.delta", "output_index": 0, "item_id": "x"}
    effects = effects_of([{**thinking, "delta": "t"}, text_delta("a", output_index=0, item_id="x")])
    assert effects[:2] == [Think(0, "t"), Say(1, "a")]


def test_items_go_back_in_the_order_of_their_indexes_or_as_first_seen() -> None:
    def order(*events: Raw) -> list[str]:
        return [str(item["id"]) for item in finished([*events, ended()]).items]

    one, two = message("1", id="one"), message("2", id="two")
    assert order(item_done(two, output_index=5), item_done(one, output_index=2)) == ["one", "two"]
    assert order(item_done(two, output_index=5), item_done(one)) == ["two", "one"]
    assert order(item_done(two), item_done(one)) == ["two", "one"]


def test_the_closing_list_repeats_items_and_adds_those_never_seen() -> None:
    def check(*events: Raw, texts: tuple[str, ...]) -> None:
        effects = effects_of(events)
        end = end_of(effects)
        assert isinstance(end, Finished)
        items = cast("Any", end.items)
        assert tuple(item["content"][0]["text"] for item in items) == texts
        assert said_in(effects) == "".join(texts)

    a, b = message("a", id="x"), message("b", id="y")
    check(item_done(a), ended(a), texts=("a",))
    check(item_done(a), ended({**a, "id": "new"}), texts=("a",))
    check(item_done(a, output_index=0), ended({**a, "id": "new"}), texts=("a",))
    check(item_done(a), ended(a, b), texts=("a", "b"))
    check(item_done(a), ended(), texts=("a",))
    check(ended(a, b), texts=("a", "b"))
    check(text_delta("a", output_index=0), ended({**a, "id": "new"}), texts=("a",))
    # the list leaves out the thought, so that its places are not the stream's indexes
    thinking: Raw = {"type": "reasoning", "id": "r", "summary": []}
    effects = effects_of([item_added(thinking, output_index=0),
                          item_done(a, output_index=1), item_done(b, output_index=2),
                          ended({**a, "id": "p"}, {**b, "id": "q"})])  # fmt: skip
    assert said_in(effects) == "ab"
    assert thought_in(effects) == ""
    check({"type": "response.completed", "response": {"output": "none"}}, texts=())
    check(ended(cast("Raw", "odd"), {}, {"type": 7}), texts=())


# -- calls


def test_arguments_come_from_wherever_they_are() -> None:
    def check(arguments: str, *events: Raw) -> None:
        effects = effects_of([*events, ended()])
        check_laws(effects)
        call = FunctionCall(0, "c", "n", arguments)
        assert effects[:-1] == [Call(call, complete=True)]
        end = end_of(effects)
        assert isinstance(end, Finished)
        assert end.calls == (call,)
        assert [item["arguments"] for item in end.items] == [arguments]

    at = {"output_index": 0, "item_id": "f"}
    added, whole = item_added(call_item(), **at), item_done(call_item('{"a":1}'), **at)
    delta = {"type": "response.function_call_arguments.delta", **at}
    done = {"type": "response.function_call_arguments.done", **at, "arguments": '{"a":1}'}
    check('{"a":1}', whole)
    check('{"a":1}', added, done)
    check('{"a":1}', added, {**delta, "delta": '{"a"'}, {**delta, "delta": ":1}"})
    check('{"a":1}', added, {**delta, "delta": '{"a":1}'}, item_done(call_item(), **at))
    check('{"a":1}', added, {**delta, "delta": '{"a":1}'}, {**done, "arguments": ""})
    check('{"a":1}', added, {**done, "arguments": ""}, whole)
    check('{"a":1}', added, {**delta, "delta": "junk"}, done)
    check('{"a":1}', item_added(call_item('{"a":1}'), **at))
    check('{"b":2}', item_added(call_item('{"a":1}'), **at), {**delta, "delta": '{"b"'},
          {**delta, "delta": ":2}"})  # fmt: skip
    check('{"a":1}', {**delta, "delta": '{"a":1}'}, item_added({**call_item(), "id": "f"}, **at))
    check("", added, item_done(call_item(), **at))
    check("", added)
    check('{"a":1}', ended(call_item('{"a":1}')))
    nameless = item_added(call_item(name=None), **at)
    check('{"a":1}', nameless, {**done, "name": "n"})
    # what was announced as complete stays as it is
    check('{"a":1}', added, done, {**delta, "delta": "more"}, item_done(call_item("{}"), **at))
    check('{"a":1}', added, done, item_done(call_item("{}", call_id="d", name="m"), **at))


def test_a_call_is_run_once_by_its_call_id() -> None:
    def check(count: int, *events: Raw) -> None:
        effects = effects_of([*events, ended()])
        check_laws(effects)
        end = end_of(effects)
        assert isinstance(end, Finished)
        assert len(end.calls) == len([one for one in effects if isinstance(one, Call)]) == count
        assert len(end.items) == count

    check(1, item_done(call_item(id="x")), item_done(call_item(id="x")))
    check(1, item_done(call_item(id="x")), item_done(call_item(id="y")))
    check(1, item_done(call_item(), output_index=0), item_done(call_item(), output_index=1))
    check(1, item_added(call_item(id="x")), item_done(call_item("{}", id="y")))
    check(1, item_done(call_item()), ended(call_item()))
    check(1, ended(call_item(), call_item()))
    check(1, ended(call_item(id="x"), call_item(id="y")))
    check(2, ended(call_item(), call_item(call_id="d")))
    bare = item_added(call_item(call_id=""), output_index=0)
    check(1, bare, item_added(call_item(), output_index=1), item_done(call_item(), output_index=0))
    check(1, item_done(call_item(), output_index=0), ended(call_item(call_id="new")))
    check(2, item_done(call_item()), item_done(call_item(call_id="d")))
    check(2, item_done(call_item(), output_index=0),
          item_done(call_item(call_id="d"), output_index=0))  # fmt: skip
    check(2, item_added(call_item()), item_added(call_item(call_id="d")), item_done(call_item()),
          item_done(call_item(call_id="d")))  # fmt: skip
    check(1, item_done(call_item(call_id=None, id="only")))
    check(0, item_done(call_item(call_id=None)))
    check(0, item_done(call_item(name="")))


def test_a_call_under_another_id_than_it_was_opened_gets_the_arguments() -> None:
    end = finished([item_added(call_item(id="x")), item_done(call_item("{}", id="y")), ended()])
    assert end.calls == (FunctionCall(0, "c", "n", "{}"),)


def test_a_long_call_is_announced_early_and_once() -> None:
    at = {"output_index": 0}
    delta: Raw = {"type": "response.function_call_arguments.delta", "delta": "x" * (EARLY // 2)}
    delta |= at
    effects = effects_of([item_added(call_item(), **at), *[delta] * 5, ended()])
    check_laws(effects)
    announced = [effect for effect in effects if isinstance(effect, Call)]
    assert [(len(one.call.arguments), one.complete) for one in announced] == [
        (EARLY // 2 * 3, False),
        (EARLY // 2 * 5, True),
    ]
    renamed = item_done(call_item("{}", call_id="d", name="m"), **at)
    end = finished([item_added(call_item(), **at), *[delta] * 3, renamed, ended()])
    assert end.calls == (FunctionCall(0, "c", "n", "{}"),)
    nameless = effects_of([*[delta] * 5, ended()])
    assert [one for one in nameless if isinstance(one, Call)] == []


def test_a_custom_call_is_told_apart() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": ""}
    delta = {"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "raw"}
    end = finished(
        [item_added(item, output_index=0), delta, item_done(item, output_index=0), ended()]
    )
    assert end.calls == (FunctionCall(0, "c", "patch", "raw", custom=True),)
    assert end.items == ({**item, "input": "raw"},)


# -- the end


def test_a_call_of_the_providers_begins_once_and_ends_once() -> None:
    def check(*events: Raw, shown: list[str], items: int = 1) -> None:
        effects = effects_of(events)
        check_laws(effects)
        assert [effect.status for effect in effects if isinstance(effect, HostedCall)] == shown
        end = end_of(effects)
        if isinstance(end, Finished):
            assert (len(end.items), end.calls) == (items, ())

    def search(**more: Any) -> Raw:
        return {"type": "web_search_call", "id": "ws1", **more}

    opened, done = item_added(search()), item_done(search(status="completed"))
    both = ["in_progress", "completed"]
    check(opened, done, ended(), shown=both)
    check(opened, done, done, ended(search(status="completed")), shown=both)
    check(opened, opened, done, opened, ended(), shown=both)
    check(done, ended(), shown=["completed"])
    check(ended(search()), shown=["completed"])
    # without any key
    bare = {"type": "web_search_call", "action": {"query": "q"}}
    check(item_added(bare), item_done(bare), ended(bare), shown=both)
    check(item_done(bare), item_done({**bare, "action": {}}), ended(bare),
          shown=["completed", "completed"], items=2)  # fmt: skip
    # it did not go well
    check(opened, item_done(search(status="failed")), ended(), shown=["in_progress", "failed"])
    check(item_done({"type": "mcp_call", "error": "no"}), ended(), shown=["failed"])
    # never closed
    check(opened, ended(), shown=both, items=0)
    check(opened, ended(status="incomplete"), shown=["in_progress", "failed"], items=0)
    check(opened, {"type": "error", "code": "server_error"}, shown=["in_progress"])
    check(opened, shown=["in_progress"])


def test_how_a_response_ended_decides_what_runs() -> None:
    def check(events: list[Raw], outcome: str, reason: str = "", *, runs: bool = False) -> None:
        end = finished(events)
        assert (end.outcome, end.reason, bool(end.calls)) == (outcome, reason, runs)

    call = called("c", "n")
    check(stream(said("x")), "completed")
    check(stream(call), "completed", runs=True)
    check(stream(end="completed"), "completed")
    check(incomplete(call), "max_tokens", "max_output_tokens")
    check(incomplete(call, reason=""), "max_tokens")
    check(incomplete(said("x"), call, reason="content_filter"), "refusal", "content_filter")
    check(incomplete(call, reason="steered"), "stopped", "steered")
    check(incomplete(call, reason="a\n\x1b[31mb"), "stopped", "a [31mb")
    check(incomplete(call, reason="x" * 999), "stopped", "x" * 240 + "…")
    check(stream(refused("No.")), "refusal")
    check([item_done(call_item()), ended_as("cancelled")], "stopped", "cancelled")
    check([item_done(call_item()), ended(status="incomplete")], "max_tokens")
    check([ended(incomplete_details="odd")], "completed")


def ended_as(status: str) -> Raw:
    return {"type": "response.completed", "response": {"status": status}}


def test_a_failure_ends_a_response_and_nothing_comes_after_it() -> None:
    def check(events: list[Raw], code: str | None) -> None:
        end = end_of(effects_of([*events, text_delta("late"), ended(), {"type": "error"}]))
        assert isinstance(end, Failed)
        assert end.fault.code == code

    check(failed(said("Half")), "server_error")
    check([{"type": "error", "code": "c"}], "c")
    check([{"error": {"code": "c"}}], "c")
    check([ended_as("failed")], None)


def test_what_the_transport_knows_of_a_failure_counts() -> None:
    fault = Fault("quota", "m")
    assert Response().feed(Failure({"error": "x"}, fault)) == [Failed(fault)]


def test_a_stream_without_an_end_has_failed() -> None:
    def check(events: list[Raw]) -> None:
        end = end_of(effects_of(events))
        assert isinstance(end, Failed)
        assert end.fault == faults.truncated()

    check([])
    check(stream(said("Half"), called("c", "n"), end=""))


def test_nothing_comes_after_the_end() -> None:
    response = Response()
    effects = fed(response, parsed([*stream(said("x")), *failed(), *stream(said("y"))]))
    assert isinstance(end_of(effects), Finished)
    assert said_in(effects) == "x"
    assert response.over
    assert response.end() == []


def test_usage_is_read_as_far_as_it_is_there() -> None:
    def check(usage: Any, expected: Usage | None) -> None:
        assert finished([ended(usage=usage)]).usage == expected

    check(None, None)
    check("odd", None)
    check({}, Usage())
    check({"input_tokens": 1, "output_tokens": None}, Usage(1))
    check({"prompt_tokens": 3, "completion_tokens": 4}, Usage(3, 4))
    check({"input_tokens": 5, "input_tokens_details": {"cached_tokens": 2}}, Usage(5, 0, 2))
    check({"output_tokens_details": {"reasoning_tokens": 7.0}}, Usage(0, 0, 0, 7))
    check({"input_tokens": -1, "output_tokens": float("inf")}, Usage())
    check({"input_tokens": "9", "input_tokens_details": []}, Usage())
    check({"cost": 0.25}, Usage(cost=0.25))
    check({"cost": 0}, Usage(cost=0.0))
    for odd in (-1, float("inf"), float("nan"), True, "1", None, 10**400, 1e300, [0.1]):
        check({"cost": odd}, Usage())
    for odd in (-1, float("inf"), float("nan"), True, "1", None, 10**400, 1e300, [1]):
        check({"input_tokens": odd, "input_tokens_details": {"cached_tokens": odd}}, Usage())


def test_what_a_failed_response_took_is_known() -> None:
    def check(failed: Raw, expected: Usage | None) -> None:
        effects = Response().feed(parse({"type": "response.failed", **failed}))
        assert [getattr(one, "usage", 7) for one in effects] == [expected]

    check({}, None)
    check({"response": None}, None)
    check({"response": {"usage": None}}, None)
    check({"response": {"usage": {"input_tokens": 9, "cost": 0.5}}}, Usage(9, cost=0.5))


def test_who_served_a_response_is_known_from_its_head_or_from_itself() -> None:
    def check(head: str | None, response: Raw, expected: str) -> None:
        served = [] if head is None else [Served(head)]
        machine = Response()
        given = [*served, parse(ended(**response))]
        effects = [one for event in given for one in machine.feed(event)]
        assert [one.upstream for one in effects if isinstance(one, Finished)] == [expected]

    check(None, {}, "")
    check("West US", {}, "West US")
    check(None, {"provider": "Nebius"}, "Nebius")
    check("West US", {"provider": "Nebius"}, "Nebius")
    check("West US", {"provider": 7}, "West US")


# -- what goes back


def test_items_go_back_as_they_were_closed() -> None:
    events = stream(thought("a", "b"), said("x"), called("c", "n"))
    closed = [event["item"] for event in events if event["type"].endswith("item.done")]
    assert list(finished(events).items) == closed


def test_what_was_not_closed_is_put_together() -> None:
    def check(events: list[Raw], *items: Raw) -> None:
        assert finished([*events, ended()]).items == items

    at = {"output_index": 0}
    opened: Raw = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "content": [],
        "status": "open",
    }
    content = message("ab")["content"]
    check([item_added(opened, **at), text_delta("a", **at), text_delta("b", **at)],
          {"type": "message", "id": "m", "role": "assistant", "content": content})  # fmt: skip
    check([text_delta("ab")], {"type": "message", "role": "assistant", "content": content})
    check([text_delta("ab", **at), item_done(message("", phase="final_answer"), **at)],
          {**message("ab"), "phase": "final_answer"})  # fmt: skip
    refusal = {"type": "response.refusal.delta", "content_index": 1, "delta": "No"}
    parts = [part("a"), {"type": "refusal", "refusal": "No"}]
    check([text_delta("a"), refusal], {**message("a"), "content": parts})
    thinking: Raw = {"type": "reasoning", "id": "r", "summary": [], "status": "open"}
    deltas = [
        {"type": "response.reasoning_summary_text.delta", "summary_index": 1, "delta": "two"},
        {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "one"},
        {"type": "response.reasoning_text.delta", "delta": "raw"},
    ]
    summaries = [summary("one"), summary("two")]
    told = {"type": "reasoning", "id": "r", "summary": summaries}
    check([item_added(thinking), *deltas], {**told, "content": [raw("raw")]})
    check([item_added(thinking), *deltas[:2]], told)
    check([deltas[2], item_done({"type": "reasoning", "summary": [], "encrypted_content": ""})],
          {"type": "reasoning", "summary": [], "content": [raw("raw")],
           "encrypted_content": ""})  # fmt: skip
    call = {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}
    check([item_added(call_item("{}", status="open"))], call)
    check([item_added(call_item()), item_done(call_item("{}", name=None))], call)


def test_what_says_nothing_does_not_go_back() -> None:
    def check(events: list[Raw], *items: Raw) -> None:
        assert finished([*events, ended()]).items == items

    check([item_done(message(""))])
    check([item_added(message(""))])
    check([item_added({"type": "reasoning", "summary": []})])
    check([item_added({"type": "web_search_call"})])
    check([item_added(call_item(name=""))])


def test_opaque_items_go_back_whole() -> None:
    def check(item: Raw) -> None:
        assert finished([item_done(item), ended()]).items == (item,)

    check({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"})
    check({"type": "reasoning", "id": "r", "summary": []})
    check({"type": "compaction", "id": "cmp", "encrypted_content": "x"})
    check({"type": "vendor:thing", "content": [{"type": "text", "text": "x"}]})
    check({"type": "message", "content": [{"type": "reasoning_text", "text": "odd"}]})
    delta = {"type": "response.reasoning_summary_text.delta", "delta": "seen"}
    sealed: Raw = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
    assert finished([delta, item_done(sealed), ended()]).items == (sealed,)


def test_a_cancelled_response_leaves_whole_items_and_its_text() -> None:
    def check(events: list[Raw], *kinds: str) -> None:
        response = Response()
        for event in parsed(events):
            response.feed(event)
        assert [item["type"] for item in response.kept()] == list(kinds)

    thinking = {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "t"}
    check([])
    check([thinking])
    check([thinking, text_delta("Half")], "message")
    check([item_done({"type": "reasoning", "summary": [summary("t")]}), text_delta("Half")],
          "reasoning", "message")  # fmt: skip
    check([item_added(call_item("{"))])
    check([item_done(call_item("{}")), text_delta("x")], "function_call", "message")


# -- a second attempt


def attempted(*attempts: list[Raw]) -> list[Effect]:
    """What the person sees of attempts that follow each other; all but the last one fail."""
    shown: list[Effect] = []
    response: Response | None = None
    for events in attempts:
        response = Response(response)
        effects = fed(response, parsed(events))
        check_laws(effects)
        shown += effects
    return [effect for effect in shown if not isinstance(effect, Finished | Failed)]


def test_an_attempt_goes_on_where_the_one_before_broke_off() -> None:
    def check(*attempts: list[Raw], effects: list[Effect]) -> None:
        assert joined(attempted(*attempts)) == effects

    half = [text_delta("Hello ")]
    whole = stream(said("Hello you"))
    check(half, whole, effects=[Say(0, "Hello you")])
    check(half, half, half, whole, effects=[Say(0, "Hello you")])
    check(half, [text_delta("He")], whole, effects=[Say(0, "Hello you")])
    check(half, without_deltas(whole), effects=[Say(0, "Hello you")])
    check(half, [ended(message("Hello you"))], effects=[Say(0, "Hello you")])
    check(stream(said("Hello you"), end=""), whole, effects=[Say(0, "Hello you")])
    check(stream(thought("a", "b"), said("Hi"), end=""), stream(thought("a", "bc"), said("Hi!")),
          effects=[Think(0, "a\n\nb"), Say(1, "Hi"), Think(0, "c"), Say(1, "!")])  # fmt: skip
    check(stream(said("a"), said("b"), end=""), stream(said("a"), said("bc"), said("d")),
          effects=[Say(0, "a"), Say(1, "bc"), Say(4, "d")])  # fmt: skip
    check([], whole, effects=[Say(0, "Hello you")])
    check(half, [], effects=[Say(0, "Hello ")])


def test_an_answer_that_differs_is_told_anew() -> None:
    def check(*attempts: list[Raw], effects: list[Effect]) -> None:
        assert joined(attempted(*attempts)) == effects

    half = [text_delta("Hello ")]
    check(half, stream(said("Hallo")),
          effects=[Say(0, "Hello "), Restart(), Say(2, "Hallo")])  # fmt: skip
    check(half, [text_delta("Ha")], stream(said("Hallo")),
          effects=[Say(0, "Hello "), Restart(), Say(2, "Hallo")])  # fmt: skip
    check(half, [text_delta("Ha")], stream(said("Hi")),
          effects=[Say(0, "Hello "), Restart(), Say(2, "Ha"), Restart(), Say(4, "Hi")])  # fmt: skip
    check(stream(said("a"), said("b"), end=""), stream(said("a"), said("c"), said("b")),
          effects=[Say(0, "a"), Say(1, "b"), Restart(), Say(4, "c"), Say(5, "b")])  # fmt: skip
    # ends before what was shown does
    check(half, stream(said("Hell"), called("c", "n")),
          effects=[Say(0, "Hello "), Restart(), Say(2, "Hell"),
                   Call(FunctionCall(3, "c", "n", "{}"), complete=True)])  # fmt: skip
    check(half, [text_delta("Hel"), ended()],
          effects=[Say(0, "Hello "), Restart(), Say(2, "Hel")])  # fmt: skip
    # says nothing at all: there is nothing to tell anew
    check(half, stream(said("")), effects=[Say(0, "Hello ")])


def test_a_thought_that_differs_is_a_thought_of_its_own() -> None:
    def check(*attempts: list[Raw], effects: list[Effect]) -> None:
        assert joined(attempted(*attempts)) == effects

    check(stream(thought("abc"), end=""), stream(thought("abx"), said("Hi")),
          effects=[Think(0, "abc"), Think(2, "\n\nabx"), Say(3, "Hi")])  # fmt: skip
    check(stream(thought("a"), thought("b"), end=""), stream(thought("a"), thought("c")),
          effects=[Think(0, "a"), Think(1, "\n\nb"), Think(4, "\n\nc")])  # fmt: skip
    check(stream(thought("abc"), end=""), stream(thought("ab")), effects=[Think(0, "abc")])


def test_messages_that_interleave_may_differ_both() -> None:
    def two(a: str, b: str) -> list[Raw]:
        return [text_delta(a[0], item_id="a"), text_delta(b[0], item_id="b"),
                text_delta(a[1:], item_id="a"), text_delta(b[1:], item_id="b")]  # fmt: skip

    third = text_delta("c", item_id="c")
    effects = attempted(two("aa", "bb"), [*two("ax", "by"), third])
    assert effects[4:] == [Restart(), Say(4, "ax"), Say(5, "by"), Say(6, "c")]


def text_of(effects: Iterable[Effect]) -> list[str]:
    """The messages as they stand at last, in the order in which they began."""
    texts: dict[int, str] = {}
    for effect in effects:
        if isinstance(effect, Say):
            texts[effect.item] = texts.get(effect.item, "") + effect.text
    return list(texts.values())


TEXT = st.text(alphabet="ab\n", min_size=1, max_size=12)


@given(TEXT, st.data())
def test_however_a_text_is_split_into_attempts_it_is_shown_once(
    text: str, data: st.DataObject
) -> None:
    lengths = data.draw(st.lists(st.integers(0, len(text)), max_size=4))
    attempts = [pieces(text[:length], data) for length in lengths]
    effects = attempted(*attempts, [*pieces(text, data), ended()])
    assert said_in(effects) == text
    assert Restart() not in effects


def pieces(text: str, data: st.DataObject) -> list[Raw]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    bounds = zip([0, *cuts], [*cuts, len(text)], strict=True)
    return [text_delta(text[a:b], output_index=0) for a, b in bounds]


@given(st.lists(TEXT, min_size=1, max_size=4), st.data())
def test_the_last_message_is_always_what_the_last_attempt_said(
    texts: list[str], data: st.DataObject
) -> None:
    effects = attempted(*(pieces(text, data) for text in texts[:-1]),
                        [*pieces(texts[-1], data), ended()])  # fmt: skip
    assert text_of(effects)[-1] == texts[-1]
    assert effects.count(Restart()) == len(text_of(effects)) - 1


# -- whatever comes

KEYS = [{"output_index": 0, "item_id": "a"}, {"output_index": 1, "item_id": "b"},
        {"item_id": "a"}, {"item_id": "b"}, {"output_index": 1}, {}]  # fmt: skip
WORDS = st.sampled_from(["", "a", "ab", "abc", "b", "{}", '{"a"', "x" * 1100])


ITEM_KINDS = ["message", "reasoning", "function_call", "custom_tool_call", "web_search_call", "x",
              "mcp_call"]  # fmt: skip


def event_like(kind: str, key: Raw, word: str, other: str) -> Raw:
    """An event of this kind with plausible insides."""
    at: Raw = {**key, "content_index": len(other) % 2}
    item_kind = ITEM_KINDS[(len(word) + len(other)) % len(ITEM_KINDS)]
    item: Raw = {"type": item_kind, "content": [{"type": "output_text", "text": word}],
                 "summary": [summary(other)], "call_id": f"c{other[:1]}", "name": "n",
                 "arguments": word, "input": word, "id": key.get("item_id")}  # fmt: skip
    response = {"status": "completed", "output": [item], "usage": {"input_tokens": word}}
    words = dict.fromkeys(("delta", "text", "refusal", "arguments", "input"), word)
    return {"type": kind, **at, **words, "part": part(word), "item": item, "response": response}


KINDS = [
    "response.output_item.added", "response.output_item.done", "response.output_text.delta",
    "response.output_text.done", "response.refusal.delta", "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta", "response.content_part.done",
    "response.function_call_arguments.delta", "response.function_call_arguments.done",
    "response.custom_tool_call_input.done",
]  # fmt: skip
ENDS = ["response.completed", "response.incomplete", "response.failed", "error"]
ANY = st.builds(event_like, st.sampled_from(KINDS), st.sampled_from(KEYS), WORDS, WORDS)
LAST = st.builds(event_like, st.sampled_from(ENDS), st.sampled_from(KEYS), WORDS, WORDS)


@settings(max_examples=300)
@given(st.lists(ANY, max_size=12), LAST | st.none(), st.lists(ANY, max_size=6))
def test_any_events_in_any_order_keep_the_laws(
    events: list[Raw], last: Raw | None, after: list[Raw]
) -> None:
    first = Response()
    check_laws(fed(first, parsed([*events, *([last] if last else []), *after])))
    first.kept()
    check_laws(effects_of([*after, *events], first))


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(-2, 2) | st.sampled_from(["", "a", "message", "reasoning"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "text", "content", "id"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=300)
@given(st.lists(ANY | LAST, min_size=1, max_size=8), st.data())
def test_mutated_events_never_raise(events: list[Raw], data: st.DataObject) -> None:
    for _ in range(3):
        event = data.draw(st.sampled_from(events))
        event[data.draw(st.sampled_from(sorted(event)))] = data.draw(JSON)
    check_laws(effects_of(events))


ITEMS = st.one_of(
    st.builds(thought, TEXT),
    st.builds(thought, TEXT, TEXT),
    st.builds(said, TEXT),
    st.builds(refused, TEXT),
    st.builds(called, st.sampled_from(["c1", "c2", "c3"]), st.just("n"), TEXT),
)
RESPONSES = st.lists(ITEMS, max_size=4).map(lambda items: stream(*items))


def distinct(events: list[Raw]) -> None:
    """Servers give every call of a response an id of its own."""
    ids = [one["item"]["call_id"] for one in events if "call_id" in one.get("item", {})]
    assume(len(set(ids)) * 2 == len(ids))


@given(RESPONSES, st.data())
def test_ignored_events_change_nothing_wherever_they_are(
    events: list[Raw], data: st.DataObject
) -> None:
    distinct(events)
    plain = parsed(events)
    mixed = list(plain)
    for at in data.draw(st.lists(st.integers(0, len(plain)), max_size=5)):
        mixed.insert(at, IGNORED)
    assert fed(Response(), mixed) == fed(Response(), plain)


def shown(effects: Sequence[Effect]) -> Any:
    calls = [effect.call for effect in effects if isinstance(effect, Call) and effect.complete]
    return thought_in(effects), text_of(effects), calls, end_of(effects)


@given(RESPONSES)
def test_with_or_without_deltas_the_same_is_shown(events: list[Raw]) -> None:
    distinct(events)
    expected = shown(effects_of(events))
    assert shown(effects_of(without_deltas(events))) == expected
    quiet = [event for event in events if "item_id" not in event]
    assert shown(effects_of(quiet)) == expected
    late = sorted(events, key=lambda event: event["type"].endswith((".done", ".completed")))
    assert thought_in(effects_of(late)) == expected[0]
    assert text_of(effects_of(late)) == expected[1]


@given(RESPONSES)
def test_streams_without_indexes_mean_the_same(events: list[Raw]) -> None:
    distinct(events)
    bare = [{key: value for key, value in event.items() if key != "output_index"}
            for event in events]  # fmt: skip
    assert shown(effects_of(bare)) == shown(effects_of(events))
