"""Two files change places in one step, where the system can do that.

Each of them is at one of the two paths at every moment, so that no one's bytes are lost between
a look at a file and its replacement.
"""

import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux, and RENAME_SWAP of macOS."""

_HERE = -100
"""AT_FDCWD of Linux: paths as the process sees them; ours are absolute."""


def exchange(one: str, other: str) -> None:
    """Let two files change places; OSError ENOSYS or EINVAL where that cannot be done."""
    number = _call()(os.fsencode(one), os.fsencode(other))
    if number != 0:
        raise OSError(number, os.strerror(number), one, None, other)


@cache
def _call() -> Callable[[bytes, bytes], int]:
    """The system's call, which answers with an errno; found on first use, for ctypes is slow."""
    import ctypes  # noqa: PLC0415 (not on the way to the first answer)

    library = ctypes.CDLL(None, use_errno=True)
    linux = sys.platform == "linux"
    call = getattr(library, "renameat2" if linux else "renamex_np", None)

    def rename(one: bytes, other: bytes) -> int:
        if call is None:
            return errno.ENOSYS
        paths = (_HERE, one, _HERE, other) if linux else (one, other)
        return 0 if call(*paths, ctypes.c_uint(_EXCHANGE)) == 0 else ctypes.get_errno()

    return rename
