import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.repository import Layout, layout

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths of POSIX")

FIXED = ("hooks", "config", "config.worktree", "info", "commondir", "gitdir", "branches", "remotes")


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=b", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def test_a_plain_checkout_holds_its_repository(home: Path) -> None:
    root = repository(home / "a")
    at = f"{root}/.git"
    fixed = tuple(f"{at}/{name}" for name in FIXED)
    assert layout(str(root)) == Layout((), (at,), fixed, (f"{at}/worktrees",))


def test_a_folder_of_a_checkout_needs_the_repository_above(home: Path) -> None:
    at = f"{repository(home / 'a')}/.git"
    (home / "a" / "sub").mkdir()
    found = layout(str(home / "a" / "sub"))
    assert (found.write, found.pinned) == ((at,), (at,))


def test_a_folder_without_repository_needs_none(home: Path) -> None:
    (home / "link").mkdir()
    (home / "link" / ".git").symlink_to(home)
    assert layout(str(home / "link")) == Layout()
    assert layout("/") == Layout()


def test_a_worktree_needs_the_repository_it_was_added_to(home: Path) -> None:
    common = f"{repository(home / 'a')}/.git"
    for name in ("b", "c"):
        git(home / "a", "worktree", "add", f"../{name}")
    found = layout(str(home / "b"))
    own = f"{common}/worktrees/b"
    assert found.write == (common,)
    assert found.pinned == (common, own)
    assert {f"{home}/b/.git", f"{own}/commondir", f"{common}/hooks"} < set(found.fixed)
    assert f"{common}/worktrees/c" in found.fixed
    assert own not in found.fixed


def test_worktrees_in_the_folder_may_be_worked_in_and_others_not(home: Path) -> None:
    common = f"{repository(home / 'a')}/.git"
    for path in ("in/b", "../c", "gone", "astray"):
        git(home / "a", "worktree", "add", path)
    shutil.rmtree(home / "a" / "gone")
    (home / "a" / "astray" / ".git").write_text("gitdir: ../.git/worktrees/b")
    trees = f"{common}/worktrees"
    found = layout(str(home / "a"))
    assert found.worktrees == (trees,)
    assert set(found.entries) == {f"{home}/a/in/b/.git", f"{home}/a/gone/.git"}
    assert {f"{trees}/c", f"{trees}/astray", f"{trees}/b/config.worktree"} < set(found.fixed)
    assert not {f"{trees}/b", f"{trees}/b/gitdir", f"{trees}/gone"} & set(found.fixed)
    assert f"{home}/a/in/b/.git" in found.sealed().fixed
    inner = layout(str(home / "a" / "in" / "b"))
    assert (inner.entries, f"{trees}/gone" in inner.fixed) == ((), True)


def test_a_submodule_needs_its_part_of_the_repository_around(home: Path) -> None:
    repository(home / "inner")
    outer = repository(home / "outer")
    git(outer, "submodule", "add", str(home / "inner"), "libs/inner")
    at = f"{outer}/.git/modules/libs/inner"
    found = layout(str(outer / "libs" / "inner"))
    assert (found.write, found.pinned) == ((at,), (at,))
    assert {f"{outer}/libs/inner/.git", f"{at}/hooks"} < set(found.fixed)
    found = layout(str(outer))
    assert found.write == ()
    assert found.pinned == (f"{outer}/.git", at, f"{outer}/.git/modules/libs")
    assert {f"{outer}/libs/inner/.git", f"{at}/config", f"{outer}/.git/config"} < set(found.fixed)


def test_sealed_the_repository_is_fixed_as_a_whole(home: Path) -> None:
    repository(home / "inner")
    outer = repository(home / "outer")
    git(outer, "submodule", "add", str(home / "inner"), "inner")
    git(outer, "config", "core.hooksPath", ".husky/_")
    git(outer, "worktree", "add", "../tree")
    at = f"{outer}/.git"
    modules = (f"{at}/modules/inner", f"{at}/modules")
    fixed = (at, *modules, f"{outer}/.husky/_", f"{outer}/inner/.git")
    assert layout(str(outer)).sealed() == Layout((), (), fixed)
    found = layout(str(home / "tree")).sealed()
    assert (found.write, found.pinned) == ((at,), ())
    assert {at, f"{at}/worktrees/tree", f"{home}/tree/.git"} < set(found.fixed)


def test_hooks_that_the_settings_name_are_fixed_too(home: Path) -> None:
    root = repository(home / "a")
    git(root, "config", "core.hooksPath", ".husky/_")
    assert f"{root}/.husky/_" in layout(str(root)).fixed


def test_settings_that_settings_include_are_fixed_with_what_they_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(home / "a")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    git(root, "config", "include.path", "../team.conf")
    git(root, "config", "includeIf.onbranch:x.path", str(home / "b" / "deep.conf"))
    (root / "team.conf").write_text('[include]path = "more.conf" # and\n[include] path = team.conf')
    (root / "more.conf").write_text("[core] hooksPath = .hooks\n")
    (home / ".gitconfig").write_text("[include]\npath = ~/a/mine.conf\n[core]\nhooksPath = theirs")
    named = ("team.conf", "more.conf", ".hooks", "mine.conf", "theirs")
    wanted = {*(f"{root}/{name}" for name in named), f"{home}/b/deep.conf"}
    assert wanted < set(layout(str(root)).fixed)
    assert f"{home}/.gitconfig" not in layout(str(root)).fixed
    assert wanted < set(layout(str(root)).sealed().fixed)


def test_the_users_settings_are_fixed_in_a_checkout_that_holds_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home / "me"))
    assert f"{repository(home / 'me')}/.gitconfig" in layout(str(home / "me")).fixed


def test_a_file_that_names_the_repository_of_others_is_not_believed(home: Path) -> None:
    def check(text: bytes) -> None:
        entry = home / "mine" / ".git"
        entry.write_bytes(text)
        assert layout(str(home / "mine")) == Layout(fixed=(str(entry),))

    common = repository(home / "a") / ".git"
    git(home / "a", "worktree", "add", "../b")
    (home / "mine").mkdir()
    check(b"gitdir: ../a/.git")
    check(b"gitdir: ../a/.git/worktrees/b")
    check(b"gitdir: /nowhere")
    check(b"")
    check(b"gitdir: ..")
    # A worktree's folder that says so itself, but does not lie where git keeps them.
    shutil.copytree(common / "worktrees" / "b", home / "forged")
    (home / "forged" / "gitdir").write_text(f"{home}/mine/.git")
    (home / "forged" / "commondir").write_text(str(common))
    check(b"gitdir: ../forged")


def test_submodules_are_not_looked_for_without_end(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.repository._MOST_SUBMODULES", 2)
    root = repository(home / "a")
    for name in "xyz":
        (root / ".git" / "modules" / name).mkdir(parents=True)
        (root / ".git" / "modules" / name / "HEAD").touch()
    assert len(layout(str(root)).pinned) == 1 + 2 + 1
