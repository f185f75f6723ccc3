"""The command `replay`."""

import sys

import anyio

from bridge import log
from bridge.replay.player import replay
from bridge.replay.read import Unusable, read


def run(file: str) -> int:
    """The command `replay`: the exit code."""
    log.start(None)
    try:
        found = anyio.run(replay, read(file))
    except Unusable as error:
        sys.stderr.write(f"responses-acp: {file}: {error}\n")
        return 2
    if found is None:
        sys.stdout.write("The same: the agent says what it said when this was recorded.\n")
        return 0
    sys.stdout.write(f"{found}\n")
    return 1
