"""The command `sessions`, on a folder of stored sessions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.cli import main
from bridge.core.records import (
    Announced,
    Cost,
    Metered,
    Opened,
    Prompted,
    Record,
    Responded,
    Returned,
    SaidText,
    Titled,
    Told,
)
from bridge.store import Store
from tools.base import Card, Change, Console

KEY = "sk-proj-abcdefghijklmnop1234"


def conversation(session: str, title: str) -> list[Record]:
    edit = Announced("e", "e", "edit", '{"file_path":"a"}', Card("Edit a", "edit"))
    run = Announced("s", "s", "shell", '{"command":"env"}', Card("env", "execute"))
    image = {"type": "image", "mimeType": "image/png", "data": "", "uri": "file:///w/i.png"}
    nameless = {"type": "image", "mimeType": "image/png", "data": ""}
    seen = (SaidText("thought", "t1", "Hm.\nYes."), SaidText("message", "m1", "I "), edit, run)
    return [
        Opened(session, "/w", "2026-01-02T03:04:05.000Z", "default", "gpt", None, "ask"),
        Titled(title, "t"),
        Prompted(1, ({"type": "text", "text": f"Mend a with {KEY}"}, image, nameless), (), "t"),
        Responded(1, "p/m", seen, (), 90, Cost(0.5, "USD"), Metered(80, 10, 40, "Nebius", 9, 9)),
        Returned("e", "e", False, "ok", True, (Change("/w/a", "old\n", "new\n"),)),
        Returned("s", "s", False, f"API_KEY={KEY}", False, (Console(f"API_KEY={KEY}"),)),
        Told("n1", "Done."),
    ]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "responses-acp" / "sessions"
    store = Store(folder)
    for number, name in enumerate(("aaaa-1", "aaaa-2", "bbbb-1")):
        first, *rest = conversation(name, f"Title {name}")
        assert isinstance(first, Opened)
        journal = store.create(first)
        journal.start()
        for record in rest:
            journal.append(record)
        journal.close()
        os.utime(folder / f"{name}.jsonl", ns=(0, number * 10**9))
    return store


def out(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> str:
    assert main(["sessions", *argv]) == code
    shown = capsys.readouterr()
    assert bool(shown.err) == bool(code)
    return shown.err if code else shown.out


def test_the_list_is_newest_first(capsys: pytest.CaptureFixture[str]) -> None:
    lines = out(capsys, "list").splitlines()
    assert lines[:2] == ["bbbb-1  1970-01-01T00:00Z  Title bbbb-1", "    /w"]
    assert [line.split()[0] for line in lines[::2]] == ["bbbb-1", "aaaa-2", "aaaa-1"]
    assert out(capsys, "list", "--cwd", "/w") == "\n".join([*lines, ""])
    assert out(capsys, "list", "--cwd", "/elsewhere") == ""


def test_a_conversation_is_shown_as_it_looked(capsys: pytest.CaptureFixture[str]) -> None:
    shown = out(capsys, "show", "bbbb")
    order = [f"> Mend a with {KEY}", "thinking: Hm.", "I ", "● Edit a", "● env"]
    order += ["-old", "+new", "✓ completed: Edit a", "✗ failed: env", "Done."]
    places = [shown.index(text) for text in order]
    assert places == sorted(places)
    assert shown.splitlines()[-4:] == [
        "Tokens: 1 answer: 80 tokens in (40 from the cache, 50 %), 10 out",
        "Cost: 0.50 USD",
        "Last answer: 80 tokens in (40 from the cache, 50 %), 10 out; 0.50 USD; "
        "began with 100 % of the request before; served by Nebius",
        "Requests kept: 100 % of the bytes of each request began the next one; "
        "1 of 1 went on from the whole one before",
    ]


def test_markdown_has_everything_but_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "export", "aaaa-1")
    assert KEY not in text
    order = ["# Title aaaa-1", "- model: gpt", "## You", "Mend a with [secret removed]"]
    order += ["[file:///w/i.png]", "[image]", "> Hm.\n> Yes.", "### Edit a (completed)", "```diff"]
    order += [
        "-old\n+new",
        "### env (failed)",
        "```console\nAPI_KEY=[secret removed]\n```",
        "Done.",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_json_is_data(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    assert out(capsys, "export", "aaaa-1", "--format", "json", "--output", str(file)) == ""
    text = file.read_text(encoding="utf-8")
    assert KEY not in text
    data = json.loads(text)
    assert (data["session"], data["title"], data["folder"]) == ("aaaa-1", "Title aaaa-1", "/w")
    roles = ["user", "thought", "assistant", "tool", "tool", "assistant"]
    assert [entry["role"] for entry in data["entries"]] == roles
    assert data["entries"][3]["status"] == "completed"


def test_what_is_deleted_is_gone(capsys: pytest.CaptureFixture[str], store: Store) -> None:
    assert out(capsys, "delete", "aaaa-1", "bbbb") == "deleted aaaa-1\ndeleted bbbb-1\n"
    assert [one.label.session for one in store.summaries()] == ["aaaa-2"]


def test_a_session_that_is_too_damaged_to_be_listed_can_be_deleted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "responses-acp" / "sessions"
    (folder / "aaaa-1.jsonl").write_text("damaged\n", encoding="utf-8")
    (folder / "aaaa-1.label").unlink()
    assert "aaaa-1" not in out(capsys, "list")
    assert out(capsys, "delete", "aaaa-1") == "deleted aaaa-1\n"
    assert [one.name for one in folder.iterdir() if one.name.startswith("aaaa-1")] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_does_not_take_the_output_is_told_of_in_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "bridge", "sessions", "show", "aaaa-1"],
            check=False,
            env={"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(tmp_path)},
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert ended.returncode == 1
    assert ended.stderr == b"responses-acp sessions: No space left on device\n"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("show", "cccc"), '"cccc" is no session; responses-acp sessions list shows them all'),
        (("show", "aaaa"), "is the beginning of several, or too short"),
        (("delete", "bbb"), "is the beginning of several, or too short"),
        (("export", "aaaa-1", "--output", "/no/such/file"), "/no/such/file: No such file"),
    ],
)
def test_what_cannot_be_done_is_said(
    argv: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in out(capsys, *argv, code=1)


def test_a_session_that_is_open_is_shown_but_not_deleted(
    capsys: pytest.CaptureFixture[str], store: Store
) -> None:
    stored = store.load("aaaa-1")
    assert "Done." in out(capsys, "show", "aaaa-1")
    assert "still being closed" in out(capsys, "delete", "aaaa-1", code=1)
    stored.journal.close()


def test_a_reader_that_has_seen_enough_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_text: str) -> None:
        raise BrokenPipeError

    kept = os.dup(1)
    monkeypatch.setattr("bridge.archive.write", closed)
    try:
        assert main(["sessions", "list"]) == 1
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@pytest.mark.parametrize("argv", [[], ["burn"], ["show"], ["export", "a", "--format", "pdf"]])
def test_a_wrong_command_line_is_a_usage_error(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", *argv]) == 2
    assert capsys.readouterr().err.endswith("see responses-acp --help\n")
