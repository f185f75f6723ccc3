"""Two files change places in one step, where the system can do that.

Each of them is at one of the two paths at every moment, so that no one's bytes are lost between
a look at a file and its replacement.
"""

import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_LINUX = sys.platform == "linux"

_NAME = "renameat2" if _LINUX else "renamex_np"

_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux, and RENAME_SWAP of macOS."""

_HERE = -100
"""AT_FDCWD of Linux: paths as the process sees them; ours are absolute."""


def exchange(one: str, other: str) -> None:
    """Let two files change places; OSError ENOSYS or EINVAL where that cannot be done."""
    number = system_call(_NAME)(os.fsencode(one), os.fsencode(other))
    if number != 0:
        raise OSError(number, os.strerror(number), one, None, other)


@cache
def system_call(name: str) -> Callable[[bytes, bytes], int]:
    """The system's call that exchanges files; it answers with an errno, 0 when it did."""
    import ctypes  # noqa: PLC0415 (slow, and not needed for the first answers)

    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, name, None)

    def rename(one: bytes, other: bytes) -> int:
        if call is None:
            return errno.ENOSYS
        paths = (_HERE, one, _HERE, other) if _LINUX else (one, other)
        return 0 if call(*paths, ctypes.c_uint(_EXCHANGE)) == 0 else ctypes.get_errno()

    return rename
