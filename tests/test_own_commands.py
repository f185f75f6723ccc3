"""The files of commands that there are, and those that can be none."""

import os
from pathlib import Path

import pytest

from bridge.own_commands import Found, find


def write(file: Path, text: str | bytes = "Go.") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "app").mkdir()
    return tmp_path / "project"


def found(cwd: Path, user: Path | None = None) -> Found:
    return find(str(cwd), None if user is None else str(user), {"help"})


def test_the_user_s_own_command_wins_and_then_the_nearest_folder_s(project: Path) -> None:
    user = project.parent / "user"
    for name in ("a", "b", "c"):
        write(project / ".agents/commands" / f"{name}.md", "of the project")
    for name in ("a", "b"):
        write(project / "app/.agents/commands" / f"{name}.md", "of the app")
    write(user / "commands/a.md", "of the user")
    write(project.parent / ".agents/commands/above.md")
    commands = found(project / "app", user).commands
    texts = {name: command.template for name, command in commands.items()}
    assert texts == {"a": "of the user", "b": "of the app", "c": "of the project"}


def test_there_need_be_none(tmp_path: Path) -> None:
    write(tmp_path / ".agents/commands", "a file in the place of the folder")
    assert found(tmp_path, tmp_path / "nowhere") == Found({}, {})


def test_what_can_be_no_command_is_told_with_the_reason(project: Path) -> None:
    folder = project / ".agents/commands"
    outside = write(project.parent / "outside.md")
    write(folder / "help.md")
    write(folder / "1st.md")
    write(folder / "große.md")
    write(folder / "empty.md", "")
    write(folder / "big.md", "x" * (64 * 1024 + 1))
    write(folder / "bytes.md", b"\xff\xfe")
    write(folder / "nul.md", b"a\0b")
    (folder / "folder.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    (folder / "link.md").symlink_to(outside)
    (folder / "loop.md").symlink_to(folder / "loop.md")
    (folder / "gone.md").symlink_to(folder / "gone")
    (folder / "secret.md").symlink_to(write(project / ".env", "KEY=1"))
    write(folder / "good.md", "x" * 64 * 1024)
    write(folder / "no-command.txt")
    there = found(project)
    assert list(there.commands) == ["good"]
    name = "its name must be of letters, digits, - and _, with a letter first"
    assert {Path(file).stem: why for file, why in there.faults.items()} == {
        "help": "/help is built in",
        "1st": name,
        "große": name,
        "empty": "it holds no prompt",
        "big": "it has more than 64 KB",
        "bytes": "it is not UTF-8 text",
        "nul": "it holds bytes that are no text",
        "folder": "it is a directory",
        "pipe": "it is a FIFO",
        "link": "it leads out of the project",
        "loop": "it is a symbolic link",
        "gone": "no such file or directory",
        "secret": "its name is one that usually holds credentials",
    }


def test_a_folder_of_commands_that_lies_elsewhere_is_not_used(project: Path) -> None:
    write(project.parent / "outside/commands/leak.md")
    (project / ".agents").symlink_to(project.parent / "outside")
    assert list(found(project).commands) == []


def test_the_user_s_folder_may_hold_links(tmp_path: Path) -> None:
    target = write(tmp_path / "dotfiles/go.md")
    (tmp_path / "user/commands").mkdir(parents=True)
    (tmp_path / "user/commands/go.md").symlink_to(target)
    (tmp_path / "project").mkdir()
    assert list(found(tmp_path / "project", tmp_path / "user").commands) == ["go"]
