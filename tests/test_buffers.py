"""Files of which an editor may hold another text than the disk."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skipped_time import BACKEND, no_waiting, skipped
from tests.workspace import Workspace
from tools.base import FileTooLarge, StaleFile
from tools.buffers import MOST_BYTES, PATIENCE, BufferedFiles, Form
from tools.local import LocalFiles
from tools.looks import Looks
from tools.splice import BOM

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


READING_FIRST = 'Error: edit requires reading "~/a" first'
UNSAVED = "unsaved text of the editor; commands see what is on disk"
EDITED = "The file ~/a has been updated successfully."
IN_THE_EDITOR = " It is unsaved in the editor; commands see what is on disk."
FORMATTED = " The editor changed the text once more, as formatters do: read it before you go on."
STALE = 'Error: cannot edit "~/a": file changed since it was read'
NOW = "; read it again, these lines are other now:"
NOT_TAKEN = (
    'Error: cannot edit "~/a": the editor has unsaved changes of it and did not take the new text'
)


def as_it_is(text: str) -> str | None:
    return text


def forget(_text: str) -> str | None:
    return None


@dataclass
class FakeEditor:
    """Holds texts, and keeps what it is given as `keep` says."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[str] = field(default_factory=list[str])
    takes: bool = True
    keep: Callable[[str], str | None] = as_it_is
    """What it makes of a text that it takes; None: it forgets it."""
    saves: bool = False
    hangs: bool = False
    """It answers nothing."""
    deaf: bool = False
    """It answers no request to write."""

    async def buffer(self, path: str) -> str | None:
        self.asked.append(path)
        if self.hangs:
            await anyio.sleep_forever()
        return self.texts.get(path)

    async def set_buffer(self, path: str, text: str) -> bool:
        if self.deaf:
            await anyio.sleep_forever()
        if self.takes and (kept := self.keep(text)) is not None:
            self.texts[path] = kept
            if self.saves:
                await anyio.Path(path).write_text(kept, encoding="utf-8", newline="")
        return self.takes


@dataclass
class Desk:
    """A workspace in which the file `a` is on disk, and open in an editor."""

    editor: FakeEditor
    looks: Looks
    at: Workspace

    @property
    def path(self) -> Path:
        return self.at.root / "a"

    def types(self, text: str | None) -> None:
        """The person makes this the editor's text; None: the editor knows nothing of the file."""
        if text is None:
            self.editor.texts.pop(str(self.path), None)
        else:
            self.editor.texts[str(self.path)] = text

    @property
    def disk(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None

    @property
    def held(self) -> str:
        return self.editor.texts[str(self.path)]

    async def lines(self) -> str:
        """What a read shows, without the envelope."""
        said = await self.at.said("read", "a")
        return said.partition("<content>\n")[2].removesuffix("\n</content>")

    async def edit(self, old: str, new: str) -> str:
        return await self.at.said("edit", "a", old_string=old, new_string=new)


def desk(tmp_path: Path, disk: bytes | None, held: str | None = None) -> Desk:
    editor, looks = FakeEditor(), Looks()
    root = str(tmp_path.resolve())
    files = BufferedFiles(LocalFiles(), editor, looks, [(root, root)])
    mine = Desk(editor, looks, Workspace(tmp_path, files))
    if disk is not None:
        mine.at.put("a", disk)
    mine.types(held)
    return mine


@pytest.mark.parametrize(
    ("disk", "held", "shown"),
    [
        (b"one\n", "two\n", f"1: two\n\n(End of file - total 1 lines)\n({UNSAVED})"),
        (b"one\n", "one\n", "1: one\n\n(End of file - total 1 lines)"),
        (b"one\n", "one", "1: one\n\n(End of file - total 1 lines)"),
        (b"one\n", None, "1: one\n\n(End of file - total 1 lines)"),
        (b"one\n", "", "1: one\n\n(End of file - total 1 lines)"),
        (b"one\n", "a\0b", "1: one\n\n(End of file - total 1 lines)"),
        (b"one\n", "a\ud800b", "1: one\n\n(End of file - total 1 lines)"),
        (
            b"a\r\nb\r\n",
            "a\nb\n",
            "1: a\n2: b\n\n(End of file - total 2 lines)\n(CRLF line endings)",
        ),
        (BOM + b"one\n", "one\n", "1: one\n\n(End of file - total 1 lines)\n(BOM)"),
        (
            BOM + b"a\r\nb\r\n",
            "a\nc",
            f"1: a\n2: c\n\n(End of file - total 2 lines)\n(CRLF line endings, BOM, {UNSAVED})",
        ),
        (
            b"caf\xe9\n",
            "caf\ufffd, typed\n",
            "1: caf\\xe9\n\n(End of file - total 1 lines)\n(1 undecodable bytes shown as \\xNN)",
        ),
    ],
)
async def test_unsaved_text_is_what_is_read(
    tmp_path: Path, disk: bytes, held: str | None, shown: str
) -> None:
    assert await desk(tmp_path, disk, held).lines() == shown


async def test_whether_a_file_exists_is_for_the_disk_to_say(tmp_path: Path) -> None:
    mine = desk(tmp_path, None, "ghost\n")
    assert await mine.at.said("read", "a") == 'Error: cannot read "~/a": not found'
    assert (await mine.at.call("write", "a", content="new\n")).ok
    assert mine.path.read_bytes() == b"new\n"
    assert mine.held == "ghost\n"
    assert mine.editor.asked == []


async def test_the_editor_is_asked_only_about_text_in_its_folders(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"x" * (MOST_BYTES + 1), "other")
    assert "x" in await mine.lines()
    outside = anyio.Path(tmp_path.parent, f"{tmp_path.name}-outside")
    await outside.write_bytes(b"1\n")
    assert "1: 1" in await mine.at.said("read", str(outside))
    mine.at.put("bytes", b"\xff\n")
    mine.at.put("binary", b"\0")
    await mine.at.said("read", "bytes")
    await mine.at.said("read", "binary")
    assert mine.editor.asked == []


async def test_a_path_is_named_as_the_editor_names_its_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real, named = str((tmp_path / "real").resolve()), str(tmp_path / "link")
    editor = FakeEditor({f"{named}/a": "typed\n"})
    files = BufferedFiles(LocalFiles(), editor, Looks(), [("/", "/"), (real, named)])
    await anyio.Path(real, "a").write_text("saved\n", encoding="utf-8")
    found = await files.read(await files.resolve(f"{named}/a"), 99)
    assert found is not None
    assert found.data == b"typed\n"
    assert editor.asked == [f"{named}/a"]


async def test_an_edit_of_unsaved_text_is_made_in_the_editor(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"one\n", "one\ntyped\n")
    assert await mine.edit("typed", "edited") == READING_FIRST
    await mine.lines()
    assert await mine.edit("typed", "edited") == EDITED + IN_THE_EDITOR
    assert (mine.held, mine.path.read_bytes()) == ("one\nedited\n", b"one\n")
    assert await mine.edit("edited", "again") == EDITED + IN_THE_EDITOR
    mine.path.write_text(mine.held, encoding="utf-8")
    assert await mine.edit("again", "saved") == EDITED
    assert mine.path.read_bytes() == b"one\nsaved\n"
    assert mine.held == "one\nagain\n"


async def test_what_the_disk_has_is_edited_on_disk(tmp_path: Path) -> None:
    mine = desk(tmp_path, BOM + b"one\r\ntwo", "one\ntwo")
    await mine.lines()
    assert await mine.edit("two", "three") == EDITED
    assert mine.path.read_bytes() == BOM + b"one\r\nthree"
    assert mine.held == "one\ntwo"
    written = await mine.at.said("write", "a", content="whole\n")
    assert written == (
        "<path>~/a</path>\n<type>file</type>\nUpdated file (1 lines, CRLF line endings kept, "
        "BOM kept)"
    )


async def test_unsaved_text_can_be_overwritten_once_it_was_shown(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"one\r\n", "one\ntyped\n")
    await mine.lines()
    text = await mine.at.said("write", "a", content="x\ny\n")
    assert text.endswith(f"Updated file (2 lines, CRLF line endings kept){IN_THE_EDITOR}".strip())
    assert (mine.held, mine.path.read_bytes()) == ("x\ny\n", b"one\r\n")


def refuse_texts(mine: Desk) -> None:
    mine.editor.takes = False


def forget_texts(mine: Desk) -> None:
    mine.editor.keep = forget


CHANGES: list[tuple[Callable[[Desk], object], str]] = [
    (lambda mine: mine.types("typed more\n"), f"{STALE}{NOW}\n1: typed more"),
    (lambda mine: mine.types("one\n"), f"{STALE}{NOW}\n1: one"),
    (lambda mine: mine.path.unlink(), 'Error: cannot edit "~/a": not found'),
    (
        lambda mine: mine.path.write_bytes(b"x" * (MOST_BYTES + 1)),
        f"{STALE}{NOW}\n1: {'x' * 200}…",
    ),
    (refuse_texts, NOT_TAKEN),
    (forget_texts, NOT_TAKEN),
]


@pytest.mark.parametrize(("change", "refusal"), CHANGES)
async def test_an_edit_of_unsaved_text_that_cannot_be_made_says_why(
    tmp_path: Path, change: Callable[[Desk], object], refusal: str
) -> None:
    mine = desk(tmp_path, b"one\n", "typed\n")
    await mine.lines()
    change(mine)
    disk, held = mine.disk, mine.held
    assert await mine.edit("typed", "edited") == refusal
    assert (mine.disk, mine.held) == (disk, held)


@pytest.mark.parametrize("change", ["save", "type", "grow"])
async def test_what_changes_between_the_question_and_the_deed_stops_the_deed(
    tmp_path: Path, change: str
) -> None:
    mine = desk(tmp_path, b"one\n", "one\n" if change == "type" else "typed\n")
    before = await mine.at.files.read(str(mine.path), 99)
    assert before is not None
    match change:
        case "save":
            mine.path.write_bytes(b"typed more\n")
            mine.types("typed more\n")
        case "grow":
            mine.path.write_bytes(b"x" * (MOST_BYTES + 1))
        case _:
            mine.types("one\nand typed\n")
    with pytest.raises(StaleFile):
        await mine.at.files.replace(str(mine.path), b"new\n", before.stamp)


@pytest.mark.parametrize("saves", [False, True])
async def test_a_text_that_the_editor_formats_has_to_be_read_again(
    tmp_path: Path, saves: bool
) -> None:
    mine = desk(tmp_path, b"one\n", "typed = 1\n")
    mine.editor.keep, mine.editor.saves = str.upper, saves
    await mine.lines()
    assert await mine.edit("typed", "edited") == EDITED + FORMATTED
    assert mine.held == "EDITED = 1\n"
    assert await mine.edit("EDITED", "x") == f"{STALE}{NOW}\n1: EDITED = 1"
    await mine.lines()
    mine.types("Typed\n")
    await mine.lines()
    assert (await mine.at.said("write", "a", content="whole\n")).endswith(FORMATTED)
    assert await mine.edit("WHOLE", "x") == f"{STALE}{NOW}\n1: WHOLE"
    await mine.lines()
    mine.editor.keep = as_it_is
    assert (await mine.edit("WHOLE", "x")).startswith(EDITED)


async def test_an_editor_that_saves_what_it_takes_leaves_nothing_unsaved(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"one\n", "typed\n")
    mine.editor.saves = True
    await mine.lines()
    assert await mine.edit("typed", "edited") == EDITED
    assert mine.path.read_bytes() == b"edited\n"
    assert await mine.edit("edited", "again") == EDITED


async def test_a_buffer_that_our_own_edit_has_overtaken_is_passed_over(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"one\n", "one\n")
    await mine.lines()
    await mine.edit("one", "two")
    assert mine.held == "one\n"
    assert "1: two" in await mine.lines()
    mine.types("typed on what was there before\n")
    assert "1: two" in await mine.lines()
    mine.types("two\n")
    await mine.lines()
    mine.types("two\nand more\n")
    assert UNSAVED in await mine.lines()


async def test_a_buffer_that_holds_our_own_edit_is_no_unsaved_work(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"one\n", "one\n")
    await mine.lines()
    await mine.edit("one", "two")
    mine.types("two\n")
    mine.path.write_bytes(b"formatted\n")
    assert "1: formatted" in await mine.lines()


async def test_a_new_file_is_newer_than_what_the_editor_holds(tmp_path: Path) -> None:
    mine = desk(tmp_path, None, "old text of a removed file\n")
    await mine.at.said("write", "a", content="new\n")
    assert "1: new" in await mine.lines()


async def test_a_buffer_that_a_command_has_overtaken_is_passed_over(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"one\n", "one\n")
    with mine.looks.command():
        mine.path.write_bytes(b"by a command\n")
    assert "by a command" in await mine.lines()
    future = 10**10
    os.utime(mine.path, (future, future))
    assert "1: one" in await mine.lines(), "the first look: someone else wrote"
    mine.types("by a command\n")
    await mine.lines()
    mine.types("typed\n")
    assert "1: typed" in await mine.lines()


async def test_while_a_command_still_runs_it_may_have_changed_a_file(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"by a command\n", "one\n")
    with mine.looks.command():
        mine.path.write_bytes(b"by a command\n")
        assert "by a command" in await mine.lines()


async def test_a_text_that_was_on_disk_before_is_not_unsaved_work(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"one\n", "one\n")
    await mine.lines()
    mine.path.write_bytes(b"checked out\n")
    assert "1: checked out" in await mine.lines()
    mine.types("one\ntyped\n")
    assert "2: typed" in await mine.lines()


async def test_an_editor_that_does_not_answer_is_waited_for_once(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"one\n", "typed\n")
    mine.editor.hangs = True
    with no_waiting():
        for _ in range(2):
            assert "1: one" in await mine.lines()
    assert round(skipped()) == PATIENCE
    assert mine.editor.asked == [str(mine.path)]
    assert await mine.edit("one", "two") == EDITED


async def test_an_edit_that_the_editor_does_not_answer_is_in_doubt(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"one\n", "typed\n")
    found = await mine.at.files.read(str(mine.path), 99)
    assert found is not None
    mine.editor.deaf = True
    with no_waiting(), pytest.raises(OSError, match="did not say in time whether it took"):
        await mine.at.files.replace(str(mine.path), b"new\n", found.stamp)
    assert mine.path.read_bytes() == b"one\n"


async def test_everything_else_is_the_disks(tmp_path: Path) -> None:
    mine = desk(tmp_path, b"one\n", "typed\n")
    assert "a" in await mine.at.said("grep", "one")
    found = await LocalFiles().read(str(mine.path), 99)
    assert found is not None
    with pytest.raises(FileTooLarge):
        await mine.at.files.read(str(mine.path), 1)
    path = str(mine.path)
    assert await mine.at.files.versions([path, "/no"]) == {path: found.stamp.version, "/no": None}
    await mine.at.files.remove(path, found.stamp)
    assert not mine.path.exists()


_TEXTS = st.text(st.sampled_from("ab\n\r\u00e9\ufeff"), max_size=8).map(str.encode)


@given(_TEXTS, _TEXTS)
def test_what_is_given_back_to_the_editor_is_what_came_from_it(text: bytes, disk: bytes) -> None:
    form = Form.of(text, disk)
    assert form.to_editor(form.to_disk(text)) == text
