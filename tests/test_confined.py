"""Commands in a real sandbox, through the port that the tools use."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from tests.test_process import LONG, ignore, sleepers
from tests.test_repository import git, repository
from tests.test_sandbox import full
from tools import sandbox
from tools.base import Command, Ended, Hold, Reach
from tools.confined import ConfinedShell, SandboxFailed
from tools.environment import child_environment, confined_environment
from tools.guardian import Guardian
from tools.layers import Layers
from tools.prctl import adopt_orphans
from tools.sandbox import Fence

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux"),
]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@dataclass
class Stage:
    """A session's shell and the folder it works in."""

    shell: ConfinedShell
    root: Path

    async def run(
        self,
        command: str,
        *,
        cwd: Path | None = None,
        timeout: float = 30,  # noqa: ASYNC109 (as the port has it)
        reach: Reach | None = None,
        output: Callable[[str], None] = ignore,
        git: bool = False,
    ) -> Ended:
        with anyio.fail_after(timeout + 10):
            asked = Command(command, str(cwd or self.root), timeout, reach, git)
            return await self.shell.run(asked, output)

    def fenced(self, **changed: object) -> "Stage":
        """The same with another fence."""
        fence = replace(self.shell.fence, **changed)  # pyright: ignore[reportArgumentType] (names of fields)
        return Stage(replace(self.shell, fence=fence), self.root)


@pytest.fixture
async def stage(tmp_path: Path) -> Stage:
    adopt_orphans()
    layers = full()
    root, scratch = repository(tmp_path / "root"), tmp_path / "scratch"
    scratch.mkdir()
    environment = {**child_environment(os.environ, (), (), str(scratch)), "HOME": str(tmp_path)}
    git(root, "config", "user.name", "a")
    git(root, "config", "user.email", "b")
    fence = Fence("workspace-write", (str(root), str(scratch)), str(scratch), git="commands")
    return Stage(ConfinedShell(environment, fence, layers), root)


async def test_a_command_ends_inside_as_it_would_outside(stage: Stage) -> None:
    async def check(command: str, ended: Ended) -> None:
        assert await stage.run(command) == ended

    await check("echo hi", Ended("hi\n", "", 0))
    await check("echo out; echo err >&2; exit 3", Ended("out\n", "err\n", 3))
    await check("kill -SEGV $$", Ended("", "", None, signal="SIGSEGV"))
    await check("kill -TERM $$", Ended("", "", None, signal="SIGTERM"))
    await check("pwd", Ended(f"{stage.root}\n", "", 0))
    await check("exec > >(tee log) 2>&1; echo hi", Ended("hi\n", "", 0))
    await check("ls /proc/self/fd", Ended("0\n1\n2\n3\n", "", 0))
    await check(f"v={'x' * 200_000}; echo ${{#v}}; ls /proc/self/fd", Ended("200000\n0\n1\n2\n3\n", "", 0))  # fmt: skip  # noqa: E501


async def test_a_command_that_ignores_the_polite_signal_is_ended(stage: Stage) -> None:
    ended = await stage.run("trap '' TERM; echo a; sleep 1000 & wait; wait", timeout=1)
    assert (ended.stdout, ended.timed_out, ended.signal) == ("a\n", True, "SIGKILL")
    ended = await stage.run("trap 'echo bye; exit 4' TERM; sleep 1000 & wait", timeout=1)
    assert (ended.stdout, ended.timed_out, ended.code) == ("bye\n", True, 4)


async def test_nothing_is_left_behind(stage: Stage) -> None:
    ended = await stage.run(f"setsid env -i sleep {LONG} & echo started")
    assert (ended.stdout, sleepers()) == ("started\n", [])
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await stage.run(f"sleep {LONG} & echo up; wait", output=lambda _: started.set())

        tasks.start_soon(run)
        with anyio.fail_after(20):
            await started.wait()
        tasks.cancel_scope.cancel()
    assert sleepers() == []


async def test_what_is_denied_and_what_was_planted_is_told(stage: Stage) -> None:
    denied = "file access denied under workspace-write mode"
    told = (
        "hooks and settings of git stay as they are, and so does what belongs to worktrees "
        'elsewhere: "git-write" does not change that'
    )
    ended = await stage.run("echo x > .git/hooks/pre-commit", git=True)
    assert ended.notes == (denied, told)
    ended = await stage.run("git config a.b c", git=True)
    assert ended.notes == (denied, told)
    ended = await stage.run("echo x > .git/HEAD")
    assert (ended.notes[0], ended.notes[1][:19]) == (denied, ".git can be changed")
    ended = await stage.run("mkdir .vscode; echo x > .envrc; echo x > ok")
    assert len(ended.notes) == 2
    assert names(stage.root) == [".envrc.blocked", ".git", ".vscode.blocked", "ok"]


async def test_what_a_cancelled_command_planted_is_put_aside_too(stage: Stage) -> None:
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await stage.run("echo x > .envrc; echo; sleep 100", output=lambda _: started.set())

        tasks.start_soon(run)
        with anyio.fail_after(20):
            await started.wait()
        tasks.cancel_scope.cancel()
    assert names(stage.root) == [".envrc.blocked", ".git"]


async def test_what_is_put_aside_here_is_not_left_to_the_guardian(stage: Stage) -> None:
    guardian = Guardian(patience=20)
    shell = replace(stage.shell, guardian=guardian)
    ended = await shell.run(Command("echo x > .envrc", str(stage.root), 30), lambda _: None)
    assert len(ended.notes) == 1
    (stage.root / ".envrc").touch()
    guardian.close()
    assert names(stage.root) == [".envrc", ".envrc.blocked", ".git"]


async def test_a_clean_checkout_stays_clean(stage: Stage) -> None:
    before = names(stage.root)
    ended = await stage.run("git status --porcelain; ls -A")
    assert (ended.stdout, ended.stderr) == (".git\n", "")
    assert names(stage.root) == before


async def test_git_commits_in_every_kind_of_checkout(stage: Stage, tmp_path: Path) -> None:
    repository(tmp_path / "inner")
    git(stage.root, "submodule", "add", str(tmp_path / "inner"), "sub")
    git(stage.root, "commit", "-qm", "with a submodule")
    git(stage.root, "worktree", "add", "../tree")
    tree, sub = tmp_path / "tree", stage.root / "sub"
    who = " ".join(f"GIT_{one}_NAME=a GIT_{one}_EMAIL=b" for one in ("AUTHOR", "COMMITTER"))
    commit = f"export {who}; echo $RANDOM > a && git add a && git commit -qm x && git log --oneline"

    async def check(root: Path, folder: Path, commits: int) -> None:
        there = stage.fenced(roots=(str(root), stage.shell.fence.scratch))
        ended = await there.run(commit, cwd=folder, git=True)
        assert (ended.code, len(ended.stdout.splitlines())) == (0, commits), (folder, ended)
        hook = "echo x > $(git rev-parse --git-common-dir)/hooks/h"
        ended = await there.run(hook, cwd=folder, git=True)
        assert "Read-only file system" in ended.stderr
        for one in ("--git-dir", "--git-common-dir"):
            ended = await there.run(f"at=$(git rev-parse {one}); touch $at/x $at/HEAD", cwd=folder)
            assert ended.stderr.count("Read-only file system") == 2, (folder, ended)
        ended = await there.run(commit, cwd=folder)
        assert "index.lock': Read-only file system" in ended.stderr
        assert len(ended.notes) == 2
        ended = await there.run("git log --oneline && git status --porcelain", cwd=folder)
        assert ended.code == 0

    await check(stage.root, stage.root, 3)
    await check(tree, tree, 3)
    await check(stage.root, sub, 2)
    await check(sub, sub, 3)


async def test_a_worktree_can_be_added_worked_in_and_removed(stage: Stage) -> None:
    async def run(command: str, *, git: bool = True) -> str:
        ended = await stage.run(command, git=git)
        return ended.stdout + ended.stderr + "".join(ended.notes)

    who = "git -c user.name=a -c user.email=b"
    await run("git worktree add -q tree")
    assert await run(f"cd tree && {who} commit -q --allow-empty -m x") == ""
    assert await run("git gc -q 2>&1 | grep reflog; git -C tree checkout -q -b other") == ""
    assert "Read-only file system" in await run("echo x > tree/.git", git=False)
    assert "tree/.git.blocked" in await run("echo x > tree/.git; git status")
    await run("mv tree/.git.blocked tree/.git", git=False)
    assert "index" not in await run("git worktree remove --force tree; ls .git/worktrees")


WRECKS = ("rm -rf .git", "mv .git x", "echo x > .git/hooks/h", "rm .git/HEAD", "rm -r .git/refs")


def tree_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


async def test_a_command_that_is_not_for_the_repository_leaves_all_of_it(stage: Stage) -> None:
    before = tree_of(stage.root / ".git")
    for command in WRECKS:
        ended = await stage.run(command)
        assert ended.code, command
        assert tree_of(stage.root / ".git") == before, command
    never = stage.fenced(git="never")
    assert "the user has it so" in str((await never.run(WRECKS[0], git=True)).notes)
    assert tree_of(stage.root / ".git") == before
    assert (await stage.fenced(git="always").run("rm -r .git/refs")).code == 0


async def test_a_worktree_keeps_the_repository_it_belongs_to(stage: Stage, tmp_path: Path) -> None:
    git(stage.root, "worktree", "add", "../tree")
    tree = tmp_path / "tree"
    both = (str(stage.root), str(tree), stage.shell.fence.scratch)
    for roots in (both[1:], both):
        there = stage.fenced(roots=roots)
        common = stage.root / ".git"
        for path in (common / "HEAD", common / "worktrees" / "tree" / "HEAD", tree / ".git"):
            assert (await there.run(f"rm -f {path} || rm {path}", cwd=tree)).code
            assert path.exists(), path
        assert (await there.run("git stash list && git log -1", cwd=tree)).code == 0


async def test_everyday_work_on_a_repository(stage: Stage, tmp_path: Path) -> None:
    repository(tmp_path / "root" / "inner")
    for command in (
        "echo a > a && git add a && git commit -qm a",
        "echo b > a && git stash && git stash pop && git commit -qam b",
        "git switch -qc topic HEAD~1 && echo c > c && git add c && git commit -qm c",
        "git rebase -q master",
        "git clone -q ./inner copy",
        "git gc -q && git fsck && git tag v1 && git reset -q --hard HEAD~1",
        "git worktree add -q tree && cd tree && git commit -q --allow-empty -m d",
    ):
        ended = await stage.run(command, git=True)
        assert ended.code == 0, (command, ended)


async def test_a_folder_that_is_gone_or_hidden_is_an_os_error(stage: Stage) -> None:
    with pytest.raises(SandboxFailed, match="/nowhere/at/all"):
        await stage.run("true", cwd=Path("/nowhere/at/all"))


async def test_a_helper_that_cannot_start_runs_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox.sys, "executable", "/nowhere/python")
    with pytest.raises(OSError, match="python"):
        await stage.run("touch ran")
    monkeypatch.setattr(sandbox.sys, "executable", "/bin/false")
    with pytest.raises(SandboxFailed, match="the sandbox did not start"):
        await stage.run("touch ran")
    assert not (stage.root / "ran").exists()


async def test_how_commands_are_held_is_told(stage: Stage) -> None:
    tmp = stage.shell.fence.scratch
    held = Hold("workspace-write", "full", tmp=tmp, git="commands")
    assert await stage.shell.hold() == held
    planning = stage.fenced(reach="read-only")
    assert await planning.shell.hold() == replace(held, reach="read-only")
    assert await stage.fenced(reach="danger-full-access").shell.hold() == Hold()


async def test_wider_limits_are_for_one_command(stage: Stage, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    assert (await stage.run(f"touch {outside}")).code == 0  # in a /tmp of its own
    assert not outside.exists()
    assert (await stage.run(f"touch {outside}", reach="danger-full-access")).code == 0
    assert outside.exists()
    planning = stage.fenced(reach="read-only")
    assert (await planning.run("touch a")).code == 1
    assert (await planning.run("touch a", reach="workspace-write")).code == 0


async def test_without_a_sandbox_commands_run_as_they_are(stage: Stage) -> None:
    for layers in (Layers(), replace(stage.shell.layers, working="")):
        bare = Stage(replace(stage.shell, layers=layers), stage.root)
        assert (await bare.run("mkdir .vscode && rmdir .vscode; echo x > /dev/null")).notes == ()
        assert (await bare.shell.hold()).strength == "none"


def test_a_sandboxed_command_gets_caches_of_its_own_and_no_ways_out() -> None:
    given = {"PATH": "/bin", "SSH_AUTH_SOCK": "/run/a", "DISPLAY": ":0", "UV_CACHE_DIR": "/c"}
    made = confined_environment(given, "/s", network=False)
    assert made == {
        "PATH": "/bin",
        "GIT_OPTIONAL_LOCKS": "0",
        "XDG_CACHE_HOME": "/s/cache",
        "UV_CACHE_DIR": "/s/cache/uv",
        "PIP_CACHE_DIR": "/s/cache/pip",
        "npm_config_cache": "/s/cache/npm",
        "GOCACHE": "/s/cache/go-build",
    }
    added = confined_environment(given, "/s", network=True).keys() - made.keys()
    assert added == {"CARGO_HOME", "GOMODCACHE"}


async def test_output_that_is_kept_can_be_searched_by_the_next_command(stage: Stage) -> None:
    (path,) = (await stage.run("seq 30000")).whole
    found = str(sum("7" in str(number) for number in range(1, 30_001)))
    assert (await stage.run(f"grep -c 7 {path}; tail -1 {path}")).stdout == f"{found}\n30000\n"


async def test_what_commands_put_into_tmp_is_where_it_is_said_to_be(stage: Stage) -> None:
    await stage.run("echo x > /tmp/x")
    tmp = (await stage.shell.hold()).tmp
    assert await anyio.Path(tmp, "x").read_text(encoding="utf-8") == "x\n"


PROGRAMS = {
    "npm": (
        'echo \'{"name":"a","version":"1.0.0","scripts":{"test":"node -e 1"}}\' > package.json; '
        "npm test && npm install --offline && npm config get cache"
    ),
    "cargo": (
        "mkdir -p src; echo 'fn main() {}' > src/main.rs; "
        'printf \'[package]\\nname = "a"\\nversion = "0.1.0"\\nedition = "2021"\\n\' > Cargo.toml; '
        "cargo build --offline -q && target/debug/a && echo $TMPDIR/cache"
    ),
    "python3": "python3 -m venv v && v/bin/pip cache dir",
    "go": (
        "printf 'module a\\n\\ngo 1.20\\n' > go.mod; "
        "printf 'package main\\nfunc main() {}\\n' > a.go; "
        "go build -o a . && ./a && go env GOCACHE"
    ),
    "uv": "uv venv -q --offline v && uv cache dir",
}
"""Program -> a build that needs a cache it can write to; its last line says where that is."""


def works(program: str) -> bool:
    """Whether it can tell its version; rustup's cargo may lead to none."""
    asked = "version" if program == "go" else "--version"
    return not subprocess.run([program, asked], capture_output=True, check=False).returncode


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
async def test_tools_that_keep_caches_work(stage: Stage, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    if not works(program):
        pytest.skip(f"{program} does not work here")
    environment = {**stage.shell.environment, "HOME": os.environ.get("HOME", "/")}
    stage = Stage(replace(stage.shell, environment=environment), stage.root)
    ended = await stage.run(PROGRAMS[program], timeout=300)
    assert ended.code == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1].startswith(f"{stage.shell.fence.scratch}/cache")
