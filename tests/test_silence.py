"""A person who waits is told for how long, and the wait goes on."""

import anyio
import anyio.lowlevel
import pytest

from bridge.errors import ConfigError
from bridge.silence import Silence

pytestmark = pytest.mark.anyio


class Clock:
    """Time that passes only while somebody sleeps; at some moments something happens."""

    def __init__(self, happens: dict[float, str] | None = None) -> None:
        self.now = 0.0
        self.told: list[tuple[float, str]] = []
        self.happens = happens or {}
        self.silence = Silence(self.tell, clock=lambda: self.now, sleep=self.sleep)
        self.over = anyio.Event()

    def tell(self, text: str) -> None:
        self.told.append((self.now, text))

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        until = self.now + seconds
        moment = min((m for m in self.happens if self.now < m <= until), default=until)
        self.now = moment
        match self.happens.get(moment):
            case "heard":
                self.silence.heard()
            case "announced":
                self.silence.announced(100)
            case "over":
                self.over.set()
                await anyio.sleep_forever()
            case _:
                pass

    async def played(self) -> list[tuple[float, str]]:
        with anyio.fail_after(5):
            assert await self.silence.during(self.wait) == "answer"
        return self.told

    async def wait(self) -> str:
        await self.over.wait()
        return "answer"


def told(*moments: tuple[float, str]) -> list[tuple[float, str]]:
    return [(now, f"No word from the model for {span}; still waiting") for now, span in moments]


async def test_a_short_wait_is_not_spoken_of():
    assert await Clock({19: "over"}).played() == []


async def test_a_long_wait_is_told_of_now_and_then():
    heard = await Clock({1000: "over"}).played()
    assert heard == told(
        (20, "20 s"), (60, "60 s"), (180, "3 min"), (480, "8 min"), (780, "13 min")
    )


async def test_whatever_is_heard_begins_the_silence_anew():
    assert await Clock({15: "heard", 30: "heard", 55: "over"}).played() == told((50, "20 s"))


async def test_a_silence_after_a_word_is_told_of_in_time():
    assert await Clock({22: "heard", 50: "over"}).played() == told((20, "20 s"), (42, "20 s"))


async def test_a_wait_that_was_announced_is_no_silence():
    assert await Clock({10: "announced", 131: "over"}).played() == told((130, "20 s"))


async def test_a_failure_comes_out_as_itself():
    async def fail() -> None:
        raise ConfigError("wrong")

    with pytest.raises(ConfigError):
        await Clock().silence.during(fail)
