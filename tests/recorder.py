"""Stands between an editor and an agent, and writes down what each says, in order.

    python recorder.py FILE AGENT ARGUMENTS...

Rule 1: every byte goes on as it came, and a line is written down before it goes on: what answers
it stands behind it.
Rule 2: it ends with the agent; an interrupt that both get is the agent's matter.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from tests.laws import Laws


def play(record: Path) -> list[dict[str, Any]]:
    """Hold a recorded conversation to the protocol's laws; gives what the editor sent."""
    laws = Laws()
    sent: list[dict[str, Any]] = []
    for line in record.read_text(encoding="utf-8").splitlines():
        who, said = json.loads(line)
        if who == "editor":
            sent.append(json.loads(said))
            laws.sent(sent[-1])
        else:
            laws.take(said.encode())
    laws.end()
    return sent


def _relay(who: str, source: IO[bytes], target: IO[bytes], record: int) -> None:
    for line in source:
        os.write(record, json.dumps([who, line.decode()]).encode() + b"\n")
        try:
            target.write(line)
            target.flush()
        except BrokenPipeError:
            return
    target.close()


def _main(file: str, *command: str) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    record = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        given = (sys.stdin.buffer, agent.stdin)
        threading.Thread(target=_relay, args=("editor", *given, record), daemon=True).start()
        _relay("agent", agent.stdout, sys.stdout.buffer, record)
        code = agent.wait()
    os._exit(code)  # a thread may still wait for the editor


if __name__ == "__main__":
    _main(*sys.argv[1:])
