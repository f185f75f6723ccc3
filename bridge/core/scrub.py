"""What looks like a secret, in text that leaves this machine.

Rule 1: it knows forms, not values: better a harmless text too many than a key.
Rule 2: the name beside a secret stays, so that the text still makes sense.
"""

import re
from typing import Any, cast

from bridge.core.secrets import HIDDEN

_VALUE = r"(?!\[secret removed)[^\s\"'`,;)}\]]{6,}"

_FORMS: tuple[tuple[str, str], ...] = (
    # Whole keys by their beginnings: OpenAI and alike, GitHub, GitLab, Slack, Google, AWS, Stripe.
    (r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}", HIDDEN),
    (r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}", HIDDEN),
    (r"\bglpat-[A-Za-z0-9_-]{16,}|\bxox[abprs]-[A-Za-z0-9-]{10,}", HIDDEN),
    (r"\bAIza[A-Za-z0-9_-]{30,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", HIDDEN),
    (r"\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{30,}", HIDDEN),
    # JSON Web Tokens and private keys.
    (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", HIDDEN),
    (r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", HIDDEN),
    # Headers, addresses with a password, and assignments to names that say what they hold.
    (r"(?i)\b(authorization[\"']?\s*[:=]\s*+[\"']?+(?:bearer|basic|token)?+\s*+)" + _VALUE, r"\1"),
    (r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/-]{12,}=*", r"\1"),
    (r"(://[^\s/:@]*:)(?!\[secret)[^\s/@]+(?=@)", r"\1"),
    (
        r"(?i)\b([A-Za-z0-9_-]*(?:api[_-]?key|secret|token|passw(?:or)?d|credential)s?"
        r"[\"']?\s*[:=]\s*+[\"']?+)" + _VALUE,
        r"\1",
    ),
)
_PATTERNS = [
    (re.compile(form), kept if kept == HIDDEN else f"{kept}{HIDDEN}") for form, kept in _FORMS
]


def scrubbed(text: str) -> str:
    """The text without what looks like a secret."""
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def scrubbed_values(value: Any) -> Any:
    """JSON data with every text in it scrubbed, and what stands under the name of a secret."""
    if isinstance(value, str):
        return scrubbed(value)
    if isinstance(value, dict):
        return {
            scrubbed(key): HIDDEN if _is_named(key, item) else scrubbed_values(item)
            for key, item in cast("dict[str, Any]", value).items()
        }
    if isinstance(value, list):
        return [scrubbed_values(item) for item in cast("list[Any]", value)]
    return value


def _is_named(key: str, item: Any) -> bool:
    """The name alone says that the text is a secret."""
    named = isinstance(item, str) and scrubbed(f"{key}: {'x' * 12}").endswith(HIDDEN)
    return named and bool(item)
