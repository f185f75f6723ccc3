"""The models that servers told of: kept in the state directory, and added to the configuration.

It must not know how a list is got.

Rule 1: what the user configured stays as it is; a list adds models, and context windows that nobody
set.
Rule 2: models are added only where that was asked for; windows are filled in for every server that
would cut off in silence what is longer.
Rule 3: a list that cannot be read or written is no failure: it comes again.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bridge import log
from bridge.config import Config, Model, Provider
from bridge.core.catalogue import Found, entry, models_in, plain
from bridge.core.wire import dump, load_object
from bridge.kept import replace_private
from bridge.responses import quirks

_Lists = dict[str, tuple[Found, ...]]


class Catalogues:
    """The lists by base URL; one for the whole process. Without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / "models.json"
        self._lists: _Lists | None = None
        self._ours: set[tuple[str, str]] = set()
        """The models, by base URL and name, whose context window is ours to fill in."""

    def opened(self, config: Config) -> Config:
        """A configuration as it was read, with the models that are known."""
        if not any(map(is_asked, config.providers.values())):
            return config
        for model in config.models.values():
            place = config.providers[model.provider].base_url, plain(model.model)
            (self._ours.add if model.context_window is None else self._ours.discard)(place)
        return self.extended(config)

    def extended(self, config: Config) -> Config:
        """The configuration with what the lists say now; models that are gone stay in it."""
        models = dict(config.models)
        for name, provider in config.providers.items():
            if is_asked(provider):
                found = self._known().get(provider.base_url, ())
                models |= self._added(name, provider, found, models)
        return config if models == config.models else config.model_copy(update={"models": models})

    def keep(self, base_url: str, found: tuple[Found, ...]) -> None:
        """Take a new list and write it down for the next start."""
        lists = self._known()
        if lists.get(base_url) == found:
            return
        lists[base_url] = found
        if self._file is not None:
            kept = {url: [entry(one) for one in each] for url, each in lists.items()}
            with suppress(OSError):
                replace_private(self._file, dump(kept).decode())

    def too_large(self, config: Config, provider: Provider) -> list[tuple[str, int, int]]:
        """Models configured with more than the server gives them: key, configured, real."""
        real = {plain(one.id): one.window for one in self._known().get(provider.base_url, ())}
        return [
            (key, model.context_window, window)
            for key, model in config.models.items()
            if config.providers[model.provider].base_url == provider.base_url
            and (provider.base_url, plain(model.model)) not in self._ours
            and model.context_window is not None
            and (window := real.get(plain(model.model))) is not None
            and model.context_window > window
        ]

    def _added(
        self, name: str, provider: Provider, found: tuple[Found, ...], models: Mapping[str, Model]
    ) -> dict[str, Model]:
        """The models of one list that are new, or whose window is."""
        known = {plain(one.model): key for key, one in models.items() if one.provider == name}
        added: dict[str, Model] = {}
        for one in found:
            place = provider.base_url, plain(one.id)
            key = known.get(plain(one.id))
            if key is None:
                if provider.discover:
                    self._ours.add(place)
                    added[f"{name}/{one.id}"] = _model(name, one)
            elif place in self._ours and one.window not in (None, models[key].context_window):
                added[key] = models[key].model_copy(update={"context_window": one.window})
        return added

    def _known(self) -> _Lists:
        if self._lists is None:
            self._lists = {} if self._file is None else _read(self._file)
        return self._lists


def is_asked(provider: Provider) -> bool:
    """Whether this server is asked for its models, or at least for their windows."""
    return provider.discover or (provider.is_local and quirks.row(provider).tells_window)


def _model(provider: str, found: Found) -> Model:
    return Model(
        provider=provider,
        model=found.id,
        name=found.name,
        context_window=found.window,
        images=found.images,
    )


def _read(file: Path) -> _Lists:
    try:
        return {url: models_in(each) for url, each in load_object(file.read_bytes()).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        log.say("the list of models in the state directory cannot be read; it will come again")
        return {}
