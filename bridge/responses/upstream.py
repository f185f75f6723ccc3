"""Who behind a server answered a request, where the server says so: gateways choose by themselves.

Rule 1: what a server says of it is shown and logged, so only what can be a name or the address of a
host is taken, and nothing that holds a key.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from bridge.core.wire import JsonObject, object_of, objects_of, text_of

HEADERS = (
    "x-litellm-model-api-base",
    "x-inference-provider",  # the router of Hugging Face
    "cf-aig-provider",  # Cloudflare AI Gateway
    "x-bifrost-provider",
    "ngrok-aig-model",
    "x-ms-region",  # Azure
)
"""The first that is there counts."""

# Compiled on first use: most servers say nothing.
_NAME = r"[A-Za-z0-9][A-Za-z0-9 ._:/()@+-]{0,79}"


def upstream_of(headers: Mapping[str, str], secrets: Iterable[str] = ()) -> str:
    """What the head of an answer says; empty where it says nothing that can be shown."""
    found = next((headers[name] for name in HEADERS if headers.get(name)), "")
    keys = [word for secret in secrets for word in secret.split() if len(word) >= 8]
    return "" if any(key in found for key in keys) else _named(found)


def upstream_in(response: JsonObject) -> str:
    """What a finished response says of it, as OpenRouter's do."""
    metadata = object_of(response, "openrouter_metadata")
    return _named(text_of(response, "provider") or _selected(metadata))


def _selected(metadata: JsonObject) -> str:
    """OpenRouter, Router Metadata: the endpoint that was chosen in the end."""
    available = objects_of(object_of(metadata, "endpoints"), "available")
    chosen = [one for one in available if one.get("selected") is True]
    return text_of(chosen[0], "provider") if chosen else ""


def _named(text: str) -> str:
    """The name; of a URL only the host, since the rest may hold anything."""
    if "://" in text:
        try:
            text = urlsplit(text).netloc.rpartition("@")[2]
        except ValueError:
            return ""
    return text if re.fullmatch(_NAME, text) else ""
