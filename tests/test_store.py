"""Sessions on disk: found, loaded, locked, and never trusted blindly."""

import json
import os
import resource
import stat
from pathlib import Path

import pytest

from bridge.core.records import Noted, Opened, Prompted, Record, Titled
from bridge.errors import NOT_FOUND, BridgeError, EditorError
from bridge.store import PAGE, Store


def opened(session: str, cwd: str = "/w") -> Opened:
    return Opened(session, cwd, "t", "default", "m", None, "ask")


def stored(store: Store, session: str, cwd: str = "/w", title: str | None = None) -> None:
    journal = store.create(opened(session, cwd))
    journal.start()
    journal.append(Prompted(1, (), (), "t"))
    if title is not None:
        journal.append(Titled(title, "t"))
    journal.close()


def test_a_session_comes_back_with_all_its_records(tmp_path: Path) -> None:
    store = Store(tmp_path / "sessions")
    journal = store.create(opened("s1"))
    journal.append(Noted("before the first prompt"))
    assert not (tmp_path / "sessions").exists()
    journal.start()
    journal.start()
    journal.append(Noted("after"))
    journal.close()
    records, again = store.load("s1")
    assert records == [opened("s1"), Noted("before the first prompt"), Noted("after")]
    again.append(Noted("more"))
    again.close()
    assert store.load("s1")[0][-1] == Noted("more")


def test_nobody_else_can_read_a_session(tmp_path: Path) -> None:
    stored(Store(tmp_path / "sessions"), "s1")
    folder, file = tmp_path / "sessions", tmp_path / "sessions" / "s1.jsonl"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("session", ["nope", "../s1", "/etc/passwd", "", "x" * 65, "a b"])
def test_an_id_that_is_none_is_not_found(tmp_path: Path, session: str) -> None:
    with pytest.raises(EditorError) as caught:
        Store(tmp_path).load(session)
    assert (caught.value.code, caught.value.data) == (NOT_FOUND, {"sessionId": session})


def test_a_link_in_the_place_of_a_session_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("{}\n")
    (tmp_path / "s1.jsonl").symlink_to(tmp_path / "real")
    with pytest.raises(EditorError):
        Store(tmp_path).load("s1")


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
    records, journal = store.load("s1")
    journal.append(Noted("next"))
    journal.close()
    assert records[2:] == kept
    if left is not None:
        assert file.read_bytes() == whole + left + b'{"type":"noted","text":"next"}\n'
    assert store.load("s1")[0][2:] == [*kept, Noted("next")]


def test_a_file_without_a_good_first_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s1.jsonl").write_text('{"type":"noted","text":"x"}\n')
    with pytest.raises(BridgeError, match="damaged"):
        Store(tmp_path).load("s1")


def test_a_session_that_is_open_cannot_be_opened_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    journal = store.create(opened("s1"))
    journal.start()
    with pytest.raises(BridgeError, match="another process"):
        store.load("s1")
    journal.close()
    store.load("s1")[1].close()


def test_where_nothing_can_be_written_the_session_lives_on_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for store in (Store(None), Store(tmp_path / "file" / "sessions")):
        journal = store.create(opened("s1"))
        journal.start()
        journal.append(Noted("x"))
        journal.close()
        assert store.list(None, None) == ([], None)
        with pytest.raises(EditorError):
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
    records, again = store.load("s1")
    again.close()
    assert records[1:] == [Noted("kept")]


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


def ids(store: Store, cwd: str | None = None, cursor: str | None = None) -> list[str]:
    return [one.session for one in store.list(cwd, cursor)[0]]


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
    assert (newest.title, newest.updated_at) == ("Title 2", "1970-01-01T00:00:02.000Z")


def test_pages_are_complete_and_do_not_overlap(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(PAGE + 3):
        stored(store, f"s{number}")
        os.utime(tmp_path / f"s{number}.jsonl", ns=(0, (number // 2) * 10**9))
    page, cursor = store.list(None, None)
    assert cursor is not None
    rest, end = store.list(None, cursor)
    assert end is None
    assert len({one.session for one in (*page, *rest)}) == PAGE + 3 == len(page) + len(rest)


@pytest.mark.parametrize("cursor", ["", "x", "!!!", "YWJj", "MTI6"[:3], "é"])
def test_a_cursor_that_is_none_is_refused(tmp_path: Path, cursor: str) -> None:
    with pytest.raises(EditorError, match="cursor"):
        Store(tmp_path).list(None, cursor)


def test_what_is_no_session_is_not_listed(tmp_path: Path) -> None:
    stored(Store(tmp_path), "good")
    (tmp_path / "bad.jsonl").write_text("nothing\n")
    (tmp_path / "odd.jsonl").write_text(json.dumps({"type": "noted", "text": "x"}) + "\n")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "missing")
    assert ids(Store(tmp_path)) == ["good"]
