"""What the model is told of files that it has seen and a command has changed."""

import os
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tests.workspace import Workspace, context
from tools.base import Prepared, Result
from tools.environment import child_environment
from tools.process import LocalShell
from tools.shell import SHELL

pytestmark = pytest.mark.anyio


async def run(here: Workspace, command: str) -> str:
    root = str(here.root)
    bound = SHELL.bind({"command": command, "description": "d"}, root)
    assert not isinstance(bound, Result)
    given = replace(
        context(root),
        files=here.files,
        shell=LocalShell(child_environment(os.environ, (), (), root), root),
        seen=here.seen,
    )
    with anyio.fail_after(20):
        prepared = await bound.prepare(given)
        assert isinstance(prepared, Prepared)
        return (await prepared.run()).text


async def seen(tmp_path: Path, *names: str) -> Workspace:
    here = Workspace(tmp_path)
    for name in names:
        here.put(name, b"old\n")
        await here.said("read", name)
    return here


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("echo new > a; rm b; mkdir x; mv c x", "[changed since you read it: a, b, c]"),
        ("rm a; mkfifo a", "[changed since you read it: a]"),
        ("rm a; mkdir a", "[changed since you read it: a]"),
        ("echo more >> a; exit 3", "[exit code: 3]\n[changed since you read it: a]"),
        ("touch a; chmod 600 b; cp -p c d; mv d c", "(no output)"),
        ("echo new > other", "(no output)"),
    ],
)
async def test_a_command_names_the_files_that_it_changed(
    tmp_path: Path, command: str, told: str
) -> None:
    here = await seen(tmp_path, "a", "b", "c")
    text = await run(here, command)
    assert text in (told, f"(no output)\n{told}")


async def test_what_others_changed_before_is_not_the_commands_doing(tmp_path: Path) -> None:
    here = await seen(tmp_path, "a")
    here.put("a", b"by someone else\n")
    assert await run(here, "true") == "(no output)"
    stale = 'Error: cannot edit "~/a": file changed since it was read; '
    assert (await here.said("edit", "a", old_string="by", new_string="x")).startswith(stale)


async def test_a_refusal_says_that_a_command_was_it(tmp_path: Path) -> None:
    here = await seen(tmp_path, "a")
    await run(here, "echo new > a")
    stale = 'Error: cannot edit "~/a": file changed since it was read by a command of yours; '
    said = await here.said("edit", "a", old_string="new", new_string="x")
    assert said.startswith(stale)
    assert said.endswith("\n1: new")
    await here.said("read", "a")
    here.put("a", b"by someone else\n")
    said = await here.said("edit", "a", old_string="new", new_string="x")
    assert said.startswith(stale.replace(" by a command of yours", ""))


async def test_many_files_are_told_in_few_words(tmp_path: Path) -> None:
    here = await seen(tmp_path, *(f"f{number:02}" for number in range(60)))
    text = await run(here, "for f in f*; do echo new > $f; done")
    listed = ", ".join(f"f{number:02}" for number in range(10))
    assert text == f"(no output)\n[changed since you read it: {listed} and 40 more]"
