"""Work that goes on beside other work, and ends with it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from bridge.errors import BridgeError


@asynccontextmanager
async def group() -> AsyncGenerator[TaskGroup]:
    """A task group whose body's BridgeErrors come out as themselves, when all tasks have ended."""
    failure: BridgeError | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except BridgeError as error:
            failure = error
    if failure is not None:
        raise failure


@asynccontextmanager
async def beside() -> AsyncGenerator[TaskGroup]:
    """Like group(), but the tasks are cancelled at the end."""
    async with group() as tasks:
        try:
            yield tasks
        finally:
            tasks.cancel_scope.cancel()
