"""The person in front of the editor, as tools ask them: for a review, an answer, a filled form.

Rule 1: a form where the client shows forms, else permission buttons where a few words will do. A
person who cannot be asked has not agreed.
Rule 2: only an answer that was offered counts.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from bridge.acp.editor import SessionEditor
from bridge.core.updates import Update
from bridge.core.wire import JsonObject
from tools.base import Answers, Approved, Filled, NoAnswer, Question, Rejected
from tools.frozen import frozen

_MOST_BUTTONS = 6

_PLAN_QUESTION = "Approve this plan and leave plan mode?"
_APPROVE = "Approve"
_KEEP = "Keep planning"
_CANCELLED = (
    "request_user_input was cancelled by the user; go on without an answer, or ask in plain text"
)
_NO_CHANNEL = "no user-interaction channel is available: ask in plain text and end your turn"
_NO_REVIEW = (
    "no user-interaction channel is available to review the plan; ask the user to switch the "
    "session mode instead"
)


@frozen
class CallPerson:
    """The person, asked on behalf of one call."""

    editor: SessionEditor
    card_id: str

    async def review(self, plan: str) -> Approved | Rejected | NoAnswer:
        """Show the plan and wait."""
        if self.editor.can.form:
            message = f"{_PLAN_QUESTION}\n\n{plan}"
            return _verdict(await self._form(message, _REVIEW_FORM))
        chosen = await self.editor.pick(self.card_id, _PLAN_QUESTION, (_APPROVE, _KEEP))
        if chosen is None:
            return NoAnswer(_NO_REVIEW)
        return Approved() if chosen == _APPROVE else Rejected()

    async def ask(
        self, title: str, message: str, questions: tuple[Question, ...]
    ) -> Answers | NoAnswer:
        """Put questions and wait."""
        if self.editor.can.form:
            content = await self._form(message, _question_form(title, questions))
            return NoAnswer(_CANCELLED) if content is None else _answers(content, questions)
        if len(questions) != 1 or not 0 < len(questions[0].options) <= _MOST_BUTTONS:
            return NoAnswer(_NO_CHANNEL)
        return await self._pick_one(questions[0])

    async def fill(self, message: str, form: Mapping[str, object]) -> Filled:
        """Show a form and wait; without a way to show one nobody has agreed to anything."""
        if not self.editor.can.form:
            return Filled("decline")
        return await self.editor.fill(self.card_id, message, form)

    async def _form(self, message: str, form: Mapping[str, object]) -> Mapping[str, Any] | None:
        """The content of an accepted form; None for everything else."""
        filled = await self.editor.fill(self.card_id, message, form)
        return filled.content if filled.action == "accept" else None

    async def _pick_one(self, question: Question) -> Answers | NoAnswer:
        labels = [option.label for option in question.options]
        no_answer = "Other (answer in the chat)"
        chosen = await self.editor.pick(self.card_id, question.question, (*labels, no_answer))
        if chosen not in labels:
            return NoAnswer(_CANCELLED)
        return Answers({question.id: (chosen,)})


_REVIEW_FORM: JsonObject = {
    "type": "object",
    "title": "Plan review",
    "properties": {
        "choice": {
            "type": "string",
            "title": _PLAN_QUESTION,
            "description": "Choose one option, or fill a custom answer below.",
            "oneOf": [
                {
                    "const": _APPROVE,
                    "title": f"{_APPROVE}: Leave plan mode; the plan is carried out from the "
                    "next step.",
                },
                {
                    "const": _KEEP,
                    "title": f"{_KEEP}: Stay in plan mode; feedback goes back to the model.",
                },
            ],
        },
        "custom": {
            "type": "string",
            "title": "Custom answer",
            "description": "Optional free-form answer. Leave empty to use the selected option.",
        },
    },
    "required": [],
}


def _verdict(content: Mapping[str, Any] | None) -> Approved | Rejected:
    """Consent is the one choice, with nothing typed beside it."""
    if content is None:
        return Rejected()
    custom = str(content.get("custom") or "").strip()
    if custom:
        return Rejected(custom)
    return Approved() if content.get("choice") == _APPROVE else Rejected()


def _question_form(title: str, questions: Sequence[Question]) -> Update:
    form: Update = {"type": "object"}
    if title:
        form["title"] = title
    form["properties"] = {question.id: _property(question) for question in questions}
    form["required"] = [question.id for question in questions]
    return form


def _property(question: Question) -> Update:
    named = {"title": question.header or question.question, "description": question.question}
    if question.multi_select and question.options:
        return {"type": "array", **named, "items": _items(question)}
    return {"type": "string", **named, **_enumeration(question, "oneOf")}


def _items(question: Question) -> Update:
    # A list of described choices has no type beside anyOf in the protocol's schema.
    choices = _enumeration(question, "anyOf")
    return choices if "anyOf" in choices else {"type": "string", **choices}


def _enumeration(question: Question, described: str) -> Update:
    if not question.options:
        return {}
    if not any(option.description for option in question.options):
        return {"enum": [option.label for option in question.options]}
    return {
        described: [
            {
                "const": option.label,
                "title": f"{option.label}: {option.description}"
                if option.description
                else option.label,
            }
            for option in question.options
        ]
    }


def _answers(content: Mapping[str, Any], questions: Sequence[Question]) -> Answers | NoAnswer:
    """The answers, if every question has one that was offered."""
    chosen: dict[str, tuple[str, ...]] = {}
    for question in questions:
        value = content.get(question.id)
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        labels = [option.label for option in question.options]
        texts = tuple(one for one in values if isinstance(one, str))
        if len(texts) < len(values) or (labels and not set(texts) <= set(labels)):
            return NoAnswer(f'the answer to "{question.id}" is none that was offered; ask again')
        chosen[question.id] = texts
    return Answers(chosen)
