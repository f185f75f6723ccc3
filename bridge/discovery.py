"""Asks servers for their models, beside all other work, and offers them to the open sessions.

It must not know HTTP: a short answer is fetched for it.

Rule 1: nothing waits for it; where it fails the log says so, and what was known stays.
Rule 2: a server is asked when a session begins, and not twice within an hour.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

import anyio

from bridge import log
from bridge.acp.editor import SessionEditor
from bridge.catalogues import Catalogues, is_asked
from bridge.config import Config, Provider
from bridge.core import catalogue, updates
from bridge.core.catalogue import Found
from bridge.core.wire import Json
from bridge.errors import BridgeError
from bridge.options import all_options
from bridge.session import Session

_AGAIN = 3600.0
_TOO_LARGE = (
    "{key} is configured with context_window = {most}, but its server gives it {real}: what is "
    "longer fails or is cut off in silence; lower the setting, or start the server with more"
)

Fetch: TypeAlias = Callable[[Provider, str, Json], Awaitable[Json]]
"""The JSON at a URL of a provider's server; sent with a body where that is not None."""

Open: TypeAlias = Callable[[], Iterable[tuple[Session, SessionEditor]]]
"""The sessions that are open now."""


class Discovery:
    """What was asked for and when; one for the whole process."""

    def __init__(
        self,
        catalogues: Catalogues,
        fetch: Fetch,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._catalogues = catalogues
        self._fetch = fetch
        self._clock = clock
        self._asked: dict[str, float] = {}
        self._warned: set[str] = set()

    async def run(self, config: Config, sessions: Open) -> None:
        """Ask the servers of a configuration, where that is wanted and due; tell the sessions."""
        for provider in config.providers.values():
            now = self._clock()
            due = now - self._asked.get(provider.base_url, -_AGAIN) >= _AGAIN
            if not is_asked(provider) or not due:
                continue
            self._asked[provider.base_url] = now
            try:
                found = await self._look(provider, config)
            except BridgeError as error:
                log.say(f"a server did not tell its models: {error.kind}")
                continue
            self._catalogues.keep(provider.base_url, found)
            for session, editor in sessions():
                self._offer(session, editor)
                self._warn(session, editor, provider)

    def _offer(self, session: Session, editor: SessionEditor) -> None:
        before = all_options(session)
        session.config = self._catalogues.extended(session.config)
        after = all_options(session)
        if after != before:
            editor.update(updates.options(after))

    def _warn(self, session: Session, editor: SessionEditor, provider: Provider) -> None:
        for key, most, real in self._catalogues.too_large(session.config, provider):
            if key not in self._warned:
                self._warned.add(key)
                text = _TOO_LARGE.format(key=key, most=most, real=real)
                log.say(text)
                editor.notice("warning", text)

    async def _look(self, provider: Provider, config: Config) -> tuple[Found, ...]:
        """The models of a server, each with the context window that is in force."""
        listed = await self._fetch(provider, f"{provider.base_url}/models", None)
        found = catalogue.models_in(listed)
        if not provider.is_local or all(one.window is not None for one in found):
            return found
        root = provider.base_url.removesuffix("/v1")
        if catalogue.is_llama_cpp(listed):
            window = catalogue.window_in_props(await self._answer(provider, f"{root}/props"))
            return tuple(replace(one, window=one.window or window) for one in found)
        windows = catalogue.windows_in_ps(await self._answer(provider, f"{root}/api/ps"))
        for model in config.models.values():
            name = catalogue.plain(model.model)
            if config.providers[model.provider] == provider and name not in windows:
                body: Json = {"model": model.model}
                shown = await self._answer(provider, f"{root}/api/show", body)
                window = catalogue.window_in_show(shown)
                if window is not None:
                    windows[name] = window
        return tuple(
            replace(one, window=one.window or windows.get(catalogue.plain(one.id))) for one in found
        )

    async def _answer(self, provider: Provider, url: str, body: Json = None) -> Json:
        """Like fetch, for what a server may not have."""
        with suppress(BridgeError):
            return await self._fetch(provider, url, body)
        return None
