import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest

from tests.workspace import context
from tools.base import (
    Access,
    Card,
    Command,
    Console,
    Ended,
    Hold,
    Prepared,
    Reach,
    Result,
    Text,
)
from tools.shell import CONFINED_SHELL, SHELL

pytestmark = pytest.mark.anyio


@dataclass
class ScriptedShell:
    """Every command prints a word and ends as it is told."""

    ended: Ended | OSError = field(default_factory=lambda: Ended("", "", 0))
    ran: list[Command] = field(default_factory=list[Command])
    holds: Hold = field(default_factory=Hold)

    async def hold(self) -> Hold:
        return self.holds

    async def run(self, command: Command, output: Callable[[str], None]) -> Ended:
        self.ran.append(command)
        output("live")
        if isinstance(self.ended, OSError):
            raise self.ended
        return self.ended


@pytest.fixture
def cwd(tmp_path: Path) -> str:
    root = tmp_path.resolve() / "work"
    (root / "sub").mkdir(parents=True)
    (root / "file").touch()
    (root / "loop").symlink_to("loop")
    (root / "away").symlink_to("..")
    return str(root)


def card(arguments: Mapping[str, object]) -> Card:
    bound = SHELL.bind(arguments, "/work")
    assert not isinstance(bound, Result)
    return bound.card


async def prepared(
    arguments: Mapping[str, object], cwd: str, shell: ScriptedShell
) -> Prepared | Result:
    bound = SHELL.bind({"description": "d", **arguments}, cwd)
    if isinstance(bound, Result):
        return bound
    with anyio.fail_after(10):
        return await bound.prepare(replace(context(cwd), shell=shell))


async def result(ended: Ended | OSError, arguments: Mapping[str, object], cwd: str) -> Result:
    call = await prepared({"command": "x", **arguments}, cwd, ScriptedShell(ended))
    assert isinstance(call, Prepared)
    with anyio.fail_after(10):
        return await call.run()


def test_a_card_shows_the_command_and_what_it_is_for() -> None:
    assert card({"command": "cat notes.txt", "description": "Inspect notes.txt contents"}) == Card(
        "cat notes.txt", "execute", shown=(Text("Inspect notes.txt contents"),)
    )
    assert card({"command": "a\nb\u202ec", "description": ""}).title == "a ↵ b\\u202ec"
    assert len(card({"command": "x" * 1000, "description": ""}).title) == 200


async def test_a_command_that_cannot_be_is_refused(cwd: str) -> None:
    async def check(arguments: Mapping[str, object], text: str) -> None:
        shell = ScriptedShell()
        refused = await prepared({"command": "ls", **arguments}, cwd, shell)
        assert isinstance(refused, Result)
        assert not refused.ok
        assert refused.text == f"Error: {text}".replace("CWD", cwd)
        assert shell.ran == []

    await check({"command": ""}, "command is empty")
    await check({"command": " \n\t"}, "command is empty")
    await check({"command": "a\0b"}, "command holds a NUL character")
    await check({"command": "a\ud800"}, "command holds a lone surrogate, which is not text")
    await check({"workdir": ""}, "workdir is empty")
    await check({"workdir": "a\0"}, "workdir holds a NUL character")
    await check({"workdir": "a\udc80"}, "workdir holds a lone surrogate, which is not text")
    missing, loop = os.strerror(errno.ENOENT), os.strerror(errno.ELOOP)
    await check({"workdir": "no"}, f'workdir "CWD/no" cannot be used: {missing}')
    await check({"workdir": "loop"}, f'workdir "CWD/loop" cannot be used: {loop}')
    await check({"workdir": "file"}, 'workdir "CWD/file" is not a folder')
    for arguments in ({"timeoutMs": 0}, {"timeoutMs": 600_001}, {"command": 1}, {"sandbox": "x"}):
        refused = await prepared({"command": "ls", **arguments}, cwd, ScriptedShell())
        assert isinstance(refused, Result)
        assert refused.text.startswith("Error: invalid arguments: ")


async def test_what_a_command_would_touch_is_told(cwd: str) -> None:
    async def check(arguments: Mapping[str, object], access: Access, folder: str) -> None:
        shell = ScriptedShell()
        call = await prepared(arguments, cwd, shell)
        assert isinstance(call, Prepared)
        assert replace(call.access, line=None) == access
        assert shell.ran == []
        await call.run()
        assert (shell.ran[0].line, shell.ran[0].cwd) == (access.subject, folder)

    run, ls = Access("run", "make"), Access("run", "ls", harmless=True)
    outside, parent = Access("run", "make", outside=True), str(Path(cwd).parent)
    await check({"command": "make"}, run, cwd)
    await check({"command": "ls", "workdir": None}, ls, cwd)
    await check({"command": "make", "workdir": "sub"}, run, f"{cwd}/sub")
    await check({"command": "make", "workdir": f"{cwd}/sub/.."}, run, cwd)
    await check({"command": "make", "workdir": ".."}, outside, parent)
    await check({"command": "make", "workdir": "away"}, outside, parent)
    await check({"command": "make", "workdir": "/"}, outside, "/")


async def test_a_command_may_take_two_minutes_unless_it_asks_for_more(cwd: str) -> None:
    async def check(given: int | None, seconds: float) -> None:
        shell = ScriptedShell()
        call = await prepared({"command": "ls", "timeoutMs": given}, cwd, shell)
        assert isinstance(call, Prepared)
        await call.run()
        assert shell.ran == [Command("ls", cwd, seconds)]

    await check(None, 120)
    await check(1, 0.001)
    await check(600_000, 600)


async def test_the_model_gets_the_output_and_how_the_command_ended(cwd: str) -> None:
    async def check(ended: Ended, text: str) -> None:
        told = await result(ended, {"timeoutMs": 500}, cwd)
        assert told.ok
        assert told.text == text
        assert told.shown == (Console(text.rstrip("\n")),)

    await check(Ended("project notes\n- x\n", "", 0), "project notes\n- x\n")
    await check(Ended("", "", 0), "(no output)")
    await check(Ended("", "", 1), "(no output)\n[exit code: 1]")
    await check(Ended("out", "err\n", 3), "out\n[stderr]\nerr\n[exit code: 3]")
    await check(Ended("out\n", "err", 0), "out\n[stderr]\nerr")
    await check(Ended("", "err\n", 0), "[stderr]\nerr\n")
    await check(Ended("", "", None, "SIGSEGV"), "(no output)\n[killed by signal: SIGSEGV]")
    await check(
        Ended("a\n", "", None, "SIGTERM", timed_out=True),
        "a\n[timed out after 500ms]\n[killed by signal: SIGTERM]",
    )
    await check(Ended("a\n", "", 0, timed_out=True), "a\n[timed out after 500ms]")
    await check(
        Ended("a\n", "", 1, truncated=True, whole=("/tmp/x.txt",)),
        "a\n[whole output: /tmp/x.txt]\n[exit code: 1]",
    )


async def test_the_facts_are_kept_as_data(cwd: str) -> None:
    assert (await result(Ended("o", "e", 3), {}, cwd)).data == {
        "exitCode": 3,
        "stdout": "o",
        "stderr": "e",
        "truncated": False,
    }
    assert (await result(Ended("", "", None, "SIGKILL", truncated=True), {}, cwd)).data == {
        "signal": "SIGKILL",
        "stdout": "",
        "stderr": "",
        "truncated": True,
    }


async def test_a_command_that_could_not_be_started_has_failed(cwd: str) -> None:
    told = await result(FileNotFoundError("bash is not installed"), {}, cwd)
    text = "Error: the command could not be started: bash is not installed"
    assert (told.ok, told.text, told.shown) == (False, text, (Console(text),))


async def test_output_is_passed_on_while_the_command_runs(cwd: str) -> None:
    heard: list[str] = []
    bound = SHELL.bind({"command": "ls", "description": "d"}, cwd)
    assert not isinstance(bound, Result)
    call = await bound.prepare(replace(context(cwd), shell=ScriptedShell(), output=heard.append))
    assert isinstance(call, Prepared)
    await call.run()
    assert heard == ["live"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("command", "harmless"),
    [
        ("cat file", True),
        ("ls -l sub; wc -l file | sort", True),
        ("cat f*", True),
        ("grep -n word file", True),
        ("cat .env", False),
        ("cat .e*", False),
        ("cat /etc/passwd", False),
        ("cat /proc/*/environ", False),
        ("cat away/x", False),
        ("cat ../x", False),
        ("cat ~/.netrc", False),
        ("cd sub && cat file", True),
        ("cd sub && cat ../file", False),
        ("cd sub; cd ..; ls .", False),
        ("cd sub && rg word", False),
        ("cd away && ls", False),
        ("cd; ls", False),
        ("cd - && ls", False),
        ("cd s* && ls", False),
        ("cd away; cd sub && ls", False),
        ("rg word", False),
        ("grep -rn word .", False),
        ("grep --recursive word .", False),
        ("grep --rec word .", False),
        ("grep -2r word .", False),
        ("du -X/etc/passwd .", False),
        ("/usr/bin/grep -r word .", False),
        ("/bin/rg word", False),
        ("diff file sub/../file", True),
        ("diff . sub", False),
        ("diff -N sub . | cat", False),
        ("diff --from-file=.env file", False),
        ("grep -f.env file", False),
        ("grep -n5 --color=never word file", True),
        ("wc --files0-from=file", False),
        ("sort --fil=file", False),
        ("du -a0 --f=file", False),
        ("file -bf file", False),
        ("file -b file; wc -l file; sort -n -k2,2 file; du -s .", True),
        ("grep -f/etc/passwd file", False),
        ("touch file", False),
    ],
)
async def test_a_command_that_reads_what_read_would_ask_for_is_not_harmless(
    cwd: str, command: str, harmless: bool
) -> None:
    (Path(cwd) / ".env").write_text("K=1\n")
    call = await prepared({"command": command}, cwd, ScriptedShell(Ended("", "", 0)))
    assert isinstance(call, Prepared)
    assert call.access.harmless is harmless


HELD = Hold("workspace-write", "full")
PLANNING = Hold("read-only", "full")
OPEN = Hold("workspace-write", "none", ("no namespaces",))
FREE = Hold()
LEAKY = Hold("workspace-write", "partial", ("a", "b"))
SEALED = replace(HELD, git="commands")
KEPT = replace(HELD, git="never")
GIT_WRITE = {"sandbox_permissions": "git-write"}
REPOSITORY = "In the sandbox, with changes in the workspace and in its .git."
WIDER = {"sandbox_permissions": "danger-full-access", "justification": "It fetches a package."}


async def confined(
    arguments: Mapping[str, object], cwd: str, shell: ScriptedShell
) -> Prepared | Result:
    bound = CONFINED_SHELL.bind({"command": "make", "description": "d", **arguments}, cwd)
    assert not isinstance(bound, Result)
    with anyio.fail_after(10):
        return await bound.prepare(replace(context(cwd), shell=shell))


async def test_a_command_with_unseen_characters_is_not_said_to_be_held(cwd: str) -> None:
    call = await confined({"command": "a\rb"}, cwd, ScriptedShell(holds=HELD))
    assert isinstance(call, Prepared)
    assert (call.access.held, call.access.unheld) == (
        False,
        "It holds characters that cannot be seen.",
    )


@pytest.mark.parametrize(
    ("hold", "arguments", "access", "shown", "reach"),
    [
        (HELD, {}, Access("run", "make", held=True), None, None),
        (HELD, {"command": "ls"}, Access("run", "ls", harmless=True, held=True), None, None),
        (LEAKY, {}, Access("run", "make", unheld="The sandbox has gaps here."),
         "In a sandbox with gaps: a; b.", None),
        (FREE, {}, Access("run", "make"), None, None),
        (OPEN, {}, Access("run", "make"), "Without a sandbox: it can do what you can do.", None),
        (HELD, WIDER, Access("run", "make", wider=True), "Outside the sandbox: it can do what you "
         "can do.\nIt fetches a package.", "danger-full-access"),
        (HELD, {"command": "ls", **WIDER}, Access("run", "ls", wider=True), "Outside the sandbox: "
         "it can do what you can do.\nIt fetches a package.", "danger-full-access"),
        (PLANNING, {"sandbox_permissions": "workspace-write"}, Access("run", "make", wider=True),
         "In the sandbox, with changes in the workspace.", "workspace-write"),
    ],
)  # fmt: skip
async def test_what_a_command_may_touch_is_asked_and_passed_on(
    cwd: str,
    hold: Hold,
    arguments: Mapping[str, object],
    access: Access,
    shown: str | None,
    reach: Reach | None,
) -> None:
    shell = ScriptedShell(holds=hold)
    call = await confined(arguments, cwd, shell)
    assert isinstance(call, Prepared)
    assert replace(call.access, line=None) == access
    assert call.shown == (None if shown is None else (Text("d"), Text(shown)))
    refused = f'the user rejected escalating this command to "{reach}"'
    assert call.declined == (None if reach is None else refused)
    await call.run()
    assert [command.reach for command in shell.ran] == [reach]


@pytest.mark.parametrize(
    ("hold", "wanted", "text"),
    [
        (HELD, "workspace-write", '"workspace-write" is not wider than "workspace-write", which'),
        (FREE, "danger-full-access", "is in force; leave it out"),
        (KEPT, "git-write", "is not to be had: the user keeps .git as it is"),
        (replace(KEPT, reach="read-only"), "git-write", "is not to be had"),
        (Hold(refusal="no command runs without a sandbox"), None, "runs without a sandbox"),
    ],
)
async def test_limits_that_are_no_wider_and_commands_that_may_not_run_are_refused(
    cwd: str, hold: Hold, wanted: str | None, text: str
) -> None:
    refused = await confined({"sandbox_permissions": wanted}, cwd, ScriptedShell(holds=hold))
    assert isinstance(refused, Result)
    assert not refused.ok
    assert text in refused.text


def test_wider_limits_can_be_asked_for_only_where_there_is_a_sandbox() -> None:
    added = (
        CONFINED_SHELL.offer.parameters["properties"].keys()
        - SHELL.offer.parameters["properties"].keys()
    )
    assert added == {"sandbox_permissions", "justification"}
    assert isinstance(SHELL.bind({"command": "x", "description": "d", **WIDER}, "/"), Result)


@pytest.mark.parametrize(
    ("hold", "command", "asked", "reach"),
    [
        (SEALED, "make", REPOSITORY, "workspace-write"),
        (replace(SEALED, reach="read-only"), "make", REPOSITORY, "workspace-write"),
        (replace(SEALED, reach="read-only"), "git gc", REPOSITORY, "workspace-write"),
        # Nothing keeps it from what it asks for.
        (SEALED, "git gc", None, None),
        (HELD, "make", None, None),
        (FREE, "make", None, None),
    ],
)
async def test_the_repository_is_asked_for_where_it_is_sealed(
    cwd: str, hold: Hold, command: str, asked: str | None, reach: Reach | None
) -> None:
    shell = ScriptedShell(holds=hold)
    call = await confined({"command": command, **GIT_WRITE}, cwd, shell)
    assert isinstance(call, Prepared)
    assert call.access.wider is (asked is not None)
    assert call.shown == (None if asked is None else (Text("d"), Text(asked)))
    refused = 'the user rejected escalating this command to "git-write"'
    assert call.declined == (None if asked is None else refused)
    await call.run()
    may = asked is not None or command == "git gc"
    assert [(one.reach, one.git) for one in shell.ran] == [(reach, may)]


async def test_only_a_line_that_works_on_the_repository_may_change_it(cwd: str) -> None:
    shell = ScriptedShell(holds=SEALED)
    for command in ("make", "git commit -m x", "git gc; rm -rf .git"):
        call = await confined({"command": command}, cwd, shell)
        assert isinstance(call, Prepared)
        await call.run()
    assert [one.git for one in shell.ran] == [False, True, False]


async def test_what_the_sandbox_has_to_say_stands_at_the_end(cwd: str) -> None:
    denied, moved = "file access denied under workspace-write mode", "moved a to a.blocked"
    told = await result(Ended("x\n", "", 1, notes=(denied, moved)), {}, cwd)
    assert told.text == (
        f"x\n[sandbox: {denied}]\n[sandbox: {moved}]\n"
        "[if the command must have that, call again with sandbox_permissions and a justification; "
        "the user is asked]\n[exit code: 1]"
    )
    told = await result(Ended("x\n", "", 0, notes=(moved,)), {}, cwd)
    assert told.text == f"x\n[sandbox: {moved}]"
