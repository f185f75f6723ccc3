"""What lists of models say, in the forms in which servers give them."""

from typing import Any

import pytest

from bridge.core import catalogue
from bridge.core.catalogue import Found, models_in
from bridge.core.wire import Json


def listed(*entries: dict[str, Any], key: str = "data") -> list[Found]:
    return list(models_in({"object": "list", key: list(entries)}))


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        # OpenAI, xAI, Ollama
        ({"id": "gpt-5.3-codex", "object": "model", "owned_by": "system"}, Found("gpt-5.3-codex")),
        ({"id": "qwen3:8b", "owned_by": "library"}, Found("qwen3:8b")),
        # OpenRouter
        (
            {"id": "a/b", "name": "A: B", "context_length": 200000,
             "architecture": {"input_modalities": ["image"], "output_modalities": ["text"]}},
            Found("a/b", "A: B", 200000, images=True),
        ),
        # vLLM, Groq, Mistral, llama.cpp
        ({"id": "m", "max_model_len": 32768}, Found("m", window=32768)),
        ({"id": "m", "context_window": 131072, "active": True}, Found("m", window=131072)),
        (
            {"id": "m", "max_context_length": 9, "capabilities": {"completion_chat": True}},
            Found("m", window=9),
        ),
        ({"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}, Found("m", window=4096)),
        ({"id": "m", "meta": {"n_ctx_train": 8192}}, Found("m")),
        # Together, LM Studio
        ({"id": "m", "type": "chat", "display_name": "M"}, Found("m", "M")),
        ({"id": "m", "type": "llm", "display_name": "m\x1b"}, Found("m")),
        # other words
        ({"name": "m"}, Found("m")),
        ({"id": "m", "context_length": True, "architecture": None, "meta": 1, "type": 7},
         Found("m")),
        ({"id": "m", "context_length": 10**400}, Found("m")),
        ({"id": "m", "context_length": 1e300, "max_model_len": 5}, Found("m", window=5)),
        ({"id": "m", "context_length": -1, "architecture": {"output_modalities": "text"}},
         Found("m")),
        ({"id": "imagery-7b"}, Found("imagery-7b")),
    ],
)  # fmt: skip
def test_a_model_is_found(entry: dict[str, Any], expected: Found) -> None:
    assert listed(entry) == [expected]
    assert listed(catalogue.entry(expected)) == [expected]


@pytest.mark.parametrize(
    "entry",
    [
        *({"id": name} for name in (
            "text-embedding-3-large", "omni-moderation-latest", "whisper-1", "tts-1-hd", "dall-e-3",
            "gpt-4o-transcribe", "gpt-4o-mini-tts", "gpt-realtime", "gpt-4o-audio-preview",
            "gpt-image-1", "sora-2", "babbage-002", "davinci-002", "grok-2-image", "BAAI/bge-m3",
            "nomic-embed-text:latest", "jina-reranker-v2", "Embedding",
        )),
        {"id": "m", "type": "embedding"},
        {"id": "m", "type": "Image"},
        {"id": "m", "capabilities": {"completion_chat": False}},
        {"id": "m", "architecture": {"output_modalities": ["image"]}},
        {"id": ""},
        {"id": 7},
        {"id": "a\nb"},
        {"id": "x" * 201},
        {},
    ],
)  # fmt: skip
def test_what_answers_no_text_with_text_is_left_out(entry: dict[str, Any]) -> None:
    assert listed(entry) == []


def test_a_list_is_sorted_and_names_each_once_and_has_an_end() -> None:
    assert [one.id for one in listed({"id": "b"}, {"id": "a"}, {"id": "b"})] == ["a", "b"]
    assert [one.id for one in listed({"name": "b"}, key="models")] == ["b"]
    assert [one.id for one in models_in([{"id": "a"}, 7])] == ["a"]
    assert len(listed(*({"id": f"m{number}"} for number in range(900)))) == 500


@pytest.mark.parametrize("body", [None, 7, "x", [], {}, {"data": 7}, {"data": [None]}])
def test_what_is_no_list_has_no_models(body: Any) -> None:
    assert models_in(body) == ()
    assert not catalogue.is_llama_cpp(body)
    assert catalogue.window_in_props(body) is None
    assert catalogue.windows_in_ps(body) == {}
    assert catalogue.window_in_show(body) is None


def test_the_context_of_local_servers_is_read() -> None:
    assert catalogue.is_llama_cpp({"data": [{"id": "m", "owned_by": "llamacpp"}]})
    assert catalogue.window_in_props({"default_generation_settings": {"n_ctx": 4096}}) == 4096
    loaded: Json = [{"name": "a:latest", "context_length": 8192}, {"model": "c"},
                    {"model": "b:1", "context_length": 1}]  # fmt: skip
    assert catalogue.windows_in_ps({"models": loaded}) == {"a": 8192, "b:1": 1}
    assert catalogue.window_in_show({"parameters": "stop  x\nnum_ctx    16384\n"}) == 16384
    assert catalogue.window_in_show({"parameters": "my_num_ctx 5"}) is None
