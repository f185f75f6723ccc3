"""What can confine commands on this machine, as tools/confine.py found it out.

Rule 1: a layer counts where it was put in force and an escape from it failed, and nowhere else.
"""

from tools.base import Hold
from tools.frozen import frozen

_GAPS = (
    (".git and settings of editors can be changed", "N"),
    ("keys in the home folder can be read", "N"),
    ("modes and times of files outside can be changed", "N"),
    ("programs that listen on socket files can be reached", "N"),
    ("calls that look into other processes are left to the kernel's own rules", "S"),
    ("abstract sockets and signals reach other programs", "NL"),
)
"""What is open unless one of these layers is there."""
_OLD_LANDLOCK = 3
"""Versions before let files outside be emptied."""


@frozen
class Layers:
    """What this machine can enforce."""

    working: str = ""
    """The letters of tools/confine.py."""
    version: int = 0
    """Of Landlock."""
    failures: tuple[str, ...] = ("not probed",)
    """Why the others do not work."""
    probed: bool = False
    """The helper itself runs here."""

    @property
    def hold(self) -> Hold:
        """How well it holds what a fence says."""
        if "N" in self.working:
            return Hold("workspace-write", "full")
        if {"L", "S"} <= set(self.working):
            gaps = [gap for gap, closing in _GAPS if not set(closing) & set(self.working)]
            if self.version < _OLD_LANDLOCK:
                gaps.append("files outside can be emptied")
            return Hold("workspace-write", "partial", tuple(gaps))
        return Hold("workspace-write", "none", self.failures)


def layers_of(said: str, complaint: str) -> Layers:
    """What the answer of a probe means: each layer was put in force and then tried to break."""
    lines = (line.partition(" ") for line in said.splitlines())
    answers = {name: answer for name, _, answer in lines}
    if complaint or not answers.get("version", "").isdecimal() or not answers.keys() > set("NLS"):
        return Layers(failures=(complaint or "the helper did not run",))
    return Layers(
        "".join(layer for layer in "NLS" if not answers[layer]),
        int(answers["version"]),
        tuple(f"{layer}: {answers[layer]}" for layer in "NLS" if answers[layer]),
        probed=True,
    )
