"""Where the user's configuration and our own state belong on this system.

Rule 1: on Linux the XDG Base Directory Specification says it in a few lines; elsewhere the package
platformdirs knows, which loads too slowly for the way to the first answers.
Rule 2: nothing belongs into a home that is not there.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from bridge import kept

_NAME = "responses-acp"


def default_file(environment: Mapping[str, str]) -> Path | None:
    """Where the user's configuration belongs; None where the user has no such place."""
    folder = user_folder(environment)
    return None if folder is None else folder / "config.toml"


def kept_file(environment: Mapping[str, str]) -> Path | None:
    """Where the keys are that the person typed once; None where there is no such place."""
    folder = user_folder(environment)
    return None if folder is None else folder / kept.NAME


def user_folder(environment: Mapping[str, str]) -> Path | None:
    """Where the configuration and the user's own things are; None where there is no such place."""
    folder = _absolute(environment.get("XDG_CONFIG_HOME", ""))
    return _at_home(folder or _usual(".config", "user_config_dir"))


def state_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where sessions and the log live; None where the user has no such place."""
    folder = _absolute(environment.get("XDG_STATE_HOME", ""))
    return _at_home(folder or _usual(".local/state", "user_state_dir"))


def machine_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Where settings for everybody on this machine belong; they can only narrow."""
    listed = map(_absolute, environment.get("XDG_CONFIG_DIRS", "").split(os.pathsep))
    folder = next(filter(None, listed), None)
    return (folder or _usual("/etc/xdg", "site_config_dir")) / "config.toml"


def _absolute(given: str) -> Path | None:
    """Our folder in this one. A relative name is invalid, says the specification."""
    folder = Path(given)
    return folder / _NAME if folder.is_absolute() else None


def _usual(on_linux: str, elsewhere: str) -> Path:
    """Our folder where nothing else is said; elsewhere: what platformdirs calls it."""
    if sys.platform == "linux":
        return Path(_home(), on_linux, _NAME)
    from platformdirs import PlatformDirs  # noqa: PLC0415 (it loads slowly)

    return Path(getattr(PlatformDirs(_NAME, appauthor=False), elsewhere))


def _at_home(folder: Path) -> Path | None:
    """The folder, unless it belongs into a home that is not there: nobody's, not for us to make."""
    home = _home()
    nobody = folder.is_relative_to(home) and not os.path.isdir(home)  # noqa: PTH112 (Path.is_dir raises where we may not look)
    return folder if folder.is_absolute() and not nobody else None


def _home() -> str:
    """The user's home. An empty HOME is none: it would be the root of the file system."""
    if os.environ.get("HOME") != "":
        return os.path.expanduser("~")  # noqa: PTH111 (Path.home raises where there is none)
    import pwd  # noqa: PLC0415 (seldom needed)

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "~"
