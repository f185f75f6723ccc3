"""Records survive their way to the file and back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.records import (
    RECORDS,
    Announced,
    Changing,
    Compacted,
    Cost,
    Extended,
    Forgotten,
    GoalChanged,
    Hosted,
    Learned,
    LeftOut,
    Metered,
    Noted,
    Opened,
    Planned,
    Prompted,
    Record,
    Responded,
    Returned,
    SaidText,
    SawFile,
    Switched,
    Titled,
    Told,
    Undone,
    Unreadable,
    decode,
    encode,
    format_of,
)
from tools.base import Card, Change, Console, Place, Step, Text

CARD = Card("Edit a.py", "edit", (Place("/w/a.py", 3),), (Change("/w/a.py", None, "x\n"),))

SAMPLES: tuple[Record, ...] = (
    Opened("s", "/w", "2026-01-02T03:04:05.000Z", "plan", "gpt", None, "ask"),
    Prompted(
        1, ({"type": "text", "text": "Hi \u2028 \U0001f680"},), ({"type": "input_text"},), "t"
    ),
    Noted("The user switched."),
    Learned("/w/AGENTS.md", "Use tabs."),
    Responded(
        1,
        "openai/gpt",
        (
            SaidText("thought", "t1.0", "Hm"),
            Announced("c#2", "c", "edit", "{}", CARD),
            Hosted(
                Announced("ws", "ws", "web_search", "{}", Card("Search", "search")),
                (Text("- x"), Console("o")),
                ok=True,
            ),
        ),
        ({"type": "reasoning", "summary": [], "x": None},),
        12,
        Cost(0.25, "EUR"),
        Metered(100, 20, 90, "West US", 4000, 3000, "tools"),
    ),
    Returned("c#2", "c", False, "out \ud800\x00", True, (Console("o"), Text("t")), None, {"a": 1}),
    Changing("c#2", "/w/a.py", None, "d1"),
    Undone(1),
    Told("n1", "Goal cleared."),
    Forgotten(1),
    Compacted(1, "The summary.", 30, Cost(0.5, "EUR"), Metered(25, 5)),
    Extended(120, 1.5),
    LeftOut(3),
    Unreadable(),
    Switched("effort", None),
    Titled("A title", "t"),
    SawFile({"path": "/w/a.py"}),
    GoalChanged("Ship it", "blocked", "no key", 3),
    Planned((Step("Look", "completed"), Step("Leap", "pending"))),
)


@pytest.mark.parametrize("record", SAMPLES, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_as_it_was(record: Record) -> None:
    line = encode(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(line) == record


def test_what_was_written_before_can_still_be_read() -> None:
    """Sessions outlive versions: lines are only ever added to this file."""
    lines = (Path(__file__).parent / "fixtures" / "records.jsonl").read_bytes().splitlines()
    assert tuple(map(decode, lines)) == SAMPLES


def test_every_kind_of_record_is_tried_above() -> None:
    assert {type(record) for record in SAMPLES} == set(RECORDS.values())


@given(st.text())
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert decode(encode(Told("n1", text))) == Told("n1", text)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"type":"unknown"}',
        b'{"type":5}',
        b'{"type":"told","message":"n1"}',
        b'{"type":"told","message":"n1","text":7}',
        b"\x00\x00\x00",
        b"\xff\xfe",
    ],
)
def test_a_damaged_line_is_no_record(line: bytes) -> None:
    assert decode(line) is None


@pytest.mark.parametrize(
    ("line", "version"),
    [
        (b'{"type":"opened","format":2}', 2),
        (b'{"type":"opened","format":"2"}', None),
        (b'{"type":"opened"}', None),
        (b'{"type":"told","format":2}', None),
        (b"{", None),
    ],
)
def test_a_header_claims_a_format(line: bytes, version: int | None) -> None:
    assert format_of(line) == version


def test_fields_of_a_later_version_are_passed_over() -> None:
    assert decode(b'{"type":"noted","text":"x","later":1}') == Noted("x")
