"""What the scripted model says: one request body in, the parts of one answer out.

It must not know how the request came or how the answer travels.

Rule 1: the answer depends on the request alone: on the last prompt, on the calls that were made
since, and on how the last of them ended. There is no state to get out of step.
Rule 2: whatever the request holds, there is an answer, and after a few calls an end.
"""

from collections.abc import Callable
from typing import TypeAlias

from bridge.core.wire import Json, JsonObject
from tools.frozen import frozen

NOTES = b"""Release notes
- the start page greets new users with "helo wrold"
- logging in takes one click less
"""
MENDED = NOTES.replace(b"helo wrold", b"hello world")

PROMPT = (
    "There is a typo in notes.txt. Look at the file and hand in a plan first; once I agree, mend "
    "the typo and nothing else."
)

_OLD = '- the start page greets new users with "helo wrold"'
_NEW = '- the start page greets new users with "hello world"'
_MOST_CALLS = 8
_MOST_PLANS = 3


@frozen
class Think:
    """A part of the reasoning summary."""

    text: str


@frozen
class Say:
    """A part of the message."""

    text: str


@frozen
class Call:
    """A tool call."""

    name: str
    arguments: JsonObject


Part: TypeAlias = Think | Say | Call


@frozen
class Made:
    """A call of this turn that has ended."""

    name: str
    output: str

    @property
    def worked(self) -> bool:
        """Whether the tool did what it was called for."""
        return not self.output.startswith("Error")


@frozen
class Asked:
    """What a request asks, as far as the script looks at it."""

    prompt: str
    made: tuple[Made, ...]
    planning: bool


def answer(body: JsonObject) -> tuple[Part, ...]:
    """The parts of the answer to this request; never raises."""
    asked = read(body)
    if len(asked.made) >= _MOST_CALLS:
        return (Say("I have called enough tools for a script, so I stop here."),)
    if asked.prompt.strip() == PROMPT:
        return _play(asked)
    return _chat(asked)


def read(body: JsonObject) -> Asked:
    """The last prompt of the request and the calls made since."""
    prompt, names = "", dict[str, str]()
    made: list[Made] = []
    for item in _objects(body.get("input")):
        match item:
            case {"role": "user", "content": content}:
                prompt, made = _text(content), []
            case {"type": "function_call", "call_id": str(call), "name": str(name)}:
                names[call] = name
            case {"type": "function_call_output", "call_id": str(call), "output": output}:
                made.append(Made(names.get(call, ""), _text(output)))
            case _:
                pass
    return Asked(prompt, tuple(made), "plan mode" in str(body.get("instructions")))


def _objects(value: Json) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in _objects(content))


# -- the play: a plan, a refused edit, a read, an edit --------------------------------------------


def _play(asked: Asked) -> tuple[Part, ...]:
    if not asked.made:
        return _look(asked)
    last = asked.made[-1]
    return _STEPS.get((last.name, last.worked), _give_up)(asked)


def _look(_: Asked) -> tuple[Part, ...]:
    return (
        Think(
            "**Looking first**\n\nThe user wants a plan before anything changes, so I begin by "
            "looking at the file. A command that only prints it will do."
        ),
        Say("I look at the file first."),
        Call("shell", {"command": "cat notes.txt", "description": "Show notes.txt"}),
    )


def _hand_in_plan(asked: Asked) -> tuple[Part, ...]:
    if not asked.planning:
        return _edit(asked)
    return (
        Think(
            "**One line to mend**\n\nThe second line says “helo wrold”. Everything else looks "
            "right. The plan has a single step."
        ),
        Call("exit_plan_mode", {"plan": _plan()}),
    )


def _plan(feedback: str = "") -> str:
    wish = "\n\nYour wish, which a real model would follow and a script can only repeat: "
    return (
        "# Mend the typo in notes.txt\n\n"
        "1. In line 2 of `notes.txt`, turn “helo wrold” into “hello world”.\n"
        "2. Leave every other byte of the file as it is."
    ) + (f"{wish}{feedback}" if feedback else "")


def _revise_plan(asked: Asked) -> tuple[Part, ...]:
    plans = [made for made in asked.made if made.name == "exit_plan_mode"]
    if not asked.planning or len(plans) >= _MOST_PLANS:
        return (Say("All right: I leave `notes.txt` as it is."),)
    feedback = plans[-1].output.partition("their feedback: ")[2]
    return (
        Think("**Not approved**\n\nThe user wants to go on planning, so nothing changes yet."),
        Say("Nothing has changed yet. Here is the plan once more."),
        Call("exit_plan_mode", {"plan": _plan(feedback)}),
    )


def _edit(asked: Asked) -> tuple[Part, ...]:
    thought = (
        "**Now with the file read**\n\nThe same edit again."
        if asked.made[-1].name == "read"
        else "**Carrying out the plan**\n\nThe plan is approved. I know the line from the output "
        "of the command, so I can change it at once."
    )
    arguments: JsonObject = {"file_path": "notes.txt", "old_string": _OLD, "new_string": _NEW}
    return (Think(thought), Call("edit", arguments))


def _read_first(asked: Asked) -> tuple[Part, ...]:
    if any(made.name == "read" for made in asked.made):
        return _give_up(asked)
    return (
        Think(
            "**Refused**\n\nOutput of a command does not count as reading: the agent wants me to "
            "have read the file itself. So I read it."
        ),
        Say("The agent does not let me edit a file that I have not read. I read it and try again."),
        Call("read", {"file_path": "notes.txt"}),
    )


def _finish(_: Asked) -> tuple[Part, ...]:
    return (
        Say(
            "Done: line 2 of `notes.txt` now says “hello world”, and nothing else in the file has "
            "changed."
        ),
    )


def _give_up(asked: Asked) -> tuple[Part, ...]:
    last = asked.made[-1]
    reason = last.output.partition("\n")[0][:200]
    return (
        Say(
            f"`{last.name}` answered “{reason}”. A real model would find another way; I am a "
            "script and stop here."
        ),
    )


_STEPS: dict[tuple[str, bool], Callable[[Asked], tuple[Part, ...]]] = {
    ("shell", True): _hand_in_plan,
    ("exit_plan_mode", True): _edit,
    ("exit_plan_mode", False): _revise_plan,
    ("edit", False): _read_first,
    ("read", True): _edit,
    ("edit", True): _finish,
}
"""What follows a call that worked, or did not."""


# -- any other prompt ----------------------------------------------------------------------------


def _chat(asked: Asked) -> tuple[Part, ...]:
    if not asked.made:
        return (
            Think(
                "**A script, not a mind**\n\nI cannot understand the prompt, but I can show what a "
                "tool call looks like: I list the folder."
            ),
            Say("Hello! I am the scripted model of the demo. Let me look around in this folder."),
            Call("shell", {"command": "ls", "description": "List the folder"}),
        )
    last = asked.made[-1]
    found = (
        "That is what is here, and I understand none of it."
        if last.worked
        else "That did not work, which is fine: nothing in your folder was touched."
    )
    return (
        Say(
            f"{found} Everything around me is real: the agent, its tools, its permissions and "
            "modes, and what your editor shows of them. To talk to a model that thinks, name one "
            "in `config.toml` and start `responses-acp` without `demo`."
        ),
    )
