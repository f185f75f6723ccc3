"""What was allowed or denied for good: kept, shared, taken back, and not believed from others."""

import fcntl
import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from bridge.answers import Answers
from bridge.core.rule import FOR_PROJECT, FOR_SESSION, Rule, exactly
from bridge.core.rules import parsed

TEST = parsed("allow", "shell npm test", FOR_PROJECT)
BUILD = exactly("allow", "shell", "rm -rf 'a b'\nmake", FOR_PROJECT)
NEVER = parsed("deny", "shell npm publish", FOR_SESSION)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state" / "permissions"


def stored(state: Path) -> Path:
    (file,) = state.glob("*.json")
    return file


def test_an_answer_for_the_project_outlasts_the_session(state: Path, tmp_path: Path) -> None:
    one = Answers(state, str(tmp_path))
    for rule in (TEST, BUILD, NEVER, TEST, NEVER):
        one.keep(rule)
    assert set(one.rules()) == {TEST, BUILD, NEVER}
    assert len(one.rules()) == 3
    assert set(Answers(state, str(tmp_path)).rules()) == {TEST, BUILD}


def test_it_is_the_real_folder_that_counts(state: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("a")
    Answers(state, str(tmp_path / "a")).keep(TEST)
    assert Answers(state, str(tmp_path / "link")).rules() == (TEST,)
    assert Answers(state, str(tmp_path / "b")).rules() == ()


def test_only_the_user_can_read_them(state: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Answers(state, str(tmp_path)).keep(TEST)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (state, *state.iterdir())}
    assert modes.pop("permissions") == 0o700
    assert set(modes.values()) == {0o600}
    assert not (tmp_path / ".responses-acp.toml").exists()


def test_another_session_s_answer_counts_at_once(state: Path, tmp_path: Path) -> None:
    one, other = Answers(state, str(tmp_path)), Answers(state, str(tmp_path))
    assert one.rules() == ()
    other.keep(TEST)
    assert one.rules() == (TEST,)
    assert one.forget("shell npm test") == 1
    assert other.rules() == ()


def test_sessions_that_answer_at_the_same_time_lose_nothing(state: Path, tmp_path: Path) -> None:
    def keep(number: int) -> None:
        own = Answers(state, str(tmp_path))
        for n in range(10):
            own.keep(parsed("allow", f"shell npm run x{number}-{n}", FOR_PROJECT))

    threads = [Thread(target=keep, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Answers(state, str(tmp_path)).rules()) == 40


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("shell npm test", {TEST}),
        ("allow shell npm test", {TEST}),
        ("deny shell npm test", set[Rule]()),
        ("shell npm", set[Rule]()),
        ("shell rm -rf 'a b'\nmake", {BUILD}),
        ("deny shell npm publish", {NEVER}),
        ("", {TEST, BUILD, NEVER}),
    ],
)
def test_answers_are_taken_back_by_what_they_read(
    state: Path, tmp_path: Path, text: str, gone: set[Rule]
) -> None:
    one = Answers(state, str(tmp_path))
    for rule in (TEST, BUILD, NEVER):
        one.keep(rule)
    assert one.forget(text) == len(gone)
    assert set(one.rules()) == {TEST, BUILD, NEVER} - gone


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "{}",
        '{"root": "/elsewhere", "answers": [{"sort": "allow", "rule": "shell"}]}',
        '{"root": ROOT, "answers": {}}',
        '{"root": ROOT, "answers": [1, null, {}, {"sort": "allow"}, {"sort": 1, "rule": 2}]}',
        '{"root": ROOT, "answers": [{"sort": "allow", "rule": "write x"}, {"sort": "allow", '
        '"exactly": "shell"}]}',
        *(
            f'{{"root": ROOT, "answers": [{{{entry}}}]}}'
            for entry in (
                '"sort": "ask", "rule": "shell ls"',
                '"sort": "maybe", "rule": "shell ls"',
                '"sort": ["deny"], "rule": "shell ls"',
                '"rule": "shell ls"',
                '"sort": "allow", "rule": "shell ls", "until": "tomorrow"',
                '"sort": "allow", "rule": ["shell"]',
                '"sort": "allow", "rule": "shell ls", "exactly": "shell", "of": "ls"',
                '"sort": "allow", "exactly": ["shell"], "of": "ls"',
                '"sort": "allow", "exactly": "shell", "of": 5',
                '"sort": "allow", "exactly": null, "of": null',
                '"sort": "allow", "exactly": "shell x", "of": "ls"',
            )
        ),
    ],
)
def test_a_file_that_holds_no_answers_holds_none(state: Path, tmp_path: Path, text: str) -> None:
    one = Answers(state, str(tmp_path))
    one.keep(TEST)
    root = json.dumps(os.path.realpath(tmp_path))
    stored(state).write_text(text.replace("ROOT", root), encoding="utf-8")
    assert one.rules() == ()
    one.keep(BUILD)
    assert Answers(state, str(tmp_path)).rules() == (BUILD,)


def test_a_file_that_others_could_have_written_is_not_believed(state: Path, tmp_path: Path) -> None:
    one = Answers(state, str(tmp_path))
    one.keep(TEST)
    file = stored(state)
    file.chmod(0o620)
    assert one.rules() == ()
    file.chmod(0o600)
    assert one.rules() == (TEST,)
    file.rename(state / "real")
    file.symlink_to("real")
    assert one.rules() == ()


def test_what_another_version_wrote_stays_in_the_file(state: Path, tmp_path: Path) -> None:
    one = Answers(state, str(tmp_path))
    one.keep(TEST)
    strange = [7, {"sort": "ask", "rule": "shell rm"}]
    told = json.loads(stored(state).read_text("utf-8"))
    denied = {"sort": "deny", "rule": "shell npm publish", "only": "main"}
    told["answers"] += [*strange, denied]
    stored(state).write_text(json.dumps(told), encoding="utf-8")
    assert one.rules() == (TEST, replace(NEVER, source=FOR_PROJECT))
    one.keep(BUILD)
    assert json.loads(stored(state).read_text("utf-8"))["answers"][:2] == strange
    assert one.forget("") == 3
    assert json.loads(stored(state).read_text("utf-8"))["answers"] == strange


def test_where_nothing_can_be_stored_the_answer_holds_for_the_session(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    for folder in (None, tmp_path / "state"):
        one = Answers(folder, str(tmp_path))
        assert not one.keep(TEST)
        assert one.rules() == (replace(TEST, source=FOR_SESSION),)
        assert one.forget("") == 1


def test_nobody_waits_for_ever_for_a_process_that_was_stopped(state: Path, tmp_path: Path) -> None:
    one = Answers(state, str(tmp_path))
    assert one.keep(TEST)
    (lock,) = state.glob("*.lock")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not one.keep(BUILD)
    assert one.rules() == (replace(BUILD, source=FOR_SESSION), TEST)
    assert one.keep(BUILD)
