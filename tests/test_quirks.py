"""Which kind of server is spoken to, and what of it and of the user's settings is in force."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.config import KINDS, Model, Provider, load
from bridge.responses import quirks
from bridge.responses.quirks import QUIRKS, InForce, Quirks, in_force, row

EXAMPLE = Path(__file__).parent.parent / "config.example.toml"
SOMEWHERE = "https://gateway.example/v1"


def provider(base_url: str = SOMEWHERE, **settings: Any) -> Provider:
    return Provider.model_validate({"base_url": base_url, **settings})


def spoken(name: str | None, model: str = "m", **settings: Any) -> InForce:
    """What is in force for a model of the named kind of server."""
    given = {"provider": "p", "model": model, **settings}
    return in_force(provider(quirks=name), Model.model_validate(given))


def test_every_kind_can_be_named_in_the_configuration() -> None:
    assert tuple(QUIRKS) == KINDS


def test_every_kind_has_a_conversation_in_its_dialect() -> None:
    played = Path(__file__).parent.joinpath("transcripts").glob("server-*.jsonl")
    assert {path.name.removesuffix(".jsonl") for path in played} == {f"server-{k}" for k in KINDS}


def test_an_address_tells_the_kind_of_server_where_it_can() -> None:
    def check(base_url: str, name: str) -> None:
        known = QUIRKS | {"at home": Quirks(strict=False), "anywhere": Quirks()}
        assert row(provider(base_url)) == known[name]

    check("https://api.openai.com/v1", "openai")
    check("https://eu.api.openai.com/v1", "openai")
    check("https://API.OpenAI.com/v1", "openai")
    check("https://team.openai.azure.com/openai/v1", "azure")
    check("https://team.cognitiveservices.azure.com/openai/v1", "azure")
    check("https://team.services.ai.azure.com/openai/v1", "azure")
    check("https://openrouter.ai/api/v1", "openrouter")
    check("https://eu.openrouter.ai/api/v1", "openrouter")
    check("https://api.x.ai/v1", "xai")
    check("https://us-east-1.api.x.ai/v1", "xai")
    check("https://api.deepseek.com", "deepseek")
    check("http://127.0.0.1:11434/v1", "ollama")
    check("http://box.lan:11434/v1", "ollama")
    check("http://localhost:1234/v1", "lmstudio")
    # too many programs listen there
    check("http://127.0.0.1:8080/v1", "at home")
    check("http://127.0.0.1:8000/v1", "at home")
    check("http://localhost:4000/v1", "at home")
    # not the server it looks like
    check("https://gateway.example:11434/v1", "anywhere")
    check("https://notopenrouter.ai/v1", "anywhere")
    check("https://api.openai.com.example/v1", "anywhere")
    check("http://localhost/v1", "at home")


def test_a_named_kind_counts_more_than_the_address() -> None:
    assert row(provider("http://127.0.0.1:11434/v1", quirks="llama.cpp")) is QUIRKS["llama.cpp"]
    assert row(provider("https://api.openai.com/v1", quirks="litellm")) is QUIRKS["litellm"]


def test_each_server_of_the_example_is_known_as_what_it_is(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^#(?! )", "", EXAMPLE.read_text(encoding="utf-8"))
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    (tmp_path / "prompt.md").touch()
    found = load(str(tmp_path / "config.toml"), {}).providers
    kinds = [name for one in found.values() for name in QUIRKS if QUIRKS[name] is row(one)]
    assert sorted(kinds) == sorted(KINDS)


def test_without_a_word_of_the_user_the_server_decides() -> None:
    def check(name: str | None, expected: InForce, model: str = "m") -> None:
        assert spoken(name, model) == expected

    plain = InForce()
    text = InForce(replay_reasoning="content", sources=False)
    loose = replace(text, strict=False)
    unpadded = InForce(extra={"stream_options": {"include_obfuscation": False}})
    check(None, plain)
    check("openai", unpadded, "gpt-4.1")
    check("openai", replace(unpadded, encrypted=True), "gpt-5.3-codex")
    check("openai", replace(unpadded, encrypted=True), "o4-mini")
    check("azure", plain, "gpt-5.3-codex")
    routed = InForce(encrypted=True, sources=False, replay_reasoning="both")
    check("openrouter", routed, "openai/gpt-5.3-codex")
    cached = replace(routed, extra={"cache_control": {"type": "ephemeral"}})
    check("openrouter", cached, "anthropic/claude-sonnet-5")
    check("xai", InForce(encrypted=True, sources=False), "grok-4")
    check("deepseek", text)
    check("vllm", loose)
    check("llama.cpp", loose)
    check("lmstudio", loose)
    check("ollama", InForce(strict=False, sources=False))
    check("litellm", plain)


def test_the_users_word_counts_more_than_the_servers() -> None:
    def check(expected: dict[str, object], name: str | None = "llama.cpp", **given: Any) -> None:
        found = spoken(name, **given)
        assert {key: getattr(found, key) for key in expected} == expected

    check({"strict": False}, strict=False)
    check({"strict": True}, strict=True)
    check({"parallel_tool_calls": False}, parallel_tool_calls=False)
    check({"replay_reasoning": "none", "encrypted": False}, replay_reasoning="none")
    check({"replay_reasoning": "both", "encrypted": True}, replay_reasoning="both")
    check({"omit": frozenset({"store", "include"})}, omit=("store", "include"))
    check({"replay_reasoning": "content", "encrypted": False}, summary="auto")


def test_a_row_may_turn_things_off(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Quirks(strict=False, parallel_tool_calls=False, omit=("max_output_tokens", "store"))
    monkeypatch.setitem(quirks.QUIRKS, "litellm", odd)
    found = spoken("litellm")
    assert (found.strict, found.parallel_tool_calls) == (False, False)
    assert found.omit == {"max_output_tokens", "store"}
    set_all = spoken("litellm", strict=True, parallel_tool_calls=True, max_output_tokens=9)
    assert (set_all.strict, set_all.parallel_tool_calls) == (True, True)
    assert set_all.omit == {"store"}


def test_encrypted_reasoning_is_asked_for_where_the_model_reasons() -> None:
    def check(*, asked: bool, **given: Any) -> None:
        assert spoken(None, **given).encrypted is asked

    check(asked=False)
    check(asked=True, efforts=("low", "high"))
    check(asked=True, efforts=("low",), effort="low")
    check(asked=True, summary="auto")
    check(asked=True, replay_reasoning="encrypted")
    check(asked=True, replay_reasoning="both")
    check(asked=True, replay="verbatim")
    check(asked=False, replay_reasoning="content", efforts=("low",))
    check(asked=False, replay_reasoning="none", summary="auto")
