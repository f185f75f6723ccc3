"""What a session has used and spent, and how much of it the provider's cache saved.

Rule 1: it is a sum over the records, so that it is the same before and after a load.
Rule 2: every answer counts, with all attempts at it, those that failed and summaries among them.
"""

from collections.abc import Iterator
from dataclasses import replace

from bridge.core import money
from bridge.core.effects import Failed, Finished, Usage
from bridge.core.prefix import Kept
from bridge.core.records import Compacted, Cost, Metered, Record, Responded
from tools.frozen import frozen


class Taken:
    """What one answer takes, attempt by attempt; owned by whoever asks for it."""

    def __init__(self) -> None:
        self.metered: Metered | None = None
        self._costs: list[Cost | None] = []

    @property
    def cost(self) -> Cost | None:
        """Every attempt is paid for."""
        return money.total(self._costs)

    def add(self, ended: Finished | Failed, price: money.Price | None) -> None:
        """Count an attempt that has ended."""
        if isinstance(ended, Finished) and ended.upstream:
            self.metered = replace(self._known, upstream=ended.upstream)
        if ended.usage is not None:
            self._costs.append(money.cost_of(ended.usage, price))
            self.metered = _more(self._known, ended.usage)

    def went_on(self, kept: Kept | None) -> None:
        """Note what the request had of the one before it."""
        if kept is not None:
            known = self._known
            self.metered = replace(known, before=kept.of, kept=kept.bytes, broke=kept.broke)

    @property
    def _known(self) -> Metered:
        return self.metered or Metered()


def _more(known: Metered, usage: Usage) -> Metered:
    return replace(
        known,
        input=known.input + usage.input_tokens,
        output=known.output + usage.output_tokens,
        # A server that counts its cache apart must not make more of it than there was.
        cached=known.cached + min(usage.cached_tokens, usage.input_tokens),
    )


@frozen
class Last:
    """The last answer that was counted."""

    metered: Metered
    cost: Cost | None


class Meter:
    """The sums of one session; owned by it, or by whoever reads its records."""

    def __init__(self) -> None:
        self.tokens = 0
        """In and out, cached ones too."""
        self.costs: list[Cost] = []
        self._answers = self._input = self._output = self._cached = 0
        self._compared = self._whole = self._before = self._kept = 0
        self._unpriced = 0
        """Answers that took tokens and whose cost nobody knows."""
        self._broke = ""
        self._last: Last | None = None

    @property
    def cost(self) -> Cost | None:
        """What all of it cost, in the currency of the last answer whose cost is known."""
        return money.total(self.costs)

    @property
    def spent(self) -> float:
        """The same as one number: amounts of different currencies are not told apart."""
        return sum(cost.amount for cost in self.costs)

    @property
    def has_lost_count(self) -> bool:
        """The last answer is the first one whose cost nobody knows."""
        return self._unpriced == 1 and self._last is not None and self._last.cost is None

    def add(self, record: Record) -> None:
        """Count one record; most are about something else."""
        if not isinstance(record, Responded | Compacted):
            return
        if record.cost is not None:
            self.costs.append(record.cost)
        if record.metered is None:  # as older programs wrote it, or not the model's
            self.tokens += record.used or 0
            return
        self._last = Last(record.metered, record.cost)
        self._count(record.metered)
        self._unpriced += record.cost is None and record.metered.input > 0

    def _count(self, metered: Metered) -> None:
        self._answers += 1
        self.tokens += metered.input + metered.output
        self._input += metered.input
        self._output += metered.output
        self._cached += metered.cached
        if metered.before:
            self._compared += 1
            self._whole += not metered.broke
            self._before += metered.before
            self._kept += metered.kept
            self._broke = metered.broke or self._broke

    def report(self) -> Iterator[tuple[str, str]]:
        """What a person is told of it: names and texts; nothing before the first answer."""
        last = self._last
        if last is None:
            return
        answers = "1 answer" if self._answers == 1 else f"{self._answers:,} answers"
        yield "Tokens", f"{answers}: {_tokens(self._input, self._cached, self._output)}"
        if self.costs:
            unpriced = f", and {self._unpriced:,} of unknown cost" if self._unpriced else ""
            yield "Cost", money.told(self.costs) + unpriced
        yield "Last answer", "; ".join(_last(last))
        if self._compared:
            yield "Requests kept", self._prefixes()

    def _prefixes(self) -> str:
        share = _percent(self._kept, self._before)
        text = f"{share} of the bytes of each request began the next one"
        times = f"{self._whole:,} of {self._compared:,} went on from the whole one before"
        broke = f"; the last that did not differed in its {self._broke}" if self._broke else ""
        return f"{text}; {times}{broke}"


def _last(last: Last) -> Iterator[str]:
    metered = last.metered
    yield _tokens(metered.input, metered.cached, metered.output)
    if last.cost is not None:
        yield money.told([last.cost])
    if metered.before:
        yield f"began with {_percent(metered.kept, metered.before)} of the request before"
    if metered.upstream:
        yield f"served by {metered.upstream}"


def _tokens(taken: int, cached: int, given: int) -> str:
    share = _percent(cached, taken)
    return f"{taken:,} tokens in ({cached:,} from the cache, {share}), {given:,} out"


def _percent(part: int, whole: int) -> str:
    """The share in percent, rounded down: 100 % means all of it."""
    return f"{100 * min(part, whole) // whole if whole else 0} %"
