"""The shell_job tool: looks after a command that shell left running in the background."""

from typing import Literal

from pydantic import Field

from tools import told
from tools.base import Access, Arguments, Card, Console, Context, Ended, Job, Prepared, Result, Tool
from tools.spelling import one_line

PATIENCE = 10.0
"""Seconds that a poll waits for a job that has nothing new to say."""


class ShellJobArguments(Arguments):
    """What the model passes to follow a job."""

    id: str = Field(description="As shell gave it.")
    action: Literal["poll", "kill"] = Field(
        description="poll: what it printed since the last time, and whether it still runs."
    )


def _card(arguments: ShellJobArguments, _cwd: str) -> Card:
    verb = "Kill" if arguments.action == "kill" else "Follow"
    return Card(f"{verb} {one_line(arguments.id, 40)}")


async def _prepare(arguments: ShellJobArguments, context: Context) -> Prepared | Result:
    job = None if context.jobs is None else context.jobs.find(arguments.id)
    if job is None:
        return Result.error(
            f'there is no job "{arguments.id}"; jobs end with the session and with the agent'
        )

    async def run() -> Result:
        if arguments.action == "kill":
            await job.kill()
        else:
            await job.news_within(PATIENCE)
        return report(job)

    return Prepared(Access("none"), run)


def report(job: Job, head: str = "") -> Result:
    """What a job has to tell now."""
    text = told.lines(*filter(None, (head, job.news() or "(no new output)", *_state(job))))
    return Result(
        text,
        ok=not isinstance(job.ended, OSError),
        shown=(Console(text.rstrip("\n")),),
        data={"job": job.id, "running": job.ended is None, "output": text},
    )


def _state(job: Job) -> list[str]:
    match job.ended:
        case None:
            return [f"[{job.id} is running]"]
        case Ended() as ended:
            why = [f"[{job.id}: {job.why}]"] * bool(job.why)
            return [*why, *told.markers(ended, None), *["[exit code: 0]"] * (ended.code == 0)]
        case error:
            return [f"Error: the command could not be started: {error}"]


SHELL_JOB = Tool(
    "shell_job",
    "Follow or end a command that shell started with run_in_background. poll waits up to "
    f"{PATIENCE:.0f} seconds for something new.",
    ShellJobArguments,
    _card,
    _prepare,
)
