"""What the editor is shown, live and once more when a session is loaded."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import updates
from bridge.core.history import INTERRUPTED
from bridge.core.records import (
    Announced,
    Cost,
    Hosted,
    Noted,
    Planned,
    Prompted,
    Record,
    Responded,
    Returned,
    SaidText,
    Titled,
    Told,
)
from bridge.core.updates import LONGEST_LINE, Update
from bridge.core.wire import dump
from tools.base import Card, Change, Console, Place, Shown, Step, Text

CARD = Card("Edit a.py", "edit", (Place("/w/a.py", 2), Place("/w/b.py")), (Text("why"),))
EDIT = Announced("c1", "c1", "edit", '{"file_path":"a.py"}', CARD)
SHELL = Announced("c2", "c2", "shell", '{"command":"ls"}', Card("ls", "execute", (), (Text("d"),)))


def text_block(text: str) -> Update:
    return {"type": "content", "content": {"type": "text", "text": text}}


def test_a_long_change_is_asked_about_and_not_announced() -> None:
    change = Change("/w/a.py", None, "x" * (updates.WHOLE_DIFF + 1))
    call = Announced("c1", "c1", "write", "{}", Card("Write a.py", "edit", (), (change,)))
    assert "content" not in updates.announcement(call, cwd="/w", terminal=False)
    asked = updates.question(call, None, "why")["content"]
    assert [block["type"] for block in asked] == ["diff", "content"]


def test_an_announcement_says_all_that_is_known() -> None:
    assert updates.announcement(EDIT, cwd="/w", terminal=False) == {
        "sessionUpdate": "tool_call",
        "toolCallId": "c1",
        "title": "Edit a.py",
        "name": "edit",
        "kind": "edit",
        "status": "pending",
        "rawInput": {"file_path": "a.py"},
        "locations": [{"path": "/w/a.py", "line": 2}, {"path": "/w/b.py"}],
        "content": [text_block("why")],
    }


@pytest.mark.parametrize(
    ("title", "name", "shown"),
    [
        ("ls", "shell", "ls"),
        ("", "shell", "shell"),
        (" \t", "shell", "shell"),
        ("", " ", "Call without a name"),
    ],
)
def test_every_card_has_a_title(title: str, name: str, shown: str) -> None:
    call = Announced("c", "c", name, "{}", Card(title, "execute"))
    assert updates.announcement(call, cwd="/w", terminal=False)["title"] == shown
    assert updates.question(call, None, "why")["title"] == shown


def test_a_command_has_a_terminal_alone_where_the_client_shows_one() -> None:
    update = updates.announcement(SHELL, cwd="/w", terminal=True)
    assert update["content"] == [{"type": "terminal", "terminalId": "c2"}]
    assert update["_meta"] == {"terminal_info": {"terminal_id": "c2", "cwd": "/w"}}
    plain = updates.announcement(SHELL, cwd="/w", terminal=False)
    assert plain["content"] == [text_block("d")]
    assert "_meta" not in plain


def test_a_card_without_content_or_places_leaves_them_out() -> None:
    bare = Announced("c", "c", "x", "", Card("x"))
    update = updates.announcement(bare, cwd="/w", terminal=True)
    assert "content" not in update
    assert "locations" not in update
    assert update["rawInput"] == {}


def test_an_early_card_is_renewed_by_an_update() -> None:
    first = updates.announcement(EDIT, cwd="/w", terminal=False)
    again = updates.renewal(EDIT, cwd="/w", terminal=False)
    assert again == {**first, "sessionUpdate": "tool_call_update"}


def test_a_permission_dialog_gets_the_whole_call() -> None:
    shown = (Change("/w/a.py", "a", "b"),)
    call = updates.question(EDIT, shown, "Because.")
    diff = {"type": "diff", "path": "/w/a.py", "oldText": "a", "newText": "b"}
    assert call["content"] == [diff, text_block("Because.")]
    assert {"toolCallId", "title", "kind", "status", "rawInput", "locations"} < set(call)
    assert "sessionUpdate" not in call
    assert updates.question(EDIT, None, "So.")["content"] == [text_block("why"), text_block("So.")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        ("  ", {}),
        ('{"a":1}', {"a": 1}),
        ('{"a":', {"arguments": '{"a":'}),
        ("[1]", {"arguments": "[1]"}),
        ('{"a":NaN}', {"arguments": '{"a":NaN}'}),
    ],
)
def test_raw_input_is_an_object_whatever_came(arguments: str, expected: object) -> None:
    assert updates.raw_input(arguments) == expected


OK = Returned("c", "c", False, "out", True)


@pytest.mark.parametrize(
    ("returned", "execute", "expected"),
    [
        (OK, False, {"status": "completed", "content": [text_block("out")],
                     "rawOutput": {"output": "out"}}),
        (OK, True, {"status": "completed", "content": [text_block("```console\nout\n```")],
                    "rawOutput": {"output": "out"}}),
        (Returned("c", "c", False, "Error: no", False, (Text("Error: no"),), "Plan review"), False,
         {"status": "failed", "title": "Plan review", "content": [text_block("Error: no")],
          "rawOutput": {"output": "Error: no"}}),
        (Returned("c", "c", False, "x", True, (Console("x"),), None, {"exitCode": 0}), True,
         {"status": "completed", "content": [text_block("```console\nx\n```")],
          "rawOutput": {"exitCode": 0}}),
    ],
)  # fmt: skip
def test_a_call_ends_with_its_result(returned: Returned, execute: bool, expected: Update) -> None:
    update = updates.outcome(returned, execute=execute, terminal=False)
    assert update == {"sessionUpdate": "tool_call_update", "toolCallId": "c", **expected}


def test_a_terminal_card_gets_its_output_once_and_its_exit() -> None:
    killed = Returned("c", "c", False, "x", True, (Console("x"),), None, {"signal": "SIGKILL"})
    update = updates.outcome(killed, execute=True, terminal=True)
    assert update["_meta"] == {
        "terminal_output": {"terminal_id": "c", "data": "x"},
        "terminal_exit": {"terminal_id": "c", "signal": "SIGKILL"},
    }
    assert "content" not in update
    ended = Returned("c", "c", False, "x", True, (Console("x"),), None, {"exitCode": 3})
    streamed = updates.outcome(ended, execute=True, terminal=True, streamed=True)
    assert streamed["_meta"] == {"terminal_exit": {"terminal_id": "c", "exit_code": 3}}


def test_what_a_command_prints_is_appended_or_replaced() -> None:
    appended = updates.printed("c", "x", terminal=True)
    assert appended["_meta"] == {"terminal_output": {"terminal_id": "c", "data": "x"}}
    assert updates.printed("c", "x", terminal=False)["content"] == [
        text_block("```console\nx\n```")
    ]


@pytest.mark.parametrize(
    ("text", "fence"), [("a", "```"), ("```", "````"), ("a\n`````\nb", "``````"), ("``", "```")]
)
def test_console_output_cannot_close_its_fence(text: str, fence: str) -> None:
    assert updates.fenced(text) == f"{fence}console\n{text}\n{fence}"


def diffs(change: Shown) -> list[tuple[str | None, str]]:
    return [(block["oldText"], block["newText"]) for block in updates.content([change])]


def test_a_small_diff_is_both_texts_byte_for_byte() -> None:
    old, new = "a\r\nb", "a\r\nc\n"
    assert diffs(Change("/w/a", old, new)) == [(old, new)]
    assert diffs(Change("/w/a", None, new)) == [(None, new)]


def test_a_big_diff_is_its_hunks_with_three_lines_around() -> None:
    lines = [f"line {n}\n" for n in range(9000)]
    changed = [*lines]
    changed[10], changed[8000] = "ten\n", "eight thousand\n"
    shown = diffs(Change("/w/a", "".join(lines), "".join(changed)))
    assert [(str(old).count("\n"), new.count("\n")) for old, new in shown] == [(7, 7), (7, 7)]
    assert "ten\n" in shown[0][1]
    assert "line 10\n" in str(shown[0][0])
    assert "eight thousand\n" in shown[1][1]


@given(st.text(alphabet="ab\n\r\u2028é", max_size=30), st.text(alphabet="ab\n", max_size=30))
def test_hunks_are_parts_of_the_texts(old: str, new: str) -> None:
    filler = "".join(f"{n}\n" for n in range(20000))
    for before, after in diffs(Change("/w/a", old + filler, new + filler)):
        assert before is not None
        assert before in old + filler
        assert after in new + filler


@given(st.text(max_size=40), st.integers(1, 7))
def test_chunks_add_up_to_the_text(text: str, size: int) -> None:
    most, updates.LONGEST_CHUNK = updates.LONGEST_CHUNK, size
    try:
        chunks = list(updates.chunk("message", "m1", text))
    finally:
        updates.LONGEST_CHUNK = most
    assert "".join(chunk["content"]["text"] for chunk in chunks) == text
    assert all(chunk["content"]["text"] for chunk in chunks)
    assert {chunk["messageId"] for chunk in chunks} <= {"m1"}


@pytest.mark.parametrize("character", ["x", "é", "\u2028", "\U0001f680", "\x00", '"'])
def test_no_line_is_too_long_for_a_client(character: str) -> None:
    big = character * 2_000_000
    returned = Returned("c", "c", False, big, True, None, None, {"stdout": big, "list": [big]})
    fitted = updates.fitted(updates.outcome(returned, execute=False, terminal=False))
    assert len(dump(fitted)) <= LONGEST_LINE
    assert "characters left out" in json.dumps(fitted, ensure_ascii=False)
    for chunk in updates.chunk("thought", "t", big):
        assert len(dump(chunk)) < LONGEST_LINE


@pytest.mark.parametrize("size", [16 * 1024, 16 * 1024 + 1, 200_000])
def test_a_question_holds_a_long_text_once(size: int) -> None:
    text = "x" * size
    change = Change("/w/a", None, text)
    call = replace(EDIT, arguments=json.dumps({"file_path": "/w/a", "content": text}))
    asked = updates.question(call, (change,), "why")
    assert asked["content"][0]["newText"] == text
    half = "x" * (8 * 1024)
    left = f"{half}\n[… {size - 16 * 1024} characters left out …]\n{half}"
    assert asked["rawInput"]["content"] == (text if size == 16 * 1024 else left)
    assert len(dump(asked)) < size + 16 * 1024 + 600
    # What stands nowhere else is left whole.
    asked = updates.question(call, (), "why")
    assert asked["rawInput"]["content"] == text


def test_a_text_beside_what_matters_is_cut() -> None:
    assert updates.aside("x" * 1000) == "x" * 1000
    half = "x" * 500
    assert updates.aside("x" * 1001) == f"{half}\n[… 1 characters left out …]\n{half}"


def test_what_fits_is_not_cut() -> None:
    update = updates.outcome(OK, execute=False, terminal=False)
    assert updates.fitted(update) is update


# -- replay

SEEN = (SaidText("thought", "t1.0", "Hm"), SaidText("message", "m1.1", "Ok"), EDIT)
RECORDS: list[Record] = [
    Prompted(1, ({"type": "text", "text": "Go"},), (), "t"),
    Titled("Go", "2026-01-01T00:00:00.000Z"),
    Noted("not shown"),
    Responded(1, "p/m", SEEN, ()),
    Returned("c1", "c1", False, "done", True),
    Told("n1", "Goal cleared."),
]


def test_a_loaded_session_looks_as_it_did() -> None:
    shown = list(updates.replay(RECORDS, cwd="/w", terminal=False))
    assert [update["sessionUpdate"] for update in shown] == [
        "user_message_chunk",
        "session_info_update",
        "agent_thought_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ]
    assert shown[0]["content"] == {"type": "text", "text": "Go"}
    assert shown[4] == updates.announcement(EDIT, cwd="/w", terminal=False)
    assert shown[5]["status"] == "completed"


def test_a_loaded_session_shows_its_last_plan_once() -> None:
    first, last = Planned((Step("Look", "pending"),)), Planned((Step("Look", "completed"),))
    title = Titled("T", "t")

    def check(records: list[Record], *shown: Record) -> None:
        expected = [updates.plan(one) if isinstance(one, Planned) else updates.title(title)
                    for one in shown]  # fmt: skip
        assert list(updates.replay(records, cwd="/w", terminal=False)) == expected

    check([first, title, last, title], title, title, last)
    check([last, title, first], title, first)
    check([last, last], last)
    check([first, title, Planned(())], title)


def test_a_call_that_never_ended_ends_in_the_replay() -> None:
    shown = list(updates.replay(RECORDS[:4], cwd="/w", terminal=False))
    assert shown[-1] == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c1",
        "status": "failed",
        "content": [text_block(INTERRUPTED)],
    }


SEARCH = Announced("ws", "ws", "web_search", '{"query":"q"}', Card("Search: q", "search"))


def test_a_call_of_the_providers_begins_and_ends_in_the_replay() -> None:
    seen = Hosted(SEARCH, (Text("- <u>"),), ok=True)
    begin, end = updates.replay([Responded(1, "p/m", (seen,), ())], cwd="/w", terminal=True)
    assert begin == {
        "sessionUpdate": "tool_call",
        "toolCallId": "ws",
        "title": "Search: q",
        "name": "web_search",
        "kind": "search",
        "status": "in_progress",
        "rawInput": {"query": "q"},
    }
    assert end == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "ws",
        "title": "Search: q",
        "kind": "search",
        "status": "completed",
        "rawInput": {"query": "q"},
        "rawOutput": {"output": "- <u>"},
        "content": [text_block("- <u>")],
    }
    failed = updates.hosted_end(Hosted(SEARCH, (), ok=False))
    assert (failed["status"], failed["content"]) == ("failed", [])


def test_a_replayed_command_fills_its_terminal() -> None:
    records: list[Record] = [
        Responded(1, "p/m", (SHELL,), ()),
        Returned("c2", "c2", False, "x", True, (Console("x"),), None, {"exitCode": 0}),
        Returned("c9", "c9", False, "x", True),
    ]
    shown = list(updates.replay(records, cwd="/w", terminal=True))
    assert shown[1]["_meta"]["terminal_output"]["data"] == "x"
    assert shown[2]["content"] == [text_block("x")]


def test_an_image_too_big_to_show_again_is_named() -> None:
    image = {"type": "image", "data": "A" * 600_000, "mimeType": "image/png", "uri": "file:///a"}
    small = {**image, "data": "QQ=="}
    blocks = [Prompted(1, (block,), (), "t") for block in (image, small)]
    big, shown = updates.replay(blocks, cwd="/w", terminal=False)
    assert big["content"]["text"] == "[image file:///a, too big to show again]"
    assert shown["content"] == small


def test_a_file_too_big_to_show_again_is_named() -> None:
    file = {"type": "resource", "resource": {"uri": "file:///a", "blob": "A" * 600_000}}
    (chunk,) = updates.replay([Prompted(1, (file,), (), "t")], cwd="/w", terminal=False)
    assert chunk["content"]["text"] == "[resource file:///a, too big to show again]"


def test_the_plain_updates() -> None:
    assert updates.usage(5, 10) == {"sessionUpdate": "usage_update", "used": 5, "size": 10}
    cost = {"amount": 0.5, "currency": "USD"}
    assert updates.usage(5, 10, Cost(0.5, "USD"))["cost"] == cost
    assert updates.mode("plan") == {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}
    assert updates.options([{"id": "a"}])["configOptions"] == [{"id": "a"}]
    assert updates.commands([{"name": "a"}])["availableCommands"] == [{"name": "a"}]
    assert updates.notice("warning", "Slow.")["title"] == "Slow."
