"""The real agent and its sandbox: what commands reach, and who is asked."""

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agent_process import KEY, PROGRAM, Machine, begin_prompt, machine
from tests.fake_editor import Agent, Editor, agent_process, choose
from tests.test_process import until
from tests.test_repository import repository
from tests.test_sandbox import full

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux"),
]

ORDINARY = {"permission": "workspace-write"}
STEAL = (
    "for p in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $p; done 2>/dev/null | grep -c ^TEST_KEY="
)
PARENT = "tr '\\0' '\\n' < /proc/$PPID/environ | grep -c ^TEST_KEY="


def forge(agent: Agent) -> str:
    """Writes into every file that the agent has open, and into no other process's."""
    return f"for file in /proc/{agent.pid}/fd/*; do echo forged > $file; done 2>/dev/null"


@asynccontextmanager
async def held(folder: Path) -> AsyncGenerator[tuple[Machine, Agent]]:
    """An agent whose commands are held by a sandbox with no gaps."""
    full()
    async with machine(folder, settings=ORDINARY, sandbox={}) as here, here.agent() as agent:
        yield here, agent


async def shell(here: Machine, editor: Editor, session: str, command: str, **more: Any) -> str:
    """A turn with one command of the model's; gives what the model was told of it."""
    call = await begin_prompt(editor, session)
    request = await here.model.request()
    number = len(here.model.requests)
    await request.ask_for(f"c{number}", "shell", command=command, description="d", **more)
    request = await here.model.request()
    await request.answer()
    assert (await editor.result(call))["stopReason"] == "end_turn"
    return request.input[-1]["output"]


def offered(here: Machine) -> set[str]:
    """The arguments of the shell tool, as the model was told them."""
    tools = here.model.requests[-1].body["tools"]
    (tool,) = (tool for tool in tools if tool["name"] == "shell")
    return set(tool["parameters"]["properties"])


def asked(editor: Editor) -> list[str]:
    """What the person was shown when asked."""
    method = "session/request_permission"
    questions = (one["params"] for one in editor.received if one.get("method") == method)
    return [str(params["toolCall"]["content"]) for params in questions]


async def test_a_command_runs_unasked_and_finds_no_key(tmp_path: Path) -> None:
    async with held(tmp_path) as (here, agent):
        editor = agent.editor
        session = await editor.new_session(here.workspace)
        assert await shell(here, editor, session, "echo hi > a; cat a") == "hi\n"
        assert "sandbox_permissions" in offered(here)
        assert (await shell(here, editor, session, STEAL)).startswith("0\n")
        await shell(here, editor, session, forge(agent))
        text = await shell(here, editor, session, f"cat {here.config}; ls {tmp_path}/home/state")
        assert KEY not in text
        assert "base_url" not in text
        text = await shell(here, editor, session, f"echo x > {tmp_path}/home/x && ls {tmp_path}")
        assert not (tmp_path / "home" / "x").exists()
        assert (here.workspace / "a").read_text() == "hi\n"
        await editor.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
        text = await shell(here, editor, session, "touch b")
        assert "[sandbox: file access denied under read-only mode]" in text
        assert asked(editor) == []


async def test_wider_limits_ask_the_person(tmp_path: Path) -> None:
    wider = {"sandbox_permissions": "danger-full-access", "justification": "It must."}
    async with held(tmp_path) as (here, agent):
        editor = agent.editor
        editor.answers["session/request_permission"] = choose("allow_once")
        session = await editor.new_session(here.workspace)
        outside = tmp_path / "outside"
        assert await shell(here, editor, session, f"echo x > {outside}", **wider) == "(no output)"
        assert outside.read_text() == "x\n"
        (question,) = asked(editor)
        assert "It must." in question


COMMIT = "git -c user.name=a -c user.email=b commit -qm x --allow-empty"


async def test_only_lines_that_run_git_change_the_repository(tmp_path: Path) -> None:
    async with held(tmp_path) as (here, agent):
        repository(here.workspace / "src")
        (here.workspace / "src" / "release.sh").write_text(COMMIT, encoding="utf-8")
        editor = agent.editor
        session = await editor.new_session(here.workspace / "src")

        async def run(command: str, **more: Any) -> str:
            return await shell(here, editor, session, command, **more)

        async def commits() -> int:
            return int(await run("git rev-list --count HEAD"))

        for wreck in ("rm -rf .git", "mv .git x", "echo x > .git/hooks/h"):
            text = await run(wreck)
            assert "[sandbox: .git can be changed only by a line that runs git itself" in text
        assert await run(COMMIT) == "(no output)"
        assert await commits() == 2
        assert "or with sandbox_permissions" in await run("bash release.sh")
        assert "index.lock" in await run("bash release.sh; sleep 100", run_in_background=True)
        assert await commits() == 2
        assert asked(editor) == []
        editor.answers["session/request_permission"] = choose("allow_once")
        wider = {"sandbox_permissions": "git-write", "justification": "It commits."}
        assert await run("bash release.sh", **wider) == "(no output)"
        assert await commits() == 3
        (question,) = asked(editor)
        assert "It commits." in question
        await editor.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
        assert "Read-only file system" in await run(COMMIT)


async def test_what_was_planted_is_put_aside_when_the_agent_is_killed(tmp_path: Path) -> None:
    full()
    async with machine(tmp_path, settings=ORDINARY, sandbox={}) as here:
        environment, command = here.environment, [*PROGRAM, "--config", str(here.config)]
        async with agent_process(command, env=environment, cwd=here.workspace) as agent:
            await agent.editor.initialize()
            session = await agent.editor.new_session(here.workspace)
            await begin_prompt(agent.editor, session)
            plant = "echo x > .envrc; mkdir .vscode; touch planted; sleep 1000"
            request = await here.model.request()
            await request.ask_for("c", "shell", command=plant, description="d")
            await until((here.workspace / "planted").exists)
            os.kill(agent.pid, signal.SIGKILL)
            names = {".envrc.blocked", ".vscode.blocked", "planted"}
            await until(lambda: {path.name for path in here.workspace.iterdir()} == names)


async def test_who_may_change_the_repository_is_a_setting(tmp_path: Path) -> None:
    full()
    async with machine(tmp_path) as here:
        repository(here.workspace / "src")
        for setting, command, remains in (("never", COMMIT, True), ("always", "rm -r .git", False)):
            here.configure(ORDINARY, sandbox={"git": setting})
            async with here.agent() as agent:
                session = await agent.editor.new_session(here.workspace / "src")
                text = await shell(here, agent.editor, session, command)
                assert ("the user has it so" in text) is remains
                refs = here.workspace / "src" / ".git" / "refs"
                assert refs.exists() is remains


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root")
async def test_root_finds_no_key_with_full_access_either(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.agent() as agent:
        session = await agent.editor.new_session(here.workspace)
        assert (await shell(here, agent.editor, session, PARENT)).startswith("0\n")
        assert (await shell(here, agent.editor, session, STEAL)).startswith("0\n")
        await shell(here, agent.editor, session, forge(agent))
        assert await shell(here, agent.editor, session, "touch a && chown 1 a && id -u") == "0\n"


async def test_without_a_sandbox_commands_ask_or_do_not_run(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        here.configure(ORDINARY, sandbox={"mode": "off"})
        async with here.agent() as agent:
            editor = agent.editor
            editor.answers["session/request_permission"] = choose("reject_once")
            session = await editor.new_session(here.workspace)
            text = await shell(here, editor, session, "touch a")
            assert text.startswith("Error: the user declined")
            assert "sandbox_permissions" not in offered(here)
            (question,) = asked(editor)
            assert "Without a sandbox" in question
        here.configure(ORDINARY, sandbox={"mode": "off", "require": True})
        async with here.agent() as agent:
            session = await agent.editor.new_session(here.workspace)
            text = await shell(here, agent.editor, session, "touch a")
            assert text.startswith("Error: no command runs without a sandbox, and there is none: ")
        assert not (here.workspace / "a").exists()


async def test_roots_of_the_users_own_can_be_written_and_the_network_switched_on(
    tmp_path: Path,
) -> None:
    full()
    async with machine(tmp_path) as here:
        (tmp_path / "notes").mkdir()
        here.configure(ORDINARY, sandbox={"network": True, "writable_roots": ["notes"]})
        async with here.agent() as agent:
            session = await agent.editor.new_session(here.workspace)
            await shell(here, agent.editor, session, f"echo x > {tmp_path}/notes/a")
            assert (tmp_path / "notes" / "a").exists()
            port = here.model.base_url.rpartition(":")[2].removesuffix("/v1")
            reach = f"exec 3<> /dev/tcp/127.0.0.1/{port} && echo in"
            assert await shell(here, agent.editor, session, reach) == "in\n"


def is_output(item: dict[str, Any], call: str) -> bool:
    return (item.get("type"), item.get("call_id")) == ("function_call_output", call)


async def test_a_job_that_may_write_ends_when_plan_mode_begins(tmp_path: Path) -> None:
    async with held(tmp_path) as (here, agent):
        editor = agent.editor
        session = await editor.new_session(here.workspace)
        wait = "echo on; while sleep 0.01; do echo x > a; done"
        text = await shell(here, editor, session, wait, run_in_background=True)
        assert "[job1 is running]" in text
        await editor.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
        call = await begin_prompt(editor, session)
        request = await here.model.request()
        await request.ask_for("look", "shell_job", id="job1", action="poll")
        request = await here.model.request()
        await request.answer()
        await editor.result(call)
        (told,) = (str(item["output"]) for item in request.input if is_output(item, "look"))
        assert "than the mode and permission in force allow" in told
        assert "[killed by signal: SIGKILL]" in told


async def test_a_command_runs_in_the_tmp_that_commands_see(tmp_path: Path) -> None:
    async with held(tmp_path) as (here, agent):
        editor = agent.editor
        session = await editor.new_session(here.workspace)
        name = f"/tmp/made-{tmp_path.name}"
        await shell(here, editor, session, f"mkdir {name}; echo hi > {name}/a")
        assert await shell(here, editor, session, "cat a; echo x > b", workdir=name) == "hi\n"
        assert await shell(here, editor, session, f"cat {name}/b") == "x\n"
        await shell(here, editor, session, "mkdir sub; echo yes > sub/a")
        assert await shell(here, editor, session, "cat a; echo x > b", workdir="sub") == "yes\n"
        assert asked(editor) == []


async def test_our_own_files_are_asked_about_where_the_home_is_the_workspace(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path, settings=ORDINARY) as here, here.agent() as agent:
        editor = agent.editor
        editor.answers["session/request_permission"] = choose("reject_once")
        session = await editor.new_session(here.folder)
        state = here.folder / "home" / "state" / "responses-acp"
        for name, arguments in (
            ("write", {"file_path": f"{state}/permissions/x.json", "content": "{}"}),
            ("write", {"file_path": str(here.folder / "home/config/responses-acp/config.toml"),
                       "content": "x"}),
            ("read", {"file_path": str(here.config)}),
        ):  # fmt: skip
            call = await begin_prompt(editor, session)
            request = await here.model.request()
            await request.ask_for(f"c{len(here.model.requests)}", name, **arguments)
            await (await here.model.request()).answer()
            await editor.result(call)
        assert len(asked(editor)) == 3
        assert not (state / "permissions").exists()
