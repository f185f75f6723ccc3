"""Sessions on disk: found, loaded, locked, and never trusted blindly."""

import errno
import json
import logging
import os
import resource
import stat
from pathlib import Path

import pytest

from bridge.core.records import (
    Announced,
    GoalChanged,
    Noted,
    Opened,
    Prompted,
    Record,
    Responded,
    Returned,
    SaidText,
    SawFile,
    Switched,
    Titled,
    Told,
    encode,
)
from bridge.core.secrets import HIDDEN, loaded
from bridge.errors import NOT_FOUND, BridgeError, EditorError
from bridge.label import Label
from bridge.store import PAGE, Store
from tools.base import Card, Change, Console, Place, Text


def opened(session: str, cwd: str = "/w") -> Opened:
    return Opened(session, cwd, "t", "default", "m", None, "ask")


def stored(store: Store, session: str, cwd: str = "/w", title: str | None = None) -> None:
    journal = store.create(opened(session, cwd))
    journal.start()
    journal.append(Prompted(1, (), (), "t"))
    if title is not None:
        journal.append(Titled(title, "t"))
    journal.close()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_a_session_comes_back_with_all_its_records(tmp_path: Path) -> None:
    store = Store(tmp_path / "sessions")
    journal = store.create(opened("s1"))
    journal.append(Noted("before the first prompt"))
    assert not (tmp_path / "sessions").exists()
    journal.start()
    journal.start()
    journal.append(Noted("after"))
    journal.close()
    again = store.load("s1")
    assert again.opened == opened("s1")
    assert list(again.records()) == [opened("s1"), Noted("before the first prompt"), Noted("after")]
    again.journal.append(Noted("more"))
    assert list(again.records())[-1] == Noted("more")
    again.journal.close()
    assert list(store.read("s1"))[-1] == Noted("more")
    assert list(again.records()) == []


@pytest.mark.parametrize("mask", [0, 0o022, 0o377])
def test_nobody_else_can_read_a_session(tmp_path: Path, mask: int) -> None:
    folder = tmp_path / "sessions"
    if not mask:
        folder.mkdir(0o755)
    before = os.umask(mask)
    try:
        stored(Store(folder), "s1", title="Title")
        append(folder / "s1.jsonl", b"torn")
        Store(folder).load("s1").journal.close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes.pop("s1.jsonl") == 0o600
    assert set(modes) == {"s1.label", "s1.torn"}
    assert not any(mode & 0o077 for mode in modes.values())


@pytest.mark.parametrize("session", ["nope", "../s1", "/etc/passwd", "", "x" * 65, "a b"])
def test_an_id_that_is_none_is_not_found(tmp_path: Path, session: str) -> None:
    with pytest.raises(EditorError) as caught:
        Store(tmp_path).load(session)
    assert (caught.value.code, caught.value.data) == (NOT_FOUND, {"sessionId": session})


def test_a_link_in_the_place_of_a_session_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("{}\n")
    (tmp_path / "s1.jsonl").symlink_to(tmp_path / "real")
    for use in (Store(tmp_path).load, Store(tmp_path).delete):
        with pytest.raises(BridgeError, match="cannot be opened: Too many levels"):
            use("s1")
    assert (tmp_path / "real").exists()


@pytest.mark.parametrize(
    ("tail", "kept", "left"),
    [
        (b'{"type":"noted","text":"x', [], b""),
        (b'{"type":"noted","text":"x"}', [Noted("x")], b'{"type":"noted","text":"x"}\n'),
        (b"\x00\x00\x00\n", [], b"\x00\x00\x00\n"),
        (b'broken\n{"type":"noted","text":"x"}\n', [Noted("x")], None),
        (b'{"type":"noted","text":"\xe2\x80', [], b""),
    ],
)
def test_a_torn_or_damaged_line_costs_only_itself(
    tmp_path: Path, tail: bytes, kept: list[Record], left: bytes | None
) -> None:
    store, file = Store(tmp_path), tmp_path / "s1.jsonl"
    stored(store, "s1")
    whole = file.read_bytes()
    file.write_bytes(whole + tail)
    again = store.load("s1")
    assert list(again.records())[2:] == kept
    again.journal.append(Noted("next"))
    again.journal.close()
    if left is not None:
        assert file.read_bytes() == whole + left + encode(Noted("next"))
    assert list(store.read("s1"))[2:] == [*kept, Noted("next")]


@pytest.mark.parametrize(
    ("first", "complaint"),
    [
        (b'{"type":"noted","text":"x"}\n', "damaged"),
        (b"", "damaged"),
        (b'{"type":"opened"', "damaged"),
        (encode(opened("other")), "damaged"),
        (b'{"type":"opened","format":2,"id":"s1"}\n', "format 2, this program knows 1"),
        (encode(opened("s1")).replace(b'"format":1', b'"format":0'), "format 0"),
    ],
)
def test_a_file_without_a_good_first_line_is_refused(
    tmp_path: Path, first: bytes, complaint: str
) -> None:
    file = tmp_path / "s1.jsonl"
    file.write_bytes(first + encode(Noted("x")))
    store = Store(tmp_path)
    with pytest.raises(BridgeError, match=complaint):
        store.load("s1")
    with pytest.raises(BridgeError, match=complaint):
        list(store.read("s1"))
    assert file.read_bytes() == first + encode(Noted("x"))
    assert ids(store) == (["s1"] if "format 0" in complaint else [])
    assert store.delete("s1")
    assert list(tmp_path.iterdir()) == []


def test_the_log_names_a_line_that_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("responses-acp"), "propagate", True)
    caplog.set_level(logging.INFO, "responses-acp")
    store = Store(tmp_path)
    stored(store, "s1")
    append(tmp_path / "s1.jsonl", b"\n\x00\x00\n" + encode(Noted("later")))
    assert list(store.read("s1"))[-1] == Noted("later")
    assert set(caplog.messages) == {"session s1: line 4 is damaged or unknown, and left out"}


def test_a_session_that_is_open_cannot_be_opened_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    journal = store.create(opened("s1"))
    journal.start()
    for use in (store.load, store.delete):
        with pytest.raises(BridgeError, match="still being closed"):
            use("s1")
    label = json.loads((tmp_path / "s1.label").read_text())
    (tmp_path / "s1.label").write_text(json.dumps({**label, "pid": 77}))
    with pytest.raises(
        BridgeError, match=r"another process \(77\) of responses-acp: close it there"
    ):
        store.load("s1")
    (tmp_path / "s1.label").unlink()
    with pytest.raises(BridgeError, match="another process of responses-acp: close it there"):
        store.load("s1")
    journal.close()
    store.load("s1").journal.close()


def test_where_nothing_can_be_written_the_session_lives_on_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for store in (Store(None), Store(tmp_path / "file" / "sessions")):
        journal = store.create(opened("s1"))
        journal.start()
        journal.append(Noted("x"))
        journal.close()
        journal.start()
        assert "not kept" in (journal.complaint() or "")
        assert journal.complaint() is None
        journal.sync()
        assert store.list(None, None) == ([], None)
        with pytest.raises(BridgeError):
            store.load("s1")


def test_a_full_disk_is_said_in_a_sentence(tmp_path: Path) -> None:
    journal = Store(tmp_path).create(opened("s1"))
    journal.start()
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, next(iter(_descriptors(tmp_path / "s1.jsonl"))))
    os.close(full)
    with pytest.raises(BridgeError, match="No space left on device"):
        journal.append(Noted("x"))
    journal.close()


def test_a_torn_line_is_put_aside_however_long_it_is(tmp_path: Path) -> None:
    store, file = Store(tmp_path), tmp_path / "s1.jsonl"
    stored(store, "s1")
    whole, torn = file.read_bytes(), encode(Noted("x" * 200_000))[:-3]
    file.write_bytes(whole + torn)
    store.load("s1").journal.close()
    assert file.read_bytes() == whole
    assert (tmp_path / "s1.torn").read_bytes() == torn


def test_a_session_that_could_not_be_mended_or_deleted_is_free_for_another_try(
    tmp_path: Path,
) -> None:
    store, file = Store(tmp_path), tmp_path / "s1.jsonl"
    stored(store, "s1")
    file.write_bytes(file.read_bytes()[:-1])
    (tmp_path / "s1.files").write_text("not a folder", encoding="utf-8")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size, before[1]))
    try:
        for attempt in (store.load, store.load, store.delete):
            with pytest.raises(BridgeError, match=r"cannot be mended \(File too large"):
                attempt("s1")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    for _ in range(2):
        with pytest.raises(BridgeError, match="Not a directory"):
            store.delete("s1")
    assert _descriptors(file) == []
    assert [one.label.cwd for one in store.summaries()] == ["/w"]
    store.load("s1").journal.close()
    (tmp_path / "s1.files").unlink()
    assert store.delete("s1")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Store(tmp_path).create(opened("s1"))
    journal.start()
    journal.sync()

    def fails(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("bridge.journal._flush", fails)
    with pytest.raises(BridgeError, match=r"cannot be written \(Input/output error"):
        journal.sync()
    journal.close()


def test_a_session_that_could_not_be_written_leaves_no_file(tmp_path: Path) -> None:
    journal = Store(tmp_path).create(opened("s1"))
    journal.append(Noted("x" * 1000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        journal.start()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "File too large" in (journal.complaint() or "")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_deleted_while_it_was_opened_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, file = Store(tmp_path), tmp_path / "s1.jsonl"
    stored(store, "s1")

    def slow_lock(_descriptor: int, _how: int) -> None:
        file.unlink()

    monkeypatch.setattr("bridge.journal.fcntl.flock", slow_lock)
    with pytest.raises(EditorError, match="deleted"):
        store.load("s1")


def test_what_did_not_fit_leaves_no_half_line(tmp_path: Path) -> None:
    store, file = Store(tmp_path), tmp_path / "s1.jsonl"
    journal = store.create(opened("s1"))
    journal.start()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 10, before[1]))
    try:
        with pytest.raises(BridgeError, match="File too large"):
            journal.append(Noted("lost"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    journal.append(Noted("kept"))
    journal.close()
    assert list(store.read("s1"))[1:] == [Noted("kept")]


def _descriptors(file: Path) -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (numbers, not paths)
        try:
            if os.path.realpath(f"/proc/self/fd/{name}") == str(file.resolve()):
                found.append(int(name))
        except OSError:
            continue
    return found


# -- lists


def ids(store: Store, cwd: str | None = None) -> list[str]:
    return [one.label.session for one in store.list(cwd, None)[0]]


def test_the_list_is_newest_first_and_by_folder(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert ids(store) == []
    for number, cwd in enumerate(["/w", "/other", "/w"]):
        stored(store, f"s{number}", cwd, f"Title {number}")
        os.utime(tmp_path / f"s{number}.jsonl", ns=(0, number * 10**9))
    assert ids(store) == ["s2", "s1", "s0"]
    assert ids(store, "/w") == ["s2", "s0"]
    assert ids(store, "/nowhere") == []
    newest = store.list(None, None)[0][0]
    assert (newest.label.title, newest.updated_at) == ("Title 2", "1970-01-01T00:00:02.000Z")


def test_pages_are_complete_and_do_not_overlap(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(PAGE + 3):
        stored(store, f"s{number}")
        os.utime(tmp_path / f"s{number}.jsonl", ns=(0, (number // 2) * 10**9))
    page, cursor = store.list(None, None)
    assert cursor is not None
    rest, end = store.list(None, cursor)
    assert end is None
    assert len({one.label.session for one in (*page, *rest)}) == PAGE + 3 == len(page) + len(rest)


@pytest.mark.parametrize("cursor", ["", "x", "!!!", "YWJj", "MTI6"[:3], "é"])
def test_a_cursor_that_is_none_is_refused(tmp_path: Path, cursor: str) -> None:
    with pytest.raises(EditorError, match="cursor"):
        Store(tmp_path).list(None, cursor)


def test_what_is_no_session_is_not_listed(tmp_path: Path) -> None:
    stored(Store(tmp_path), "good")
    (tmp_path / "bad.jsonl").write_text("nothing\n")
    (tmp_path / "odd.jsonl").write_text(json.dumps({"type": "noted", "text": "x"}) + "\n")
    (tmp_path / "copy.jsonl").write_bytes((tmp_path / "good.jsonl").read_bytes())
    (tmp_path / "no id.jsonl").write_bytes((tmp_path / "good.jsonl").read_bytes())
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "missing")
    assert ids(Store(tmp_path)) == ["good"]


@pytest.mark.parametrize("label", [None, b"", b"{", b'{"session":"s2","cwd":"/x"}', b"[1]"])
def test_a_label_that_is_missing_or_damaged_is_made_again(
    tmp_path: Path, label: bytes | None
) -> None:
    stored(Store(tmp_path), "s1", "/w", "Title")
    file = tmp_path / "s1.label"
    if label is None:
        file.unlink()
    else:
        file.write_bytes(label)
    ((found,), _) = Store(tmp_path).list("/w", None)
    assert found.label == Label("s1", "/w", "Title")
    assert json.loads(file.read_bytes())["title"] == "Title"


def test_a_label_in_a_folder_that_cannot_be_written_is_found_in_memory(tmp_path: Path) -> None:
    stored(Store(tmp_path), "s1", "/w", "Title")
    (tmp_path / "s1.label").unlink()
    (tmp_path / "s1.label-new").mkdir()
    ((found,), _) = Store(tmp_path).list(None, None)
    assert found.label.title == "Title"


def test_a_list_reads_labels_and_no_sessions(tmp_path: Path) -> None:
    """1000 sessions of 100 kB each; what is read is counted by the kernel."""
    store = Store(tmp_path)
    for number in range(1000):
        stored(store, f"s{number}", title=f"Title {number}")
        with (tmp_path / f"s{number}.jsonl").open("ab") as file:
            file.truncate(100_000)
    before = _bytes_read()
    page, cursor = store.list(None, None)
    assert (len(page), cursor is not None) == (PAGE, True)
    assert _bytes_read() - before < PAGE * 1000
    before = _bytes_read()
    assert store.list("/nowhere", None) == ([], None)
    assert _bytes_read() - before < 1000 * 1000


def _bytes_read() -> int:
    file = Path("/proc/self/io")
    if not file.exists():
        pytest.skip("needs /proc/self/io")
    return int(file.read_text().split()[1])


# -- secrets


KEY = 'sk-"quoted"\\ключ-1234'


def test_no_secret_gets_into_any_field(tmp_path: Path) -> None:
    store = Store(tmp_path)
    journal = store.create(opened("s1", f"/w/{KEY}"))
    journal.hide(loaded([f"Bearer {KEY}", "none"]))
    nested = json.dumps({"command": f"echo {KEY}"})
    card = Card(KEY, "edit", (Place(KEY),), (Text(KEY), Console(KEY), Change(KEY, KEY, KEY)))
    seen = (SaidText("message", KEY, KEY), Announced(KEY, KEY, KEY, nested, card))
    item = {"type": KEY, KEY: KEY, "arguments": nested, "content": [{"text": f"none {KEY}"}]}
    records: list[Record] = [
        Prompted(1, (item,), (item,), KEY),
        Noted(f"none {nested}"),
        Responded(1, KEY, seen, (item,), 5),
        Returned(KEY, KEY, False, KEY, True, (Change(KEY, None, KEY),), KEY, item),
        Told("n1", KEY),
        Switched("model", KEY),
        Titled(KEY, KEY),
        SawFile(item),
        GoalChanged(KEY, "blocked", KEY),
    ]
    journal.start()
    for record in records:
        journal.append(record)
    journal.close()
    for file in tmp_path.iterdir():
        for form in (KEY, json.dumps(KEY)[1:-1], json.dumps(json.dumps(KEY)[1:-1])[1:-1]):
            assert form.encode() not in file.read_bytes(), file.name
    kept = list(store.read("s1"))
    assert [type(record) for record in kept] == [Opened, *map(type, records)]
    assert kept[2] == Noted("none " + json.dumps({"command": f"echo {HIDDEN}"}))
