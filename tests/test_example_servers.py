"""Each server's section of the example, switched on: what it sends, and where to."""

import re
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest

from bridge import context
from bridge.calls import Toolbox, workbench
from bridge.config import Config, Provider, load
from bridge.core.content import message
from bridge.core.records import Opened, Prompted, Responded, Returned
from bridge.session import Session
from bridge.store import Store
from tools.local import LocalFiles
from tools.table import TOOLS

EXAMPLE = Path(__file__).parent.parent / "config.example.toml"
SECTIONS = {
    part.partition(" -")[0]: part.partition("\n")[2]
    for part in EXAMPLE.read_text(encoding="utf-8").split("\n# --- ")[1:]
}

THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "S"}],
    "content": [{"type": "reasoning_text", "text": "T"}],
    "encrypted_content": "opaque",
}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": "{}"}

ENCRYPTED, CONTENT = {"encrypted_content"}, {"content"}
SECRET_THOUGHTS = ["reasoning.encrypted_content"]
SOURCES = "web_search_call.action.sources"


def config(folder: Path, section: str) -> Config:
    """The configuration that is this section and nothing else, with every setting in force."""
    file = folder / "config.toml"
    file.write_text(re.sub(r"(?m)^#(?! )", "", SECTIONS[section]), encoding="utf-8")
    (folder / "prompt.md").write_text("Be brief.")
    return load(str(file), {})


def second_body(settings: Config) -> dict[str, Any]:
    """The body of a request after a thought and a call."""
    (model,) = settings.models.values()
    opened = Opened("s1", "/w", "t", "default", settings.default_model, model.effort, "ask")
    session = Session(settings, opened, Store(None).create(opened))
    maker = session.dialect.maker
    for record in (
        Prompted(1, (), ({"type": "input_text", "text": "Hi"},), "t"),
        Responded(1, maker, (), (THOUGHT, CALL)),
        Returned("c1", "c1", custom=False, text="out", ok=True),
    ):
        session.record(record)
    bench = workbench(Toolbox(TOOLS, LocalFiles(), cast("Any", None)))
    items = session.history.input(session.dialect)
    return context.request_body(session, bench, items, session.model)


def expected(model: str, **more: Any) -> dict[str, Any]:
    """What every server is sent, and what is this one's own; None: left out."""
    whole = {
        "model": model,
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "prompt_cache_key": "s1",
        "store": False,
        "stream": True,
        **more,
    }
    return {name: value for name, value in whole.items() if value is not None}


LOOSE = {
    "OpenAI",  # `strict = false` is among its settings
    "vLLM",
    "llama.cpp (llama-server)",
    "LM Studio",
    "Ollama",
}
"""Whose tools go out in loose form."""

THINKING = {"effort": "medium", "summary": "auto"}
BODIES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "OpenAI": (
        expected(
            "gpt-5.3-codex",
            parallel_tool_calls=False,
            reasoning=THINKING,
            include=[*SECRET_THOUGHTS, SOURCES],
            text={"verbosity": "medium"},
            max_output_tokens=32_000,
            service_tier="priority",
            stream_options={"include_obfuscation": False},
            prompt_cache_retention="24h",
            prompt_cache_key=None,
        ),
        ENCRYPTED,
    ),
    "Azure OpenAI": (
        expected("DEPLOYMENT", reasoning=THINKING, include=SECRET_THOUGHTS),
        ENCRYPTED,
    ),
    "OpenRouter": (
        expected(
            "anthropic/claude-sonnet-5",
            reasoning={"effort": "medium"},
            include=SECRET_THOUGHTS,
            cache_control={"type": "ephemeral"},
            models=["anthropic/claude-sonnet-5", "openai/gpt-5.3-codex"],
            provider={
                "order": ["anthropic"],
                "allow_fallbacks": False,
                "data_collection": "deny",
            },
        ),
        {*ENCRYPTED, *CONTENT},
    ),
    "xAI": (expected("grok-code-fast-1", include=SECRET_THOUGHTS), ENCRYPTED),
    "DeepSeek": (expected("deepseek-v4-flash"), CONTENT),
    "vLLM": (expected("ORGANISATION/MODEL"), CONTENT),
    "llama.cpp (llama-server)": (expected("local"), CONTENT),
    "LM Studio": (expected("openai/gpt-oss-20b", reasoning={"effort": "medium"}), CONTENT),
    "Ollama": (expected("qwen3-coder"), ENCRYPTED),
    "litellm proxy": (expected("MODEL", prompt_cache_key=None), ENCRYPTED),
}

PLACES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "OpenAI": (
        "https://api.openai.com/v1",
        {"authorization": "Bearer KEY", "OpenAI-Organization": "org-ID"},
        {},
    ),
    "Azure OpenAI": (
        "https://RESOURCE.openai.azure.com/openai/v1",
        {"api-key": "KEY"},
        {"api-version": "preview"},
    ),
    "OpenRouter": (
        "https://openrouter.ai/api/v1",
        {"authorization": "Bearer KEY", "X-Title": "responses-acp"},
        {},
    ),
    "xAI": ("https://api.x.ai/v1", {"authorization": "Bearer KEY"}, {}),
    "DeepSeek": ("https://api.deepseek.com", {"authorization": "Bearer KEY"}, {}),
    "vLLM": ("http://gpu-box:8000/v1", {"authorization": "Bearer KEY"}, {}),
    "llama.cpp (llama-server)": ("http://127.0.0.1:8080/v1", {}, {}),
    "LM Studio": ("http://127.0.0.1:1234/v1", {}, {}),
    "Ollama": ("http://127.0.0.1:11434/v1", {}, {}),
    "litellm proxy": ("http://127.0.0.1:4000/v1", {"authorization": "Bearer KEY"}, {}),
}


def test_every_section_is_tried_here() -> None:
    assert set(SECTIONS) == set(BODIES) == set(PLACES)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_makes_the_request_that_its_server_takes(section: str, tmp_path: Path) -> None:
    body = second_body(config(tmp_path, section))
    others, replayed = BODIES[section]
    instructions, tools, items = (body.pop(name) for name in ("instructions", "tools", "input"))
    assert body == others
    assert (instructions == "Be brief.") is (section == "OpenAI")
    functions = [tool for tool in tools if tool["type"] == "function"]
    assert {tool["strict"] for tool in functions} == {section not in LOOSE}
    kinds = ["message", "reasoning", "function_call", "function_call_output"]
    assert [item["type"] for item in items] == kinds
    assert items[0] == message("Hi")
    assert set(items[1]) & {"encrypted_content", "content", "id"} == replayed


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_reaches_its_server_with_the_key_where_it_belongs(
    section: str, tmp_path: Path
) -> None:
    (provider,) = config(tmp_path, section).providers.values()
    is_keyed = any((provider.api_key_env, provider.api_key_file, provider.api_key_command))
    place = provider.endpoint("KEY" if is_keyed else None)
    assert (place.base_url, dict(place.headers), dict(place.query)) == PLACES[section]


def test_every_program_that_the_example_names_for_keys_can_be_set() -> None:
    text = re.sub(r"(?m)^#", "", EXAMPLE.read_text(encoding="utf-8"))
    found = re.findall(r'\["(?:az|pass|op|security|vault|gcloud)",[^]]*\]', text)
    programs: list[str] = []
    for array in found:
        command = tomllib.loads(f"command = {array}")["command"]
        given = {"base_url": "https://p.example/v1", "api_key_command": command}
        programs += (Provider.model_validate(given).api_key_command or ())[:1]
    assert sorted(programs) == ["az", "gcloud", "op", "pass", "security", "vault"]
