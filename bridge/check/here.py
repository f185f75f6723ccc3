"""Checks of this machine: who and where, the program's own files, the sandbox, ripgrep.

Rule 1: nothing is changed, but for one temporary file in the folder of the state.
"""

import base64
import hashlib
import os
import platform
import socket
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from anyio import to_thread

import bridge
import tools
from bridge import __version__
from bridge.check.finding import Finding, fault, ok, warning
from bridge.check.look import Look, user_name
from tools.layers import Layers, layers_of
from tools.probe import Probe
from tools.search import ripgrep

_REINSTALL = "install it anew, in an environment of its own: uv tool install responses-acp"
_CONTAINERS = ("/.dockerenv", "/run/.containerenv")


async def host(look: Look) -> list[Finding]:
    """Where this runs: for projects in a container or on another machine that is not the desk."""
    kinds = "".join(f", {kind}" for kind in _kinds(look.environment, platform.release()))
    system = f"{platform.system()} {platform.release()}"
    found = [ok(f"{user_name()} on {socket.gethostname()} ({system}{kinds})")]
    if not look.environment.get("HOME"):
        found.append(warning("HOME is not set", "set it, or give --config and XDG_STATE_HOME"))
    return found


def _kinds(environment: Mapping[str, str], release: str) -> Iterator[str]:
    if any(os.path.exists(mark) for mark in _CONTAINERS):  # noqa: PTH110 (marks, not files of ours)
        yield "in a container"
    if "microsoft" in release.lower():
        yield f"in WSL {environment.get('WSL_DISTRO_NAME', '')}".rstrip()
    if environment.get("SSH_CONNECTION"):
        yield "over SSH"


async def program(look: Look) -> list[Finding]:
    """Whether the program's own files are as they were installed."""
    del look
    return [installed(Path(bridge.__file__).parent.parent, _distribution())]


def _distribution() -> Distribution | None:
    try:
        return distribution("responses-acp")
    except PackageNotFoundError:
        return None


def installed(home: Path, found: Distribution | None) -> Finding:
    """About the files below this folder, by what their installer wrote down."""
    told = f"responses-acp {__version__} in {home}, Python {platform.python_version()}"
    # Another distribution may bring a `tools` of its own into the same environment.
    if Path(tools.__file__ or "").parent.parent != home:
        return fault(f"{told}; but `tools` comes from {tools.__file__}", _REINSTALL)
    ours = [] if found is None else [file for file in found.files or () if _is_ours(str(file))]
    if not ours or found is None:
        return ok(f"{told}, run from its sources")
    changed = [str(file) for file in ours if not _is_intact(file.locate(), file.hash)]
    if changed:
        what = f"{len(changed)} of its files are not as installed ({changed[0]})"
        return fault(f"{told}; {what}", _REINSTALL)
    return ok(f"{told}, {len(ours)} files intact")


def _is_ours(file: str) -> bool:
    return file.startswith(("bridge/", "tools/")) and file.endswith(".py")


def _is_intact(file: object, expected: object) -> bool:
    """Whether a file has the hash that stands in the list of the installation."""
    try:
        data = Path(str(file)).read_bytes()
    except OSError:
        return False
    mode, value = getattr(expected, "mode", "sha256"), getattr(expected, "value", None)
    digest = hashlib.new(mode, data).digest()
    return value in (None, base64.urlsafe_b64encode(digest).rstrip(b"=").decode())


async def state(look: Look) -> list[Finding]:
    """Whether sessions and the log can be written."""
    folder = look.state
    if folder is None:
        remedy = "set HOME or XDG_STATE_HOME to a folder that can be written to"
        return [warning("there is no place for sessions and the log: nothing is kept", remedy)]
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        what = f"{error.filename or folder} cannot be written to ({error.strerror})"
        remedy = "set XDG_STATE_HOME to a folder that can"
        return [warning(f"{what}: sessions and the log are not kept", remedy)]
    return [ok(f"sessions and the log are in {folder}")]


async def sandbox(look: Look) -> list[Finding]:
    """What holds commands here."""
    settings = None if look.config is None else look.config.sandbox
    if settings is not None and settings.mode == "off":
        return [warning("switched off: commands can do what you can", 'set mode = "auto"')]
    layers = layers_of(*await to_thread.run_sync(Probe().answer))
    return [held(layers, required=settings is not None and settings.require)]


def held(layers: Layers, *, required: bool) -> Finding:
    """About the layers that work here."""
    hold = layers.hold
    match hold.strength:
        case "full":
            return ok(f"layers {layers.working}: commands are held in full", *layers.failures)
        case "partial":
            what = f"layers {layers.working}: {'; '.join(hold.gaps)}"
            return warning(what, "allow user namespaces to close the gaps (README, What commands)")
        case _:
            found = f"there is none here ({'; '.join(layers.failures)})"
            if required:
                return fault(f"{found}, and `require` is set: no command runs", "unset it")
            return warning(
                f"{found}: every command asks", "see the README, What commands can reach"
            )


async def search(look: Look) -> list[Finding]:
    """Whether searches are as fast as they can be."""
    del look
    found = ripgrep(())
    if found is None:
        return [warning("rg is not on PATH: searches take longer", "install ripgrep")]
    return [ok(f"{found} searches")]
