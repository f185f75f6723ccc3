"""The tool with which the model asks the user questions, with choices or without."""

import json
from collections.abc import Iterable, Mapping

from pydantic import Field

from tools.base import (
    Access,
    Arguments,
    Card,
    Context,
    NoAnswer,
    Option,
    Prepared,
    Question,
    Result,
    Text,
    Tool,
)
from tools.spelling import one_line


class Choice(Arguments):
    """One option of a question."""

    label: str = Field(min_length=1)
    description: str | None = None


class Inquiry(Arguments):
    """One question."""

    id: str = Field(min_length=1, description="Short name of the answer, unique in this call.")
    header: str | None = Field(default=None, description="One or two words.")
    question: str = Field(min_length=1)
    options: tuple[Choice, ...] | None = Field(
        default=None, description="None or empty: the user types the answer."
    )
    multi_select: bool | None = Field(default=None, description="Several options may be chosen.")


class RequestUserInputArguments(Arguments):
    """What the model passes to ask the user."""

    questions: tuple[Inquiry, ...] = Field(min_length=1)
    title: str | None = None
    message: str | None = Field(default=None, description="Why you ask; stands above the form.")


def _card(arguments: RequestUserInputArguments, _cwd: str) -> Card:
    asked = _questions(arguments)
    return Card(
        title=one_line(_title(arguments)),
        shown=(Text("\n\n".join(map(_markdown, asked))),),
    )


def _title(arguments: RequestUserInputArguments) -> str:
    return (arguments.title or "").strip() or arguments.questions[0].question


def _markdown(question: Question) -> str:
    lines = [f"**{question.question}**"]
    for option in question.options:
        described = f": {option.description}" if option.description else ""
        lines.append(f"- {option.label}{described}")
    return "\n".join(lines)


def _questions(arguments: RequestUserInputArguments) -> tuple[Question, ...]:
    return tuple(
        Question(
            id=asked.id,
            header=asked.header or asked.question,
            question=asked.question,
            options=tuple(
                Option(option.label, option.description or "") for option in asked.options or ()
            ),
            multi_select=bool(asked.multi_select),
        )
        for asked in arguments.questions
    )


async def _prepare(arguments: RequestUserInputArguments, context: Context) -> Prepared | Result:
    questions = _questions(arguments)
    if twice := _first_repeated(question.id for question in questions):
        return Result.error(f'two questions have the id "{twice}"; give each its own')
    for question in questions:
        if twice := _first_repeated(option.label for option in question.options):
            return Result.error(f'question "{question.id}" has two options "{twice}"')
    title = _title(arguments)
    message = (arguments.message or "").strip() or title

    async def run() -> Result:
        reply = await context.person.ask(title, message, questions)
        if isinstance(reply, NoAnswer):
            return Result.error(reply.text)
        return Result(_answers(questions, reply.chosen))

    return Prepared(Access("none"), run)


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _answers(questions: tuple[Question, ...], chosen: Mapping[str, tuple[str, ...]]) -> str:
    answers = [
        _answer(question, chosen[question.id]) for question in questions if question.id in chosen
    ]
    return json.dumps({"answers": answers}, ensure_ascii=False, separators=(",", ":"))


def _answer(question: Question, chosen: tuple[str, ...]) -> dict[str, object]:
    """What was chosen, and under "custom" what was typed."""
    labels = {option.label for option in question.options}
    selected = [text for text in chosen if text in labels]
    typed = "\n".join(text for text in chosen if text not in labels)
    answer: dict[str, object] = {"id": question.id, "selected": selected}
    return {**answer, "custom": typed} if typed else answer


REQUEST_USER_INPUT = Tool(
    name="request_user_input",
    description=(
        "Ask the user one or more questions and wait for the answers. Only for decisions that "
        "are the user's and that you cannot find out yourself."
    ),
    arguments=RequestUserInputArguments,
    card=_card,
    prepare=_prepare,
)
