"""What looks like a secret does not leave the machine; what does not, does."""

import pytest

from bridge.core.scrub import scrubbed, scrubbed_values
from bridge.core.secrets import HIDDEN as GONE


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("sk-proj-abcdefghijklmnop1234", GONE),
        ("use sk_live_abcdefghijklmnop1234.", f"use {GONE}."),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", GONE),
        ("github_pat_0123456789abcdefghij_ABC", GONE),
        ("glpat-0123456789abcdefghij", GONE),
        ("xoxb-1234567890-abcdef", GONE),
        ("AIzaSyA0123456789abcdefghijklmnopqrstuv", GONE),
        ("AKIAIOSFODNN7EXAMPLE", GONE),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig-nature_1", GONE),
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb",
            f"a\n{GONE}\nb",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMII cut off", GONE),
        ("Authorization: Bearer abc.def-123456", f"Authorization: Bearer {GONE}"),
        ('"authorization": "Basic dXNlcjpwYXNz"', f'"authorization": "Basic {GONE}"'),
        ("curl -H 'Bearer abcdefghijkl0123'", f"curl -H 'Bearer {GONE}'"),
        ("postgres://me:hunter2@host/db", f"postgres://me:{GONE}@host/db"),
        ("OPENAI_API_KEY=abcdef123", f"OPENAI_API_KEY={GONE}"),
        ('"client_secret": "abcdef123",', f'"client_secret": "{GONE}",'),
        ("password: correct-horse", f"password: {GONE}"),
        ("DB_PASSWORD='abcdef1'", f"DB_PASSWORD='{GONE}'"),
    ],
)
def test_what_looks_like_a_secret_is_replaced(text: str, left: str) -> None:
    assert scrubbed(text) == left
    assert scrubbed(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "Read the tokens of the file, then count them.",
        "def token(self) -> str:",
        "max_tokens: 100",
        "https://example.com/path?x=1",
        "the bearer of news",
        "task-list, risk-assessment and disk-usage",
        "git@github.com:me/it.git",
    ],
)
def test_plain_text_stays(text: str) -> None:
    assert scrubbed(text) == text


def test_data_is_scrubbed_by_form_and_by_name() -> None:
    given = {"api_key": "abcdef", "n": [1, None, "sk-abcdefghijklmnop1234"], "secret": {"a": "b"}}
    left = {"api_key": GONE, "n": [1, None, GONE], "secret": {"a": "b"}}
    assert scrubbed_values(given) == left
    assert scrubbed_values({"token": ""}) == {"token": ""}
