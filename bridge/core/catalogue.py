"""What servers say of the models they have: JSON in, the models that can take part in a turn out.

It must not know how the lists are got.

Rule 1: a list is taken as far as it can be understood; what cannot leaves no trace.
Rule 2: a model is left out only where its name or what the list says of it shows that it answers
no text with text.
"""

import re
from collections.abc import Iterator

from bridge.core.wire import Json, JsonObject, list_of, object_of, text_of
from tools.frozen import frozen

_MOST = 500
"""Models of one list; more is no choice for a person."""
_LONGEST_NAME = 200
_MOST_WINDOW = 10**9
"""Tokens; more is no number of theirs."""

# Compiled on first use: most starts need no list.
_OTHER_USES = (
    r"(?i)(?:^|[^a-z])(?:embed(?:ding)?s?|e5|bge|rerank(?:er)?|moderation|whisper|tts|transcribe|speech|"
    r"audio|realtime|dall-e|image|imagine|sora|veo|video|ocr|babbage|davinci|lyria)(?:[^a-z]|$)"
)
_TYPES = frozenset({"chat", "llm", "vlm", "language", "text", "code", "model", "base", ""})
"""What lists call a model of ours, where they sort them."""
_WINDOWS = ("context_window", "context_length", "max_model_len", "max_context_length")


@frozen
class Found:
    """A model that a server told of."""

    id: str
    """Its name on the wire."""
    name: str | None = None
    window: int | None = None
    """Tokens it takes, as far as the server says what is in force."""
    images: bool = False


def models_in(body: Json) -> tuple[Found, ...]:
    """The models of an answer to GET /models, in the order of their names."""
    found = {one.id: one for entry in _entries(body, "data", "models") if (one := _model(entry))}
    return tuple(sorted(found.values(), key=lambda one: one.id))[:_MOST]


def entry(found: Found) -> JsonObject:
    """The entry of a list that models_in() reads as this model."""
    given: JsonObject = {"id": found.id, "name": found.name, "context_window": found.window}
    return {**given, "architecture": {"input_modalities": ["image"] if found.images else []}}


def is_llama_cpp(body: Json) -> bool:
    """Whether the list comes from llama.cpp's own server."""
    return any(entry.get("owned_by") == "llamacpp" for entry in _entries(body, "data"))


def window_in_props(body: Json) -> int | None:
    """The context that llama.cpp's server has set aside, from its /props."""
    return _count(object_of(_object(body), "default_generation_settings").get("n_ctx"))


def windows_in_ps(body: Json) -> dict[str, int]:
    """The context that Ollama has set aside for each model it has loaded, from /api/ps."""
    found: dict[str, int] = {}
    for entry in _entries(body, "models"):
        window = _count(entry.get("context_length"))
        if window is not None:
            found[plain(str(entry.get("model") or entry.get("name")))] = window
    return found


def window_in_show(body: Json) -> int | None:
    """The context that a model of Ollama's asks for itself, from /api/show."""
    parameters = text_of(_object(body), "parameters")
    asked = re.search(r"^num_ctx\s+(\d{1,9})\s*$", parameters, re.MULTILINE)
    return None if asked is None else int(asked[1])


def plain(model: str) -> str:
    """The name without the tag that Ollama adds where none is given."""
    return model.removesuffix(":latest")


def _model(entry: JsonObject) -> Found | None:
    given = entry.get("id") or entry.get("name")
    if not isinstance(given, str) or not given.isprintable() or len(given) > _LONGEST_NAME:
        return None
    if re.search(_OTHER_USES, given) or not _talks(entry):
        return None
    name = entry.get("name") or entry.get("display_name")
    name = name if isinstance(name, str) and name.isprintable() and name != given else None
    window = _count(object_of(entry, "meta").get("n_ctx"))
    for key in _WINDOWS:
        window = window or _count(entry.get(key))
    return Found(given, name, window, "image" in _modalities(entry, "input"))


def _talks(entry: JsonObject) -> bool:
    """Whether nothing in the entry says that the model does not answer with text."""
    output = _modalities(entry, "output")
    talks = object_of(entry, "capabilities").get("completion_chat")
    named = text_of(entry, "type").lower() in _TYPES
    return named and talks is not False and (not output or "text" in output)


def _modalities(entry: JsonObject, side: str) -> list[Json]:
    return list_of(object_of(entry, "architecture"), f"{side}_modalities")


def _entries(body: Json, *keys: str) -> Iterator[JsonObject]:
    for given in (body, *(_object(body).get(key) for key in keys)):
        if isinstance(given, list):
            yield from (entry for entry in given if isinstance(entry, dict))
            return


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _count(value: Json) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value <= _MOST_WINDOW else None
