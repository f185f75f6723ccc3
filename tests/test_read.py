import json
import os
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.pictures import PDF, PNG
from tests.workspace import Workspace
from tools.base import Access, Bytes, Card, Media, Place, Result
from tools.local import LocalFiles
from tools.paths import absolute
from tools.read import READ

pytestmark = pytest.mark.anyio


def card(**arguments: Any) -> Card:
    bound = READ.bind(arguments, "/work")
    assert not isinstance(bound, Result)
    return bound.card


@pytest.mark.parametrize(
    ("arguments", "title", "line"),
    [
        ({}, "Read notes.txt", 1),
        ({"offset": None, "limit": None}, "Read notes.txt", 1),
        ({"offset": 5}, "Read notes.txt (from line 5)", 5),
        ({"limit": 10}, "Read notes.txt (1 - 10)", 1),
        ({"offset": 5, "limit": 10}, "Read notes.txt (5 - 14)", 5),
        ({"offset": 0, "limit": 0}, "Read notes.txt", 1),
        ({"offset": -3}, "Read notes.txt (from line -3)", 1),
    ],
)
def test_the_title_names_the_window(arguments: dict[str, Any], title: str, line: int) -> None:
    expected = Card(title, "read", (Place("/work/notes.txt", line),))
    assert card(file_path="notes.txt", **arguments) == expected


def test_a_path_outside_stays_whole_in_the_title() -> None:
    assert card(file_path="/etc/hosts").title == "Read /etc/hosts"


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({}, "file_path"),
        ({"file_path": None}, "file_path"),
        ({"file_path": "a", "lines": 3}, "lines"),
        ({"file_path": "a", "offset": "x"}, "offset"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], wrong: str) -> None:
    bound = READ.bind(arguments, "/work")
    assert isinstance(bound, Result)
    assert bound.text.startswith(f"Error: invalid arguments: {wrong}: ")


def around(rows: str) -> str:
    return f"<path>~/f</path>\n<type>file</type>\n<content>\n{rows}\n</content>"


@pytest.mark.parametrize(
    ("data", "arguments", "rows"),
    [
        (b"a\nb\n", {}, "1: a\n2: b\n\n(End of file - total 2 lines)"),
        (b"", {}, "(End of file - total 0 lines)"),
        (b"", {"offset": 1}, "(End of file - total 0 lines)"),
        (
            b"a\nb\nc\n",
            {"limit": 2},
            "1: a\n2: b\n\n(Showing lines 1-2 of 3. Use offset=3 to continue.)",
        ),
        (b"a\nb\nc\n", {"offset": 2}, "2: b\n3: c\n\n(End of file - total 3 lines)"),
        (b"a\r\nb", {}, "1: a\n2: b\n\n(End of file - total 2 lines)\n"
                         "(CRLF line endings, no newline at end)"),
        (b"\x1b]52;c;eA==\x07\n", {}, "1: \x1b]52;c;eA==\x07\n\n(End of file - total 1 lines)"),
    ],
)  # fmt: skip
async def test_lines_come_after_their_numbers(
    tmp_path: Path, data: bytes, arguments: dict[str, Any], rows: str
) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", data)
    assert await workspace.said("read", "f", **arguments) == around(rows)


async def test_at_most_2000_lines_come_at_once(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"x\n" * 2500)
    for arguments in ({}, {"limit": 2400}):
        said = await workspace.said("read", "f", **arguments)
        assert said.endswith(
            "2000: x\n\n(Showing lines 1-2000 of 2500. Use offset=2001 to continue.)\n</content>"
        )


async def test_wide_lines_cap_the_output(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", (b"x" * 1000 + b"\n") * 100)
    said = await workspace.said("read", "f")
    footer = "\n\n(Output capped. Showing lines 1-50. Use offset=51 to continue.)\n</content>"
    assert said.endswith(footer)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"file_path": "none"}, 'cannot read "~/none": not found'),
        ({"file_path": "./x/../none"}, 'cannot read "~/none": not found'),
        ({"file_path": "folder"}, 'cannot read "~/folder": not a regular file (a directory)'),
        ({"file_path": "fifo"}, 'cannot read "~/fifo": not a regular file (a FIFO)'),
        ({"file_path": "binary"}, 'cannot read "~/binary": binary file'),
        ({"file_path": "f/x"}, 'cannot read "~/f/x": not a directory'),
        ({"file_path": "f", "offset": 4}, 'offset 4 is out of range for "~/f" (3 lines)'),
        ({"file_path": "f", "offset": -1}, "offset must be 1 or more"),
        ({"file_path": "f", "limit": -1}, "limit must be 1 or more"),
        ({"file_path": " "}, "file_path is empty"),
        ({"file_path": "~/f"}, '"~/f" is not a path: ~ stands for no folder here, '
                               "give an absolute path"),
        ({"file_path": "/dev/zero"}, 'cannot read "/dev/zero": not a regular file (a device)'),
        ({"file_path": "/proc/self/environ"}, 'cannot read "/proc/self/environ": '
                                              "not a regular file"),
        ({"file_path": "environ"}, 'cannot read "~/environ": not a regular file'),
        ({"file_path": "x" * 5000}, f'cannot read "~/{"x" * 5000}": file name too long'),
    ],
)  # fmt: skip
async def test_what_cannot_be_read_is_said_and_counts_for_nothing(
    tmp_path: Path, arguments: dict[str, Any], said: str
) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"a\nb\nc\n")
    workspace.put("binary", b"a\0b")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "environ").symlink_to(f"/proc/{os.getpid()}/environ")
    with anyio.fail_after(5):
        assert await workspace.said("read", **arguments) == f"Error: {said}"
    assert workspace.seen.changes() == []


@pytest.mark.parametrize(
    ("path", "resolved", "outside", "secret", "protected"),
    [
        ("f", "f", False, False, False),
        ("..f", "..f", False, False, False),
        ("../f", "../f", True, False, False),
        ("link", "../elsewhere", True, False, False),
        ("link/new/f", "../elsewhere/new/f", True, False, False),
        (".env", ".env", False, True, False),
        ("harmless", ".env", False, True, False),
        (".npmrc", "plain", False, True, False),
        (".git/config", ".git/config", False, False, True),
        (".vscode", "plain", False, False, True),
    ],
)
async def test_the_policy_is_told_where_a_path_leads(
    tmp_path: Path, path: str, resolved: str, outside: bool, secret: bool, protected: bool
) -> None:
    (tmp_path / "work").mkdir()
    workspace = Workspace(tmp_path / "work")
    (workspace.root / "link").symlink_to("../elsewhere")
    (workspace.root / "harmless").symlink_to(".env")
    (workspace.root / ".npmrc").symlink_to("plain")
    (workspace.root / ".vscode").symlink_to("plain")
    subject = absolute(resolved, str(workspace.root))
    named = absolute(path, str(workspace.root))
    expected = Access(
        "read",
        subject,
        outside=outside,
        secret=secret,
        protected=protected,
        named="" if named == subject else named,
    )
    assert await workspace.access("read", path) == expected


async def test_a_path_that_leads_elsewhere_after_it_was_judged_is_not_read(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("f", b"mine")
    workspace.put("secret", b"secret")
    prepared = await workspace.prepare("read", "f")
    assert not isinstance(prepared, Result)
    (tmp_path / "f").unlink()
    (tmp_path / "f").symlink_to("secret")
    result = await prepared.run()
    assert result.text.endswith("the path leads elsewhere by now")
    assert not result.ok


async def test_reading_the_recorded_workspace_gives_the_recorded_text(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("notes.txt", b'project notes\n- the greeting message still says "helo wrld"\n')
    assert await workspace.said("read", "notes.txt") == (
        "<path>~/notes.txt</path>\n<type>file</type>\n<content>\n1: project notes\n"
        '2: - the greeting message still says "helo wrld"\n\n'
        "(End of file - total 2 lines)\n</content>"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs sparse files and VmHWM")
async def test_a_window_of_a_huge_file_takes_little_memory(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    with workspace.put("f", b"").open("wb") as file:
        for _ in range(30):
            file.write(b"a line of the file\n" * 500_000)
    before = peak()
    with anyio.fail_after(60):
        said = await workspace.said("read", "f", offset=10, limit=2)
    assert (
        "10: a line of the file\n11: a line of the file\n\n(Showing lines 10-11 of 15000000."
        in said
    )
    assert peak() - before < 64 * 1024


def peak() -> int:
    """The most memory this process ever had, in KiB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0])


def test_the_schema_is_small() -> None:
    assert len(json.dumps(READ.offer.parameters)) + len(READ.description) < 1200


IMAGES = frozenset({"image/png"})


async def test_a_picture_is_given_to_a_model_that_sees(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, takes=IMAGES)
    workspace.put("a.txt", b64decode(PNG))
    result = await workspace.call("read", "a.txt", offset=5, limit=1)
    assert result.text.endswith("a.txt</path>\n<type>image/png</type>\n(67 bytes, shown whole)")
    assert result.media == (Media("image/png", PNG, "a.txt"),)
    workspace.put("a.txt", b"text by now")
    assert "without reading it first" in await workspace.said("write", "a.txt", content="x")


@pytest.mark.parametrize(
    ("data", "takes", "expected"),
    [
        (b64decode(PNG), frozenset[str](), "binary file of type image/png, which the model in use "
         "does not take"),
        (b64decode(PDF), IMAGES, "binary file of type application/pdf, which the model in use "
         "does not take"),
        (b"\0\0", IMAGES, "binary file"),
        (b64decode(PNG) + bytes(10 * 1024 * 1024), IMAGES, "too large (10485827 bytes)"),
    ],
)  # fmt: skip
async def test_what_the_model_does_not_take_is_refused(
    data: bytes, takes: frozenset[str], expected: str, tmp_path: Path
) -> None:
    workspace = Workspace(tmp_path, takes=takes)
    workspace.put("a", data)
    assert await workspace.said("read", "a") == f'Error: cannot read "~/a": {expected}'


async def test_a_pdf_of_text_alone_is_text_for_a_model_without_files(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("a.pdf", b"%PDF-1.4\n%%EOF\n")
    assert "2: %%EOF" in await workspace.said("read", "a.pdf")
    workspace.takes = frozenset({"application/pdf"})
    assert (await workspace.call("read", "a.pdf")).media[0].kind == "application/pdf"


async def test_a_picture_that_goes_away_meanwhile_is_not_found(tmp_path: Path) -> None:
    class Fleeting(LocalFiles):
        async def read(self, path: str, most: int) -> Bytes | None:
            return None

    workspace = Workspace(tmp_path, files=Fleeting(), takes=IMAGES)
    workspace.put("a", b64decode(PNG))
    assert await workspace.said("read", "a") == 'Error: cannot read "~/a": not found'
