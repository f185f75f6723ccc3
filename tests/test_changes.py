"""What a session changed, how it is taken back, and what became of calls a crash cut off."""

import resource
from pathlib import Path

import pytest

from bridge.copies import Copies
from bridge.core.changes import Changes, FileChange, OpenCall
from bridge.core.handshake import Capabilities
from bridge.core.history import INTERRUPTED
from bridge.core.records import (
    Announced,
    Changing,
    Noted,
    Prompted,
    Record,
    Responded,
    Returned,
    Undone,
)
from bridge.errors import BridgeError
from bridge.interrupted import interrupted
from bridge.session import Session
from bridge.store import Store
from bridge.undo import diff, undo
from tests.test_session import session
from tools.base import Bytes, Card, StaleFile
from tools.local import LocalFiles
from tools.seen import Stamp, digest

CALL = Announced("c1", "c1", "edit", "{}", Card("Edit"))


def prompted(number: int) -> Prompted:
    return Prompted(number, (), (), "t")


def changes(*records: Record) -> Changes:
    made = Changes()
    for record in records:
        made.add(record)
    return made


def test_changes_are_told_by_prompt_and_by_file() -> None:
    made = changes(
        prompted(1),
        Changing("c1", "/w/a", "a0", "a1"),
        Changing("c2", "/w/b", None, "b1"),
        prompted(2),
        Noted("x"),
        Changing("c3", "/w/a", "a1", "a2"),
        prompted(3),
    )
    assert made.last() == (2, [FileChange("/w/a", "a1", ("a2",))])
    everything = [FileChange("/w/a", "a0", ("a1", "a2")), FileChange("/w/b", None, ("b1",))]
    assert made.all() == everything
    made.add(Undone(2))
    assert made.last() == (
        1,
        [FileChange("/w/a", "a0", ("a1",)), FileChange("/w/b", None, ("b1",))],
    )
    made.add(Undone(1))
    made.add(Undone(7))
    assert (made.last(), made.all()) == (None, [])


def test_a_call_is_open_until_it_returned() -> None:
    custom = Announced("c2", "c2", "x", "", Card("x"))
    items = ({"type": "custom_tool_call", "call_id": "c2"}, {"type": "function_call"})
    about = Changing("c1", "/w/a", "a0", "a1")
    made = changes(Responded(1, "m", (CALL, custom), items), about)
    made.add(Changing("unknown", "/w/b", None, "b"))
    assert made.open_calls() == [
        OpenCall("c1", "c1", custom=False, change=about),
        OpenCall("c2", "c2", custom=True),
    ]
    made.add(Returned("c1", "c1", False, "", True))
    assert [call.card_id for call in made.open_calls()] == ["c2"]


@pytest.mark.parametrize(
    ("holds", "said"),
    [
        (b"new", "its change of {} was made."),
        (b"old", "its change of {} was not made."),
        (b"other", "{} holds something else by now, so read it first."),
        (None, "{} holds something else by now, so read it first."),
    ],
)
def test_the_end_of_a_call_that_was_cut_off_says_what_is_there(
    tmp_path: Path, holds: bytes | None, said: str
) -> None:
    file = tmp_path / "a"
    if holds is not None:
        file.write_bytes(holds)
    change = Changing("c1", str(file), digest(b"old"), digest(b"new"))
    found = interrupted(OpenCall("c1", "c1", custom=True, change=change))
    text = f"Error: the call was interrupted before it ended; {said.format(file)}"
    assert found == Returned("c1", "c1", True, text, ok=False)


def test_without_a_change_the_end_says_what_is_known(tmp_path: Path) -> None:
    assert interrupted(OpenCall("c1", "c1", custom=False)).text == INTERRUPTED
    change = Changing("c1", str(tmp_path), None, digest(b"new"))
    assert "was not made" in interrupted(OpenCall("c1", "c1", custom=False, change=change)).text


def test_copies_are_private_whole_and_without_secrets(tmp_path: Path) -> None:
    copies = Copies(tmp_path / "files", ("secret-12345",))
    for data in (b"old", b"old", b"has secret-12345 in it"):
        copies.keep(data)
    (kept,) = (tmp_path / "files").iterdir()
    modes = [path.stat().st_mode & 0o777 for path in (kept, tmp_path / "files")]
    assert modes == [0o600, 0o700]
    assert copies.find(digest(b"old")) == b"old"
    assert copies.find(digest(b"never")) is None
    kept.write_bytes(b"damaged")
    assert copies.find(digest(b"old")) is None
    copies.delete()
    copies.delete()
    assert list(tmp_path.iterdir()) == []
    nowhere = Copies(None)
    nowhere.keep(b"old")
    nowhere.delete()
    assert nowhere.find(digest(b"old")) is None


# -- undo and diff, beyond what undo-and-diff.jsonl shows


class Editor:
    """Takes what it is shown; is asked nothing."""

    def __init__(self) -> None:
        self.can = Capabilities()
        self.shown: list[object] = []

    def update(self, update: object) -> None:
        self.shown.append(update)


class Racing(LocalFiles):
    """Somebody else is always a moment faster, or the disk fails."""

    def __init__(self, fault: OSError) -> None:
        super().__init__()
        self.fault = fault

    async def replace(self, path: str, data: bytes, expected: Stamp) -> Stamp:
        raise self.fault


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("now", "copy", "fault", "said"),
    [
        (b"new", True, None, "Taken back: a."),
        (b"old", True, None, "Nothing was taken back."),
        (None, True, None, "a: it was deleted since"),
        (b"other", True, None, "a: it was changed since by others"),
        (b"new", False, None, "a: no copy of it was kept"),
        (b"new", True, StaleFile("x"), "a: it was changed in this moment"),
        (b"new", True, OSError(28, "No space left on device"), "a: it cannot be written (No space"),
        ("folder", True, None, "a: it cannot be read (a directory)"),
    ],
)
async def test_a_file_is_taken_back_only_if_it_is_ours(
    tmp_path: Path, now: bytes | str | None, copy: bool, fault: OSError | None, said: str
) -> None:
    one, editor = session(tmp_path), Editor()
    file = tmp_path / "a"
    one.record(prompted(1))
    if copy:
        one.journal.keep(b"old")
    one.record(Changing("c", str(file), digest(b"old"), digest(b"new")))
    if isinstance(now, bytes):
        file.write_bytes(now)
    elif now is not None:
        file.mkdir()
    files = LocalFiles() if fault is None else Racing(fault)
    text = await undo(one, editor, files, "files")  # pyright: ignore[reportArgumentType] (it is only shown updates)
    assert said in text
    taken = text.startswith("Taken back")
    assert (one.changes.last() is None) is taken
    if isinstance(now, bytes):
        assert file.read_bytes() == (b"old" if taken else now)
    shown = await diff(one, LocalFiles())
    assert ("changed no files" in shown) is (taken or now == b"old")
    one.close()


@pytest.mark.anyio
@pytest.mark.parametrize("holds", [b"old", b"new", b"other", None])
@pytest.mark.parametrize("recovers", [False, True])
async def test_an_end_that_cannot_be_written_down_is_what_a_load_finds(
    holds: bytes | None, recovers: bool, tmp_path: Path
) -> None:
    one, file = session(tmp_path), tmp_path / "file"
    one.record(prompted(1))
    made = {"type": "function_call", "call_id": "c1", "name": "edit", "arguments": "{}"}
    one.record(Responded(1, "p/a", (CALL,), (made,)))
    if holds is not None:
        file.write_bytes(holds)
        one.record(Changing("c1", str(file), digest(b"old"), digest(b"new")))
    shown: list[Returned] = []
    assert one.journal.path is not None
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (one.journal.path.stat().st_size, limits[1]))
    try:
        with pytest.raises(BridgeError, match="cannot be written"):
            one.conclude(Returned("c1", "c1", custom=False, text="done", ok=True), shown.append)
        with pytest.raises(BridgeError, match="cannot be written"):
            one.record(prompted(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    if recovers:
        one.record(prompted(2))
        file.write_bytes(b"changed since")
    said = one.history.input(one.dialect)
    one.close()
    stored = Store(tmp_path / "state").load("s1")
    again = Session(one.config, stored.opened, stored.journal)
    found = [record for record in again.restored(stored.records()) if isinstance(record, Returned)]
    assert (found, [end.ok for end in shown]) == (shown, [False])
    assert again.history.input(again.dialect) == said
    again.close()


@pytest.mark.anyio
async def test_a_deleted_file_can_be_seen_in_the_diff_and_a_long_one_is_cut(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.record(prompted(1))
    one.journal.keep(b"old\n" * 30_000)
    one.record(Changing("c", str(tmp_path / "a"), digest(b"old\n" * 30_000), digest(b"new")))
    text = await diff(one, LocalFiles())
    assert text.startswith("a: it was deleted since\n\n```diff\n--- a/a\n+++ b/a\n")
    assert text.endswith(" more characters]")
    one.close()


@pytest.mark.anyio
async def test_a_file_is_removed_only_with_the_bytes_it_is_known_by(tmp_path: Path) -> None:
    file, files = tmp_path / "a", LocalFiles()
    file.write_bytes(b"new")
    known = await files.read(str(file), 100)
    assert isinstance(known, Bytes)
    file.write_bytes(b"other")
    with pytest.raises(StaleFile):
        await files.remove(str(file), known.stamp)
    file.write_bytes(b"new")
    await files.remove(str(file), known.stamp)
    assert not file.exists()


def test_what_a_call_left_beside_its_file_is_removed_if_nothing_is_lost(tmp_path: Path) -> None:
    def beside(number: int) -> Path:
        return tmp_path / f".responses-acp-{number:016x}"

    for number, text in enumerate(("old", "new", "", "of somebody else")):
        beside(number).write_text(text)
    beside(4).symlink_to(tmp_path / "file")
    beside(5).mkdir()
    (tmp_path / ".responses-acp-mine").write_text("old")
    file = tmp_path / "file"
    file.write_text("new")
    change = Changing("c1", str(file), digest(b"old"), digest(b"new"))
    assert "was made" in interrupted(OpenCall("c1", "c1", custom=False, change=change)).text
    kept = {file, *map(beside, (3, 4, 5)), tmp_path / ".responses-acp-mine"}
    assert set(tmp_path.iterdir()) == kept
