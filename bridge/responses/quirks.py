"""What one kind of server does differently, and what therefore is in force for a model.

It must not know the configuration: it is given what the user set, and None for what was not set.

Rule 1: one row of QUIRKS per kind of server; a row holds only what its server's documents, source
or answers show.
Rule 2: what the user set wins over the row, the row over what holds for every server.
Rule 3: a row is chosen by name, or by the host of the base URL; by a port only where hardly any
other server listens on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from tools.frozen import frozen

ReplayReasoning: TypeAlias = Literal["encrypted", "content", "both", "none"]


class ProviderSettings(Protocol):
    """What the configuration says of a server, as far as it tells which kind it is."""

    @property
    def base_url(self) -> str: ...
    @property
    def quirks(self) -> str | None: ...
    @property
    def is_local(self) -> bool: ...


class ModelSettings(Protocol):
    """What the configuration says of a model, as far as it enters a request; None: nothing."""

    @property
    def model(self) -> str: ...
    @property
    def max_output_tokens(self) -> int | None: ...
    @property
    def efforts(self) -> Sequence[str]: ...
    @property
    def effort(self) -> str | None: ...
    @property
    def summary(self) -> str | None: ...
    @property
    def strict(self) -> bool | None: ...
    @property
    def parallel_tool_calls(self) -> bool | None: ...
    @property
    def replay(self) -> Literal["portable", "verbatim"]: ...
    @property
    def replay_reasoning(self) -> ReplayReasoning | None: ...
    @property
    def omit(self) -> Sequence[str]: ...
    @property
    def verbosity(self) -> str | None: ...
    @property
    def service_tier(self) -> str | None: ...
    @property
    def extra_body(self) -> Mapping[str, Any]: ...
    @property
    def hosted_tools(self) -> Sequence[str]: ...


@frozen
class Quirks:
    """One kind of server. Names of models and hosts are patterns like those for files."""

    hosts: tuple[str, ...] = ()
    port: int | None = None
    """Tells the server on a local or private host."""
    strict: bool = True
    """Write the schemas of tools in strict form. Templates of open models, which write them out
    for the model, fail on a property of two types, such as one that may be null."""
    parallel_tool_calls: bool = True
    replay_reasoning: ReplayReasoning = "encrypted"
    reasoners: tuple[str, ...] = ()
    """Models that are asked for encrypted reasoning though no setting says that they reason."""
    sources: bool = True
    """Takes the request to list the pages that a web search found."""
    tells_window: bool = False
    """Tells, when asked apart from its list, how much context it has set aside for a model, and
    cuts off in silence what is longer."""
    omit: tuple[str, ...] = ()
    """Parameters that it refuses."""
    extra: tuple[tuple[str, Mapping[str, object]], ...] = ()
    """Parameters for the models of a name."""


@frozen
class InForce:
    """How one model's server is spoken to."""

    strict: bool = True
    parallel_tool_calls: bool = True
    replay_reasoning: ReplayReasoning = "encrypted"
    encrypted: bool = False
    """Ask for encrypted reasoning."""
    sources: bool = True
    """Ask for the pages that a web search found."""
    omit: frozenset[str] = frozenset()
    """Parameters left out of every request."""
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    """Parameters added to every request."""


_AT_HOME = Quirks(strict=False)
"""A server on a local or private host of which nothing else is known: it serves an open model."""

QUIRKS: dict[str, Quirks] = {
    "openai": Quirks(
        hosts=("api.openai.com", "*.api.openai.com"),
        # Models that do not reason answer 400 to a request for encrypted reasoning.
        reasoners=("gpt-5*", "o1*", "o3*", "o4*", "codex-*"),
        # Without it every delta is padded to hide its length from those who watch the line.
        extra=(("*", {"stream_options": {"include_obfuscation": False}}),),
    ),
    # `model` is the name of a deployment, which tells nothing of the model.
    "azure": Quirks(
        hosts=("*.openai.azure.com", "*.cognitiveservices.azure.com", "*.services.ai.azure.com")
    ),
    "openrouter": Quirks(
        hosts=("openrouter.ai", "*.openrouter.ai"),
        # The signature of a thought of Anthropic's models is refused without the thought itself.
        replay_reasoning="both",
        reasoners=("*",),
        sources=False,
        # Anthropic's models cache a prompt only where they are told to; the others do so anyway.
        extra=(("anthropic/*", {"cache_control": {"type": "ephemeral"}}),),
    ),
    "xai": Quirks(hosts=("api.x.ai", "*.api.x.ai"), reasoners=("*",), sources=False),
    "deepseek": Quirks(hosts=("api.deepseek.com",), replay_reasoning="content", sources=False),
    # Some versions fail on encrypted reasoning in the input; the text is always understood.
    "vllm": Quirks(strict=False, replay_reasoning="content", sources=False),
    # Reasoning without its text is a 400.
    "llama.cpp": Quirks(strict=False, replay_reasoning="content", sources=False, tells_window=True),
    "lmstudio": Quirks(port=1234, strict=False, replay_reasoning="content", sources=False),
    # Its `encrypted_content` is the thought itself, sent unasked and read back.
    "ollama": Quirks(port=11434, strict=False, sources=False, tells_window=True),
    # Passes on what it gets: what the server behind it takes, is a matter of the model's settings.
    "litellm": Quirks(),
}


def row(provider: ProviderSettings) -> Quirks:
    """The row of the server: the named one, else the one its address tells; else a general one."""
    if provider.quirks is not None:
        return QUIRKS[provider.quirks]
    return _row_at(provider.base_url, is_local=provider.is_local)


@lru_cache
def _row_at(base_url: str, *, is_local: bool) -> Quirks:
    parts = urlsplit(base_url)
    host, port = parts.hostname or "", parts.port if is_local else None
    for one in QUIRKS.values():
        if is_named(host, one.hosts) or (port is not None and port == one.port):
            return one
    return _AT_HOME if is_local else Quirks()


def in_force(provider: ProviderSettings, model: ModelSettings) -> InForce:
    """What is in force for a model of this server."""
    server = row(provider)
    replay = model.replay_reasoning or server.replay_reasoning
    reasons = _is_reasoner(model) or is_named(model.model, server.reasoners)
    refused = (name for name in server.omit if getattr(model, name, None) is None)
    extra: dict[str, object] = {}
    for pattern, parameters in server.extra:
        if is_named(model.model, (pattern,)):
            extra |= parameters
    return InForce(
        strict=server.strict if model.strict is None else model.strict,
        parallel_tool_calls=(
            server.parallel_tool_calls
            if model.parallel_tool_calls is None
            else model.parallel_tool_calls
        ),
        replay_reasoning=replay,
        encrypted=reasons and replay in ("encrypted", "both"),
        sources=server.sources,
        omit=frozenset((*refused, *model.omit)),
        extra=extra,
    )


def _is_reasoner(model: ModelSettings) -> bool:
    """Whether the user's settings say that the model reasons: they are of no use otherwise."""
    said = (model.efforts, model.effort, model.summary, model.replay_reasoning)
    # Items that are to go back exactly as they came are those with their encrypted part.
    return any(said) or model.replay == "verbatim"


def is_named(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of these patterns is about this name; a star stands for anything, once."""
    parts = (pattern.partition("*") for pattern in patterns)
    return any(
        len(name) >= len(start + end) and name.startswith(start) and name.endswith(end)
        if star
        else name == start
        for start, star, end in parts
    )
