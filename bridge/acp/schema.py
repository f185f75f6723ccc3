"""What the editor may send: the params of its requests and notes, as far as we read them.

It must not know what is done with them.

Rule 1: what a client wrote wrongly is forgiven where the protocol's schema says so, by the three
annotations below; anything else is refused with the name of the field.
Rule 2: a refusal never repeats a value: the environment of an MCP server holds secrets.
Rule 3: keys we do not know are ignored, and gone.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    ValidationInfo,
    WrapValidator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError
from pydantic_core.core_schema import no_info_plain_validator_function

from bridge.core.wire import JsonObject
from bridge.errors import INVALID_PARAMS, EditorError

_NOT_ABSOLUTE = "not_absolute"
_INSIDE = "inside"

T = TypeVar("T")
M = TypeVar("M", bound="Params")


class Params(BaseModel):
    """Names in Python's manner here, in JSON's on the wire."""

    # Built when first read: all at once they would hold up the first answers.
    model_config = ConfigDict(alias_generator=to_camel, frozen=True, defer_build=True)


def read(model: type[M], params: JsonObject) -> M:
    """These params as this model; EditorError, with the first faults, if they are not."""
    try:
        return model.model_validate(params)
    except ValidationError as error:
        complaints = [_complaint(place, fault) for place, fault in _faults(error)]
    raise EditorError(INVALID_PARAMS, "; ".join(complaints[:3]))


Place: TypeAlias = tuple[int | str, ...]


def _faults(error: ValidationError, inside: Place = ()) -> Iterator[tuple[Place, ErrorDetails]]:
    """Each fault, and the way to it."""
    for fault in error.errors(include_url=False, include_input=False):
        place = (*inside, *fault["loc"])
        if fault["type"] == _INSIDE:
            yield from _faults(fault.get("ctx", {})["error"], place)
        else:
            yield place, fault


def _complaint(place: Place, fault: ErrorDetails) -> str:
    field = ".".join(map(str, place)) or "params"
    if fault["type"] == "model_type":  # the library's words name the class
        return f"{field}: Input should be an object"
    return f"{field}{' ' if fault['type'] == _NOT_ABSOLUTE else ': '}{fault['msg']}"


# -- how the protocol forgives --------------------------------------------------------------------


def _or_none(value: object, valid: Callable[[object], object]) -> object:
    try:
        return valid(value)
    except ValidationError:
        return None


def _valid_only(value: object, valid: Callable[[object], list[object]]) -> list[object]:
    if not isinstance(value, list):
        return valid(value)
    kept: list[object] = []
    for item in cast("list[object]", value):
        with suppress(ValidationError):
            kept += valid([item])
    return kept


def _or_empty(value: object) -> object:
    return [] if value is None else value


OrNone: TypeAlias = Annotated[T | None, WrapValidator(_or_none)]
"""x-deserialize-default-on-error: a bad value is none."""

ValidOnly: TypeAlias = Annotated[list[T], WrapValidator(_valid_only)]
"""x-deserialize-skip-invalid-items: a bad item is left out."""

OrEmpty: TypeAlias = Annotated[list[T], BeforeValidator(_or_empty)]
"""x-deserialize-default-on-null: null is an empty list."""


# -- one of several models ------------------------------------------------------------------------


class _Chosen:
    """How a value is read that itself says as what; what no value asks for is never built."""

    def __init__(self, choose: Callable[[Mapping[object, object]], type[Params]]) -> None:
        self._choose = choose
        """Gives the model for an object."""

    def __get_pydantic_core_schema__(self, _of: object, _build: object) -> CoreSchema:
        return no_info_plain_validator_function(self._read)

    def _read(self, value: object) -> Params:
        model = self._choose(cast("dict[object, object]", value) if isinstance(value, dict) else {})
        try:
            return model.model_validate(value)
        except ValidationError as error:
            raise PydanticCustomError(_INSIDE, "is wrong", {"error": error}) from None


# -- content --------------------------------------------------------------------------------------


class Annotations(Params):
    """Whom a block is for, and how much it matters: advice."""

    audience: OrNone[ValidOnly[Literal["user", "assistant"]]] = None
    last_modified: OrNone[str] = None
    priority: OrNone[float] = None


class Block(Params):
    """One piece of a prompt."""

    annotations: OrNone[Annotations] = None

    def as_sent(self) -> dict[str, Any]:
        """The block as the protocol writes it."""
        return self.model_dump(by_alias=True, exclude_none=True)


class TextBlock(Block):
    """Text of the person's."""

    type: Literal["text"]
    text: str


class ImageBlock(Block):
    """An image, base64."""

    type: Literal["image"]
    data: str
    mime_type: str
    uri: OrNone[str] = None


class AudioBlock(Block):
    """Sound, base64."""

    type: Literal["audio"]
    data: str
    mime_type: str


class LinkBlock(Block):
    """Something the person points to, without its content."""

    type: Literal["resource_link"]
    name: str
    uri: str
    description: OrNone[str] = None
    mime_type: OrNone[str] = None
    size: OrNone[int] = None
    title: OrNone[str] = None


class TextResource(Params):
    """A file's text."""

    uri: str
    text: str
    mime_type: OrNone[str] = None


class BlobResource(Params):
    """A file's bytes, base64."""

    uri: str
    blob: str
    mime_type: OrNone[str] = None


def _resource(value: Mapping[object, object]) -> type[Params]:
    is_blob = isinstance(value.get("blob"), str) and not isinstance(value.get("text"), str)
    return BlobResource if is_blob else TextResource


class ResourceBlock(Block):
    """Something the person points to, with its content."""

    type: Literal["resource"]
    resource: Annotated[TextResource | BlobResource, _Chosen(_resource)]


class UnknownBlock(Block):
    """A block of a type that this version of the protocol does not have."""

    type: str


_BLOCKS: dict[object, type[Block]] = {
    "text": TextBlock,
    "image": ImageBlock,
    "audio": AudioBlock,
    "resource_link": LinkBlock,
    "resource": ResourceBlock,
}


def _block(value: Mapping[object, object]) -> type[Params]:
    kind = value.get("type")
    return _BLOCKS.get(kind, UnknownBlock) if isinstance(kind, str) else UnknownBlock


ContentBlock: TypeAlias = Annotated[
    TextBlock | ImageBlock | AudioBlock | LinkBlock | ResourceBlock | UnknownBlock,
    _Chosen(_block),
]


# -- MCP servers ----------------------------------------------------------------------------------


class Pair(Params):
    """An environment variable or an HTTP header."""

    name: str
    value: str


class StdioServer(Params):
    """A program that speaks MCP over its standard streams."""

    name: str
    command: str
    args: OrEmpty[str] = []
    env: OrEmpty[Pair] = Field(default=[], repr=False)


class HttpServer(Params):
    """A server reached over streamable HTTP."""

    type: Literal["http"]
    name: str
    url: str
    headers: OrEmpty[Pair] = Field(default=[], repr=False)


class SseServer(Params):
    """A server reached over HTTP with server-sent events, the older way."""

    type: Literal["sse"]
    name: str
    url: str
    headers: OrEmpty[Pair] = Field(default=[], repr=False)


class OtherServer(Params):
    """A server reached in a way we do not know."""

    type: str
    name: str


def _server(value: Mapping[object, object]) -> type[Params]:
    match value:
        case {"type": "http"}:
            return HttpServer
        case {"type": "sse"}:
            return SseServer
        case {"type": str()} if "command" not in value:
            return OtherServer
        case _:  # a type is no part of the stdio form, which is told by its command
            return StdioServer


McpServer: TypeAlias = Annotated[
    StdioServer | HttpServer | SseServer | OtherServer, _Chosen(_server)
]


# -- methods --------------------------------------------------------------------------------------


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        shown = path[:200].encode("utf-8", "replace").decode()  # pydantic takes no half characters
        raise PydanticCustomError(
            _NOT_ABSOLUTE, "must be an absolute path: {path}", {"path": shown}
        )
    return path


AbsolutePath: TypeAlias = Annotated[str, AfterValidator(_absolute)]


class AnyParams(Params):
    """Params that are read elsewhere."""

    model_config = ConfigDict(extra="allow")


class AuthenticateParams(Params):
    """authenticate."""

    method_id: str


class WorkspaceParams(Params):
    """session/new: where a session works, and with whom."""

    cwd: AbsolutePath
    mcp_servers: OrEmpty[McpServer] = []
    additional_directories: OrEmpty[AbsolutePath] = []


class SessionParams(Params):
    """session/cancel, session/close, session/delete, and the beginning of others."""

    session_id: str


class LoadSessionParams(SessionParams, WorkspaceParams):
    """session/load and session/resume."""


class ListSessionsParams(Params):
    """session/list."""

    cwd: AbsolutePath | None = None
    cursor: str | None = None


class SetModeParams(SessionParams):
    """session/set_mode."""

    mode_id: str


def _option_value(value: object, info: ValidationInfo) -> object:
    if isinstance(value, str) or (isinstance(value, bool) and info.data["type"] == "boolean"):
        return value
    raise PydanticCustomError(
        "option_value", 'must be a string, or a boolean beside "type": "boolean"'
    )


class SetConfigOptionParams(SessionParams):
    """session/set_config_option."""

    config_id: str
    type: OrNone[str] = None
    value: Annotated[str | bool, BeforeValidator(_option_value)]


class PromptParams(SessionParams):
    """session/prompt."""

    prompt: list[ContentBlock]


class CancelRequestParams(Params):
    """$/cancel_request."""

    request_id: str | Annotated[int, Strict()] | None
