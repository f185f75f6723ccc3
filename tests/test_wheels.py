"""What is built holds what it should, and works where it is installed."""

import email
import json
import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from bridge import __version__
from tests.test_start import line
from tests.wheels import (
    BESIDE,
    HOME,
    PROJECT,
    PYTHON,
    Environment,
    bare,
    build,
    done,
    offline,
    pythons,
    run,
)

pytestmark = pytest.mark.slow

_MOST_BYTES = 80_000_000
NAME = f"responses_acp-{__version__}"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    assert {file.name for file in built.iterdir()} == {
        f"{NAME}-py3-none-any.whl",
        f"{NAME}.tar.gz",
    }
    return built / f"{NAME}-py3-none-any.whl"


def ours(folder: Path) -> set[str]:
    """The files of both packages."""
    return {
        str(path.relative_to(folder))
        for package in ("bridge", "tools")
        for path in (folder / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


# -- what is in it --------------------------------------------------------------------------------


def test_the_wheel_holds_both_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        about = {name for name in names if name.startswith(f"{NAME}.dist-info/")}
        assert names - about == ours(HOME)
        licence = archive.read(f"{NAME}.dist-info/licenses/LICENSE")
        assert licence == (HOME / "LICENSE").read_bytes()
        entry = archive.read(f"{NAME}.dist-info/entry_points.txt").decode()
        assert entry.split("\n\n")[0].splitlines() == [
            "[console_scripts]",
            "responses-acp = bridge.__main__:main",
        ]


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        said = email.message_from_bytes(archive.read(f"{NAME}.dist-info/METADATA"))
    assert (said["Name"], said["Version"]) == ("responses-acp", __version__)
    assert said["License-Expression"] == PROJECT["license"]
    assert said["Requires-Python"] == PROJECT["requires-python"]
    assert sorted(said.get_all("Requires-Dist", [])) == sorted(PROJECT["dependencies"])
    assert said["Description-Content-Type"] == "text/markdown"
    assert str(said.get_payload()).startswith("# responses-acp\n")


def test_the_version_stands_in_one_place() -> None:
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]
    written = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])")
    found = [name for name in ours(HOME) if written.search((HOME / name).read_text("utf-8"))]
    assert found == ["bridge/__init__.py"]


def test_the_source_archive_gives_the_same_wheel(built: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / NAME
    for name in ("README.md", "LICENSE", "config.example.toml", ".ci/run", "tests/conftest.py"):
        assert (source / name).read_bytes() == (HOME / name).read_bytes()
    assert not list(source.rglob("__pycache__"))
    (again,) = build(source, tmp_path / "again", "wheel")
    assert again.read_bytes() == wheel.read_bytes()


HELLO = line({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}})


# -- where it is installed ------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_it_works_where_pip_put_it(version: str, wheel: Path, house: Path, tmp_path: Path) -> None:
    if version not in pythons():
        pytest.skip(f"missing: Python {version}")
    place = Environment(tmp_path / "venv", pythons()[version])
    place.make_with_pip()
    index = ["--no-index"] if pythons()[version] == PYTHON else list[str]()  # the house is for ours
    assert place.pip("install", *index, "--find-links", str(house), str(wheel))
    assert place.call("--version") == f"responses-acp {__version__}\n"
    assert "Done: line 2" in place.call("demo", "--yes")
    assert talks(place.program, place.environment, tmp_path)
    assert not list(Path(place.environment["HOME"]).glob(".config/*"))
    size = sum(file.stat().st_size for file in installed(place.packages))
    assert size < _MOST_BYTES, f"{size} bytes are installed"


def installed(packages: Path) -> list[Path]:
    """The files that came with the program, and what Python made of them."""
    brought = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
    return [
        file
        for entry in packages.iterdir()
        if not entry.name.startswith(brought)
        for file in ([entry] if entry.is_file() else entry.rglob("*"))
        if file.is_file()
    ]


def talks(program: Path, environment: dict[str, str], folder: Path) -> bool:
    """Whether the agent opens a session."""
    opening = {"cwd": str(folder), "mcpServers": list[str]()}
    given = HELLO + line({"id": 2, "method": "session/new", "params": opening})
    ended = run([str(program)], environment, folder, given)
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    opened = any("sessionId" in (one.get("result") or {}) for one in answers)
    return opened and (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("installer", ["uv tool", "pipx"])
def test_it_works_where_an_installer_put_it(
    installer: str, wheel: Path, house: Path, tmp_path: Path
) -> None:
    environment = bare(tmp_path / "home", BESIDE) | offline(house, PYTHON)
    name, *words = installer.split()
    done([str(BESIDE / name), *words, "install", str(wheel)], environment, tmp_path)
    program = tmp_path / "home" / ".local" / "bin" / "responses-acp"
    alone = bare(tmp_path / "home")
    assert done([str(program), "--version"], alone, tmp_path) == f"responses-acp {__version__}\n"
    assert "Done: line 2" in done([str(program), "demo", "--yes"], alone, tmp_path)
    assert talks(program, alone, tmp_path)


# -- beside a distribution that ships a package of the same name ----------------------------------

REMEDY = "install it anew, in an environment of its own: uv tool install responses-acp"
HARMLESS: dict[str, str] = {"tools/__init__.py": "", "tools/hammer.py": "NAIL = 1\n"}
HARMFUL = {**HARMLESS, "tools/base.py": "HANDLE = 1\n"}


def their_wheel(folder: Path, files: dict[str, str]) -> Path:
    """A wheel of somebody else."""
    about = "toolbox-1.dist-info"
    files = {
        **files,
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: toolbox\nVersion: 1\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in files) + f"{about}/RECORD,,\n"
    wheel = folder / "toolbox-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


def beside(
    files: dict[str, str], folder: Path, house: Path, wheel: Path, *, ours_first: bool
) -> Environment:
    """An environment with our wheel and one with these files."""
    place = Environment(folder / "venv")
    place.make(house)
    wheels = [wheel, their_wheel(folder, files)]
    for one in wheels if ours_first else reversed(wheels):
        place.add(house, one)
    return place


@pytest.mark.parametrize("files", [HARMLESS, HARMFUL], ids=["harmless", "harmful"])
def test_the_last_one_installed_works(
    files: dict[str, str], wheel: Path, house: Path, tmp_path: Path
) -> None:
    place = beside(files, tmp_path, house, wheel, ours_first=False)
    assert talks(place.program, place.environment, tmp_path)
    assert "files intact" in run_check(place)


def test_files_of_another_in_our_folder_are_told_of_where_they_do_no_harm(
    wheel: Path, house: Path, tmp_path: Path
) -> None:
    place = beside(HARMLESS, tmp_path, house, wheel, ours_first=True)
    assert talks(place.program, place.environment, tmp_path)
    said = run_check(place)
    assert "1 of its files are not as installed (tools/__init__.py)" in said
    assert REMEDY in said


def test_files_of_another_in_the_place_of_ours_are_told_of(
    wheel: Path, house: Path, tmp_path: Path
) -> None:
    place = beside(HARMFUL, tmp_path, house, wheel, ours_first=True)
    for command in ([], ["check"], ["demo", "--yes"]):
        ended = run([str(place.program), *command], place.environment, tmp_path, HELLO)
        assert ended.returncode == 1
        (told,) = ended.stderr.decode().splitlines()
        assert told.startswith("responses-acp: fatal: ImportError: cannot import name ")
        assert str(place.packages / "tools" / "base.py") in told
        assert told.endswith(REMEDY)


def run_check(place: Environment) -> str:
    """What `check` says, whatever it finds."""
    ended = run([str(place.program), "check"], place.environment, place.folder)
    assert ended.stderr == b""
    return ended.stdout.decode()
