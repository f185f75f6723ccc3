"""The log file in the state directory: for whoever looks into a fault, silent otherwise.

Rule 1: nothing is logged that a conversation, a header or a key could be part of: faults are
written as their class and the places they passed, never with their text.
Rule 2: without a folder that can be written to there is no log, and nothing else changes.
"""

import logging
import os
import traceback
from contextlib import suppress
from pathlib import Path

_LOG = logging.getLogger("responses-acp")
_MOST_BYTES = 1024 * 1024


def start(folder: Path | None) -> None:
    """Log into this folder from now on; the log before last is dropped."""
    logging.raiseExceptions = False
    root = logging.getLogger()
    root.handlers.clear()
    root.addHandler(logging.NullHandler())
    _LOG.propagate = False
    if folder is None:
        return
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / "responses-acp.log"
        if file.exists() and file.stat().st_size > _MOST_BYTES:
            file.replace(file.with_suffix(".log.1"))
        handler = logging.FileHandler(file, encoding="utf-8", delay=True, errors="replace")
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
        _LOG.addHandler(handler)
        _LOG.setLevel(logging.INFO)


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
        for inner in error.exceptions:  # pyright: ignore[reportUnknownVariableType,reportUnknownMemberType]
            fault(inner, where)  # pyright: ignore[reportUnknownArgumentType]
