"""What the list shows of a session, in a small file beside it, so that listing reads no sessions.

Rule 1: a label can be made again from the session's file at any time; nothing else depends on it.
Rule 2: only the process that has the session open writes it, whole or not at all.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from bridge.core.secrets import conceal
from tools.frozen import frozen

_MOST_BYTES = 64 * 1024
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


@frozen
class Label:
    """One session, as the list shows it."""

    session: str
    cwd: str
    title: str | None = None
    directories: tuple[str, ...] = ()
    """Further roots of the last time it was opened."""
    pid: int | None = None
    """The process that has it open; meaningful only while the file of the session is locked."""


def label_path(journal: Path) -> Path:
    """Where the label of a session's file stands."""
    return journal.with_suffix(".label")


def new_label_path(journal: Path) -> Path:
    """Where the next label is written before it takes its place."""
    return journal.with_suffix(".label-new")


def read_label(journal: Path) -> Label | None:
    """The label; None if there is none that makes sense."""
    try:
        descriptor = os.open(label_path(journal), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            label = _reader().validate_json(file.read(_MOST_BYTES) or b"")
    except (OSError, ValidationError):
        return None
    return label if label.session == journal.stem else None


def write_label(journal: Path, label: Label, secrets: Iterable[str] = ()) -> None:
    """Put the label in the place of the last one; does nothing where that cannot be done."""
    new = new_label_path(journal)
    line = conceal(json.dumps(asdict(label)).encode("ascii") + b"\n", secrets)
    with suppress(OSError):
        with os.fdopen(os.open(new, _WRITE, 0o600), "wb") as file:
            file.write(line)
        new.replace(label_path(journal))


@cache
def _reader() -> TypeAdapter[Label]:
    return TypeAdapter(Label)
