"""Measures the agent and the floor in turns, and prints a table: `python -m tests.bench`.

`--short` sees in some seconds whether everything works; its figures mean nothing.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.bench.client import Client
from tests.bench.measures import MEASURES, Bench, Figures

_HERE = Path(__file__).parent
_PYTHON = (sys.executable, "-I")
_AGENT = _HERE.parent.parent / "bridge" / "__main__.py"
_LEAST = 0.01
"""A floor below this is nothing to compare with."""
_CONFIG = """\
[providers.bench]
base_url = "http://127.0.0.1:{port}/v1"
[models.m]
provider = "bench"
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="few rounds of everything")
    names = [measure.__name__ for measure in MEASURES]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="some measures")
    wanted = parser.parse_args(arguments)
    say(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, ")
    say(f"{os.cpu_count()} processors, load {_load()}\n\n")
    say(f"{'':52}{'agent':>10}{'floor':>10}{'agent : floor':>16}\n")
    with tempfile.TemporaryDirectory() as folder, _server() as port:
        benches = [
            Bench(partial(_spawn, Path(folder), command, port), short=wanted.short)
            for command in (_agent, _floor)
        ]
        for bench in benches:
            with bench.session()[0]:
                pass  # from now on everything is compiled
        for measure in MEASURES:
            if measure.__name__ in wanted.only:
                agent, floor = map(measure, benches)
                say("".join(_rows(agent, floor)))
    say(f"\nload at the end: {_load()}\n")


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _load() -> str:
    return " ".join(f"{load:.1f}" for load in os.getloadavg())


def _rows(agent: Figures, floor: Figures) -> list[str]:
    def ratio(name: str) -> str:
        return f"{agent[name] / floor[name]:.1f}" if floor[name] >= _LEAST else "-"

    return [
        f"{name:52}{value:10.2f}{floor[name]:10.2f}{ratio(name):>16}\n"
        for name, value in agent.items()
    ]


@contextmanager
def _server() -> Generator[int]:
    """The port of the server, as long as the context is open."""
    command = [*_PYTHON, str(_HERE / "server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def _agent(folder: Path, port: int) -> list[str]:
    config = folder / "config.toml"
    config.write_text(_CONFIG.format(port=port), encoding="utf-8")
    return [str(_AGENT), "--config", str(config)]


def _floor(folder: Path, port: int) -> list[str]:
    return [str(_HERE / "floor.py"), str(port), str(folder)]


def _spawn(folder: Path, command: Callable[[Path, int], list[str]], port: int) -> Client:
    """Start a program in a small workspace of its own."""
    mine = folder / command.__name__
    workspace = mine / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "hello.txt").write_text("Hello.\n" * 20, encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "HOME": str(mine), "TMPDIR": str(folder)}
    return Client([*_PYTHON, *command(mine, port)], env, workspace)


if __name__ == "__main__":
    main()
