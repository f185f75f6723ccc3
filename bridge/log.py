"""The log file in the state directory: for whoever looks into a fault, silent otherwise.

Rule 1: nothing is logged that a conversation, a header or a key could be part of: faults are
written as their class and the places they passed, never with their text.
Rule 2: without a folder that can be written to there is no log, and nothing else changes.
Rule 3: the file begins anew when it has grown too big; the one before it is kept. Several processes
write to the same file.
"""

import logging
import os
import traceback
from contextlib import suppress
from pathlib import Path
from typing import cast

_LOG = logging.getLogger("responses-acp")
_MOST_BYTES = 1024 * 1024
_NAME = "responses-acp.log"

VARIABLE = "RESPONSES_ACP_LOG"
"""The environment variable that names the level."""
LEVELS = {"off": logging.CRITICAL, "error": logging.ERROR, "info": logging.INFO,
          "debug": logging.DEBUG}  # fmt: skip


def start(folder: Path | None, level: str = "") -> None:
    """Log into this folder from now on; a level that is unknown, or none, is `info`."""
    logging.raiseExceptions = False
    root = logging.getLogger()
    root.handlers.clear()
    root.addHandler(logging.NullHandler())
    _LOG.propagate = False
    if folder is None:
        return
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = _File(folder / _NAME)
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
        _LOG.addHandler(handler)
        _LOG.setLevel(LEVELS.get(level, logging.INFO))


def place() -> str | None:
    """The file that is written to now; None where there is none."""
    files = (one.baseFilename for one in _LOG.handlers if isinstance(one, _File))
    return next(files, None)


def level() -> str:
    """What is written down: the word of LEVELS."""
    return next((name for name, number in LEVELS.items() if number == _LOG.level), "info")


class _File(logging.FileHandler):
    """The file; it is opened with the first line."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, encoding="utf-8", delay=True, errors="replace")
        with suppress(OSError):
            if file.stat().st_size > _MOST_BYTES:
                self._begin_anew()

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):  # opening it is not what the base class forgives
            super().emit(record)
            if self.stream is not None and self.stream.tell() > _MOST_BYTES:
                ours = os.fstat(self.stream.fileno())
                self.stream.close()
                self.stream = None  # pyright: ignore[reportAttributeAccessIssue] (reopened on use)
                if os.path.samestat(ours, os.stat(self.baseFilename)):  # else another process did
                    self._begin_anew()

    def _begin_anew(self) -> None:
        os.replace(self.baseFilename, f"{self.baseFilename}.1")


def detail(text: str) -> None:
    """Note what is of use only when one looks for it; like say()."""
    _LOG.debug("%s", text)


def say(text: str) -> None:
    """Note something of our own; the text must hold nothing of the conversation."""
    _LOG.info("%s", text)


def fault(error: BaseException, where: str) -> None:
    """Note a fault of ours: what class it was and which places it passed."""
    places = [
        f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    _LOG.error("%s: %s at %s", where, type(error).__name__, " < ".join(reversed(places)))
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            fault(inner, where)
