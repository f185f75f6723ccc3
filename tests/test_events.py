from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.wire import Json, JsonObject
from bridge.errors import Fault
from bridge.responses.events import (
    EVENTS,
    IGNORED,
    ArgumentsDelta,
    ArgumentsDone,
    Delta,
    Ended,
    Event,
    Failure,
    ItemAdded,
    ItemDone,
    Key,
    PartDone,
    parse,
    part_text,
)

AT = {"output_index": 2, "item_id": "i"}
KEY = Key(2, "i")
BARE = Key(None, None)


def check(data: dict[str, Any], event: Event) -> None:
    assert parse(cast("JsonObject", data)) == event


def test_text_comes_as_deltas_and_whole() -> None:
    def both(kind: str, field: str, family: Any, index: str) -> None:
        at = {**AT, index: 3}
        check({"type": f"{kind}.delta", **at, "delta": "x"}, Delta(KEY, family, 3, "x"))
        check({"type": f"{kind}.done", **at, field: "xy"}, PartDone(KEY, family, 3, "xy"))

    both("response.output_text", "text", "text", "content_index")
    both("response.refusal", "refusal", "refusal", "content_index")
    both("response.reasoning_summary_text", "text", "summary", "summary_index")
    both("response.reasoning_summary", "text", "summary", "summary_index")
    both("response.reasoning_text", "text", "raw", "content_index")
    both("response.reasoning", "text", "raw", "content_index")


def test_a_part_that_is_done_tells_its_kind_itself() -> None:
    def row(kind: str, family: Any, field: str = "text") -> None:
        part = {"type": kind, field: "x"}
        check(
            {"type": "response.content_part.done", **AT, "part": part},
            PartDone(KEY, family, 0, "x"),
        )

    row("output_text", "text")
    row("refusal", "refusal", "refusal")
    row("reasoning_text", "raw")
    done = {"type": "response.reasoning_summary_part.done", **AT, "summary_index": 1}
    part = {"type": "summary_text", "text": "x"}
    check({**done, "part": part}, PartDone(KEY, "summary", 1, "x"))
    for part in (None, "x", {}, {"type": "image"}, {"type": ["text"]}, {"type": "text", "text": 1}):
        assert part_text(cast("Json", part)) is None
        check({**done, "part": part}, IGNORED)


def test_arguments_come_as_deltas_and_whole() -> None:
    def both(kind: str, field: str) -> None:
        check({"type": f"{kind}.delta", **AT, "delta": "x"}, ArgumentsDelta(KEY, "x"))
        check({"type": f"{kind}.delta", **AT, "delta": {}}, IGNORED)
        check({"type": f"{kind}.done", **AT, field: "xy"}, ArgumentsDone(KEY, "xy"))
        check({"type": f"{kind}.done", field: "", "name": "n"}, ArgumentsDone(BARE, "", "n"))
        check({"type": f"{kind}.done", **AT}, IGNORED)

    both("response.function_call_arguments", "arguments")
    both("response.custom_tool_call_input", "input")


def test_an_item_is_known_by_its_own_id_before_the_event_s() -> None:
    for name, kind in (("added", ItemAdded), ("done", ItemDone)):
        item = {"type": "message", "id": "own"}
        event = {"type": f"response.output_item.{name}", **AT}
        check({**event, "item": item}, kind(Key(2, "own"), cast("JsonObject", item)))
        check({**event, "item": {"type": "message"}}, kind(KEY, {"type": "message"}))
        for wrong in (None, "message", {}, {"type": 1}):
            check({**event, "item": wrong}, IGNORED)


def test_a_key_of_the_wrong_type_is_no_key() -> None:
    def row(index: Any, name: Any, key: Key) -> None:
        check(
            {
                "type": "response.output_text.delta",
                "output_index": index,
                "item_id": name,
                "delta": "",
            },
            Delta(key, "text", 0, ""),
        )

    row(0, "i", Key(0, "i"))
    row(None, None, BARE)
    row(True, "", BARE)
    row("0", 7, BARE)
    row(1.0, [], BARE)


def test_the_index_of_a_part_is_taken_from_where_it_is() -> None:
    def row(part: int, **where: Any) -> None:
        data = {"type": "response.reasoning_text.delta", **where, "delta": "x"}
        check(data, Delta(BARE, "raw", part, "x"))

    row(0)
    row(2, content_index=2)
    row(3, content_index=None, summary_index=3)
    row(0, content_index="2")


def test_a_delta_may_be_an_object_that_holds_text() -> None:
    def row(delta: Any, event: Event) -> None:
        check({"type": "response.output_text.delta", "delta": delta}, event)

    row({"content": "x"}, Delta(BARE, "text", 0, "x"))
    row({"text": "x"}, Delta(BARE, "text", 0, "x"))
    row({"stdout": "x"}, IGNORED)
    row(None, IGNORED)
    row(7, IGNORED)


def test_the_worse_of_name_and_status_counts() -> None:
    def row(name: str, said: Any, status: Any) -> None:
        response = {"status": said}
        event = Ended(status, cast("JsonObject", response)) if status != "failed" else None
        data = {"type": f"response.{name}", "response": response}
        check(data, event or Failure(cast("JsonObject", data)))

    row("completed", "completed", "completed")
    row("done", "completed", "completed")
    row("completed", None, "completed")
    row("completed", ["failed"], "completed")
    row("completed", "in_progress", "completed")
    row("completed", "incomplete", "incomplete")
    row("completed", "cancelled", "cancelled")
    row("completed", "failed", "failed")
    row("incomplete", "incomplete", "incomplete")
    row("incomplete", "completed", "incomplete")
    row("incomplete", "failed", "failed")
    row("failed", "completed", "failed")
    check({"type": "response.completed"}, Ended("completed", {}))
    check({"type": "response.completed", "response": "gone"}, Ended("completed", {}))


def test_failures_are_seen_in_every_form() -> None:
    def is_failure(data: dict[str, Any]) -> None:
        check(data, Failure(cast("JsonObject", data)))

    is_failure({"type": "error", "code": "x", "message": "m"})
    is_failure({"type": "response.error", "message": "m"})
    is_failure({"type": "response.failed"})
    is_failure({"error": {"message": "m"}})
    is_failure({"error": "text"})
    is_failure({"type": ["odd"], "error": {"message": "m"}})
    is_failure({"type": "api_error", "error": {"message": "m"}})
    check({"error": None}, IGNORED)
    check({"type": "response.mcp_call.failed", "error": "that tool failed"}, IGNORED)


def test_what_we_do_not_know_is_ignored() -> None:
    kinds: list[Any] = ["response.created", "ping", "codex.rate_limits", "a:b", "", 7, None, []]
    for kind in kinds:
        check({"type": kind}, IGNORED)
    check({}, IGNORED)


def test_a_failure_may_carry_what_the_transport_knows() -> None:
    assert Failure({}).fault is None
    assert Failure({}, Fault("quota", "m")) != Failure({})


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "text", "content", "id", "status"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
FIELDS = [
    "item", "item_id", "output_index", "content_index", "summary_index", "delta", "text", "part",
    "arguments", "input", "name", "refusal", "response", "error",
]  # fmt: skip


@given(st.sampled_from([*EVENTS, "other"]), st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_nothing_that_is_sent_raises(kind: str, data: dict[str, Any]) -> None:
    parse({"type": kind, **data})
    parse(data)


@pytest.mark.parametrize("kind", EVENTS)
def test_every_event_without_its_fields_is_harmless(kind: str) -> None:
    assert isinstance(parse({"type": kind}), type(IGNORED) | Ended | Failure)
