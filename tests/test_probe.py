import sys
from pathlib import Path

import pytest

from tools.layers import layers_of
from tools.probe import Probe


def test_a_helper_that_cannot_start_is_told() -> None:
    said, complaint = Probe("/nowhere/python", "linux").answer()
    assert said == ""
    assert complaint.startswith("/nowhere/python: ")


def test_a_helper_that_fails_is_told(tmp_path: Path) -> None:
    assert Probe(program(tmp_path, "echo version 7; echo broken >&2; exit 3")).answer() == (
        "version 7\n",
        "broken",
    )


def test_a_helper_that_hangs_is_ended(tmp_path: Path) -> None:
    probe = Probe(program(tmp_path, "sleep 60 & sleep 60"))
    assert probe.answer(patience=0.05) == ("", "the helper did not end")
    probe.end()  # once more does nothing


def test_other_systems_have_none() -> None:
    assert Probe(platform="plan9").answer() == ("", "there is none for plan9")


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_this_machine_is_probed() -> None:
    assert layers_of(*Probe().answer()).probed


def program(folder: Path, script: str) -> str:
    """A program in the place of Python."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    path.chmod(0o700)
    return str(path)
