"""What a setting's value may be, beyond its type: the rules for URLs, names, headers and files.

Rule 1: a complaint says what is wrong and what would be right, and never repeats the value.
Rule 2: a URL that a key may be sent to is https, or stays on this machine or its network.
"""

import ipaddress
import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Annotated, TypeAlias, cast
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, JsonValue, ValidationInfo

from tools.late import pattern

KEY_SOURCES = 'api_key_env = "VARIABLE", api_key_file = "PATH" or api_key_command = ["PROGRAM", …]'

_VARIABLE = pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME = pattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PRINTABLE = pattern(r"[\x20-\x7e]*")
_URL = pattern(r"[\x21-\x5b\x5d-\x7e]+")
_KEY_HEADERS = ("authorization", "proxy-authorization", "api-key", "x-api-key", "cookie")
_LOCAL_NAMES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
_CURRENCY = pattern(r"[A-Z]{3}")
_OURS = ("model", "instructions", "input", "tools", "stream")


@lru_cache
def is_local(host: str) -> bool:
    """Whether a host is this machine or one of a private network."""
    address = _address(host)
    if address is None:
        return "." not in host or host.endswith(_LOCAL_NAMES)
    return not (getattr(address, "ipv4_mapped", None) or address).is_global


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    return None


def _url(value: str) -> str:
    """A base URL, without a slash at its end."""
    parts = _reachable(value)
    if "#" in value or "?" in value:
        raise ValueError("must end with the path; parameters belong in query")
    if parts.path.rstrip("/").endswith("/responses"):
        raise ValueError("must end before /responses, which is added to it")
    return value.rstrip("/")


def _server_url(value: str) -> str:
    """The whole URL of a server."""
    _reachable(value)
    return value


def _reachable(value: str) -> SplitResult:
    """The parts of a URL that a key may be sent to."""
    parts = _parts(value)
    host = parts.hostname
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("must begin with https://HOST, or with http:// for a local server")
    if "@" in parts.netloc:
        raise ValueError(f"must not hold a user or password; give the key by {KEY_SOURCES}")
    if re.match(r"0x|\d+$", host.rpartition(".")[2]) and _address(host) is None:
        # WHATWG URL, host parsing: a host that ends in a number is an IPv4 address.
        raise ValueError("holds an IP address in an unusual form; write it as a.b.c.d")
    if parts.scheme == "http" and not is_local(host):
        raise ValueError("must use https; only local and private hosts may be reached by http")
    return parts


def _parts(value: str) -> SplitResult:
    if not _URL.fullmatch(value):
        raise ValueError("must be a URL of plain characters without blanks")
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        raise ValueError("is not a URL; write it like https://HOST/v1") from None
    return parts


def _variable(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise ValueError("must be the name of an environment variable, not what it holds")
    return value


def _headers(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not _HEADER_NAME.fullmatch(name) or not _PRINTABLE.fullmatch(text):
            raise ValueError("must hold header names and values of printable ASCII characters")
        if name.lower() in _KEY_HEADERS:
            raise ValueError(f"must not hold a key; use {KEY_SOURCES}, and key_header")
    return value


def _extra_body(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for name in _OURS:
        if name in value:
            raise ValueError(f"must not set {name}, which every request needs as it is")
    return value


def _omit(value: tuple[str, ...]) -> tuple[str, ...]:
    for name in _OURS:
        if name in value:
            raise ValueError(f"must not hold {name}, which every request needs")
    return value


def _currency(value: str) -> str:
    if not _CURRENCY.fullmatch(value):
        raise ValueError('must be a code of three capital letters, such as "USD"')
    return value


def _absolute(value: str, info: ValidationInfo) -> str:
    """A path; a relative one starts at the folder of the configuration file."""
    context = cast("dict[str, Path]", info.context or {})
    try:
        return str(context.get("folder", Path()) / Path(value).expanduser())
    except RuntimeError:
        raise ValueError("begins with ~, but there is no home directory") from None


def _command(value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """An argv; a program that is given by a path is found from the folder of the configuration."""
    program, *arguments = value
    if not program:
        raise ValueError("must begin with the name of a program")
    if "\0" in "".join(value):
        raise ValueError("must not hold the character NUL")
    if "/" in program:
        program = _absolute(program, info)
    return program, *arguments


def _program(value: str, info: ValidationInfo) -> str:
    """A program: a name is looked for in PATH, anything with a slash is a file."""
    return _absolute(value, info) if "/" in value else value


def _rules(value: tuple[str, ...]) -> tuple[str, ...]:
    from bridge.core.rules import BadRule, parsed  # noqa: PLC0415 (most users have none)

    for number, text in enumerate(value, 1):
        try:
            parsed("ask", text)
        except BadRule as error:
            raise ValueError(f"must hold rules, but number {number} {error}") from None
    return value


def _text_of(value: str, info: ValidationInfo) -> str:
    try:
        return Path(_absolute(value, info)).read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"names a file that cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError("names a file that is not UTF-8 text") from None


Text: TypeAlias = Annotated[str, Field(min_length=1)]
Texts: TypeAlias = Annotated[tuple[Text, ...], Field(strict=False)]
Count: TypeAlias = Annotated[int, Field(gt=0)]
CountOrNone: TypeAlias = Annotated[int, Field(ge=0)]
"""Zero: not at all."""
Seconds: TypeAlias = Annotated[float, Field(gt=0)]
Amount: TypeAlias = Annotated[float, Field(gt=0)]
"""Money."""
Rate: TypeAlias = Annotated[float, Field(ge=0, le=1e9)]
"""Money for a million tokens."""
Currency: TypeAlias = Annotated[str, AfterValidator(_currency)]
"""ISO 4217."""
SecondsOrNone: TypeAlias = Annotated[float, Field(ge=0)]
Url: TypeAlias = Annotated[str, AfterValidator(_url)]
ServerUrl: TypeAlias = Annotated[str, AfterValidator(_server_url)]
Program: TypeAlias = Annotated[Text, AfterValidator(_program)]
Words: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]
Variable: TypeAlias = Annotated[str, AfterValidator(_variable)]
Variables: TypeAlias = Annotated[tuple[Variable, ...], Field(strict=False)]
Headers: TypeAlias = Annotated[dict[str, str], AfterValidator(_headers)]
ExtraBody: TypeAlias = Annotated[dict[str, JsonValue], AfterValidator(_extra_body)]
Command: TypeAlias = Annotated[
    tuple[str, ...], Field(strict=False, min_length=1), AfterValidator(_command)
]
"""A program and its arguments; no shell reads them."""
Omit: TypeAlias = Annotated[Texts, AfterValidator(_omit)]
Rules: TypeAlias = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_rules)]
"""Permission rules, as bridge/core/rules.py reads them."""
File: TypeAlias = Annotated[Text, AfterValidator(_absolute)]
Folders: TypeAlias = Annotated[tuple[File, ...], Field(strict=False)]
TextOfFile: TypeAlias = Annotated[Text, AfterValidator(_text_of)]
"""Written as a path; the value is what the file holds."""
