"""The first answer: what `initialize` is told, and the quick way to tell it.

It must not know: configuration, credentials, the network. The answer depends on nothing but what
the client says of itself.

Rule 1: no import here may cost a millisecond. This file runs before the first answer, and `re`
alone, which `json`, `typing` and `dataclasses` bring along, takes longer than all of it.
Rule 2: read() takes only the plain case. Whatever is unusual is left, unanswered, to the whole
program, which knows how to answer everything.
"""

from bridge import __version__

try:
    # The scanner in C beneath `json`, without the modules on top of it.
    from _json import make_scanner
except ImportError:  # pragma: no cover (another Python than CPython)
    make_scanner = None

AUTH_METHOD, TERMINAL_METHOD = "config", "login"
"""The ids of the ways to log in that are offered."""

_CONFIGURED: dict[str, object] = {
    "id": AUTH_METHOD,
    "name": "Configured API key",
    "description": "The key comes from the environment variable, file or program that config.toml "
    "names for the provider (OPENAI_API_KEY if there is no config.toml), or from an earlier login.",
}
_TERMINAL: dict[str, object] = {
    "id": TERMINAL_METHOD,
    "name": "Type in an API key",
    "description": "The key is typed in at a terminal, and kept in a file that only you can read.",
    "type": "terminal",
    "args": ["login"],
}


class BadHandshake(Exception):
    """The params of an `initialize` are wrong; the text says how."""


def initialize(params: object) -> dict[str, object]:
    """The result for an `initialize` with these params; raises BadHandshake."""
    version = (_object(params) or {}).get("protocolVersion")
    # ACP, Initialization: a client that asks for another version is told ours and decides itself.
    if type(version) is not int or not 0 <= version <= 65535:
        raise BadHandshake("protocolVersion: must be an integer from 0 to 65535")
    return {
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": False},
            "sessionCapabilities": {
                "list": {},
                "resume": {},
                "close": {},
                "delete": {},
                "additionalDirectories": {},
            },
            "auth": {"logout": {}},
        },
        "agentInfo": {
            "name": "responses-acp",
            "title": "Responses ACP",
            "version": __version__,
        },
        "authMethods": [_CONFIGURED, _TERMINAL] if _has_terminal(params) else [_CONFIGURED],
    }


def _has_terminal(params: object) -> bool:
    """Whether the client can run us in a terminal for the person."""
    can = _object((_object(params) or {}).get("clientCapabilities")) or {}
    return (_object(can.get("auth")) or {}).get("terminal") is True


def read(line: bytes) -> "tuple[int | str, dict[str, object]] | None":
    """Id and params of a plain `initialize` request; None for everything else."""
    message = _object(_parsed(line)) or {}
    if message.get("jsonrpc") != "2.0" or message.get("method") != "initialize":
        return None
    call, params = message.get("id"), _object(message.get("params"))
    if params is None or isinstance(call, bool) or not isinstance(call, int | str):
        return None
    return (call, params) if isinstance(call, int) or _is_plain(call) else None


def line(call: int | str, result: dict[str, object]) -> bytes:
    """The answer to a request that read() understood, as one line."""
    return f'{{"jsonrpc":"2.0","id":{_text(call)},"result":{_text(result)}}}\n'.encode("ascii")


class _Plainly:
    """How the scanner reads: the settings of json's own decoder."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = None


def _parsed(line: bytes) -> object:
    """The one JSON value of a line, or None where this way of reading does not serve."""
    if make_scanner is None:  # pragma: no cover (another Python than CPython)
        return None
    try:
        text = line.decode("utf-8").strip(" \t\r\n")
        value, end = make_scanner(_Plainly)(text, 0)  # pyright: ignore[reportArgumentType] (the stub asks for a scanner where settings belong)
    except (AttributeError, TypeError, ValueError, StopIteration, RecursionError, SystemError):
        # No JSON, for which the scanner of Python 3.11 has no error of its own as long as nobody
        # has loaded `json`; or another release, where it wants to be used differently.
        return None
    return value if end == len(text) else None


def _object(value: object) -> dict[str, object] | None:
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType] (JSON has no other keys)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text


def _text(value: object) -> str:
    """JSON of objects, lists, truths, integers and plain strings."""
    members = _object(value)
    if members is not None:
        pairs = [f'"{key}":{_text(member)}' for key, member in members.items()]
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, list):
        items: list[object] = value  # pyright: ignore[reportUnknownVariableType] (JSON values)
        return f"[{','.join(map(_text, items))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)
