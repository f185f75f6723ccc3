"""A session file that was changed anywhere loads as far as it goes, or is refused in a sentence."""

import json
from contextlib import suppress
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import options
from bridge.config import load
from bridge.core import updates
from bridge.core.records import Opened, Switched, decode, encode
from bridge.core.wire import dump
from bridge.errors import BridgeError
from bridge.session import Session
from bridge.store import Store
from tests.test_records import SAMPLES

CONFIG = '[providers.p]\nbase_url = "http://127.0.0.1:9/v1"\n[models.m]\nprovider = "p"\n'
HEADER = Opened("s1", "/w", "t", "default", "m", None, "ask")
LINES: list[dict[str, Any]] = [
    json.loads(encode(record)) for record in (HEADER, *SAMPLES[1:], *SAMPLES[1:])
]
JUNK: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**30, 1.5, "", "x", "n", "n-1", "\ud800", [], {}, [1], ["a"], [None]),
    *({"a": 1}, [{}], [[]], {"type": None}, {"type": []}, {"type": "message", "role": "user"}),
)
_GONE = object()


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a JSON value, its kind apart."""
    members: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        members = [
            (key, one) for key, one in cast("dict[str, Any]", value).items() if key != "type"
        ]
    elif isinstance(value, list):
        members = list(enumerate(cast("list[Any]", value)))
    return [place for key, one in members for place in ((*at, key), *places(one, (*at, key)))]


PLACES = [(line, *place) for line, value in enumerate(LINES) for place in places(value)]


def changed(changes: list[tuple[tuple[Any, ...], Any]]) -> bytes:
    """The file with other values, or none, in these places."""
    lines = deepcopy(LINES)
    for place, value in changes:
        with suppress(KeyError, IndexError, TypeError):  # an earlier change took it away
            holder: Any = lines
            for key in place[:-1]:
                holder = holder[key]
            if value is _GONE:
                del holder[place[-1]]
            else:
                holder[place[-1]] = value
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


FOLDERS = count()


@given(
    st.lists(
        st.tuples(st.sampled_from(PLACES), st.sampled_from((*JUNK, _GONE))), min_size=1, max_size=4
    )
)
def test_values_that_are_not_what_they_should_be(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    check(tmp_path_factory.getbasetemp() / f"values{next(FOLDERS)}", changed(changes))


@given(st.data())
def test_bytes_that_are_not_what_they_should_be(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = changed([])
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 200)))
    file = whole[:start] + data.draw(st.binary(max_size=20)) + whole[end:]
    check(tmp_path_factory.getbasetemp() / f"bytes{next(FOLDERS)}", file)


def check(folder: Path, file: bytes) -> None:
    """It is loaded, shown and gone on with, or refused."""
    folder.mkdir()
    (folder / "config.toml").write_text(CONFIG, encoding="utf-8")
    (folder / "s1.jsonl").write_bytes(file)
    store = Store(folder)
    with suppress(BridgeError):
        stored = store.load("s1")
        session = Session(load(str(folder / "config.toml"), {}), stored.opened, stored.journal)
        shown = updates.replay(session.restored(stored.records()), cwd="/w", terminal=True)
        dump(list(shown))
        dump(session.history.input(session.dialect))
        dump(options.all_options(session))
        assert session.history.tokens >= 0
        assert session.usage is None
        assert session.next_told()[0] == "n"
        session.close()
    store.list(None, None)


RESPONDED: dict[str, Any] = {"type": "responded", "response": 1, "maker": "p/m", "seen": []}
UNSOUND: tuple[dict[str, Any], ...] = (
    *({"type": []}, {"call_id": 1}, {"role": "user"}, {"role": "user", "content": [1]}),
)


UNSOUND_LINES: tuple[dict[str, Any], ...] = (
    {"type": "told", "message": "x1", "text": "t"},
    {"type": "told", "message": "n", "text": "t"},
    {"type": "noted", "text": "t", "parts": [{}]},
    {"type": "prompted", "prompt": 1, "blocks": [], "content": [{"type": 1}], "at": "t"},
    *({**RESPONDED, "items": [item]} for item in UNSOUND),
)


@pytest.mark.parametrize("line", UNSOUND_LINES)
def test_a_line_that_only_looks_like_a_record_is_damaged(line: dict[str, Any]) -> None:
    assert decode(json.dumps(line).encode()) is None


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": [{"type": "input_text"}]},
        {"type": "function_call", "call_id": "c"},
    ],
)
def test_an_item_that_is_odd_and_sound_is_kept(item: dict[str, Any]) -> None:
    assert decode(json.dumps({**RESPONDED, "items": [item]}).encode()) is not None


def test_a_preset_that_is_none_gives_way_to_the_configured_one(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(CONFIG, encoding="utf-8")
    opened = Opened("s1", "/w", "t", "default", "m", None, "root")
    config = load(str(tmp_path / "config.toml"), {})
    session = Session(config, opened, Store(None).create(opened))
    assert session.permission == config.permission == "workspace-write"


def test_an_effort_that_is_empty_is_none(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(CONFIG, encoding="utf-8")
    opened = Opened("s1", "/w", "t", "default", "m", "", "ask")
    session = Session(load(str(tmp_path / "config.toml"), {}), opened, Store(None).create(opened))
    assert session.effort is None
    session.record(Switched("effort", ""))
    assert session.effort is None
    assert "thought_level" not in str(options.all_options(session))
