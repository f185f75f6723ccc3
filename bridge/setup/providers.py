"""The servers that the first questions offer, and the file that the answers make.

It must not know how anything is asked.

Rule 1: one row of PROVIDERS per kind of server.
Rule 2: what is written is what was said; everything else keeps its default.
"""

import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

from bridge.core.catalogue import Found
from tools.frozen import frozen


@frozen
class Provider:
    """One kind of server."""

    title: str
    table: str
    """Its name in the file."""
    base_url: str
    """Empty: it is asked for."""
    variable: str = ""
    """The environment variable that usually holds its key; empty: it needs none."""
    settings: tuple[tuple[str, str], ...] = ()
    """More lines of its table, as TOML."""
    model_settings: tuple[tuple[str, str], ...] = ()

    @property
    def is_fixed(self) -> bool:
        """Its address is the same for everybody."""
        return self.base_url.startswith("https:")


_REASONS = (("summary", '"auto"'),)

PROVIDERS = (
    Provider("OpenAI", "openai", "https://api.openai.com/v1", "OPENAI_API_KEY",
             model_settings=_REASONS),
    Provider("Azure OpenAI", "azure", "", "AZURE_OPENAI_API_KEY", (("key_header", '"api-key"'),)),
    Provider("OpenRouter", "openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    Provider("xAI", "xai", "https://api.x.ai/v1", "XAI_API_KEY"),
    Provider("DeepSeek", "deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    Provider("vLLM", "vllm", "http://127.0.0.1:8000/v1", settings=(("quirks", '"vllm"'),)),
    Provider("llama.cpp", "llamacpp", "http://127.0.0.1:8080/v1",
             settings=(("quirks", '"llama.cpp"'),)),
    Provider("LM Studio", "lmstudio", "http://127.0.0.1:1234/v1"),
    Provider("Ollama", "ollama", "http://127.0.0.1:11434/v1"),
    Provider("litellm proxy", "litellm", "http://127.0.0.1:4000/v1", "LITELLM_API_KEY",
             (("quirks", '"litellm"'),)),
    Provider("another server of the Responses API", "server", "", "OPENAI_API_KEY"),
)  # fmt: skip

_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


@frozen
class Answers:
    """What the person said."""

    provider: Provider
    base_url: str
    key: tuple[str, str] | None
    """A setting and its value, as TOML; None: no key, or one that is kept by us."""
    model: Found


def azure(url: str) -> tuple[str, str | None]:
    """The base URL, and the deployment if it is named, of an address that Azure's portal shows.

    What is none of Azure's is given back as it is.
    """
    text = url.strip()
    parts = urlsplit(text if "://" in text else f"https://{text}")
    host = (parts.hostname or "").lower()
    if not host.endswith(_AZURE):
        return text.rstrip("/"), None
    deployment = re.search(r"/deployments/([^/?]+)", parts.path)
    named = None if deployment is None else unquote(deployment[1])
    return f"https://{host}/openai/v1", named


def written(answers: Answers) -> str:
    """The file, as TOML."""
    provider, model = answers.provider, answers.model
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", model.id).strip("-") or "model"
    extra = [("context_window", str(model.window))] if model.window else []
    extra += [("images", "true")] if model.images else []
    tables: Iterable[tuple[str, list[tuple[str, str]]]] = (
        (
            f"providers.{provider.table}",
            [
                ("base_url", text(answers.base_url)),
                *([answers.key] if answers.key else []),
                *provider.settings,
            ],
        ),
        (
            f"models.{name}",
            [
                ("provider", text(provider.table)),
                ("model", text(model.id)),
                *extra,
                *provider.model_settings,
            ],
        ),
    )
    parts = ["# Written by `responses-acp setup`. config.example.toml shows every setting.\n"]
    for table, lines in tables:
        parts.append(f"\n[{table}]\n")
        parts += [f"{key} = {value}\n" for key, value in lines]
    return "".join(parts)


def text(value: str) -> str:
    """A text as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def variables(environment: Mapping[str, str], provider: Provider) -> str:
    """The variable for the key of a server, and whether it is set."""
    state = "is set" if environment.get(provider.variable) else "is not set here"
    return f"{provider.variable}, which {state}"
