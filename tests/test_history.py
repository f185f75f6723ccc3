"""What goes back to the model: shaped for the server, paired, and a prefix of what comes later."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.history import INTERRUPTED, Dialect, History
from bridge.core.records import (
    Compacted,
    Forgotten,
    GoalChanged,
    Item,
    Learned,
    LeftOut,
    Noted,
    Prompted,
    Record,
    Responded,
    Returned,
    Told,
    Unreadable,
)

OWN = "openai/gpt"
PORTABLE = Dialect(OWN)
VERBATIM = Dialect(OWN, "verbatim")
RAW = [{"type": "reasoning_text", "text": "raw"}]
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
    return history_of(*records).input(dialect)


def history_of(*records: Record) -> History:
    history = History()
    for record in records:
        history.add(record)
    return history


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
        (Dialect(OWN, reasoning="content"), reasoning(encrypted_content="e", content=RAW),
         reasoning(content=RAW)),
        (Dialect(OWN, reasoning="both"), reasoning(encrypted_content="e", content=RAW),
         reasoning(content=RAW, encrypted_content="e")),
        (Dialect(OWN, reasoning="none"), reasoning(encrypted_content="e"), None),
        (Dialect("xai/grok"), reasoning(encrypted_content="e"), reasoning()),
        (Dialect("xai/grok"), {"type": "reasoning", "summary": [], "encrypted_content": "e"}, None),
        # a signed thought
        (Dialect(OWN, reasoning="both"), reasoning(content=RAW, signature="s", format="f"),
         reasoning(content=RAW, signature="s", format="f")),
        (PORTABLE, reasoning(content=RAW, signature="s", format="f"), reasoning(format="f")),
        (Dialect("xai/grok", reasoning="both"), reasoning(content=RAW, signature="s", format="f"),
         reasoning(content=RAW)),
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
    item = {"type": "message", "role": "assistant", "content": [part]}
    shaped = sent([responded(item)])[0]
    assert shaped["content"] == [{"type": "output_text", "text": "a", "annotations": []}]
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


# -- shorter, and without what a server cannot take


def test_a_summary_takes_the_place_of_all_but_the_last_prompt():
    old = (prompted(1, "old"), responded(call("a")), returned("a"), responded(message("done")))
    history = history_of(*old, prompted(2, "new"), Compacted(1, "SUM"))
    summary, last = history.input(PORTABLE)
    assert "SUM" in str(summary)
    assert last == sent([prompted(2, "new")])[0]
    assert not history.is_worked_on


def test_a_summary_in_the_middle_of_the_work_comes_after_the_prompt_and_its_notes():
    note = Noted("mode")
    work = (prompted(1, "do"), note, responded(call("a")), note, returned("a"))
    first, noted, summary = history_of(*work, Compacted(1, "SUM")).input(PORTABLE)
    assert [first, noted] == sent([prompted(1, "do"), note])
    assert "SUM" in str(summary)


def test_what_the_project_says_outlasts_a_summary():
    told = Learned("/w/AGENTS.md", "Use tabs.")
    history = history_of(told, prompted(), responded(message("a")), Compacted(1, "SUM"))
    assert "Use tabs." in str(history.input(PORTABLE)[0])


def test_a_second_summary_takes_the_place_of_the_first():
    history = history_of(prompted(), responded(message("a")), Compacted(1, "ONE"))
    history.add(responded(message("b")))
    history.add(Compacted(2, "TWO"))
    assert "ONE" not in str(history.input(PORTABLE))
    assert "TWO" in str(history.input(PORTABLE))


def test_a_conversation_of_goals_keeps_the_goal():
    history = history_of(Noted("goal"), responded(message("a")), Compacted(1, "SUM"))
    assert len(history.input(PORTABLE)) == 2


def test_what_nobody_can_read_any_more_is_left_out():
    secret = reasoning(encrypted_content="e")
    history = history_of(prompted(), responded(secret, message("a")), Unreadable())
    assert history.input(PORTABLE) == [USER, reasoning(), message("a")]
    history.add(responded(secret, message("b")))
    assert history.input(PORTABLE)[-2:] == [secret, message("b")]


IMAGE: Item = {"type": "input_image", "image_url": "data:image/png;base64,QQ=="}
PICTURE = Prompted(2, (), ({"type": "input_text", "text": "see"}, IMAGE), "t")


def test_what_a_server_may_not_take_is_new_since_its_last_answer():
    history = history_of(prompted(), responded(reasoning(), message("a")), PICTURE)
    assert history.suspect(PORTABLE) == 1
    history.add(LeftOut(1))
    assert history.suspect(PORTABLE) is None
    kept = history.input(PORTABLE)
    assert "QQ==" not in str(kept)
    assert "see" in str(kept)
    assert "An image stood here" in str(kept)
    assert [item.get("type") for item in kept] == ["message"] * 3


def test_what_was_answered_is_not_suspected():
    history = history_of(PICTURE, responded(message("a")), responded(message("b")))
    assert history.suspect(PORTABLE) is None
    assert history.suspect(Dialect("xai/grok")) == 0, "another server has not seen it"


def test_a_picture_that_outlasted_a_summary_is_suspected():
    work = (responded(call("a")), returned("a"), responded(message("b")), returned("a"))
    history = history_of(prompted(), *work, PICTURE, Compacted(1, "SUM"))
    assert history.suspect(PORTABLE) == 0
    history.add(LeftOut(0))
    assert "QQ==" not in str(history.input(PORTABLE))


def test_a_summary_outlasts_the_prompts_that_are_taken_back():
    history = history_of(prompted(), responded(message("a")), Compacted(1, "SUM"), Forgotten(1))
    (kept,) = history.input(PORTABLE)
    assert "SUM" in str(kept)


def test_an_item_is_brought_into_shape_once_for_each_server():
    history = history_of(prompted(), responded(message("a", id="m_1")))
    first = history.input(PORTABLE)
    history.add(prompted(2))
    again = history.input(PORTABLE)
    assert all(one is other for one, other in zip(first, again[:2], strict=True))
    assert history.input(VERBATIM)[1]["id"] == "m_1"
    assert history.input(PORTABLE) == again
    history.add(Forgotten(2))
    assert history.input(PORTABLE) == first


def test_a_trial_changes_nothing():
    history = history_of(PICTURE)
    before = history.input(PORTABLE)
    assert "QQ==" not in str(history.input(PORTABLE, left_out=0))
    assert history.input(PORTABLE) == before


def test_a_model_without_images_reads_a_note_in_their_place():
    items = sent([PICTURE], Dialect(OWN, images=False))
    assert "QQ==" not in str(items)
    assert "An image stood here" in str(items)


def test_the_length_is_what_the_server_counted_and_what_came_since():
    history = history_of(prompted(), Responded(1, OWN, (), (message("a"),), used=500))
    assert history.tokens == 500
    history.add(prompted(2, "x" * 3000))
    assert 1500 <= history.tokens < 1600
    history.add(Forgotten(2))
    assert 490 <= history.tokens <= 500, "counted anew, and what the server counted beside it"


def test_an_attempt_without_items_counts_nothing():
    history = history_of(prompted(), Responded(1, OWN, (), (), used=500))
    assert history.tokens < 100
    assert history.maker is None


@pytest.mark.parametrize(
    ("now", "holds"),
    [
        (GoalChanged("Ship", "active", rounds=2), True),
        (GoalChanged("Ship", "complete"), False),
        (GoalChanged("Ship", "blocked"), False),
        (GoalChanged("Ship", "paused"), False),
        (GoalChanged(None), False),
    ],
)
def test_the_task_of_a_goal_holds_as_long_as_it_is_worked_on(now: GoalChanged, holds: bool):
    task = Noted("The task", asked=True, goal=True)
    history = history_of(prompted(), responded(message("a")), task, responded(message("b")), now)
    assert "The task" in str(history.input(PORTABLE)), "before a summary nothing changes"
    history.add(Compacted(1, "SUM"))
    assert ("The task" in str(history.input(PORTABLE))) == holds
    assert ("Hi" in str(history.input(PORTABLE))) != holds, "what the user said last is kept"


def test_what_a_server_would_refuse_of_an_answer_does_not_end_the_session() -> None:
    odd = call("c", name="functions.read", arguments='{"cut": "o')
    mended = call("c", name="functions_read", arguments='{"arguments":"{\\"cut\\": \\"o"}')
    for dialect in (PORTABLE, VERBATIM):
        assert sent([responded(odd), returned("c")], dialect) == [mended, output("c")]
