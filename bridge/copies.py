"""Copies of files as they were before a call changed them: what undo and diff need.

They stand in the state directory beside the session, named by their content, 0600 in 0700.

Rule 1: a copy is on disk before the file it was made of is touched.
Rule 2: a file that holds a secret of ours is not copied.
"""

import os
from pathlib import Path

from tools.frozen import frozen
from tools.seen import digest


@frozen
class Copies:
    """The copies of one session; without a folder there are none."""

    folder: Path | None
    secrets: tuple[str, ...] = ()

    def keep(self, data: bytes) -> None:
        """Keep a copy, if there may be one; OSError."""
        if self.folder is None or any(secret.encode() in data for secret in self.secrets):
            return
        path = self.folder / digest(data)
        if path.exists():
            return
        self.folder.mkdir(mode=0o700, exist_ok=True)
        new = path.with_suffix(".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(new, flags, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    def find(self, name: str) -> bytes | None:
        """The bytes with this digest, if they were kept and are still what they were."""
        if self.folder is None:
            return None
        try:
            data = (self.folder / name).read_bytes()
        except OSError:
            return None
        return data if digest(data) == name else None

    def delete(self) -> None:
        """Remove all of them; OSError."""
        if self.folder is not None and self.folder.exists():
            import shutil  # noqa: PLC0415 (it loads slowly, and sessions end late)

            shutil.rmtree(self.folder)
