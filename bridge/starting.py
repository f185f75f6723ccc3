"""How this program is started: by an editor, by the demo, by itself.

It must not know what it does then.
"""

import shutil
import sys
from pathlib import Path

import bridge

MAIN = Path(bridge.__file__).with_name("__main__.py")
"""What Python runs where there is no script."""


def script(started: str, path: str | None) -> Path | None:
    """The program's script: the one that was started now, or that is found in this PATH."""
    file = Path(started).absolute()
    if file.name == "responses-acp" and file.is_file():
        return file
    found = shutil.which("responses-acp", path=path)
    return None if found is None else Path(found).absolute()


def agent_command(config: str | None, record: str | None = None) -> list[str]:
    """The command line that starts the agent, whatever stands in the working directory."""
    alone = "-I" if sys.flags.isolated else "-P"  # -I would hide packages of a `pip --user`
    named = [] if config is None else ["--config", config]
    recorded = [] if record is None else ["--record", record]
    return [sys.executable, alone, str(MAIN), *named, *recorded]
