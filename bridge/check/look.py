"""What the checks share: the configuration, the server's greeting, and the clocks.

It must not know which checks there are.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridge.config import Config, Model, Provider
from bridge.keys import Keys
from bridge.responses.transport import Greeting, Transport


@dataclass(eq=False, slots=True)
class Look:
    """One run of the checks; owner of what earlier checks found out for later ones."""

    environment: Mapping[str, str]
    transport: Transport
    keys: Keys
    clock: Callable[[], float]
    """Seconds that pass."""
    now: Callable[[], float]
    """Seconds of the epoch."""
    named: str | None = None
    """The file given on the command line."""
    chosen: str | None = None
    """The model given on the command line."""
    state: Path | None = None
    """The folder of sessions and the log."""
    config: Config | None = None
    model_key: str = ""
    key: str | None = field(default=None, repr=False)
    reached: Greeting | None = None

    @property
    def settings(self) -> Config:
        """The configuration, for checks that come after it was read."""
        assert self.config is not None  # noqa: S101 (the table says that they need it)
        return self.config

    @property
    def greeting(self) -> Greeting:
        """What the server said, for checks that come after it was reached."""
        assert self.reached is not None  # noqa: S101 (as above)
        return self.reached

    @property
    def model(self) -> Model:
        """The model that is checked."""
        return self.settings.models[self.model_key]

    @property
    def provider(self) -> Provider:
        """Its server, which is asked once and not again."""
        found = self.settings.providers[self.model.provider]
        return found.model_copy(update={"max_retries": 0})


def user_name() -> str:
    """Who runs this process."""
    import pwd  # noqa: PLC0415 (POSIX only)

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"user {os.geteuid()}"
