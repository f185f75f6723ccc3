"""What can confine commands is remembered from one start to the next, and tried all the same."""

import os
from pathlib import Path
from typing import cast

import pytest

from bridge.confinement import Confinement
from tools.probe import Probe

FULL = "version 7\nN \nL \nS \n"
NONE = "version 7\nN no\nL no\nS no\n"


class Trial:
    """A probe that was begun, and says what it is told to."""

    def __init__(self, *answers: tuple[str, str]) -> None:
        self._answers = list(answers)
        self.begun = self.heard = self.ended = 0

    def begin(self) -> Probe:
        self.begun += 1
        return cast("Probe", self)

    def answer(self) -> tuple[str, str]:
        self.heard += 1
        return self._answers.pop(0)

    def end(self) -> None:
        self.ended += 1


def test_without_a_memory_the_trial_begins_at_once_and_is_waited_for(tmp_path: Path) -> None:
    trial = Trial((FULL, ""))
    confinement = Confinement(tmp_path / "state", trial.begin)
    assert (trial.begun, trial.heard) == (1, 0)
    assert confinement.expected().working == "NLS"
    assert confinement.tried().working == "NLS"
    assert (trial.begun, trial.heard) == (1, 1)
    confinement.end()
    assert trial.ended == 1


@pytest.mark.parametrize(("now", "working"), [(FULL, "NLS"), (NONE, "")])
def test_what_was_remembered_is_expected_until_it_has_been_tried(
    tmp_path: Path, now: str, working: str
) -> None:
    Confinement(tmp_path, Trial((FULL, "")).begin).tried()
    trial = Trial((now, ""))
    confinement = Confinement(tmp_path, trial.begin)
    confinement.end()
    assert confinement.expected().working == "NLS"
    assert (trial.begun, trial.ended) == (0, 0)
    assert confinement.tried().working == working
    assert confinement.expected().working == working
    assert Confinement(tmp_path, trial.begin).expected().working == working
    assert trial.begun == 1


@pytest.mark.parametrize(
    "kept", ["", "nonsense", "version x\nN \nL \nS \n", "version 7\nN \n", "\xff" * 9000]
)
def test_a_damaged_memory_is_none(tmp_path: Path, kept: str) -> None:
    (tmp_path / "sandbox").write_text(kept, encoding="utf-8")
    trial = Trial((FULL, ""))
    assert Confinement(tmp_path, trial.begin).expected().working == "NLS"
    assert trial.heard == 1


def test_what_is_no_file_is_no_memory_and_makes_way(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "sandbox")
    assert Confinement(tmp_path, Trial((FULL, "")).begin).tried().working == "NLS"
    assert (tmp_path / "sandbox").read_text("ascii") == FULL


def test_a_trial_that_fails_is_not_remembered(tmp_path: Path) -> None:
    failing = Trial(("", "no python"))
    assert Confinement(tmp_path, failing.begin).expected().failures == ("no python",)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", [None, Path("/dev/null/state")])
def test_without_a_place_nothing_is_remembered(folder: Path | None) -> None:
    trial = Trial((FULL, ""), (FULL, ""))
    for _ in range(2):
        assert Confinement(folder, trial.begin).tried().working == "NLS"
    assert trial.begun == 2
