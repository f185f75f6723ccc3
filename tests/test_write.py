import json
from pathlib import Path

import pytest

from tests.workspace import Workspace, change
from tools.base import Card, Change, Place, Prepared, Result
from tools.splice import BOM
from tools.write import WRITE

pytestmark = pytest.mark.anyio

UNREAD = 'Error: cannot overwrite existing "~/f" without reading it first'
STALE = 'Error: cannot write "~/f": file changed since it was read'
NOW = "; read it again, these lines are other now:"


def envelope(deed: str) -> str:
    return f"<path>~/f</path>\n<type>file</type>\n{deed}"


def test_the_card_shows_the_content() -> None:
    bound = WRITE.bind({"file_path": "notes.txt", "content": "a\n"}, "/work")
    assert not isinstance(bound, Result)
    path = "/work/notes.txt"
    assert bound.card == Card(
        "Write notes.txt", "edit", (Place(path),), (Change(path, None, "a\n"),)
    )


@pytest.mark.parametrize(
    ("content", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\r\n\u00e9\n", 2)]
)
async def test_a_new_file_needs_no_read(tmp_path: Path, content: str, lines: int) -> None:
    workspace = Workspace(tmp_path)
    result = await workspace.call("write", "new/folder/f", content=content)
    path = workspace.root / "new/folder/f"
    assert result.text == (f"<path>{path}</path>\n<type>file</type>\nCreated file ({lines} lines)")
    assert (result.title, change(result)) == (
        "Write new/folder/f",
        Change(str(path), None, content),
    )
    assert path.read_bytes() == content.encode()


async def test_a_file_that_was_looked_for_in_vain_is_created(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert not (await workspace.call("read", "f")).ok
    assert await workspace.said("write", "f", content="a\n") == envelope("Created file (1 lines)")


async def test_a_link_to_nothing_creates_what_it_points_to(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    (tmp_path / "f").symlink_to("target")
    assert await workspace.said("write", "f", content="a\n") == envelope("Created file (1 lines)")
    assert (tmp_path / "target").read_bytes() == b"a\n"


async def test_a_file_that_was_not_read_is_not_overwritten(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    path = workspace.put("f", b"a\n")
    assert await workspace.said("write", "f", content="b\n") == UNREAD
    assert path.read_bytes() == b"a\n"


@pytest.mark.parametrize(
    ("data", "content", "expected", "deed"),
    [
        (b"a\n", "b\n", b"b\n", "Updated file (1 lines)"),
        (b"", "b\n", b"b\n", "Updated file (1 lines)"),
        (b"a\r\nb\r\n", "c\n", b"c\r\n", "Updated file (1 lines, CRLF line endings kept)"),
        (BOM + b"a\n", "b\n", BOM + b"b\n", "Updated file (1 lines, BOM kept)"),
        (b"caf\xe9\n", "tea\n", b"tea\n", "Updated file (1 lines)"),
        (b"a\n", "", b"", "Updated file (0 lines)"),
    ],
)
async def test_a_file_that_was_read_is_overwritten(
    tmp_path: Path, data: bytes, content: str, expected: bytes, deed: str
) -> None:
    workspace = Workspace(tmp_path)
    path = workspace.put("f", data)
    await workspace.call("read", "f")
    prepared = await workspace.prepare("write", "f", content=content)
    assert isinstance(prepared, Prepared)
    result = await prepared.run()
    assert workspace.told(result) == envelope(deed)
    old, new = (each.decode("utf-8", "surrogateescape") for each in (data, expected))
    assert change(result) == change(prepared) == Change(str(workspace.root / "f"), old, new)
    assert (path.read_bytes(), workspace.names()) == (expected, ["f"])
    assert (await workspace.call("write", "f", content="again\n")).ok


async def test_every_line_must_have_been_shown(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"x\n" * 10)
    for offset, missing in ((2, "1, 4-10"), (7, "1, 4-6, 9-10")):
        await workspace.call("read", "f", offset=offset, limit=2)
        said = await workspace.said("write", "f", content="y\n")
        assert said == f"{UNREAD}: not shown yet: lines {missing}"
    await workspace.call("read", "f", offset=3, limit=5)
    await workspace.call("read", "f", offset=1, limit=1)
    await workspace.call("read", "f", offset=9)
    assert (await workspace.call("write", "f", content="y\n")).ok


async def test_many_missing_ranges_are_cut_short(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"x\n" * 40)
    for line in range(2, 40, 2):
        await workspace.call("read", "f", offset=line, limit=1)
    said = await workspace.said("write", "f", content="y\n")
    assert said == f"{UNREAD}: not shown yet: lines 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, \u2026"


async def test_a_line_that_was_cut_was_not_shown(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"a\n" + b"x" * 3000 + b"\n")
    await workspace.call("read", "f")
    said = await workspace.said("write", "f", content="y\n")
    assert said == f"{UNREAD}: not shown yet: lines 2"


async def test_lines_shown_of_other_bytes_do_not_count(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"1\n2\n")
    await workspace.call("read", "f", limit=1)
    workspace.put("f", b"3\n4\n")
    assert await workspace.said("write", "f", content="y\n") == f"{STALE}{NOW}\n1: 3\n2: 4"
    await workspace.call("read", "f", offset=2)
    said = await workspace.said("write", "f", content="y\n")
    assert said == f"{UNREAD}: not shown yet: lines 1"


async def test_an_edit_moves_what_was_shown(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"1\n2\n3\n4\n")
    await workspace.call("read", "f", limit=3)
    arguments = {"old_string": "2\n", "new_string": "2\nnew\n"}
    assert (await workspace.call("edit", "f", **arguments)).ok
    said = await workspace.said("write", "f", content="y\n")
    assert said == f"{UNREAD}: not shown yet: lines 5"


@pytest.mark.parametrize(
    ("data", "content", "said"),
    [
        (b"a\0", "b", 'cannot write "~/f": binary file'),
        (
            b"caf\xe9\n",
            "th\u00e9\n",
            'cannot write "~/f": the file is not UTF-8 and its encoding is unknown, so only ASCII '
            "can be put into it",
        ),
        (b"a\n", "\0", "content holds a NUL or half a surrogate pair, which is not text"),
    ],
)
async def test_what_cannot_be_written_is_said(
    tmp_path: Path, data: bytes, content: str, said: str
) -> None:
    workspace = Workspace(tmp_path)
    path = workspace.put("f", data)
    await workspace.call("read", "f")
    assert await workspace.said("write", "f", content=content) == f"Error: {said}"
    assert path.read_bytes() == data


async def test_a_file_that_came_to_be_in_the_meantime_is_left_alone(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    prepared = await workspace.prepare("write", "f", content="mine\n")
    assert isinstance(prepared, Prepared)
    assert change(prepared).old is None
    workspace.put("f", b"theirs\n")
    result = await prepared.run()
    assert workspace.told(result) == UNREAD
    assert (tmp_path / "f").read_bytes() == b"theirs\n"
    assert workspace.names() == ["f"]


async def test_a_folder_that_leads_elsewhere_in_the_meantime_is_refused(tmp_path: Path) -> None:
    (tmp_path / "work" / "folder").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    workspace = Workspace(tmp_path / "work")
    prepared = await workspace.prepare("write", "folder/f", content="mine\n")
    assert isinstance(prepared, Prepared)
    (workspace.root / "folder").rmdir()
    (workspace.root / "folder").symlink_to(tmp_path / "outside")
    result = await prepared.run()
    assert result.text.endswith("the path leads elsewhere by now")
    assert list((tmp_path / "outside").iterdir()) == []


async def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    prepared = await workspace.prepare("write", "new/f", content="mine\n")
    assert isinstance(prepared, Prepared)
    workspace.put("new", b"a file\n")
    result = await prepared.run()
    assert not result.ok
    assert result.text == (f'Error: cannot write "{workspace.root}/new/f": not a directory')


async def test_what_changed_while_a_person_decided_is_stale(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"a\n")
    await workspace.call("read", "f")
    prepared = await workspace.prepare("write", "f", content="b\n")
    assert isinstance(prepared, Prepared)
    workspace.put("f", b"theirs\n")
    result = await prepared.run()
    assert workspace.told(result) == f"{STALE}{NOW}\n1: theirs"
    assert (tmp_path / "f").read_bytes() == b"theirs\n"


async def test_a_path_outside_and_a_protected_name_are_told_to_the_policy(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    workspace = Workspace(tmp_path / "work")
    outside = await workspace.access("write", "../f", content="")
    protected = await workspace.access("write", ".git/hooks/x", content="")
    assert (outside.outside, outside.protected) == (True, False)
    assert (protected.outside, protected.protected) == (False, True)


def test_the_schema_is_small() -> None:
    assert len(json.dumps(WRITE.offer.parameters)) + len(WRITE.description) < 1000
