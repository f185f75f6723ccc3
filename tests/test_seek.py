"""The tools glob and grep: what they ask for, look like and tell. What is found: test_search.py."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.workspace import TOOLS, Workspace
from tools.base import Access, Card, Console, Found, Prepared, Query, Result
from tools.local import LocalFiles
from tools.seek import Shortlist

pytestmark = pytest.mark.anyio


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace with a search that needs no ripgrep."""
    (tmp_path / "work").mkdir()
    return Workspace(tmp_path / "work", LocalFiles(find=lambda _: None))


NO_LINES = "No lines match; files of secrets are searched only by name."


@pytest.mark.parametrize(
    ("tool", "arguments", "title"),
    [
        ("glob", {"pattern": "*.py"}, "Glob *.py"),
        ("glob", {"pattern": "*.py", "path": "src/"}, "Glob *.py in src"),
        ("glob", {"pattern": "*", "path": "/etc"}, "Glob * in /etc"),
        ("grep", {"pattern": "a\u202eb", "path": " "}, r"Grep a\u202eb"),
        ("grep", {"pattern": "x", "path": "..", "ignore_case": True}, "Grep x in /"),
    ],
)
def test_the_title_says_what_is_looked_for(
    tool: str, arguments: dict[str, Any], title: str
) -> None:
    bound = TOOLS[tool].bind(arguments, "/work")
    assert not isinstance(bound, Result)
    assert bound.card == Card(title, "search")


@pytest.mark.parametrize(
    ("tool", "named", "arguments", "said"),
    [
        ("glob", "*.py", {}, "a.py\nsrc/b.py\n\n(2 files)"),
        ("glob", "*.py", {"path": "src"}, "src/b.py\n\n(1 file)"),
        ("glob", " ~/src/*.py ", {}, "src/b.py\n\n(1 file)"),
        ("glob", "*.rs", {}, 'No files fit "*.rs".'),
        ("glob", "*.pem", {}, "key.pem\n\n(1 file)"),
        ("glob", "*", {"path": "../out"}, "~out/c.py\n\n(1 file)"),
        ("grep", "one", {}, "a.py\n1: one\n3: one two\n\nsrc/b.py\n1: one\n\n"
                            "(3 matches in 2 files)"),
        ("grep", "ONE TWO", {"ignore_case": True}, "a.py\n3: one two\n\n(1 match in 1 file)"),
        ("grep", "one", {"files_only": True}, "a.py: 2\nsrc/b.py: 1\n\n(3 matches in 2 files)"),
        ("grep", "one", {"glob": "~/src/**"}, "src/b.py\n1: one\n\n(1 match in 1 file)"),
        ("grep", "one", {"path": "a.py", "glob": ""}, "a.py\n1: one\n3: one two\n\n"
                                                     "(2 matches in 1 file)"),
        ("grep", "three", {}, NO_LINES),
        ("grep", "secret", {}, NO_LINES),
        ("grep", "secret", {"path": "key.pem"}, "key.pem\n1: secret\n\n(1 match in 1 file)"),
        ("grep", "secret", {"path": ".ssh"}, ".ssh/config\n1: secret\n\n(1 match in 1 file)"),
    ],
)  # fmt: skip
async def test_what_is_found_is_told(
    workspace: Workspace, tool: str, named: str, arguments: dict[str, Any], said: str
) -> None:
    workspace.put("a.py", b"one\ntwo\none two\n")
    workspace.put("src/b.py", b"one\n")
    workspace.put("../out/c.py", b"one\n")
    workspace.put("key.pem", b"secret\n")
    workspace.put(".ssh/config", b"secret\n")
    root, out = str(workspace.root), str(workspace.root.parent / "out")
    filled = {
        key: value.replace("~", root) if isinstance(value, str) else value
        for key, value in arguments.items()
    }
    result = await workspace.call(tool, named.replace("~", root), **filled)
    assert result.ok
    assert result.text.replace(out, "~out") == said
    assert result.shown == (None if said.startswith("No ") else (Console(result.text),))
    assert workspace.seen.changes() == []


@pytest.mark.parametrize(
    ("tool", "named", "arguments", "said"),
    [
        ("glob", "[", {}, "pattern is invalid: a [ that nothing follows up"),
        ("glob", "*", {"path": "none"}, 'cannot search "~/none": not found'),
        ("glob", "*", {"path": "/"}, 'cannot search "/": it is no folder of files'),
        ("glob", "*", {"path": "/proc"}, 'cannot search "/proc": it is no folder of files'),
        ("glob", "*", {"path": "devices"}, 'cannot search "~/devices": it is no folder of files'),
        ("glob", "*", {"path": "/proc/self"}, 'cannot search "/proc/self": not a regular file'),
        ("grep", "x", {"path": "~/x"}, '"~/x" is not a path'),
        ("grep", "x", {"path": "huge"}, 'cannot search "~/huge": too large (68157440 bytes)'),
        ("grep", "x", {"glob": "a/"}, "glob is invalid: it must name files"),
        ("grep", "", {}, "pattern is empty"),
        ("grep", "a\nb", {}, "pattern is empty, too long, or holds a line end"),
        ("grep", "x" * 10_001, {}, "pattern is empty, too long"),
        ("grep", "(", {}, "pattern is no regular expression: missing )"),
        ("grep", "a{99999999999}", {}, "pattern is no regular expression: the repetition number"),
        ("grep", "[[:alpha:]]", {}, "pattern is ambiguous"),
    ],
)
async def test_what_cannot_be_searched_is_said(
    workspace: Workspace, tool: str, named: str, arguments: dict[str, Any], said: str
) -> None:
    with workspace.put("huge", b"").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    (workspace.root / "devices").symlink_to("/sys/kernel")
    assert (await workspace.said(tool, named, **arguments)).startswith(f"Error: {said}")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (None, Access("read", "~")),
        ("src", Access("read", "~/src")),
        ("..", Access("read", "~/..", outside=True)),
        ("link", Access("read", "~/../out", outside=True, named="~/link")),
        (".ssh", Access("read", "~/.ssh", secret=True)),
        (".env", Access("read", "~/.env", secret=True)),
    ],
)
@pytest.mark.parametrize("tool", ["glob", "grep"])
async def test_the_policy_is_told_where_is_looked(
    workspace: Workspace, tool: str, path: str | None, expected: Access
) -> None:
    (workspace.root / "link").symlink_to("../out")
    subject = (workspace.root / expected.subject.replace("~", ".")).resolve()
    access = await workspace.access(tool, "x", path=path)
    named = expected.named.replace("~", str(workspace.root))
    assert access == replace(expected, subject=str(subject), named=named)


async def test_a_folder_that_leads_elsewhere_after_it_was_judged_is_not_searched(
    workspace: Workspace,
) -> None:
    workspace.put("folder/a", b"mine\n")
    workspace.put("../out/a", b"theirs\n")
    prepared = await workspace.prepare("grep", ".", path="folder")
    assert isinstance(prepared, Prepared)
    (workspace.root / "folder" / "a").unlink()
    (workspace.root / "folder").rmdir()
    (workspace.root / "folder").symlink_to("../out")
    result = await prepared.run()
    assert result.text.endswith("the path leads elsewhere by now")
    assert not result.ok


class Planted(LocalFiles):
    """Finds what it was given, in this order."""

    def __init__(self, found: list[Found], more: str) -> None:
        super().__init__()
        self.found, self.more = found, more

    async def search(self, query: Query, take: Callable[[Found], None]) -> str:
        for one in self.found:
            take(one)
        return self.more

    async def confirmed(self, found: Sequence[Found]) -> list[Found]:
        return list(found)


class Late(LocalFiles):
    """Finds what is there no more when it is looked at again."""

    async def search(self, query: Query, take: Callable[[Found], None]) -> str:
        take(Found(f"{query.top}/gone", 3, ((1, "x"),)))
        return await super().search(query, take)


async def test_what_a_search_was_led_to_is_not_told(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, Late())
    (workspace.root / "a").write_text("x\n")
    told = (await workspace.call("grep", "x")).text
    assert told.startswith("a\n1: x\n")
    assert told.endswith(
        "(1 match in 1 file)\n(The search is incomplete: files changed meanwhile.)"
    )
    (workspace.root / "a").unlink()
    told = (await workspace.call("grep", "x")).text
    assert told == f"{NO_LINES}\n(The search is incomplete: files changed meanwhile.)"


async def test_what_is_too_much_is_counted(tmp_path: Path) -> None:
    async def check(tool: str, found: list[Found], more: str, rows: int, end: str) -> None:
        workspace = Workspace(tmp_path, Planted(found[::-1], more))
        told = (await workspace.call(tool, "x")).text
        *lines, _, last = told.removesuffix(f"\n(The search is incomplete: {more}.)").split("\n")
        assert (len(lines), last) == (rows, end)
        assert (len(told) > len(end) + 1 + sum(map(len, lines)) + rows) is bool(more)

    on = "Narrow the search to see the others."
    root = Workspace(tmp_path).root
    many = [Found(f"{root}/{number:04}", 1, ((1, "x"),)) for number in range(1000)]
    await check("glob", many, "", 200, f"(Showing 200 of 1000 files. {on})")
    await check("glob", many[:3], "it was stopped", 3, "(3 files)")
    await check("grep", many, "", 599, f"(Showing 200 of 1000 matches in 1000 files. {on})")
    one = [Found(f"{root}/a", 500, tuple((number, "x") for number in range(1, 201)))]
    await check("grep", one, "", 201, f"(Showing 200 of 500 matches in 1 file. {on})")
    wide = [Found(f"{root}/a", 200, tuple((number, "ä" * 300) for number in range(1, 201)))]
    await check("grep", wide, "", 55, f"(Showing 54 of 200 matches in 1 file. {on})")


def test_the_shortlist_does_not_depend_on_the_order() -> None:
    names = [f"{number:04}" for number in range(1000)]
    for order in (names, names[::-1], names[500:] + names[:500]):
        shortlist = Shortlist()
        for name in order:
            shortlist.take(Found(name, 2))
        assert [one.path for one in shortlist.first()] == names[:200]
        assert (shortlist.files, shortlist.hits) == (1000, 2000)
