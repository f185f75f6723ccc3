"""Who behind a server answered a request, where the server says so: gateways choose by themselves.

Rule 1: what a server says of it is shown and logged, so only what can be a name or the address of a
host is taken, and nothing that holds a key.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from bridge.core.wire import Json, JsonObject

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
    named = _text(response.get("provider")) or _selected(response.get("openrouter_metadata"))
    return _named(named)


def _selected(metadata: Json) -> str:
    """OpenRouter, Router Metadata: the endpoint that was chosen in the end."""
    endpoints = metadata.get("endpoints") if isinstance(metadata, dict) else None
    available = endpoints.get("available") if isinstance(endpoints, dict) else None
    for one in available if isinstance(available, list) else ():
        if isinstance(one, dict) and one.get("selected") is True:
            return _text(one.get("provider"))
    return ""


def _named(text: str) -> str:
    """The name; of a URL only the host, since the rest may hold anything."""
    if "://" in text:
        try:
            text = urlsplit(text).netloc.rpartition("@")[2]
        except ValueError:
            return ""
    return text if re.fullmatch(_NAME, text) else ""


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
