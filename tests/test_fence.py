"""What a command may touch, planned: the sandbox without a kernel."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tools.base import Ended, Git, Hold, Reach
from tools.layers import Layers, layers_of
from tools.probe import HELPER
from tools.protected import Survey, Watched
from tools.sandbox import Fence, denials, start, survey

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths of POSIX")

FULL = Layers("NLS", 7, probed=True)
FENCE = Fence("workspace-write", ("/home/u/work", "/tmp/s"), "/tmp/s")


def planned(fence: Fence, *places: tuple[str, str], layers: Layers = FULL) -> list[str]:
    argv = start(layers, fence, Survey(places), "/home/u/work", 5)
    helper = (sys.executable, *HELPER, "status=5", "cwd=/home/u/work")
    assert argv[: len(helper)] == helper
    assert argv[-1] == "--"
    return list(argv[len(helper) : -1])


def test_outer_places_come_before_those_inside_them() -> None:
    found = planned(
        FENCE,
        ("hide", "/home/u/.ssh"),
        ("hide", "/run"),
        ("ro", "/home/u/work/.git/hooks"),
        ("pin", "/home/u/work/.git"),
        ("write", "/home/u/work"),
        ("write", "/tmp/s"),
        ("read", "/run/a"),
    )
    assert found == [
        "layers=NLS",
        "network=off",
        "abi=7",
        "hide=/home/u/.ssh",
        "write=/home/u/work",
        "pin=/home/u/work/.git",
        "ro=/home/u/work/.git/hooks",
        "hide=/run",
        "read=/run/a",
        "tmp=/tmp/s",
        "write=/tmp/s",
    ]


def test_what_an_outer_place_hides_need_not_be_hidden() -> None:
    def check(given: list[tuple[str, str]], expected: list[str]) -> None:
        assert planned(FENCE, *given)[3:] == expected

    check([("hide", "/tmp/x")], ["tmp=/tmp/s"])
    check([("hide", "/run/x"), ("hide", "/run")], ["hide=/run", "tmp=/tmp/s"])
    check(
        [("hide", "/tmp/w/x"), ("write", "/tmp/w")],
        ["tmp=/tmp/s", "write=/tmp/w", "hide=/tmp/w/x"],
    )
    check([("write", "/tmp"), ("hide", "/tmp/x")], ["write=/tmp", "hide=/tmp/x"])


def test_without_limits_only_the_view_of_other_processes_is_given_up() -> None:
    free = Fence("danger-full-access", ("/w",), "/s")
    assert planned(free) == ["shed=19,21,38"]
    assert planned(FENCE, layers=Layers("S", 0, probed=True)) == ["shed=19,21,38"]
    assert planned(Fence("read-only", (), "/s", True))[:2] == ["layers=NLS", "network=on"]


@pytest.mark.parametrize(
    ("layers", "strength", "gaps"),
    [
        (FULL, "full", 0),
        (Layers("N", 0), "full", 0),
        (Layers("LS", 7), "partial", 4),
        (Layers("LS", 2), "partial", 5),
        (Layers("L", 7, ("S: no",)), "none", 1),
        (Layers("S", 0, ("N: no", "L: no")), "none", 2),
        (Layers(), "none", 1),
    ],
)
def test_how_well_layers_hold(layers: Layers, strength: str, gaps: int) -> None:
    assert (layers.hold.strength, len(layers.hold.gaps)) == (strength, gaps)


def test_the_root_of_all_files_is_never_writable() -> None:
    def check(reach: Reach, expected: tuple[str, ...]) -> None:
        assert Fence(reach, ("/", "/w"), "/s").writable == expected

    check("workspace-write", ("/w", "/s"))
    check("read-only", ("/s",))


def test_a_survey_finds_what_is_there(tmp_path: Path) -> None:
    home, root, scratch = (tmp_path / name for name in ("home", "root", "scratch"))
    for folder in (home / ".ssh", home / ".config" / "gh", root / ".idea", scratch, tmp_path / "o"):
        folder.mkdir(parents=True)
    (home / ".aws").symlink_to(home / ".ssh")
    own = str(tmp_path / "state")
    fence = Fence(
        "workspace-write",
        (str(root), str(scratch)),
        str(scratch),
        hidden=(own, str(home / ".config" / "gh")),
        home=str(home),
    )
    found = survey(fence, str(root))
    places = {path: kind for kind, path in found.places}
    assert places[str(home / ".ssh")] == places[str(home / ".config" / "gh")] == "hide"
    assert str(home / ".aws") not in places
    assert own not in places
    assert places[str(root)] == places[str(scratch)] == "write"
    assert places[str(root / ".idea")] == "ro"
    assert Watched(f"{root}/.vscode", None) in found.watched
    # pytest's folders lie below /tmp, which commands do not see as it is.
    away = {path: kind for kind, path in survey(fence, str(tmp_path / "o")).places}
    assert away.get(str(tmp_path / "o")) == ("read" if str(tmp_path).startswith("/tmp/") else None)


def test_where_nothing_may_be_changed_folders_are_shown_and_nothing_is_watched(
    tmp_path: Path,
) -> None:
    root, scratch = tmp_path / "root", tmp_path / "scratch"
    root.mkdir()
    scratch.mkdir()
    found = survey(Fence("read-only", (str(root),), str(scratch)), str(root))
    assert found.watched == ()
    places = {path: kind for kind, path in found.places}
    assert places[str(scratch)] == "write"
    assert places.get(str(root)) == ("read" if str(tmp_path).startswith("/tmp/") else None)


def test_a_folder_that_was_opened_is_shown_whatever_its_name(tmp_path: Path) -> None:
    keys = tmp_path / ".ssh"
    keys.mkdir()
    fence = Fence("workspace-write", (str(keys),), str(tmp_path), home=str(tmp_path))
    assert ("write", str(keys)) in survey(fence, str(keys)).places


def test_names_are_found_with_a_network(tmp_path: Path) -> None:
    fence = Fence("read-only", (), str(tmp_path), True)
    found = {path for kind, path in survey(fence, "/").places if kind == "read"}
    real = os.path.realpath("/etc/resolv.conf")
    assert (real in found) is (real.startswith(("/run/", "/var/run/")) and Path(real).exists())


@pytest.mark.parametrize(
    ("ended", "network", "notes"),
    [
        (Ended("", "a: Read-only file system\n", 1), False, ["file access"]),
        (Ended("mv: Device or resource busy", "", 1), False, ["file access"]),
        (Ended("", "Could not resolve host: a", 6), False, ["network access"]),
        (Ended("", "Could not resolve host: a", 6), True, []),
        (Ended("Permission denied", "Network is unreachable", 1), False, ["file", "network"]),
        (Ended("", "Read-only file system", 0), False, []),
        (Ended("", "Read-only file system", None, "SIGKILL"), False, []),
        (Ended("Read-only file system" + " " * 4000, "", 1), False, []),
        (Ended("", "no such file", 2), False, []),
    ],
)
def test_a_denial_is_guessed_from_the_end_of_the_output(
    ended: Ended, network: bool, notes: list[str]
) -> None:
    found = denials(ended, Fence("workspace-write", (), "/s", network))
    assert len(found) == len(notes)
    for note, beginning in zip(found, notes, strict=True):
        assert note.startswith(beginning)
        assert note.endswith(" access denied under workspace-write mode")


@pytest.mark.parametrize(
    ("text", "git", "note"),
    [
        ("rm: cannot remove '.git/a': Read-only file system", "commands", "only by a line that"),
        ("[Errno 30] Read-only file system: '/w/.git/index'", "commands", '"git-write"'),
        ("rm: cannot remove '.git': Device or resource busy", "never", "by no command here"),
        ("rm: cannot remove '.git/hooks/a': Read-only file system", "always", "stay as they are"),
        ("could not write config file .git/config: Device or resource busy", "always", "stay as"),
        ("'.git/objects/ab': Permission denied", "always", ""),
        ("rm: cannot remove '.gitignore': Permission denied", "commands", ""),
        (".git\nPermission denied", "commands", ""),
        ("not a repository: .git", "commands", ""),
    ],
)
def test_what_may_change_a_repository_is_told_where_one_was_denied(
    text: str, git: Git, note: str
) -> None:
    fence = replace(FENCE, git=git)
    told = [one for one in denials(Ended("", text, 1), fence) if one.startswith((".git", "hooks"))]
    assert (note in str(told)) if note else told == []
    planning = denials(Ended("", text, 1), replace(fence, reach="read-only"))
    assert not any(one.startswith((".git", "hooks")) for one in planning)


@pytest.mark.parametrize(
    ("said", "complaint", "expected"),
    [
        ("version 7\nN \nL \nS \n", "", Layers("NLS", 7, (), probed=True)),
        (
            "version 0\nN unshare: no\nL it is old\nS \n",
            "",
            Layers("S", 0, ("N: unshare: no", "L: it is old"), probed=True),
        ),
        ("", "no module named ctypes", Layers(failures=("no module named ctypes",))),
        ("version 7\n", "", Layers(failures=("the helper did not run",))),
    ],
)
def test_the_probes_answer_is_read(said: str, complaint: str, expected: Layers) -> None:
    assert layers_of(said, complaint) == expected


def test_what_was_not_found_out_holds_nothing() -> None:
    found = layers_of("", "the helper did not end")
    assert (found.probed, found.hold) == (False, Hold("workspace-write", "none", found.failures))
