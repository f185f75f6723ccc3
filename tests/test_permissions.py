"""Permissions as a person meets them: how often it asks, what it says, what an answer does."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bridge.core.wire import dump
from tests.fake_editor import Answer, choose
from tests.fake_responses import FakeResponses, called, said, stream
from tests.laws import Message
from tests.stage import Stage, stage
from tests.test_sandbox import full
from tools.frozen import frozen
from tools.layers import Layers
from tools.prctl import adopt_orphans

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs bash"),
]

Call = tuple[str, Mapping[str, Any]]


def shell(command: str, **more: object) -> Call:
    return "shell", {"command": command, "description": "Goes on.", **more}


def wider(command: str, why: str) -> Call:
    return shell(command, sandbox_permissions="danger-full-access", justification=why)


def read(path: str) -> Call:
    return "read", {"file_path": path}


def edit(path: str, old: str, new: str) -> Call:
    return "edit", {"file_path": path, "old_string": old, "new_string": new}


def write(path: str, content: str) -> Call:
    return "write", {"file_path": path, "content": content}


def working(*calls: Call) -> FakeResponses:
    """A model that makes these calls, one after the other, and says that it is done."""
    answers = [
        stream(called(f"c{n}", name, json.dumps(arguments)))
        for n, (name, arguments) in enumerate(calls)
    ]
    return FakeResponses(*answers, stream(said("Done.")))


def asked(at: Stage) -> list[Message]:
    """The permission requests so far."""
    return [
        message["params"]
        for message in at.editor.received
        if message.get("method") == "session/request_permission"
    ]


def ends(at: Stage) -> list[Message]:
    """The last word of each call."""
    return [one for one in at.editor.updates() if one.get("status") in ("completed", "failed")]


def ended_well(end: Message) -> bool:
    return end["status"] == "completed" and end["rawOutput"].get("exitCode", 0) == 0


# -- how often it asks -----------------------------------------------------------------------------


@frozen
class Task:
    """An everyday task: what there is, and the calls that a model makes for it."""

    files: Mapping[str, str]
    calls: Sequence[Call]
    held: int
    """Requests where a sandbox holds commands."""
    alone: int
    """Requests where none does, and the person answers "always"."""


PARTS = {f"src/part{n}.py": f"import old\n\n\nold.run({n})\n" for n in range(10)}

TASKS = {
    "a fix in Python": Task(
        {"app.py": "def add(a, b):\n    return a - b\n", "test_app.py": "import app\n"},
        (
            shell("uv run pytest"),
            read("app.py"),
            edit("app.py", "a - b", "a + b"),
            shell("uv run pytest -x -q"),
            shell("cd . && uv run pytest test_app.py | tail -n 5"),
            shell("uv run ruff check ."),
        ),
        held=0,
        alone=2,
    ),
    "a fix in JavaScript": Task(
        {"index.js": "module.exports = 1\n", "package.json": "{}\n"},
        (
            wider("npm ci", "It fetches the packages."),
            shell("npm test"),
            read("index.js"),
            edit("index.js", "1", "2"),
            shell("npm test -- --bail"),
            shell("timeout 60 npm test"),
        ),
        held=1,
        alone=1,
    ),
    "a build in Rust": Task(
        {"src/main.rs": "fn main() { old() }\n", "Cargo.toml": "[package]\n"},
        (
            read("src/main.rs"),
            shell("cargo build 2>&1 | tail -n 20"),
            edit("src/main.rs", "old()", "new()"),
            shell("cargo build --release"),
            shell("cargo build --release && ls"),
        ),
        held=0,
        alone=2,
    ),
    "documentation and a commit": Task(
        {"docs/guide.md": "Teh guide.\n"},
        (
            read("docs/guide.md"),
            edit("docs/guide.md", "Teh", "The"),
            write("docs/more.md", "More.\n"),
            shell("git add docs && git commit -q -m 'Mend a word; say more'"),
            wider("git push -q", "It sends the commit."),
        ),
        held=1,
        alone=1,
    ),
    "a change of ten files": Task(
        PARTS,
        (
            *(read(name) for name in PARTS),
            *(edit(name, "old.run", "new.run") for name in PARTS),
            shell("uv run pytest -q"),
            shell("uv run pytest -q src | head -n 3"),
        ),
        held=0,
        alone=1,
    ),
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that is a git repository with somewhere to push to, and the usual programs."""
    workspace, programs = tmp_path / "ws", tmp_path / "ws" / ".programs"
    programs.mkdir(parents=True)
    for name in ("uv", "npm", "cargo"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    for line in (
        "git init -q --bare ../remote",
        "git init -q -b main",
        "git config user.name A",
        "git config user.email a@example.org",
        "git config push.default current",
        "git remote add origin ../remote",
    ):
        subprocess.run(line.split(), cwd=workspace, check=True)
    return workspace


async def play(folder: Path, task: Task, answer: str, layers: Layers | None) -> int:
    """Carry a task out; how often it asked."""
    for name, text in task.files.items():
        file = folder / "ws" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    calls = [one for one in task.calls if layers or "sandbox_permissions" not in one[1]]
    top = {"permission": "workspace-write"}
    async with stage(folder, working(*calls), top=top, layers=layers) as at:
        at.editor.answers["session/request_permission"] = choose(answer)
        assert (await at.prompt())["stopReason"] == "end_turn"
        assert [ended_well(one) for one in ends(at)] == [True] * len(calls)
        return len(asked(at))


@pytest.mark.skipif(sys.platform != "linux", reason="needs a sandbox")
@pytest.mark.parametrize("name", TASKS)
async def test_an_everyday_task_asks_twice_at_most(
    name: str, tmp_path: Path, machine: Path
) -> None:
    adopt_orphans()
    times = await play(tmp_path, TASKS[name], "allow_once", full())
    assert times == TASKS[name].held <= 2


@pytest.mark.parametrize("name", TASKS)
async def test_without_a_sandbox_each_kind_of_command_asks_once(
    name: str, tmp_path: Path, machine: Path
) -> None:
    times = await play(tmp_path, TASKS[name], "allow_always", None)
    assert times == TASKS[name].alone <= 2


LONG = 20_000


@pytest.mark.parametrize(("more", "most"), [("x", LONG), ("\\", 2 * LONG)])
async def test_a_very_long_command_is_sent_once(tmp_path: Path, more: str, most: int) -> None:
    """With at most 16 K characters of it beside, and 1 K for each rule that it may become."""
    command = f"echo '{more * LONG}'"
    top = {"permission": "ask"}
    async with stage(tmp_path, working(shell(command)), top=top) as at:
        at.editor.answers["session/request_permission"] = choose("reject_once")
        await at.prompt()
        (question,) = asked(at)
    assert question["toolCall"]["rawInput"]["command"] == command
    assert len(question["toolCall"]["title"]) == 200
    assert len(question["_meta"]["responses-acp"]["rules"]) == 3
    beside = len(dump(question)) - len(dump(command))
    size = most // LONG
    assert 16 * 1024 * size < beside < (16 * 1024 + 3 * 1100 + 200) * size + 1500


# -- rules -----------------------------------------------------------------------------------------


async def test_what_a_rule_denies_is_not_asked_and_not_done(tmp_path: Path) -> None:
    rules = {"deny": ["shell touch", "edit *.lock"]}
    model = working(shell("cd . && touch ran"), write("a.lock", "x"), shell("$X ran"))
    async with stage(tmp_path, model, top={"permissions": rules}) as at:
        at.editor.answers["session/request_permission"] = choose("reject_once")
        await at.prompt()
        denied, other, unclear = ends(at)
        assert denied["rawOutput"]["output"] == (
            'Error: shell is denied by the permission rule "shell touch" (config.toml): do not '
            "look for another way, go on without it or ask the user"
        )
        assert 'write is denied by the permission rule "edit *.lock"' in str(other)
        assert "the user declined this call" in str(unclear)
        assert len(asked(at)) == 1
        assert list(at.workspace.iterdir()) == []


async def test_a_rule_that_asks_asks_each_time_and_says_so(tmp_path: Path) -> None:
    top = {"permissions": {"ask": ["shell touch"], "allow": ["shell touch"]}}
    async with stage(tmp_path, working(shell("touch a"), shell("touch b")), top=top) as at:
        at.editor.answers["session/request_permission"] = choose("allow_once")
        await at.prompt()
        first, second = asked(at)
        assert first["_meta"] == {
            "responses-acp": {"reason": 'The rule "shell touch" (config.toml) asks.'}
        }
        assert [one["kind"] for one in second["options"]] == ["allow_once", "reject_once"]
        assert {path.name for path in at.workspace.iterdir()} == {"a", "b"}


async def test_files_that_may_not_be_read_are_not_searched(tmp_path: Path) -> None:
    (tmp_path / "ws" / "secrets").mkdir(parents=True)
    for name in ("secrets/a.txt", "b.txt"):
        (tmp_path / "ws" / name).write_text("word\n", encoding="utf-8")
    top = {"permissions": {"deny": ["read secrets/**"]}}
    calls = (
        ("grep", {"pattern": "word"}),
        ("glob", {"pattern": "*.txt"}),
        read("secrets/a.txt"),
        read("Secrets/../secrets/a.txt"),
    )
    async with stage(tmp_path, working(*calls), top=top) as at:
        await at.prompt()
        found, names, *refused = [one["rawOutput"]["output"] for one in ends(at)]
        assert "b.txt" in found
        assert "b.txt" in names
        assert "secrets" not in found + names
        assert all("is denied by the permission rule" in one for one in refused)


async def test_a_project_can_narrow_and_is_told_what_it_cannot(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / ".responses-acp.toml").write_text(
        '[permissions]\ndeny = ["shell touch"]\nallow = ["shell"]\n'
        '[providers.p]\nbase_url = "https://evil.example/v1"\n',
        encoding="utf-8",
    )
    async with stage(tmp_path, working(shell("touch a"))) as at:
        await at.prompt()
        notices = [one["title"] for one in at.editor.updates() if "severity" in one]
        assert [one.rpartition(".toml:")[2].split(" is left out")[0] for one in notices] == [
            "4: providers",
            "3: permissions.allow",
        ]
        assert "is denied" in str(ends(at))
        assert {asked.target for asked in at.model.asked} == {"/v1/responses"}


# -- requests --------------------------------------------------------------------------------------


async def test_a_request_shows_all_that_is_to_be_allowed(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    file = tmp_path / "ws" / "a.txt"
    file.write_bytes(b"one\r\ntwo\r\n")
    model = working(read("a.txt"), edit("a.txt", "two", "2"))
    async with stage(tmp_path, model, top={"permission": "ask"}) as at:
        at.editor.answers["session/request_permission"] = choose("allow_once")
        await at.prompt()
        (request,) = asked(at)
        call, reason = request["toolCall"], 'The permission "ask" asks before every edit and every'
        assert (call["title"], call["kind"]) == ("Edit a.txt", "edit")
        assert call["rawInput"] == edit("a.txt", "two", "2")[1]
        assert call["locations"] == [{"path": str(file)}]
        diff, why = call["content"]
        assert diff == {
            "type": "diff",
            "path": str(file),
            "oldText": "one\r\ntwo\r\n",
            "newText": file.read_bytes().decode(),
        }
        assert why["content"]["text"].startswith(reason)
        told = request["_meta"]["responses-acp"]
        assert told["reason"] == why["content"]["text"]
        assert told["rules"] == {
            "allow_always": "edit",
            "allow_always_project": "edit /a.txt",
            "reject_always": f"edit {file}",
        }


async def test_a_command_is_shown_whole_where_its_title_does_not_show_it(tmp_path: Path) -> None:
    hidden = {
        f"ls{' ' * 3000}; rm x": "ls [3000 blanks] ; rm x",
        "ls\n" * 60 + "rm x": "ls\n" * 60 + "rm x",
        "ls" + "\n" * 50 + "rm x": "ls\n[49 empty lines]\nrm x",
        f"echo {'x' * 300}; rm x": f"echo {'x' * 300}; rm x",
        f"echo {'x' * 100_000}; rm x": "xx; rm x",
        "echo a\u200b\u3164b": r"echo a\u200b\u3164b",
    }
    model = working(*(shell(command) for command in hidden), shell("ls\nrm x"))
    async with stage(tmp_path, model, top={"permission": "ask"}) as at:
        at.editor.answers["session/request_permission"] = choose("reject_once")
        await at.prompt()
        *whole, short = asked(at)
        for request, shown in zip(whole, hidden.values(), strict=True):
            texts = [one["content"]["text"] for one in request["toolCall"]["content"]]
            assert any(text.endswith(f"{shown}\n```") for text in texts), texts
            assert max(map(len, texts)) < 20_000
        assert "```" not in str(short["toolCall"]["content"])


@pytest.mark.parametrize("mark", ["\r", "\u00a0", "\u202e", "\u2066", "\x1b", "\u2028"])
async def test_a_command_with_unseen_characters_asks_and_shows_them(
    tmp_path: Path, mark: str
) -> None:
    top = {"permission": "workspace-write", "permissions": {"allow": ["shell echo"]}}
    model = working(shell("echo a"), shell(f"echo a{mark}b"))
    async with stage(tmp_path, model, top=top) as at:
        at.editor.answers["session/request_permission"] = choose("reject_once")
        await at.prompt()
        (request,) = asked(at)
        texts = [one["content"]["text"] for one in request["toolCall"]["content"]]
        assert "It holds characters that cannot be seen:" in texts
        assert f"```console\necho a{ascii(mark)[1:-1]}b\n```" in texts
        assert mark not in request["toolCall"]["title"]


# -- answers ---------------------------------------------------------------------------------------


async def test_an_answer_for_the_project_holds_until_it_is_taken_back(tmp_path: Path) -> None:
    async def session(answer: str, *said_before: str) -> tuple[int, str]:
        """How often a session asks that runs a test; and what /permissions says."""
        top = {"permission": "ask"}
        async with stage(tmp_path, working(shell("go test ./... ; true")), top=top) as at:
            for line in said_before:
                await at.prompt(line)
            at.editor.answers["session/request_permission"] = pick(answer)
            await at.prompt()
            times = len(asked(at))
            at.news()
            await at.prompt("/permissions")
            (shown,) = [one["content"]["text"] for one in at.news() if "messageId" in one]
            return times, shown

    def pick(option: str) -> Answer:
        return lambda params: {"outcome": {"outcome": "selected", "optionId": option}}

    line = "- allow `shell go test` (your answer for this project)"
    times, shown = await session("allow_once")
    assert (times, "your answer" in shown) == (1, False)
    times, shown = await session("allow_always_project")
    assert (times, line in shown) == (1, True)
    times, shown = await session("reject_once")
    assert (times, line in shown) == (0, True)
    times, shown = await session("reject_once", "/permissions remove shell go test")
    assert (times, line in shown) == (1, False)
    assert not any("go test" in path.read_text() for path in (tmp_path / "ws").rglob("*"))


async def test_an_answer_that_denies_holds_for_the_session(tmp_path: Path) -> None:
    calls = (shell("npm publish"), shell("cd . && npm publish"), shell("npm publish --tag x"))
    async with stage(tmp_path, working(*calls), top={"permission": "ask"}) as at:
        at.editor.answers["session/request_permission"] = choose("reject_always")
        await at.prompt()
        assert len(asked(at)) == 1
        declined, *denied = [one["rawOutput"]["output"] for one in ends(at)]
        assert "the user declined this call" in declined
        assert all('"shell npm publish" (your answer for this session)' in one for one in denied)


async def test_an_answer_that_cannot_be_stored_is_said_to_hold_for_the_session(
    tmp_path: Path,
) -> None:
    (tmp_path / "permissions").touch()
    calls = (shell("touch a"), shell("touch a"))
    async with stage(tmp_path, working(*calls), top={"permission": "ask"}) as at:
        at.editor.answers["session/request_permission"] = lambda _: {
            "outcome": {"outcome": "selected", "optionId": "allow_always_project"}
        }
        await at.prompt()
        assert len(asked(at)) == 1
        assert "it holds for this session only" in json.dumps(at.news())
        await at.prompt("/permissions")
        assert "`shell touch a` exactly (your answer for this session)" in at.editor.text()


async def test_plan_mode_that_begins_while_a_command_waits_asks_in_its_own_words(
    tmp_path: Path,
) -> None:
    top = {"permission": "workspace-write"}
    async with stage(tmp_path, working(shell("touch a")), top=top) as at:
        at.editor.answers["session/request_permission"] = lambda _: None

        async def question(number: int) -> Message:
            return await at.editor.message(
                lambda message: message.get("params") in asked(at)[number : number + 1]
            )

        prompt = [{"type": "text", "text": "Go on."}]
        turn = await at.editor.begin("session/prompt", {"sessionId": at.session, "prompt": prompt})
        first = await question(0)
        plan = {"sessionId": at.session, "modeId": "plan"}
        await at.editor.request("session/set_mode", plan)
        allowed = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        await at.editor.reply(first["id"], allowed)
        second = await question(1)
        assert "In plan mode nothing may change" in json.dumps(second["params"])
        assert list(at.workspace.iterdir()) == []
        await at.editor.reply(second["id"], allowed)
        assert (await at.editor.result(turn))["stopReason"] == "end_turn"
        assert len(asked(at)) == 2
        assert [path.name for path in at.workspace.iterdir()] == ["a"]


async def test_what_can_be_taken_back_is_told(tmp_path: Path) -> None:
    top = {"permissions": {"deny": ["shell touch"]}}
    async with stage(tmp_path, FakeResponses(), top=top) as at:

        async def told(line: str) -> str:
            at.news()
            await at.prompt(line)
            return "".join(one["content"]["text"] for one in at.news() if "messageId" in one)

        assert "- deny `shell touch` (config.toml)" in await told("/permissions")
        assert await told("/permissions remove shell touch") == (
            "Error: this rule is not an answer of yours; take it out of config.toml"
        )
        assert await told("/permissions remove shell ls") == (
            "Error: there is no such answer; /permissions shows all"
        )
        assert await told("/permissions reset") == "You have given no answer for good."
        assert await told("/permissions remove") == 'Error: unknown permission value "remove"'
