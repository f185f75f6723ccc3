"""What the user configured: config.toml, or else a few environment variables, as frozen objects.

It must not know either wire.

Rule 1: whatever is wrong with it is a ConfigError that names file, line, key and remedy.
Rule 2: the file says where a secret is and never what it is.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bridge import kept
from bridge.complaints import Complaint, nearest, sentence, syntax, unfit, wrong
from bridge.errors import ConfigError, LoginRequired
from bridge.fields import (
    KEY_SOURCES,
    Amount,
    Command,
    Count,
    CountOrNone,
    Currency,
    ExtraBody,
    File,
    Folders,
    Headers,
    Omit,
    Program,
    Rate,
    Rules,
    Seconds,
    SecondsOrNone,
    ServerUrl,
    Text,
    TextOfFile,
    Texts,
    Url,
    Variable,
    Variables,
    Words,
    is_local,
)
from bridge.folders import default_file, kept_file
from bridge.kept import read_private
from tools.frozen import frozen

_REMOTE_FIRST_EVENT = 300.0
"""Seconds; a local server may read a long prompt for as long as it takes."""

_SOURCES = ("api_key_env", "api_key_file", "api_key_command")

KINDS = (
    "openai", "azure", "openrouter", "xai", "deepseek",
    "vllm", "llama.cpp", "lmstudio", "ollama", "litellm",
)  # fmt: skip
"""The servers whose peculiarities responses/quirks.py knows."""


@frozen
class Endpoint:
    """All that is needed to reach a model's server."""

    base_url: str
    is_local: bool
    """On this machine or in a private network."""
    headers: Mapping[str, str] = field(repr=False)
    """With the key."""
    query: Mapping[str, str]
    ca_file: str | None
    connect_timeout: float
    first_event_timeout: float | None
    idle_timeout: float
    max_wait: float
    max_retries: int


class _Table(BaseModel):
    # Built once, as parts of the whole, when a file is read.
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True
    )


class _Keyed(_Table):
    """Something that may want a key."""

    api_key_env: Variable | None = None
    """The environment variable that holds the key."""
    api_key_file: File | None = None
    """A file that holds the key and that nobody else can read."""

    def key(self, environment: Mapping[str, str]) -> str | None:
        """The key that can be read; None where there is none, or where a program prints it.

        ConfigError where its file or its text is wrong.
        """
        if self.api_key_file is not None:
            key, source = (
                read_private(self.api_key_file, "api_key_file"),
                f"file {self.api_key_file}",
            )
        elif self.api_key_env is not None:
            key, source = environment.get(self.api_key_env, "").strip(), self.api_key_env
        else:
            return None
        if key and not is_key(key):
            raise ConfigError(f"{source} does not hold a key: it has blanks or special characters")
        return key or None

    def credentials(self, environment: Mapping[str, str]) -> str | None:
        """Like key(), for a key that is needed: LoginRequired when it is missing."""
        key = self.key(environment)
        if key is not None or (self.api_key_env is None and self.api_key_file is None):
            return key
        if self.api_key_file is not None:
            raise LoginRequired(f"no API key: put it into {self.api_key_file}, which is empty")
        raise LoginRequired(
            f"no API key: set {self.api_key_env} in the environment that your editor starts "
            "responses-acp with, run `responses-acp login`, or name another source in "
            f"config.toml: {KEY_SOURCES}"
        )


class Provider(_Keyed):
    """A server that speaks the Responses API."""

    base_url: Url
    """Where /responses is; https, or http for a local or private host."""
    api_key_command: Command | None = None
    """A program that prints the key, and its arguments."""
    api_key_ttl: Seconds = 3600
    """How long a printed key is used at most; one that names its own end is not used beyond it."""
    api_key_timeout: Seconds = 60
    """How long the program may take."""
    key_header: Literal["authorization", "api-key"] = "authorization"
    """The header that carries the key: as a bearer token, or bare."""
    headers: Headers = {}
    query: dict[str, str] = {}
    """Parameters added to the URL."""
    ca_file: File | None = None
    """Certificates (PEM) trusted besides those of the system."""
    connect_timeout: Seconds = 10
    first_event_timeout: Seconds | None = None
    """Unset: none for local and private hosts, 300 s for others."""
    idle_timeout: Seconds = 300
    """Longest silence within an answer."""
    max_wait: Seconds = 60
    """A server that asks for a longer wait before the next try is not tried again."""
    discover: bool = False
    """Ask the server for its models, and offer them beside those that are configured."""
    prewarm: bool = False
    """Have the server read the beginning of a session's first request as soon as it is open."""
    max_retries: CountOrNone = 4
    quirks: Text | None = None
    """Which kind of server it is; unset: told by base_url, where that is possible."""

    def key(self, environment: Mapping[str, str]) -> str | None:
        """Like that of others; in the place of a variable that is not set, the key that is kept."""
        key = super().key(environment)
        if key is None and self.api_key_file is None and self.api_key_command is None:
            key = kept.key_for(kept_file(environment), self.base_url)
        return key

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine or in a private network."""
        return is_local(urlsplit(self.base_url).hostname or "")

    def endpoint(self, key: str | None) -> Endpoint:
        """How to reach the server with this key."""
        headers = dict(self.headers)
        if key is not None:
            bearer = self.key_header == "authorization"
            headers[self.key_header] = f"Bearer {key}" if bearer else key
        patience = None if self.is_local else _REMOTE_FIRST_EVENT
        return Endpoint(
            base_url=self.base_url,
            is_local=self.is_local,
            headers=headers,
            query=self.query,
            ca_file=self.ca_file,
            connect_timeout=self.connect_timeout,
            first_event_timeout=self.first_event_timeout or patience,
            idle_timeout=self.idle_timeout,
            max_wait=self.max_wait,
            max_retries=self.max_retries,
        )


class Price(_Table):
    """What a million tokens cost."""

    input: Rate
    cached_input: Rate | None = None
    """Input that the provider had in its cache; unset: as other input."""
    output: Rate
    currency: Currency = "USD"


class Model(_Table):
    """One model of a provider, and how to talk to it."""

    provider: str
    """A key of [providers]."""
    model: Text
    """The name on the wire; the table's own name if not given."""
    name: Text | None = None
    """What the editor shows."""
    context_window: Count | None = None
    """In tokens; without it the editor shows no usage."""
    max_output_tokens: Count | None = None
    efforts: Texts = ()
    """Reasoning efforts to choose from; none: no such choice, no such parameter."""
    effort: Text | None = None
    """The effort at the start."""
    summary: Literal["auto", "concise", "detailed"] | None = None
    """Ask for a summary of the reasoning; unset: take what the server sends by itself."""
    images: bool = False
    """The model takes images."""
    files: bool = False
    """The model takes PDF files."""
    replay: Literal["portable", "verbatim"] = "portable"
    """Send earlier items back without the server's ids, or exactly as they came."""
    replay_reasoning: Literal["encrypted", "content", "both", "none"] | None = None
    """Which part of earlier reasoning goes back; unset: what this kind of server takes."""
    verbosity: Literal["low", "medium", "high"] | None = None
    service_tier: Text | None = None
    parallel_tool_calls: bool | None = None
    """Unset: yes, unless this kind of server cannot."""
    strict: bool | None = None
    """Tool schemas in strict form; unset: yes, unless this kind of server cannot."""
    system_prompt: TextOfFile | None = Field(default=None, alias="system_prompt_file")
    """The text of a file that takes the place of our own instructions."""
    hosted_tools: Texts = ()
    """Tools that the provider runs itself, such as web_search."""
    extra_body: ExtraBody = {}
    """Merged into every request."""
    omit: Omit = ()
    """Parameters left out of every request."""
    price: Price | None = None
    """Where the server reports no cost itself, the editor shows what this comes to."""


class Sandbox(_Table):
    """What commands may touch."""

    mode: Literal["auto", "off"] = "auto"
    """Confine commands as well as this machine can, or not at all."""
    network: bool = False
    """Commands in the sandbox reach the network."""
    git: Literal["commands", "always", "never"] = "commands"
    """Which commands in the sandbox may change `.git`: in lines that run git, all, or none."""
    require: bool = False
    """No command runs where there is no sandbox."""
    writable_roots: Folders = ()
    """Folders that may be changed like the workspace."""
    env_keep: Variables = ()
    """Variables that commands get although their names look secret."""


class Permissions(_Table):
    """What is decided before mode and preset are asked; each list holds rules."""

    allow: Rules = ()
    """This runs without asking."""
    ask: Rules = ()
    """This asks, whatever was allowed."""
    deny: Rules = ()
    """This never runs."""


class Shell(_Table):
    """How commands are run."""

    env_from: Literal["auto", "login", "agent"] = "auto"
    """Commands get the environment of your login shell, or what the agent has; auto: the shell's
    where PATH holds nothing but the system's folders."""


class Server(_Keyed):
    """An MCP server: a program that is started, or a URL; its key goes out as a bearer token."""

    command: Program | None = None
    """A program in PATH, or a file."""
    args: Words = ()
    env: dict[Variable, str] = {}
    """Variables of the program, beside those that every command gets."""
    env_keep: Variables = ()
    """Variables of ours that the program gets although their names look secret."""
    cwd: File | None = None
    """Where the program runs; the session's folder if not given."""
    url: ServerUrl | None = None
    """A server that is reached over streamable HTTP."""
    headers: Headers = {}
    tools: Texts = ("*",)
    """Patterns of the tools that the model is offered."""
    trust_read_only: bool = False
    """Tools that the server calls read-only run without asking."""
    wait: SecondsOrNone | None = None
    """Seconds that a request waits for this server; mcp_wait if not given."""
    start_timeout: Seconds = 60
    call_timeout: Seconds = 600
    """Longest silence within a call."""
    rest_after: Seconds = 1800
    """A server that is not called for so long is ended; the next call starts it again."""


class Config(_Table):
    """The whole configuration."""

    default_model: str
    """A key of [models]; the first one if not given."""
    default_mode: Literal["default", "plan"] = "default"
    permission: Literal["ask", "workspace-write", "danger-full-access"] = "workspace-write"
    max_turn_requests: Count = 200
    """Model requests in one prompt's turn."""
    goal_rounds: CountOrNone = 20
    """Rounds of work on one goal in one prompt's turn."""
    max_cost: Amount | None = None
    """What a session may cost before you are asked, where costs are known; unset: any amount."""
    max_tokens_total: Count | None = None
    """Tokens in and out that a session may take before you are asked; unset: any number."""
    providers: Annotated[dict[str, Provider], Field(min_length=1)]
    models: Annotated[dict[str, Model], Field(min_length=1)]
    sandbox: Sandbox = Sandbox()
    permissions: Permissions = Permissions()
    shell: Shell = Shell()
    mcp_wait: SecondsOrNone = 2
    """Seconds that a request waits for MCP servers that are still starting."""
    mcp: dict[str, Server] = {}

    @property
    def _keyed(self) -> tuple[_Keyed, ...]:
        return (*self.providers.values(), *self.mcp.values())

    def secrets(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Every key that can be found now; never raises."""
        keys: list[str] = []
        for keyed in self._keyed:
            with suppress(ConfigError):
                keys += filter(None, [keyed.key(environment)])
        return tuple(dict.fromkeys(keys))

    def forget_kept(self, environment: Mapping[str, str]) -> None:
        """Delete the kept keys of these providers; ConfigError."""
        file = kept_file(environment)
        for provider in self.providers.values():
            try:
                kept.forget(file, provider.base_url)
            except OSError as error:
                what = f"{file} cannot be changed ({error.strerror})"
                raise ConfigError(f"{what}: delete it yourself") from None

    def key_files(self) -> tuple[str, ...]:
        """The files that hold keys."""
        files = (provider.api_key_file for provider in self.providers.values())
        return tuple(dict.fromkeys(file for file in files if file is not None))

    def key_variables(self) -> tuple[str, ...]:
        """The environment variables that hold keys."""
        names = (keyed.api_key_env for keyed in self._keyed)
        return tuple(dict.fromkeys(name for name in names if name is not None))


def is_key(text: str) -> bool:
    """Whether this can be a key: something, and nothing that a header cannot carry."""
    return re.fullmatch(r"[\x21-\x7e]+", text) is not None


def _keys(table: type[_Table]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in table.model_fields.items())


KEYS: Mapping[str, tuple[str, ...]] = {
    "": _keys(Config),
    "providers": _keys(Provider),
    "models": _keys(Model),
    "models.price": _keys(Price),
    "sandbox": _keys(Sandbox),
    "permissions": _keys(Permissions),
    "shell": _keys(Shell),
    "mcp": _keys(Server),
}
"""Every key there is, by the table it belongs into; "" is the top level."""


_DEFAULT_URL = "https://api.openai.com/v1"
_DEFAULT_MODEL: dict[str, object] = {
    "model": "gpt-5.3-codex",
    "name": "GPT-5.3 Codex",
    "context_window": 400_000,
    "efforts": ["low", "medium", "high"],
    "effort": "medium",
    "summary": "auto",
    "images": True,
    "files": True,
}
"""Used when neither a file nor OPENAI_MODEL names a model."""


def load(path: str | None, environment: Mapping[str, str]) -> Config:
    """The configuration in this file, or else the user's own file, or else the environment's.

    Raises ConfigError.
    """
    file = file_in_use(path, environment)
    return _from_environment(environment) if file is None else _from_file(file)


def file_in_use(path: str | None, environment: Mapping[str, str]) -> Path | None:
    """The file that load() reads; None where the environment serves. Raises ConfigError."""
    if path is not None:
        return _given(path)
    file = default_file(environment)
    return file if file is not None and _exists(file) else None


def _given(path: str) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except (OSError, RuntimeError):  # neither a working directory nor a home
        raise ConfigError(f"{path}: cannot be found; give --config an absolute path") from None


def _exists(file: Path) -> bool:
    """Whether there is such a file; a home that cannot be looked into holds none."""
    try:
        file.stat()
    except OSError:
        return False
    return True


def _from_environment(environment: Mapping[str, str]) -> Config:
    url = environment.get("OPENAI_BASE_URL") or _DEFAULT_URL
    name = environment.get("OPENAI_MODEL")
    keyless = not environment.get("OPENAI_API_KEY")
    try:
        provider = Provider.model_validate({"base_url": url})
    except ValidationError as error:
        raise ConfigError(f"OPENAI_BASE_URL {wrong(error.errors()[0])}") from None
    if not (keyless and provider.is_local):
        provider = provider.model_copy(update={"api_key_env": "OPENAI_API_KEY"})
    model = {"model": name} if name else _DEFAULT_MODEL
    key = str(model["model"])
    return Config(
        default_model=key,
        providers={"openai": provider},
        models={key: Model.model_validate({"provider": "openai", **model})},
    )


def _from_file(file: Path) -> Config:
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{file}:{line}: not UTF-8; save the file as UTF-8") from None
    except OSError as error:
        remedy = "create it, or start without --config"
        raise ConfigError(f"{file}: {error.strerror}; {remedy}") from None
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(syntax(file, text, str(error))) from None
    try:
        config = Config.model_validate(_completed(tables), context={"folder": file.parent})
    except ValidationError as error:
        complaints = [unfit(fault, KEYS) for fault in error.errors(include_input=False)]
    else:
        complaints = list(_contradictions(config))
        if not complaints:
            return config
    raise ConfigError(sentence(file, text, complaints))


def _completed(tables: dict[str, Any]) -> dict[str, Any]:
    """The tables with what follows from the names of tables."""
    models = tables.get("models")
    if not isinstance(models, dict) or not models:
        return {"default_model": "", **tables}
    named = {
        key: {"model": key, **cast("dict[str, Any]", table)} if isinstance(table, dict) else table
        for key, table in cast("dict[str, object]", models).items()
    }
    return {"default_model": next(iter(named)), **tables, "models": named}


def _contradictions(config: Config) -> Iterator[Complaint]:
    """What is wrong between settings that are right by themselves."""
    for kind, tables in (("providers", config.providers), ("mcp", config.mcp)):
        for name, keyed in tables.items():
            sources = [source for source in _SOURCES if getattr(keyed, source, None) is not None]
            if len(sources) > 1:
                what = f"and {sources[0]} name two sources of one key; keep one of them"
                yield Complaint((kind, name, sources[1]), what)
    for name, provider in config.providers.items():
        if provider.quirks is not None and provider.quirks not in KINDS:
            what = f"must be the name of a kind of server; {nearest(provider.quirks, KINDS)}"
            yield Complaint(("providers", name, "quirks"), what)
    for name, server in config.mcp.items():
        if (server.command is None) == (server.url is None):
            what = "needs one of command, a program to start, and url, a server that runs already"
            yield Complaint(("mcp", name), what)
    for name, model in config.models.items():
        if model.provider not in config.providers:
            what = _must_name("providers", model.provider, config.providers)
            yield Complaint(("models", name, "provider"), what)
        if model.effort is not None and model.effort not in model.efforts:
            what = "must be one of efforts; add it there, or change it"
            yield Complaint(("models", name, "effort"), what)
    if config.default_model not in config.models:
        what = _must_name("models", config.default_model, config.models)
        yield Complaint(("default_model",), what)


def _must_name(kind: str, name: str, names: Iterable[str]) -> str:
    return f"must be the NAME of a [{kind}.NAME] table; {nearest(name, names)}"
