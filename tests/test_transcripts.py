"""The conversations in transcripts/, played as they are written."""

from pathlib import Path

import pytest

from tests.transcript import Player, read, renewed, write

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.jsonl"))


@pytest.mark.anyio
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
async def test_a_conversation_goes_as_written(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    update = bool(request.config.getoption("--update"))
    player = Player(read(path), tmp_path, update=update)
    await player.play()
    if update:
        write(path, renewed(player.lines, player.written))


def test_there_are_conversations() -> None:
    assert TRANSCRIPTS
