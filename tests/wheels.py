"""The program as people get it: built, and installed from its wheel into an environment of its own.

Rule 1: what is installed besides is what .ci/constraints.txt pins, fetched once; from then on no
index is asked, so what fails is ours.
Rule 2: a program that is installed here sees an empty home, and nothing of this environment.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.npm import missing

HOME = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
BESIDE = Path(sys.executable).parent
"""Where the programs of the development dependencies are: uv, pipx."""

_PATIENCE = 600
_CONSTRAINTS = HOME / ".ci" / "constraints.txt"
_BUILDING = ("hatchling", "pip")
"""What is needed besides the dependencies to install from the sources."""


def run(
    command: list[str], environment: Mapping[str, str], cwd: Path, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end."""
    return subprocess.run(
        command,
        input=given,
        capture_output=True,
        env=environment,
        cwd=cwd,
        timeout=_PATIENCE,
        check=False,
    )


def done(command: list[str], environment: Mapping[str, str], cwd: Path) -> str:
    """What a program printed that ended well."""
    ended = run(command, environment, cwd)
    assert ended.returncode == 0, f"{command}\n{ended.stdout.decode()}{ended.stderr.decode()}"
    return ended.stdout.decode()


def bare(home: Path, *folders: Path) -> dict[str, str]:
    """The environment of somebody who has a home with nothing in it, and these folders in PATH."""
    home.mkdir(parents=True, exist_ok=True)
    return {"PATH": os.pathsep.join([*map(str, folders), os.defpath]), "HOME": str(home)}


def build(source: Path, target: Path, *kinds: str) -> list[Path]:
    """Build the wheel and the source archive of a checkout, or those of these kinds."""
    wanted = [word for kind in kinds for word in ("-t", kind)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target), *wanted]
    done(command, {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, source)
    return sorted(target.iterdir())


PYTHON = Path(sys.base_prefix) / "bin" / "python3"
"""The interpreter that runs the tests, outside of any environment."""


@cache
def pythons() -> dict[str, Path]:
    """The interpreters that are here, by version."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {**dict(_others()), ours: PYTHON}


def _others() -> Iterator[tuple[str, Path]]:
    for version in ("3.11", "3.12", "3.13"):
        kept = Path.home() / ".pyenv" / "versions"
        found = [str(one) for one in sorted(kept.glob(f"{version}.*/bin/python3"))]
        for program in [*found, shutil.which(f"python{version}")]:
            if program is not None and _works(program, version):
                yield version, Path(program)
                break


def _works(program: str, version: str) -> bool:
    """Whether it is that version, and no stand-in that only names the versions there are."""
    asked = [program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    ended = subprocess.run(asked, capture_output=True, timeout=60, check=False)
    return ended.stdout.decode().strip() == version


class Environment:
    """A virtual environment of that Python, with nothing in it."""

    def __init__(self, folder: Path, python: Path = PYTHON) -> None:
        self.folder = folder
        self.program = folder / "bin" / "responses-acp"
        self.environment = bare(folder.with_name(f"{folder.name}-home"))
        self._python = python

    @property
    def packages(self) -> Path:
        """Where the packages are."""
        return next(self.folder.glob("lib/python3*/site-packages"))

    def make(self, house: Path) -> None:
        """Make it with uv, which takes packages from that folder."""
        self._uv(house, "venv", str(self.folder))

    def add(self, house: Path, wheel: Path) -> None:
        """Install a wheel with uv, and what it needs from that folder."""
        self._uv(house, "pip", "install", "--python", str(self.folder / "bin/python"), str(wheel))

    def make_with_pip(self) -> None:
        """Make it as the standard library does, with pip in it."""
        done(
            [str(self._python), "-I", "-m", "venv", str(self.folder)],
            self.environment,
            self.folder.parent,
        )

    def pip(self, *words: str) -> bool:
        """Run pip as the user of this machine runs it; whether that went well."""
        command = [str(self.folder / "bin/python"), "-I", "-m", "pip", *words, "--quiet"]
        return not run([*command, "-c", str(_CONSTRAINTS)], os.environ, self.folder).returncode

    def call(self, *arguments: str) -> str:
        """What the installed program prints."""
        return done([str(self.program), *arguments], self.environment, self.folder)

    def _uv(self, house: Path, *words: str) -> None:
        environment = self.environment | offline(house, self._python)
        done([str(BESIDE / "uv"), *words, "--quiet"], environment, self.folder.parent)


def fetch(folder: Path) -> Path:
    """Fetch all that the program needs and its building; gives the folder it is in."""
    place, house = Environment(folder / "venv"), folder / "wheels"
    place.make_with_pip()
    if not place.pip("download", "--dest", str(house), *PROJECT["dependencies"], *_BUILDING):
        missing("packages from the package index")
    return house


def offline(house: Path, python: Path) -> dict[str, str]:
    """The variables by which installers take that Python, and packages from that folder alone."""
    settings = house / "uv.toml"
    settings.write_text(f"no-index = true\nfind-links = [{str(house)!r}]\n", encoding="utf-8")
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(house),
        "UV_CONFIG_FILE": str(settings),
        "UV_PYTHON": str(python),
        "PIPX_DEFAULT_PYTHON": str(python),
    }
