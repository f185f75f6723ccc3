"""The agent on native Windows: it answers, and says that it belongs inside WSL.

It must not need what Windows lacks, nor anything but the standard library.

Rule 1: `initialize` and `session/new` succeed, so that clients come to show the sentence.
"""

import os
import uuid

from bridge.acp.peer import Message, Peer, Request
from bridge.core.hello import BadHandshake, initialize
from bridge.errors import INVALID_PARAMS, BridgeError, ConfigError, EditorError

SENTENCE = (
    "responses-acp does not run on native Windows: install it inside WSL and let the editor "
    "start it there with `wsl responses-acp`"
)


def serve(stdin: int, stdout: int) -> int:
    """Answer the editor to the end of input; the exit code."""
    peer = Peer()
    while data := os.read(stdin, 65536):
        _answer_all(peer, peer.feed(data), stdout)
    _answer_all(peer, peer.end(), stdout)
    return 0


def _answer_all(peer: Peer, messages: list[Message], stdout: int) -> None:
    for message in messages:
        if isinstance(message, Request):
            _answer(peer, message)
    data = peer.take()
    while data:
        data = data[os.write(stdout, data) :]


def _answer(peer: Peer, request: Request) -> None:
    try:
        peer.result(request.id, _result(request))
    except BridgeError as error:
        peer.refuse(request.id, error)


def _result(request: Request) -> dict[str, object]:
    match request.method:
        case "initialize":
            try:
                return initialize(request.params)
            except BadHandshake as error:
                raise EditorError(INVALID_PARAMS, str(error)) from None
        case "session/new":
            return {"sessionId": str(uuid.uuid4())}
        case _:
            raise ConfigError(SENTENCE)
