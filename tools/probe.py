"""Asks tools/confine.py what can confine commands on this machine.

Rule 1: it needs next to nothing, so that the answer comes while the rest of the program loads.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_IMPORT = "import sys; sys.path.append(sys.argv.pop(1)); import confine; confine.run(sys.argv[1:])"
"""A program that is imported is compiled once; one that is named to Python, every time."""

HELPER = ("-I", "-S", "-c", _IMPORT, str(Path(__file__).parent))
"""How Python becomes the helper, before the helper's own arguments."""
_PATIENCE = 10.0
"""Seconds for the answer, which takes some hundredths of one."""


class Probe:
    """The question, asked when this is made."""

    def __init__(self, python: str = sys.executable, platform: str = sys.platform) -> None:
        self._failure = ""
        """Why it could not be asked."""
        self._process: subprocess.Popen[bytes] | None = None
        if platform != "linux":
            self._failure = f"there is none for {platform}"
            return
        try:
            self._process = subprocess.Popen(  # noqa: S603 (our own program)
                (python, *HELPER, "probe"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env={},
                start_new_session=True,
            )
        except OSError as error:
            self._failure = f"{python}: {error.strerror}"

    def answer(self, patience: float = _PATIENCE) -> tuple[str, str]:
        """What the helper said, and its complaint if it failed; blocks until it has ended."""
        if self._process is None:
            return "", self._failure
        try:
            said, complaint = self._process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            self.end()
            return "", "the helper did not end"
        text = complaint.decode(errors="replace").strip()
        return said.decode(), text if self._process.returncode else ""

    def end(self) -> None:
        """Stop asking."""
        if self._process is None:
            return
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
