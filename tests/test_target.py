"""Which file a path of the model's means."""

import tempfile
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from tests.workspace import Workspace
from tools.local import LocalFiles

pytestmark = pytest.mark.anyio


@pytest.fixture
def name() -> Generator[str]:
    """A name that nobody else uses in /tmp."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).rmdir()
        yield Path(folder).name
        Path(folder).mkdir(exist_ok=True)


def workspace(tmp_path: Path, *, private: bool = True) -> Workspace:
    (tmp_path / "ws").mkdir()
    (tmp_path / "own").mkdir()
    return Workspace(tmp_path / "ws", tmp=str(tmp_path / "own") if private else "")


async def test_what_commands_put_into_their_tmp_is_what_is_meant(tmp_path: Path, name: str) -> None:
    here = workspace(tmp_path)
    own = tmp_path / "own" / name
    own.write_text("by a command\n", encoding="utf-8")
    assert "1: by a command" in await here.said("read", f"/tmp/{name}")
    access = await here.access("read", f"/tmp/{name}")
    assert (access.subject, access.outside) == (str(own), False)
    await here.said("edit", f"/tmp/{name}", old_string="by a command", new_string="by us")
    assert own.read_text(encoding="utf-8") == "by us\n"
    assert str(own) in await here.said("grep", "by us", path="/tmp")
    assert not await anyio.Path("/tmp", name).exists()


async def test_a_new_file_in_tmp_is_one_that_commands_see(tmp_path: Path, name: str) -> None:
    here = workspace(tmp_path)
    assert not (await here.access("write", f"/tmp/{name}", content="x")).outside
    assert (await here.call("write", f"/tmp/{name}", content="x")).ok
    assert (tmp_path / "own" / name).read_text(encoding="utf-8") == "x"


async def test_what_only_the_system_has_in_tmp_lies_outside(tmp_path: Path, name: str) -> None:
    here = workspace(tmp_path)
    system = anyio.Path("/tmp", name)
    await system.mkdir()
    await (system / "f").write_text("the system's\n", encoding="utf-8")
    access = await here.access("read", f"{system}/f")
    assert (access.subject, access.outside) == (f"{system}/f", True)
    (tmp_path / "own" / "link").symlink_to(system / "f")
    assert (await here.access("read", "/tmp/link")).outside


async def test_what_git_runs_and_obeys_is_delicate_wherever_it_lies(tmp_path: Path) -> None:
    here = workspace(tmp_path)
    (here.root / ".git").mkdir()
    (here.root / "hooks").mkdir()
    (here.root / "link").symlink_to("hooks")
    settings = "[core]\nhooksPath = link\n[include]\npath = ../team.conf\n"
    here.put(".git/config", settings.encode())
    for path, delicate in (("hooks/new", True), ("team.conf", True), ("hook", False)):
        assert (await here.access("write", path, content="x")).protected is delicate
        here.put(path, b"x")
        assert not (await here.access("read", path)).secret


async def test_the_workspace_is_meant_before_that(tmp_path: Path) -> None:
    if not tmp_path.is_relative_to("/tmp"):
        pytest.skip("the folder of these tests lies elsewhere")
    here = workspace(tmp_path)
    here.put("f", b"in the workspace\n")
    assert not (await here.access("read", str(here.root / "f"))).outside
    own = tmp_path / "own" / "f"
    own.touch()
    access = await here.access("read", str(own))
    assert (access.subject, access.outside) == (str(own), False)


async def test_without_a_tmp_of_their_own_commands_and_tools_see_the_same(
    tmp_path: Path, name: str
) -> None:
    here = workspace(tmp_path, private=False)
    access = await here.access("read", f"/tmp/{name}")
    assert (access.subject, access.outside) == (f"/tmp/{name}", True)


async def test_our_own_files_are_delicate_wherever_the_workspace_is(tmp_path: Path) -> None:
    here = Workspace(tmp_path)
    here.private, here.readable = (str(here.root / "own"),), (str(here.root / "own" / "skills"),)
    for name in ("own/permissions/x.json", "own/skills/s/SKILL.md", "owned"):
        here.put(name, b"word\n")

    async def delicate(tool: str, path: str, **arguments: str) -> bool:
        access = await here.access(tool, path, **arguments)
        return access.protected if access.action == "edit" else access.secret

    assert await delicate("write", "own/permissions/new.json", content="{}")
    assert await delicate("write", "own/skills/new", content="x")
    assert not await delicate("write", "owned-too", content="x")
    assert await delicate("read", "own/permissions/x.json")
    assert not await delicate("read", "own/skills/s/SKILL.md")
    assert not await delicate("read", "owned")
    (here.root / "link").symlink_to("own/permissions")
    assert await delicate("read", "link/x.json")
    assert await delicate("write", "link/new.json", content="{}")


async def test_a_search_leaves_our_own_files_out(tmp_path: Path) -> None:
    here = Workspace(tmp_path, LocalFiles(find=lambda _: None))
    here.private = (str(here.root / "own"),)
    for name in ("own/sessions/a.jsonl", "other"):
        here.put(name, b"word\n")
    said = await here.said("grep", "word")
    assert "other" in said
    assert "a.jsonl" not in said
    assert "word" in await here.said("grep", "word", path="own")
