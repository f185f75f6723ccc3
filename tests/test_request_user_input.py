from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.workspace import Nobody, context
from tools.base import (
    Access,
    Answers,
    Card,
    NoAnswer,
    Option,
    Prepared,
    Question,
    Result,
    Text,
)
from tools.request_user_input import REQUEST_USER_INPUT

pytestmark = pytest.mark.anyio

_CHOICE: dict[str, object] = {
    "id": "style",
    "header": "Fixture",
    "question": "Strict or flexible?",
    "options": [{"label": "Strict", "description": "no surprises"}, {"label": "Flexible"}],
}
_TYPED: dict[str, object] = {"id": "name", "question": "What is it called?"}


class Asked(Nobody):
    def __init__(self, reply: Answers | NoAnswer) -> None:
        super().__init__()
        self.reply = reply
        self.heard: list[tuple[str, str, tuple[Question, ...]]] = []

    async def ask(
        self, title: str, message: str, questions: tuple[Question, ...]
    ) -> Answers | NoAnswer:
        self.heard.append((title, message, questions))
        return self.reply


async def prepared(arguments: Mapping[str, object], person: Asked) -> Prepared | Result:
    bound = REQUEST_USER_INPUT.bind(arguments, "/work")
    if isinstance(bound, Result):
        return bound
    return await bound.prepare(replace(context("/work"), person=person))


def test_the_card_shows_the_questions() -> None:
    def check(arguments: Mapping[str, object], title: str, text: str) -> None:
        bound = REQUEST_USER_INPUT.bind(arguments, "/work")
        assert not isinstance(bound, Result)
        assert bound.card == Card(title, shown=(Text(text),))

    choice = "**Strict or flexible?**\n- Strict: no surprises\n- Flexible"
    check({"questions": [_CHOICE]}, "Strict or flexible?", choice)
    check(
        {"title": "Two\nthings", "message": "m", "questions": [_CHOICE, _TYPED]},
        "Two ↵ things",
        f"{choice}\n\n**What is it called?**",
    )
    check({"title": " ", "questions": [_TYPED]}, "What is it called?", "**What is it called?**")


async def test_questions_that_cannot_be_told_apart_are_refused() -> None:
    async def check(questions: list[dict[str, object]], text: str) -> None:
        person = Asked(Answers({}))
        refused = await prepared({"questions": questions}, person)
        assert isinstance(refused, Result)
        assert not refused.ok
        assert text in refused.text
        assert person.heard == []

    await check([_CHOICE, _CHOICE], 'two questions have the id "style"; give each its own')
    twice = [{"label": "a"}, {"label": "b"}, {"label": "a"}]
    await check([{**_TYPED, "options": twice}], 'question "name" has two options "a"')
    await check([], "invalid arguments: questions")
    await check([{**_TYPED, "id": ""}], "invalid arguments: questions.0.id")
    await check([{**_TYPED, "question": ""}], "invalid arguments: questions.0.question")
    await check([{"id": "x"}], "invalid arguments: questions.0.question")
    await check([{**_TYPED, "options": [{"label": ""}]}], "questions.0.options.0.label")


async def test_the_person_is_asked_what_the_model_wants_to_know() -> None:
    async def check(
        arguments: Mapping[str, object], heard: tuple[str, str, tuple[Question, ...]]
    ) -> None:
        person = Asked(Answers({}))
        call = await prepared(arguments, person)
        assert isinstance(call, Prepared)
        assert call.access == Access("none")
        assert person.heard == []
        await call.run()
        assert person.heard == [heard]

    options = (Option("Strict", "no surprises"), Option("Flexible"))
    choice = Question("style", "Fixture", "Strict or flexible?", options)
    typed = Question("name", "What is it called?", "What is it called?")
    await check(
        {"title": "T", "message": "M", "questions": [_CHOICE, _TYPED]}, ("T", "M", (choice, typed))
    )
    await check({"questions": [_TYPED]}, ("What is it called?", "What is it called?", (typed,)))
    several = Question("s", "H", "Q?", (Option("a"),), multi_select=True)
    question = {"id": "s", "header": "H", "question": "Q?", "multi_select": True}
    await check(
        {"title": "T", "questions": [{**question, "options": [{"label": "a"}]}]},
        ("T", "T", (several,)),
    )


async def test_the_answers_come_as_compact_json() -> None:
    async def check(chosen: Mapping[str, tuple[str, ...]], text: str) -> None:
        call = await prepared({"questions": [_CHOICE, _TYPED]}, Asked(Answers(chosen)))
        assert isinstance(call, Prepared)
        assert await call.run() == Result(text)

    await check(
        {"style": ("Strict",), "name": ("Grün",)},
        '{"answers":[{"id":"style","selected":["Strict"]},{"id":"name","selected":[],"custom":"Grün"}]}',
    )
    await check(
        {"style": ("Flexible", "Strict")},
        '{"answers":[{"id":"style","selected":["Flexible","Strict"]}]}',
    )
    await check(
        {"style": ("my own", "Strict"), "name": ()},
        '{"answers":[{"id":"style","selected":["Strict"],"custom":"my own"},'
        '{"id":"name","selected":[]}]}',
    )


async def test_a_question_that_nobody_answers_has_failed() -> None:
    call = await prepared({"questions": [_TYPED]}, Asked(NoAnswer("ask in plain text instead")))
    assert isinstance(call, Prepared)
    assert await call.run() == Result.error("ask in plain text instead")
