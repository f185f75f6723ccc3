import json
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest

from tests.workspace import Workspace, change
from tools.base import Card, Change, Place, Prepared, Result
from tools.edit import EDIT
from tools.seen import Seen
from tools.splice import BOM, splice

pytestmark = pytest.mark.anyio

UPDATED = "The file ~/f has been updated successfully."
ALL = "The file ~/f has been updated. All occurrences were successfully replaced."
UNREAD = 'Error: edit requires reading "~/f" first'
STALE = 'Error: cannot edit "~/f": file changed since it was read'
NOW = "; read it again, these lines are other now:"


async def read_file(tmp_path: Path, data: bytes) -> Workspace:
    """A workspace whose file f was read."""
    workspace = Workspace(tmp_path)
    workspace.put("f", data)
    assert (await workspace.call("read", "f")).ok
    return workspace


def edit(old: str, new: str, **more: Any) -> dict[str, Any]:
    return {"old_string": old, "new_string": new, **more}


def test_the_card_shows_the_two_strings() -> None:
    bound = EDIT.bind({"file_path": "notes.txt", **edit("a", "b", replace_all=None)}, "/work")
    assert not isinstance(bound, Result)
    path = "/work/notes.txt"
    assert bound.card == Card("Edit notes.txt", "edit", (Place(path),), (Change(path, "a", "b"),))


# Whether an edit is made


async def test_a_file_that_was_not_read_is_not_edited(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    path = workspace.put("f", b"a\n")
    assert await workspace.said("edit", "f", **edit("a", "b")) == UNREAD
    assert path.read_bytes() == b"a\n"
    await workspace.call("read", "f")
    assert await workspace.said("edit", "f", **edit("a", "b")) == UPDATED
    assert path.read_bytes() == b"b\n"


async def test_a_file_that_is_not_there_must_be_read_first_too(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert await workspace.said("edit", "f", **edit("a", "b")) == UNREAD
    await workspace.call("read", "f")
    assert await workspace.said("edit", "f", **edit("a", "b")) == UNREAD


async def test_a_file_that_is_gone_since_is_not_found(tmp_path: Path) -> None:
    workspace = await read_file(tmp_path, b"a\n")
    (tmp_path / "f").unlink()
    assert (
        await workspace.said("edit", "f", **edit("a", "b")) == 'Error: cannot edit "~/f": not found'
    )


async def test_own_edits_and_writes_count_as_reads(tmp_path: Path) -> None:
    workspace = await read_file(tmp_path, b"1\n")
    assert await workspace.said("edit", "f", **edit("1", "2")) == UPDATED
    assert await workspace.said("edit", "f", **edit("2", "3")) == UPDATED
    await workspace.call("write", "g", content="1\n")
    assert (await workspace.call("edit", "g", **edit("1", "2"))).ok


async def test_another_name_of_the_path_is_the_same_file(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"a\n")
    (tmp_path / "link").symlink_to("f")
    await workspace.call("read", "./x/../link")
    assert await workspace.said("edit", str(workspace.root / "f"), **edit("a", "b")) == UPDATED


async def test_other_bytes_are_stale(tmp_path: Path) -> None:
    workspace = await read_file(tmp_path, b"a\n")
    workspace.put("f", b"a\nb\n")
    assert await workspace.said("edit", "f", **edit("a", "b")) == f"{STALE}{NOW}\n2: b"
    await workspace.call("read", "f")
    assert await workspace.said("edit", "f", **edit("a", "c")) == UPDATED


async def test_the_same_bytes_are_fresh_whatever_happened(tmp_path: Path) -> None:
    workspace = await read_file(tmp_path, b"a\n")
    path = tmp_path / "f"
    path.chmod(0o600)
    os.utime(path, (1, 1))
    path.rename(tmp_path / "away")
    path.write_bytes(b"a\n")
    assert await workspace.said("edit", "f", **edit("a", "b")) == UPDATED


async def test_a_window_is_enough_for_an_edit_anywhere(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"".join(b"line %d\n" % number for number in range(1, 1001)))
    await workspace.call("read", "f", offset=1, limit=5)
    assert await workspace.said("edit", "f", **edit("line 900\n", "nine\n")) == UPDATED


async def test_what_was_read_survives_the_process(tmp_path: Path) -> None:
    workspace = await read_file(tmp_path, b"a\n")
    later = Workspace(tmp_path, seen=Seen())
    for record in workspace.seen.changes():
        later.seen.restore(json.loads(json.dumps(record)))
    assert await later.said("edit", "f", **edit("a", "b")) == UPDATED
    assert await workspace.said("edit", "f", **edit("b", "c")) == f"{STALE}{NOW}\n1: b"
    workspace.put("f", b"c\n")
    after = Workspace(tmp_path, seen=Seen())
    for record in later.seen.changes():
        after.seen.restore(json.loads(json.dumps(record)))
    said = await after.said("edit", "f", **edit("b", "c"))
    assert said == f"{STALE}; which lines is not known, read it again"


async def test_own_changes_are_no_others(tmp_path: Path) -> None:
    workspace = await read_file(tmp_path, b"a\nb\n")
    await workspace.call("edit", "f", **edit("a", "A"))
    workspace.put("f", b"A\nB\n")
    assert await workspace.said("edit", "f", **edit("b", "c")) == f"{STALE}{NOW}\n2: B"
    await workspace.call("read", "f")
    await workspace.call("write", "f", content="x\n")
    workspace.put("f", b"x\ny")
    assert await workspace.said("edit", "f", **edit("b", "c")) == f"{STALE}{NOW}\n2: y"


async def test_lines_that_read_would_not_show_unasked_are_not_shown(tmp_path: Path) -> None:
    for name, barred in ((".env", False), ("f", True), ("../away", False)):
        workspace = Workspace(tmp_path / "ws")
        path = workspace.put(name, b"a\n")
        await workspace.call("read", name)
        path.write_bytes(b"b\n")
        workspace.barred = barred
        said = await workspace.said("edit", name, **edit("a", "c"))
        assert said.endswith("file changed since it was read; read it again")


async def test_a_notebook_that_changed_shows_its_lines(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    text = '{"cells": [{"cell_type": "raw", "source": "a"}],\n "metadata": {},\n'
    text += ' "nbformat": 4, "nbformat_minor": 5}\n'
    workspace.put("f.ipynb", text.encode())
    assert "<type>notebook</type>" in await workspace.said("read", "f.ipynb")
    workspace.put("f.ipynb", text.replace("5", "4").encode())
    said = await workspace.said("edit", "f.ipynb", **edit("4", "3"))
    assert said.endswith(f'{NOW}\n3:  "nbformat": 4, "nbformat_minor": 4}}')


@pytest.mark.parametrize(
    ("data", "arguments", "said"),
    [
        (b"a\n", edit("", "b"), "old_string must not be empty; use write to make a new file"),
        (b"", edit("", "b"), "old_string must not be empty; use write to make a new file"),
        (b"a\n", edit("a", "a"), "old_string and new_string must differ"),
        (
            b"a\r\nb",
            edit("a\r\nb", "a\nb"),
            "old_string and new_string must differ in more than line endings",
        ),
        (b"a\n", edit("b", "c"), 'old_string was not found in "~/f"'),
        (
            b"a\xc2\xa0b\n",
            edit("a b", "c"),
            'old_string was not found in "~/f"; line 1 has U+00A0 (NO-BREAK SPACE) '
            "where old_string has U+0020 (SPACE)",
        ),
        (
            BOM + b"one\r\ntwo\r\n",
            edit("one\r\nto", "c"),
            'old_string was not found in "~/f"; it begins like line 1, but then line 2 is "two"',
        ),
        (
            b"x\ny\nx\n",
            edit("x", "z"),
            'old_string matched 2 times in "~/f"; provide a more specific old_string or set '
            "replace_all to true (lines 1, 3)",
        ),
        (
            b"x\n" * 30,
            edit("x", "z", replace_all=False),
            'old_string matched 30 times in "~/f"; provide a more specific old_string or set '
            f"replace_all to true (lines {', '.join(map(str, range(1, 21)))}, \u2026)",
        ),
        (
            b"caf\xe9 a\n",
            edit("a\n", "\u00e9\n"),
            'cannot edit "~/f": the file is not UTF-8 and its encoding is unknown, so only ASCII '
            "can be put into it",
        ),
        (
            b"\xff\xfea\0\n\0",
            edit("a", "b"),
            'cannot edit "~/f": the file is UTF-16, which only read understands; change it with a '
            "command that converts it and back, such as iconv",
        ),
        (
            b"a\n",
            edit("a", "\ud800"),
            "new_string holds a NUL or half a surrogate pair, which is not text",
        ),
        (
            b"a\n",
            edit("\0", "b"),
            "old_string holds a NUL or half a surrogate pair, which is not text",
        ),
    ],
)
async def test_an_edit_that_cannot_be_made_changes_nothing(
    tmp_path: Path, data: bytes, arguments: dict[str, Any], said: str
) -> None:
    workspace = await read_file(tmp_path, data)
    assert await workspace.said("edit", "f", **arguments) == f"Error: {said}"
    assert (tmp_path / "f").read_bytes() == data
    assert workspace.names() == ["f"]


async def test_arguments_are_judged_before_the_file(tmp_path: Path) -> None:
    said = await Workspace(tmp_path).said("edit", "f", **edit("a", "a"))
    assert said == "Error: old_string and new_string must differ"


async def test_a_wrong_path_is_said(tmp_path: Path) -> None:
    assert (
        await Workspace(tmp_path).said("edit", "", **edit("a", "b")) == "Error: file_path is empty"
    )


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("folder", "not a regular file (a directory)"),
        ("fifo", "not a regular file (a FIFO)"),
        ("binary", "binary file"),
        ("large", "the file has 10485761 bytes, the most is 10485760; use a command instead"),
    ],
)
async def test_a_file_that_became_something_else_is_left_alone(
    tmp_path: Path, kind: str, said: str
) -> None:
    workspace = await read_file(tmp_path, b"a\n")
    path = tmp_path / "f"
    path.unlink()
    make = {
        "folder": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
        "binary": lambda: path.write_bytes(b"\0"),
        "large": lambda: path.write_bytes(b"a" * 10_485_761),
    }
    make[kind]()
    with anyio.fail_after(5):
        assert (
            await workspace.said("edit", "f", **edit("a", "b"))
            == f'Error: cannot edit "~/f": {said}'
        )


# What an edit does


@pytest.mark.parametrize(
    ("data", "arguments", "expected", "said"),
    [
        (b"a\r\nb\nc\r\n", edit("b", "B"), b"a\r\nB\nc\r\n", UPDATED),
        (BOM + b"a\n", edit("a", "b", replace_all=None), BOM + b"b\n", UPDATED),
        (b"caf\xe9 a\n", edit(" a", " b"), b"caf\xe9 b\n", UPDATED),
        (b"a\nlast", edit("last", "end"), b"a\nend", UPDATED),
        (b"x y x", edit("x", "z", replace_all=True), b"z y z", ALL),
        (b"x", edit("x", "z", replace_all=True), b"z", ALL),
        (b"a\nb\n", edit("a\nb\n", ""), b"", UPDATED),
    ],
)
async def test_an_edit_changes_the_match_and_shows_the_whole_file(
    tmp_path: Path, data: bytes, arguments: dict[str, Any], expected: bytes, said: str
) -> None:
    workspace = await read_file(tmp_path, data)
    prepared = await workspace.prepare("edit", "f", **arguments)
    assert isinstance(prepared, Prepared)
    assert (tmp_path / "f").read_bytes() == data
    result = await prepared.run()
    assert (result.ok, result.title) == (True, "Edit f")
    assert workspace.told(result) == said
    assert (tmp_path / "f").read_bytes() == expected
    old, new = (each.decode("utf-8", "surrogateescape") for each in (data, expected))
    assert change(result) == change(prepared) == Change(str(workspace.root / "f"), old, new)
    assert prepared.access.action == "edit"
    assert workspace.names() == ["f"]


async def test_replacements_in_lines_never_shown_are_listed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"x\n" + b"y\n" * 10 + b"x\n")
    await workspace.call("read", "f", limit=3)
    said = await workspace.said("edit", "f", **edit("x", "1\n2", replace_all=True))
    assert said == f"{ALL} Lines: 1, 13."


async def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"a\n")
    (tmp_path / "link").symlink_to("f")
    await workspace.call("read", "link")
    result = await workspace.call("edit", "link", **edit("a", "b"))
    assert change(result).path == str(workspace.root / "link")
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "f").read_bytes()) == (True, b"b\n")


# Between the question and the deed


async def ready(workspace: Workspace) -> Prepared:
    prepared = await workspace.prepare("edit", "f", **edit("a", "b"))
    assert isinstance(prepared, Prepared)
    return prepared


async def test_nothing_is_written_before_it_is_allowed(tmp_path: Path) -> None:
    workspace = await read_file(tmp_path, b"a\n")
    await ready(workspace)
    assert ((tmp_path / "f").read_bytes(), workspace.names()) == (b"a\n", ["f"])


async def test_what_changed_while_a_person_decided_is_stale(tmp_path: Path) -> None:
    workspace = await read_file(tmp_path, b"a\n")
    prepared = await ready(workspace)
    workspace.put("f", b"a\nmore\n")
    result = await prepared.run()
    assert workspace.told(result) == f"{STALE}{NOW}\n2: more"
    assert (tmp_path / "f").read_bytes() == b"a\nmore\n"
    workspace.put("f", b"a\n\0")
    assert workspace.told(await prepared.run()) == STALE


async def test_a_path_that_leads_elsewhere_while_a_person_decided_is_refused(
    tmp_path: Path,
) -> None:
    workspace = await read_file(tmp_path, b"a\n")
    prepared = await ready(workspace)
    (tmp_path / "f").rename(tmp_path / "g")
    (tmp_path / "f").symlink_to("g")
    result = await prepared.run()
    assert result.text.endswith("the path leads elsewhere by now")
    assert (tmp_path / "g").read_bytes() == b"a\n"


async def test_what_is_gone_while_a_person_decided_is_not_found(tmp_path: Path) -> None:
    workspace = await read_file(tmp_path, b"a\n")
    prepared = await ready(workspace)
    (tmp_path / "f").unlink()
    assert (await prepared.run()).text.endswith(": not found")
    assert workspace.names() == []


def test_the_schema_is_small() -> None:
    assert len(json.dumps(EDIT.offer.parameters)) + len(EDIT.description) < 1200


@pytest.mark.parametrize(("lines", "here"), [(10, True), (40_000, False)])
async def test_an_edit_of_a_large_file_holds_nothing_else_up(
    tmp_path: Path, lines: int, here: bool
) -> None:
    workspace = await read_file(tmp_path, b"some line\n" * lines + b"end\n")
    called: set[str] = set()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename == splice.__code__.co_filename:
            called.add(frame.f_code.co_name)

    sys.setprofile(note)  # of this thread alone
    try:
        said = await workspace.said("edit", "f", **edit("end", "stop"))
    finally:
        sys.setprofile(None)
    assert said == UPDATED
    assert ("splice" in called) == here
