"""What the tools promise holds for a user who is not root: those tests once more, as nobody.

The tests of the sandbox itself try both users by themselves; those that start the whole agent need
our own Python, which may lie in a home that is closed to others.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = (
    "edit", "write", "read", "local", "shell", "process", "output", "jobs", "aftermath",
    "confined", "fence", "search", "seek", "store", "rules", "policy", "permissions",
)  # fmt: skip
SYSTEM_PYTHON = "/usr/bin/python3"
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
VERSION = f"import sys; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_the_same_holds_for_nobody() -> None:
    packages = sysconfig.get_path("purelib")
    tried = [
        *AS_NOBODY,
        SYSTEM_PYTHON,
        "-c",
        f"{VERSION} or not __import__('os').listdir({packages!r})",
    ]
    if not shutil.which("setpriv") or subprocess.run(tried, check=False).returncode:
        pytest.skip(f"needs setpriv, and {SYSTEM_PYTHON} of our version that may read {packages}")
    with tempfile.TemporaryDirectory(prefix="nobody-", dir="/tmp") as home:
        os.chown(home, 65534, 65534)
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": home,
            "TMPDIR": home,
            "PYTHONPATH": os.pathsep.join((packages, str(HERE.parent))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": f"{home}/hypothesis",
        }
        modules = [str(HERE / f"test_{name}.py") for name in MODULES]
        arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={home}/pytest"]
        run = subprocess.run(
            [*AS_NOBODY, SYSTEM_PYTHON, *arguments, *modules],
            env=environment,
            cwd=HERE.parent,
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
