import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import hello
from bridge.core.handshake import Capabilities, client_capabilities
from tests import acp_schema
from tests.test_wire import json_values

NOTHING = Capabilities()

ZED: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "auth": {"terminal": True},
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    "elicitation": {"form": {}, "url": {}},
    "_meta": {"terminal_output": True, "terminal-auth": True},
}


@pytest.mark.parametrize("version", [0, 1, 2, 99, 65535])
def test_every_version_is_answered_with_ours(version: int) -> None:
    result = hello.initialize({"protocolVersion": version})
    assert result["protocolVersion"] == 1


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"protocolVersion": "1"},
        {"protocolVersion": 1.0},
        {"protocolVersion": True},
        {"protocolVersion": None},
        {"protocolVersion": -1},
        {"protocolVersion": 65536},
        [1],
        None,
    ],
)
def test_a_version_that_is_none_is_refused(params: object) -> None:
    with pytest.raises(hello.BadHandshake, match="protocolVersion"):
        hello.initialize(params)


def test_the_answer_is_what_the_protocol_wants() -> None:
    result: Any = hello.initialize({"protocolVersion": 1})
    assert acp_schema.faults("initialize", "agent", "result", result) == []
    assert result["agentInfo"].keys() >= {"name", "version"}
    # The agent registry takes no agent without a method of this type.
    assert any(method.get("type", "agent") == "agent" for method in result["authMethods"])


@pytest.mark.parametrize(
    ("params", "can"),
    [
        ({}, NOTHING),
        (None, NOTHING),
        ({"clientCapabilities": None}, NOTHING),
        ({"clientCapabilities": "all"}, NOTHING),
        ({"clientCapabilities": {"fs": 1, "terminal": "yes", "session": []}}, NOTHING),
        ({"clientCapabilities": {"fs": {"readTextFile": 1}}}, NOTHING),
        ({"clientCapabilities": {"elicitation": {}}}, NOTHING),
        ({"clientCapabilities": {"elicitation": {"form": None}}}, NOTHING),
        ({"clientCapabilities": {"elicitation": {"form": True}}}, NOTHING),
        ({"clientCapabilities": {"elicitation": {"form": {}}}}, Capabilities(form=True)),
        ({"clientCapabilities": {"fs": {"readTextFile": True}}}, Capabilities(fs_read=True)),
        (
            {"clientCapabilities": ZED},
            Capabilities(
                form=True,
                fs_read=True,
                fs_write=True,
                terminal=True,
                terminal_output=True,
                boolean_options=True,
                notices=True,
                compaction=True,
            ),
        ),
        # Version 2 has no fs and no terminal; what it shares with version 1 counts.
        ({"capabilities": ZED}, Capabilities(form=True, terminal_output=True)),
        ({"clientCapabilities": {}, "capabilities": ZED}, NOTHING),
    ],
)
def test_only_what_is_said_rightly_counts_as_supported(params: object, can: Capabilities) -> None:
    assert client_capabilities(params) == can


@given(json_values)
def test_garbage_never_raises(value: Any) -> None:
    client_capabilities(value)
    client_capabilities({"clientCapabilities": value})
    hello.read(json.dumps({"jsonrpc": "2.0", "id": value, "params": value}).encode())


PARAMS = {"protocolVersion": 1, "clientInfo": {"name": "é", "version": "1"}, "x": [1.5, None]}


def asking(**changes: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": PARAMS, **changes}
    return json.dumps(message).encode()


@pytest.mark.parametrize("call", [0, 7, -1, 2**53, 2**63, "a", "6f1c-uuid", ""])
def test_a_plain_handshake_is_read_and_answered_under_its_id(call: int | str) -> None:
    assert hello.read(b" " + asking(id=call) + b"\r") == (call, PARAMS)
    result = hello.initialize(PARAMS)
    line = hello.line(call, result)
    assert line.endswith(b"}\n")
    assert json.loads(line) == {"jsonrpc": "2.0", "id": call, "result": result}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"nope",
        b"[1]",
        asking() + b"x",
        asking(jsonrpc="1.0"),
        asking(method="session/new"),
        asking(params=None),
        asking(params=[]),
        asking(id=None),
        asking(id=True),
        asking(id=1.5),
        asking(id='"'),
        asking(id="\\"),
        asking(id="é"),
        asking(id="\n"),
        asking(x=float("nan")),
        b"\xef\xbb\xbf" + asking(),
        asking()[:-1] + b',"x":"\xff"}',
        b"[" * 100_000,
    ],
)
def test_the_unusual_is_left_to_the_whole_program(line: bytes) -> None:
    assert hello.read(line) is None


@given(st.binary())
def test_bytes_of_any_kind_are_left_alone(line: bytes) -> None:
    assert hello.read(line) is None
