"""The environment of the user's login shell, by scripts that stand for it, and by the real bash."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from tests.test_process import LONG, sleepers
from tools.login import Login, is_wanted
from tools.login_shell import login_environment

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs a shell"),
]

PATH = "/usr/bin:/bin"


@pytest.mark.parametrize(
    ("source", "path", "wanted"),
    [
        ("auto", "/usr/local/bin:/usr/bin:/bin:/usr/sbin/", True),
        ("auto", "/usr/bin:/home/me/.local/bin", False),
        ("auto", "", True),
        ("auto", None, True),
        ("agent", "/usr/bin", False),
        ("login", "/opt/x/bin", True),
    ],
)
def test_the_shell_is_asked_where_path_is_bare_or_the_user_wants_it(
    source: str, path: str | None, wanted: bool
) -> None:
    environment = {} if path is None else {"PATH": path}
    assert is_wanted(source, environment) == wanted  # pyright: ignore[reportArgumentType] (texts of a table)


def script(folder: Path, text: str) -> str:
    file = folder / "shell"
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)
    return str(file)


async def asked(
    own: Mapping[str, str], folder: Path, patience: float = 20
) -> dict[str, str] | None:
    with anyio.fail_after(30):
        return await login_environment({"PATH": PATH, **own}, str(folder), patience)


async def test_what_the_shell_sets_is_found(tmp_path: Path) -> None:
    shell = script(
        tmp_path, 'export A="x\n=y" LATIN="$(printf "\\351")"; cd; unset B; eval "$4"; echo noise'
    )
    found = await asked({"SHELL": shell, "B": "1", "HOME": str(tmp_path)}, tmp_path)
    assert found is not None
    assert (found["A"], found["LATIN"], "B" in found) == ("x\n=y", "\udce9", False)
    assert not [name for name in found if name.startswith("RESPONSES_ACP")]


async def test_bash_reads_the_users_files_and_runs_the_hooks_of_its_prompt(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bash_profile").write_text(
        "export PATH=$HOME/tools:$PATH\nPROMPT_COMMAND='export FOLDER=$PWD'\n", encoding="utf-8"
    )
    bash = shutil.which("bash")
    assert bash is not None
    found = await asked({"SHELL": bash, "HOME": str(home)}, tmp_path)
    assert found is not None
    assert found["PATH"].startswith(f"{home}/tools:")
    assert found["FOLDER"] == str(tmp_path)


@pytest.mark.parametrize("text", ["exit 0", "exec true", "printf x > $RESPONSES_ACP_ENVIRONMENT"])
async def test_a_shell_that_does_not_say_is_none(tmp_path: Path, text: str) -> None:
    assert await asked({"SHELL": script(tmp_path, text)}, tmp_path) is None


async def test_a_shell_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    shell = script(tmp_path, f"sleep {LONG}")
    assert await asked({"SHELL": shell}, tmp_path, patience=0.1) is None
    assert sleepers() == []


async def test_a_shell_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert await asked({"SHELL": "/no/such/shell"}, tmp_path) is None


async def test_without_a_name_the_shell_is_the_one_of_the_users_account(tmp_path: Path) -> None:
    found = await asked({"SHELL": "sh", "HOME": str(tmp_path)}, tmp_path)
    assert found is None or "PATH" in found


async def test_an_account_that_does_not_exist_has_the_systems_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    found = await asked({}, tmp_path)
    assert found is not None
    assert found["HOME"] == "/"


async def test_commands_wait_for_the_shell_and_get_what_it_said() -> None:
    login, own = Login(), {"PATH": PATH, "GONE": "1", "PWD": "/a"}
    assert (await login.environment(own), login.was_asked) == (own, False)
    login.begin()
    got: list[Mapping[str, str]] = []
    answer = anyio.Event()

    async def ask() -> Mapping[str, str]:
        await answer.wait()
        return {"PATH": "/x", "NEW": "2", "SHLVL": "3"}

    async def wait() -> None:
        got.append(await login.environment(own))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(login.read, own, ask)
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert got == []
        answer.set()
    assert got == [{"PATH": "/x", "NEW": "2"}]
    assert (login.changed, login.was_asked) == (("GONE", "NEW", "PATH"), True)


async def test_where_nothing_was_said_commands_get_what_the_agent_has() -> None:
    async def silent() -> None:
        return None

    async def broken() -> None:
        raise OSError("broken")

    login = Login()
    await login.read({"PATH": PATH}, silent)
    assert await login.environment({"PATH": PATH}) == {"PATH": PATH}
    login = Login()
    with pytest.raises(OSError, match="broken"):
        await login.read({"PATH": PATH}, broken)
    assert (await login.environment({}), login.changed) == ({}, ())
