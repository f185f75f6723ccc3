"""When a request that failed is sent again, and after how long a wait.

Rule 1: the only importer of tenacity. It loads at the first failure: most requests need none of it.
Rule 2: attempts before and after something was shown count against one limit.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from bridge.errors import Fault, ModelError, model_error
from bridge.responses.answer import Answer, Attempt, Endpoint, OnWait
from bridge.responses.faults import Broken

_BACKOFF_SECONDS, _MOST_BACKOFF_SECONDS = 0.5, 8.0


async def again(
    endpoint: Endpoint,
    on_wait: OnWait | None,
    attempt: Attempt,
    failed: Broken,
    sleep: Callable[[float], Awaitable[None]],
) -> Answer:
    """The first answer of the attempts still left; raises ModelError when none gave one.

    failed: the last attempt that was made; sleep: waits so many seconds.
    """
    failures = [model_error(failed.fault)]

    async def tried() -> Answer:
        if failures:
            raise failures.pop()
        return await attempt()

    return await _retrying(endpoint, on_wait, failed.attempt - 1, sleep)(tried)


def _retrying(
    endpoint: Endpoint,
    on_wait: OnWait | None,
    before: int,
    sleep: Callable[[float], Awaitable[None]],
) -> AsyncRetrying:
    """How often one request may be sent; before: how often it was, but for the last time."""
    backoff = wait_random_exponential(
        multiplier=_BACKOFF_SECONDS * 2**before, max=_MOST_BACKOFF_SECONDS
    )

    def seconds(state: RetryCallState) -> float:
        hint = _fault(state).retry_after
        return backoff(state) if hint is None else hint

    def tell(state: RetryCallState) -> None:
        if on_wait is not None and state.next_action is not None:
            attempt, most = state.attempt_number + before, endpoint.max_retries
            on_wait(_fault(state), attempt, most, state.next_action.sleep)

    return AsyncRetrying(
        stop=stop_after_attempt(endpoint.max_retries + 1 - before),
        retry=retry_if_exception(partial(_is_worth_it, endpoint.max_wait)),
        wait=seconds,
        before_sleep=tell,
        sleep=sleep,
        reraise=True,
    )


def _is_worth_it(max_wait: float, error: BaseException) -> bool:
    if not isinstance(error, ModelError) or not error.fault.retryable:
        return False
    return (error.fault.retry_after or 0) <= max_wait


def _fault(state: RetryCallState) -> Fault:
    error = None if state.outcome is None else state.outcome.exception()
    return cast("ModelError", error).fault
