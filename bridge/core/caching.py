"""Whether a provider's cache of prompts does what it should; it saves most of what a turn costs.

It must not know how requests are made. Usage in, now and then a sentence out.

Rule 1: only misses that ought to have been hits count: of long inputs, one soon after the other, on
a server that caches.
Rule 2: a session is told once.
"""

from fnmatch import fnmatchcase

from bridge.core.effects import Usage

_HOSTS = (
    "api.openai.com",
    "*.api.openai.com",
    "*.openai.azure.com",
    "api.x.ai",
    "api.deepseek.com",
)
"""Their documents promise a cache of every long prompt. Others have shown it, or are not judged."""

_LONG = 4000
"""Tokens of input; shorter prompts may be below what a server caches."""
_MISSES = 3
_LIFETIME = 240.0
"""Seconds that a cached prompt outlives its use, at the least."""

_TOLD = (
    "Three requests in a row found nothing in the provider's cache, so that all {tokens:,} tokens "
    "of input count in full: see whether extra_body or a proxy in between changes the requests"
)


class Caching:
    """What one session has seen of the cache; owned by the session."""

    def __init__(self) -> None:
        self._maker = ""
        self._has_hit = False
        self._misses: list[int] = []
        self._last = 0.0
        self._told = False

    def feed(self, usage: Usage, maker: str, host: str, now: float) -> str | None:
        """Take the usage of one answer; gives the sentence when it is due.

        maker: provider and model; now: seconds of any clock.
        """
        if maker != self._maker:
            self._maker, self._has_hit = maker, False
            self._misses.clear()
        elif now - self._last > _LIFETIME:
            self._misses.clear()
        else:
            self._count(usage)
        self._last = now
        self._has_hit = self._has_hit or usage.cached_tokens > 0
        caches = self._has_hit or any(fnmatchcase(host, known) for known in _HOSTS)
        if self._told or not caches or len(self._misses) < _MISSES:
            return None
        self._told = True
        return _TOLD.format(tokens=sum(self._misses))

    def _count(self, usage: Usage) -> None:
        """The first request of a row fills the cache; those that follow should find it filled."""
        if usage.cached_tokens or usage.input_tokens <= _LONG:
            self._misses.clear()
        else:
            self._misses.append(usage.input_tokens)
