"""Commands that go on in the background of a session.

Rule 1: a job lives no longer than its session: what keeps the jobs is what ends them.
Rule 2: what a job prints is told once. What nobody asks for is kept as far as a result holds it.
Rule 3: a job that may change more than is allowed by now is ended: it cannot be held anew.
"""

from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from tools.base import REACHES, Ended, Reach, Run
from tools.output import Capture

MOST_RUNNING = 20

NARROWED = "it was ended: it could change more than the mode and permission in force allow"


@dataclass(eq=False, slots=True)
class LocalJob:
    """One command; the port Job."""

    id: str
    reach: Reach
    """What it may change."""
    why: str = ""
    """Why it was ended, if not by the model."""
    ended: Ended | OSError | None = None
    """How it ended, or why it could not be started; None: it runs."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    over: anyio.Event = field(default_factory=anyio.Event)
    _fresh: Capture = field(default_factory=Capture)
    _news: anyio.Event = field(default_factory=anyio.Event)

    def news(self) -> str:
        """What it printed since this was asked last."""
        told, self._fresh = self._fresh, Capture()
        self._news = anyio.Event()
        told.finish()
        return told.text()

    async def news_within(self, seconds: float) -> None:
        """Wait until it says something or ends, or so long."""
        if self.ended is None:
            with anyio.move_on_after(seconds):
                await self._news.wait()

    async def end_within(self, seconds: float) -> None:
        """Wait until it ends, or so long."""
        with anyio.move_on_after(seconds):
            await self.over.wait()

    async def kill(self) -> None:
        """End it, with all that it started; returns when nothing is left."""
        self.scope.cancel()
        await self.over.wait()

    def print(self, text: str) -> None:
        """It printed this."""
        self._fresh.feed(text.encode())
        self._news.set()

    async def run(self, run: Run) -> None:
        """Run it to its end; a kill is one too."""
        try:
            with self.scope:
                try:
                    self.ended = await run(self.print)
                except OSError as error:
                    self.ended = error
            if self.scope.cancelled_caught:
                self.ended = Ended("", "", None, "SIGKILL")
        finally:
            self._news.set()
            self.over.set()


class LocalJobs:
    """The jobs of one session, which owns them; the port Jobs."""

    def __init__(self) -> None:
        self._jobs: dict[str, LocalJob] = {}
        self._tasks: TaskGroup | None = None
        self._ready = anyio.Event()
        self._closed = anyio.Event()

    @property
    def running(self) -> list[str]:
        """The jobs that have not ended."""
        return [job.id for job in self._jobs.values() if job.ended is None]

    async def keep(self) -> None:
        """Be there for jobs, until close(); all are gone when this returns."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._ready.set()
            try:
                await self._closed.wait()
            finally:
                self._tasks = None
            tasks.cancel_scope.cancel()

    def close(self) -> None:
        """End all jobs, soon, and take no more."""
        self._closed.set()
        self._ready.set()

    async def end(self) -> None:
        """End all jobs, and wait until they are gone."""
        self.close()
        for job in self._jobs.values():
            await job.over.wait()

    def narrow(self, reach: Reach) -> None:
        """End, soon, what may change more than this."""
        for job in self._jobs.values():
            if job.ended is None and REACHES.index(job.reach) > REACHES.index(reach):
                job.why = NARROWED
                job.scope.cancel()

    async def start(self, run: Run, reach: Reach) -> LocalJob:
        """Let a command run in the background; OSError where there can be no more."""
        await self._ready.wait()
        if self._tasks is None:
            raise OSError("the session is being closed")
        if len(self.running) >= MOST_RUNNING:
            raise OSError(f"{MOST_RUNNING} jobs are running; kill one first")
        job = LocalJob(f"job{len(self._jobs) + 1}", reach)
        self._jobs[job.id] = job
        self._tasks.start_soon(job.run, run)
        return job

    def find(self, job: str) -> LocalJob | None:
        """The job of this id, running or not."""
        return self._jobs.get(job)
