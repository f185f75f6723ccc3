"""What the kernel is told about this process, for as long as it lives: prctl(2)."""

import sys

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """Become the parent of whatever our children leave behind; False where that is impossible."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide_memory() -> bool:
    """Close our memory, environment and open files to other processes of the same user.

    Without it any command reads the keys from /proc, or writes into the editor's pipe. False
    where that is impossible; processes of root are kept out by no such means.
    """
    return _prctl(_PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> bool:
    import ctypes  # noqa: PLC0415 (its import costs milliseconds that the first answer cannot spare)

    return sys.platform == "linux" and ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0
