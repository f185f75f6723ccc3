import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_repository import git, repository
from tools.protected import Watched, guard, put_aside

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths of POSIX")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path.resolve() / "root")


def test_what_exists_is_mounted_over_and_what_does_not_is_watched(root: Path) -> None:
    (root / ".vscode").mkdir()
    held = guard([str(root)])
    places = {path.removeprefix(f"{root}/"): kind for kind, path in held.places}
    watched = {one.path.removeprefix(f"{root}/") for one in held.watched}
    fixed = {".git/hooks": "ro", ".git/config": "ro", ".vscode": "ro"}
    assert places.items() >= {".git": "pin", **fixed}.items()
    assert {".envrc", ".mcp.json", ".git/commondir", ".git/config.worktree"} <= watched
    assert ".git" not in watched


def test_what_leads_to_a_fixed_place_is_pinned(root: Path) -> None:
    (root / "a" / "b" / "hooks").mkdir(parents=True)
    git(root, "config", "core.hooksPath", "a/b/hooks")
    places = {path: kind for kind, path in guard([str(root)]).places}
    assert [places[f"{root}/{name}"] for name in ("a", "a/b", "a/b/hooks")] == ["pin", "pin", "ro"]


def test_a_link_is_watched_and_its_target_fixed(root: Path) -> None:
    (root / "settings").mkdir()
    (root / ".vscode").symlink_to("settings")
    (root / ".idea").symlink_to("/etc")
    held = guard([str(root)])
    assert Watched(f"{root}/.vscode", "settings") in held.watched
    assert Watched(f"{root}/.idea", "/etc") in held.watched
    assert ("ro", f"{root}/settings") in held.places
    assert not any(path.startswith("/etc") for _, path in held.places)


def test_the_repository_of_a_worktree_may_be_written(root: Path) -> None:
    git(root, "worktree", "add", "../tree")
    tree = root.with_name("tree")
    places = {path: kind for kind, path in guard([str(tree)]).places}
    assert places[f"{root}/.git"] == "write"
    assert places[f"{root}/.git/worktrees/tree"] == "pin"
    assert places[f"{root}/.git/hooks"] == places[f"{tree}/.git"] == "ro"


def test_a_worktree_in_the_folder_may_be_written_and_go(root: Path) -> None:
    git(root, "worktree", "add", "tree")
    held = guard([str(root)])
    places = {path: kind for kind, path in held.places}
    assert places[f"{root}/.git/worktrees"] == "pin"
    assert f"{root}/.git/worktrees/tree" not in places
    git(root, "worktree", "remove", "tree")
    assert put_aside(held.watched) == []
    held = guard([str(root)])
    git(root, "worktree", "add", "other")
    assert put_aside(held.watched) == []
    assert ("ro", f"{root}/other/.git") in guard([str(root)], sealed=True).places


def test_worktrees_that_are_open_beside_it_may_be_written(root: Path) -> None:
    git(root, "worktree", "add", "../tree")
    roots = [str(root), str(root.with_name("tree"))]
    for both in (roots, roots[::-1]):
        places = {path: kind for kind, path in guard(both).places}
        assert places[f"{root}/.git/worktrees/tree"] == "pin"
        assert places[f"{root}/.git/worktrees/tree/commondir"] == "ro"
    assert ("ro", f"{root}/.git/worktrees/tree") in guard(roots[:1]).places


@pytest.mark.parametrize(
    ("spoil", "moved"),
    [
        ("echo 'gitdir: ../evil' > tree/.git", ["tree/.git"]),
        ("mv tree/.git x; ln -s x tree/.git", ["tree/.git"]),
        ("echo x > .git/worktrees/tree/config.worktree", ["worktrees/tree/config.worktree"]),
        ("echo ../../evil > .git/worktrees/tree/commondir", ["worktrees/tree/commondir"]),
        ("mv .git/worktrees/tree x; ln -s ../../x .git/worktrees/tree", ["worktrees/tree"]),
        ("mv .git/worktrees x; ln -s ../x .git/worktrees", [".git/worktrees"]),
        ("git worktree add new; mkdir .git/worktrees/new/hooks", ["worktrees/new/hooks"]),
        ("git worktree add new; ln -sf x .git/worktrees/new/commondir", ["new/commondir"]),
        ("git worktree add new; rm .git/worktrees/new/commondir", []),
        ("git worktree move tree new; git worktree lock new; git -C new checkout -b c", []),
        ("rm -r tree; git worktree prune", []),
    ],
)
def test_a_worktree_that_leads_elsewhere_is_put_aside(
    root: Path, spoil: str, moved: list[str]
) -> None:
    git(root, "worktree", "add", "tree")
    held = guard([str(root)])
    subprocess.run(["bash", "-c", spoil], cwd=root, check=True, capture_output=True)
    notes = put_aside(held.watched)
    assert len(notes) == len(moved)
    assert all(f"{path} to " in note for path, note in zip(moved, notes, strict=True))


def test_a_sealed_repository_is_mounted_over_as_a_whole(root: Path) -> None:
    git(root, "worktree", "add", "../tree")
    (root / ".vscode").mkdir()
    held = guard([str(root)], sealed=True)
    places = {path.removeprefix(f"{root}/"): kind for kind, path in held.places}
    assert places == {".git": "ro", ".vscode": "ro"}
    assert not any("/.git/" in one.path for one in held.watched)
    tree = root.with_name("tree")
    assert guard([str(tree)], sealed=True).places == (
        ("read", f"{root}/.git"),
        ("ro", f"{tree}/.git"),
    )
    (root / "sub").mkdir()
    assert guard([f"{root}/sub"], sealed=True).places == (("read", f"{root}/.git"),)


def test_what_a_link_leads_to_stays(root: Path) -> None:
    other = repository(root.with_name("other"))
    git(other, "config", "alias.x", "y")
    (root / "sub").symlink_to(other)
    assert put_aside([Watched(f"{root}/sub/.git", None), Watched(f"{root}/no/.git", None)]) == []
    assert (other / ".git" / "HEAD").exists()


def test_what_appeared_is_put_aside_and_the_rest_left_alone(tmp_path: Path) -> None:
    watched = [
        Watched(f"{tmp_path}/{name}", before)
        for name, before in {"a": None, "b": None, "c": "x", "d": "x", "e": "x", "f": "x"}.items()
    ]
    (tmp_path / "a").mkdir()
    (tmp_path / "a.blocked").touch()
    (tmp_path / "c").symlink_to("x")
    (tmp_path / "d").symlink_to("y")
    (tmp_path / "e").touch()
    notes = put_aside(watched)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.blocked", "a.blocked-2", "c", "d.blocked", "e.blocked",
    ]  # fmt: skip
    why = "other programs could run what it holds"
    assert notes[0] == f"moved {tmp_path}/a to {tmp_path}/a.blocked-2: {why}"
    assert len(notes) == 3


def test_what_cannot_be_put_aside_stays(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "a.blocked").touch()
    for number in range(2, 100):
        (tmp_path / f"a.blocked-{number}").touch()
    assert put_aside([Watched(f"{tmp_path}/a", None)]) == []
    long = "n" * 255
    (tmp_path / long).touch()
    assert put_aside([Watched(f"{tmp_path}/{long}", None)]) == []


@pytest.mark.parametrize(
    ("spoil", "stays"),
    [
        ("true", True),
        ("git remote add origin https://host.example/alias-tool.git", True),
        ("echo x > .git/hooks/pre-commit", False),
        ("git config core.fsmonitor ./evil", False),
        ("git config core.hooksPath evil", False),
        ("git config alias.st '!./evil'", False),
        ("git config filter.x.clean ./evil", False),
        ("git config remote.origin.uploadpack ./evil", False),
        ("printf '[core] sshCommand = evil' >> .git/config", False),
        ("echo .. > .git/commondir", False),
        ("rm .git/config", False),
        ("rm -r .git && mkdir x && ln -s x .git", False),
        ("rm -r .git && echo gitdir: x > .git", False),
    ],
)
def test_a_new_repository_stays_unless_it_runs_something(
    tmp_path: Path, spoil: str, stays: bool
) -> None:
    subprocess.run(["bash", "-c", f"git init -q && {spoil}"], cwd=tmp_path, check=True)
    notes = put_aside([Watched(f"{tmp_path}/.git", None)])
    assert (notes == []) is stays
    assert (tmp_path / ".git").exists() is stays
