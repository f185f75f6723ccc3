"""What a link in a prompt shows is what `read` may read without asking."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.config import load
from bridge.core.records import Item, Opened
from bridge.links import MOST_SHOWN, followed
from bridge.session import Session
from bridge.store import Store
from tests.skipped_time import BACKEND, no_waiting
from tests.workspace import context
from tools.base import Files
from tools.local import LocalFiles
from tools.seen import Stamp

pytestmark = pytest.mark.anyio


def link(path: object) -> Item:
    return {"type": "resource_link", "name": "n", "uri": f"file://{path}"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "outside.txt").write_text("outside\n", encoding="utf-8")
    return tmp_path / "project"


def session_in(cwd: Path, permission: Any = "workspace-write") -> Session:
    opened = Opened("s", str(cwd), "t", "default", "m", None, permission)
    config = load(None, {"OPENAI_MODEL": "m", "XDG_CONFIG_HOME": str(cwd)})
    return Session(config, opened, Store(None).create(opened))


async def shown(session: Session, *links: Item, files: Files | None = None) -> list[str]:
    """The texts that the links show."""
    given = replace(
        context(session.cwd),
        roots=session.roots,
        files=files or LocalFiles(),
        seen=session.seen,
    )
    blocks = await followed(links, session, given)
    return [str(block.get("text")) for block in blocks if block not in links]


async def test_a_prompt_without_links_is_left_alone(project: Path) -> None:
    assert await shown(session_in(project), {"type": "text", "text": "Hi"}) == []


async def test_a_file_is_shown_and_counts_as_read(project: Path) -> None:
    file = project / "a.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")
    session = session_in(project)
    (text,) = await shown(session, link(f"{file}#L2"))
    assert "\n2: two\n" in text
    assert "1: one" not in text
    assert session.visited == {str(project)}


@pytest.mark.parametrize(
    "name", ["gone", "folder", "pipe", "../outside.txt", "out.txt", ".env", "binary", "a\0b", ""]
)
async def test_what_read_would_not_read_stays_a_link(name: str, project: Path) -> None:
    (project / "folder").mkdir()
    os.mkfifo(project / "pipe")
    (project / "out.txt").symlink_to(project.parent / "outside.txt")
    (project / ".env").write_text("KEY=1\n", encoding="utf-8")
    (project / "binary").write_bytes(b"\0")
    uri = f"file://{project}/{name}".replace("\0", "%00")
    session = session_in(project)
    assert await shown(session, {"type": "resource_link", "name": "n", "uri": uri}) == []
    assert session.visited == set()


async def test_what_may_be_read_without_asking_is_shown_wherever_it_is(project: Path) -> None:
    session = session_in(project, "danger-full-access")
    assert len(await shown(session, link(project.parent / "outside.txt"))) == 1


@pytest.mark.parametrize("anyio_backend", [BACKEND])
async def test_a_file_that_takes_too_long_to_read_stays_a_link(project: Path) -> None:
    class Slow(LocalFiles):
        async def scan(self, path: str, feed: Callable[[bytes], None]) -> Stamp | None:
            if path.endswith("slow"):
                await anyio.sleep_forever()
            return await super().scan(path, feed)

    for name in ("fast", "slow", "late"):
        (project / name).write_text("x\n", encoding="utf-8")
    links = [link(project / name) for name in ("fast", "slow", "late")]
    with no_waiting():
        texts = await shown(session_in(project), *links, files=Slow())
    assert len(texts) == 1


async def test_no_more_is_shown_than_there_is_room_for(project: Path) -> None:
    small, big = project / "small.txt", project / "big.txt"
    small.write_text("x\n", encoding="utf-8")
    big.write_text(f"{'x' * 900}\n" * 2000, encoding="utf-8")
    session = session_in(project)
    assert len(await shown(session, *[link(small)] * (MOST_SHOWN + 2))) == MOST_SHOWN
    assert len(await shown(session, *[link(big)] * 9)) == 4
