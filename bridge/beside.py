"""Work that goes on beside other work, and ends with it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from bridge.errors import BridgeError


@asynccontextmanager
async def beside() -> AsyncGenerator[TaskGroup]:
    """A group of tasks that are cancelled at the end; the body's BridgeErrors come out bare."""
    failure: BridgeError | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except BridgeError as error:
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
