"""A stream may fail at any byte, in any way, several times: the conversation stays whole."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import anyio
import httpx
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import pairing
from tests.fake_responses import (
    FakeResponses,
    Item,
    Piece,
    Reply,
    called,
    frame,
    said,
    stream,
    thought,
)
from tests.laws import Message
from tests.skipped_time import SkippedTime, no_waiting
from tests.stage import Stage, stage
from tools.frozen import frozen

MOST = 2
"""Times that a request may be sent again."""
THOUGHT, TEXT = "First look, then tell.", "It is about ✓ and no more."
ITEMS: dict[str, list[Item]] = {
    "text": [said(TEXT)],
    "a thought and text": [thought(THOUGHT), said(TEXT)],
    "a call": [called("c1", "read", '{"file_path":"a.txt"}')],
    "everything": [
        thought(THOUGHT),
        said(TEXT),
        called("c1", "read", '{"file_path":"a.txt"}'),
        called("c2", "read", '{"file_path":"none.txt"}'),
    ],
}
Way = Literal["cut", "end", "silence", "error", "refusal", "untyped"]
FRAMES: dict[Way, Message] = {
    "error": {"type": "error", "error": {"code": "server_error", "message": "Sorry."}},
    "refusal": {"type": "error", "code": "invalid_prompt", "message": "No."},
    "untyped": {"error": {"code": "slow_down", "message": "Slow."}},
}


@frozen
class Failure:
    """How one attempt goes wrong; at: which part of its bytes comes before that."""

    at: float
    way: Way
    sizes: Sequence[int]


failures = st.builds(
    Failure,
    st.floats(0, 1),
    st.sampled_from(get_args(Way)),
    st.lists(st.integers(1, 500), min_size=1, max_size=3),
)


def script(items: Sequence[Item], failure: Failure) -> Reply:
    """An answer of these items that fails before its last event is whole."""
    whole = b"".join(map(frame, stream(*items)))
    part = whole[: round(failure.at * (len(whole) - len(b"}\n\n")))]
    pieces: list[Piece] = []
    for size in cycle(failure.sizes):
        if not part:
            break
        pieces.append(part[:size])
        part = part[size:]
    if failure.way in FRAMES:
        return Reply([*pieces, b"\n\n" + frame(FRAMES[failure.way])])
    if failure.way == "cut":
        return Reply([*pieces, httpx.ReadError("cut")])
    # Of a server on this machine the first byte is waited for without an end.
    return Reply(pieces, hold=failure.way == "silence" and bool(pieces))


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(sorted(ITEMS)), st.lists(failures, max_size=MOST + 1))
@example("everything", [Failure(0.999, "cut", [7]), Failure(0.9, "silence", [500])])
@example("a call", [Failure(0.9, "end", [1]), Failure(0.9, "error", [500])])
@example("everything", [Failure(0.5, "untyped", [50])] * (MOST + 1))
@example("text", [Failure(0.7, "refusal", [500])])
def test_whatever_fails_text_is_shown_once_and_the_conversation_goes_on(
    answer: str, failing: list[Failure]
) -> None:
    items = ITEMS[answer]
    attempts = take_until_refusal(failing)
    is_answered = len(attempts) <= MOST and "refusal" not in [one.way for one in attempts]
    rest = [stream(*items)] if is_answered else []
    if is_answered and any(item.opened["type"] == "function_call" for item in items):
        rest.append(stream(said("Done.")))
    fine = stream(said("Fine."))
    model = FakeResponses(*[script(items, one) for one in attempts], *rest, fine)

    async def play() -> None:
        with no_waiting(), TemporaryDirectory() as folder:
            patience = {"max_retries": MOST}
            async with stage(Path(folder), model, provider=patience) as on:
                (on.workspace / "a.txt").write_text("x\n", encoding="utf-8")
                check(on, items, await on.prompt(), is_answered=is_answered)
                assert len(model.asked) == len(attempts) + len(rest)
                assert await on.prompt() == {"stopReason": "end_turn"}
                assert on.editor.text().endswith("Fine.")

    anyio.run(play, backend_options={"loop_factory": SkippedTime})
    assert not pairing.BROKEN


def take_until_refusal(failing: Sequence[Failure]) -> list[Failure]:
    """The attempts that there can be: none follows one that makes no sense to repeat."""
    ways = [one.way for one in failing]
    return list(failing[: ways.index("refusal") + 1] if "refusal" in ways else failing)


def check(on: Stage, items: Sequence[Item], answer: Message, *, is_answered: bool) -> None:
    """What holds for the prompt, and for nothing but it."""
    kinds = [item.opened["type"] for item in items]
    message = TEXT * kinds.count("message")
    thinking = THOUGHT * kinds.count("reasoning")
    ends = [one["status"] for one in on.news() if one.get("status") in ("completed", "failed")]
    if is_answered:
        assert answer == {"stopReason": "end_turn"}
        assert on.editor.text() == message + "Done." * ("function_call" in kinds)
        assert on.editor.text("agent_thought_chunk") == thinking
        assert ends.count("completed") == ("function_call" in kinds)
    else:
        assert answer["data"]["error"] == answer["message"]
        assert message.startswith(on.editor.text())
        assert thinking.startswith(on.editor.text("agent_thought_chunk"))
        assert set(ends) <= {"failed"}
