"""The command line: what it understands, what it says, and how it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge import __version__
from bridge.cli import main
from bridge.setup.editors import EDITORS

PROGRAM = [sys.executable, "-I", str(Path(__file__).parent.parent / "bridge" / "__main__.py")]


@pytest.mark.parametrize(
    ("argv", "code", "out", "err"),
    [
        (["--version"], 0, f"responses-acp {__version__}\n", ""),
        (
            ["fetch"],
            2,
            "",
            "responses-acp: argument command: invalid choice: 'fetch' (choose from ",
        ),
        (["demo", "--no"], 2, "", "responses-acp: unrecognized arguments: --no; see responses-acp"),
        (["demo", "--ye"], 2, "", "responses-acp: unrecognized arguments: --ye; see"),
        (["--config"], 2, "", "responses-acp: argument --config: expected one argument; see"),
        (["--help"], 0, "NAME\n    responses-acp - ", ""),
        (
            ["--log-level", "loud"],
            2,
            "",
            "responses-acp: argument --log-level: invalid choice: 'loud'",
        ),
        (["setup", "emacs"], 2, "", "responses-acp: argument EDITOR: invalid choice: 'emacs'"),
        (
            ["setup", "zed", "--write", "--remove"],
            2,
            "",
            "responses-acp: argument --remove: not allowed with argument --write; see",
        ),
        *[
            (
                ["setup", *given],
                2,
                "",
                f"responses-acp: {given[0]} needs the EDITOR that it is about: zed, jetbrains, ",
            )
            for given in (
                ["--write"],
                ["--remove"],
                ["--yes"],
                ["--name", "x"],
                ["--file", "x"],
            )
        ],
        (["-h"], 0, "NAME\n    responses-acp - ", ""),
        (["demo", "--help"], 0, "NAME\n    responses-acp - ", ""),
    ],
)
def test_a_command_line_has_one_answer(
    argv: list[str], code: int, out: str, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == code
    shown = capsys.readouterr()
    assert shown.out.startswith(out)
    assert shown.err.startswith(err)
    assert bool(shown.out) == bool(out)
    assert shown.err.count("\n") == bool(err)


def test_the_help_fits_a_terminal_and_names_every_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["--help"])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    options = (
        "--config --help --version --yes --agent --json --model --write --remove --name --file"
    )
    commands = "demo check setup login logout sessions"
    for word in (*options.split(), *commands.split(), "--log-level", "EXIT STATUS", *EDITORS):
        assert word in text


@pytest.mark.parametrize("arguments", [["--log-level", "debug"], ["--log-level=debug"]])
def test_the_flag_of_the_log_reaches_the_agent(arguments: list[str], tmp_path: Path) -> None:
    hello = b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1}}\n'
    more = b'{"jsonrpc":"2.0","id":8,"method":"session/list","params":{}}\n'
    state = tmp_path / "state"
    run = subprocess.run(
        [*PROGRAM, *arguments],
        input=hello + more,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_STATE_HOME": str(state)},
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert "asked for session/list" in (state / "responses-acp/responses-acp.log").read_text()


def test_the_agent_also_starts_with_an_equals_sign(tmp_path: Path) -> None:
    hello = b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1}}\n'
    run = subprocess.run(
        [*PROGRAM, f"--config={tmp_path / 'none.toml'}"],
        check=False,
        input=hello,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        timeout=20,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.startswith(b'{"jsonrpc":"2.0","id":7,"result":{"protocolVersion":1')


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_the_other_commands_do_without_files_that_are_closed(closed: str) -> None:
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *PROGRAM, "--version"]
    ended = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert ended.stderr == b""
    assert ended.stdout.startswith(b"responses-acp ") == (">&-" not in closed.split())


def test_a_locale_without_utf_8_changes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "häuser"
    home.mkdir()
    odd = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    # What PATH holds here is what editors pass on that were started from a menu.
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), **odd}
    program = [sys.executable, PROGRAM[-1]]  # -I would have Python pass over two of these
    ended = subprocess.run(
        [*program, "demo", "--yes"], env=env, capture_output=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    file = home / "settings.json"
    ended = subprocess.run(
        [*program, "setup", "zed", "--write", "--yes", "--name", "Müller", "--file", str(file)],
        env=env, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert list(json.loads(file.read_bytes())["agent_servers"]) == ["Müller"]
