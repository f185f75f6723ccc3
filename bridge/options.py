"""A session's options as the editor sees them, and what happens when it sets one.

Rule 1: OPTIONS holds one row per option; its order is the order on the wire, and some clients take
the first option of a category.
Rule 2: a value that is not offered changes nothing.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from bridge.config import Config
from bridge.core.records import Switched
from bridge.errors import INVALID_PARAMS, EditorError
from bridge.session import Session
from tools.frozen import frozen

Choice = dict[str, Any]

MODES: tuple[Choice, ...] = (
    {
        "id": "default",
        "name": "default",
        "description": "Reads, edits and runs, within the permissions.",
    },
    {
        "id": "plan",
        "name": "plan",
        "description": "Looks and plans; nothing is changed until you approve the plan.",
    },
)

PRESETS: tuple[Choice, ...] = (
    {
        "value": "ask",
        "name": "ask",
        "description": "Reads inside the workspace; every edit and every command asks first.",
    },
    {
        "value": "workspace-write",
        "name": "workspace-write",
        "description": "Write inside the workspace and permitted temporary directories; "
        "commands and wider writes require approval.",
    },
    {
        "value": "danger-full-access",
        "name": "danger-full-access",
        "description": "Full file access without approval prompts.",
    },
)


@frozen
class OptionRow:
    """One option: how it looks and how a value is applied."""

    id: str
    name: str
    description: str
    category: str
    current: Callable[[Session], str]
    choices: Callable[[Session], Sequence[Choice]]
    """Options or groups of options; empty: the option does not exist for this session."""
    apply: Callable[[Session, str], None]


def all_options(session: Session) -> list[Choice]:
    """Every option with its current value, as the editor is sent it."""
    shown: list[Choice] = []
    for row in OPTIONS:
        choices = row.choices(session)
        if choices:
            shown.append(
                {
                    "id": row.id,
                    "name": row.name,
                    "description": row.description,
                    "category": row.category,
                    "type": "select",
                    "currentValue": row.current(session),
                    "options": list(choices),
                }
            )
    return shown


def modes(session: Session) -> Choice:
    """The modes in the form that clients without options read."""
    return {"currentModeId": session.mode, "availableModes": list(MODES)}


def set_option(session: Session, option: str, value: object) -> None:
    """Apply a value the editor chose; EditorError, and no change, where it was not offered."""
    row = next((row for row in OPTIONS if row.id == option and row.choices(session)), None)
    if row is None:
        raise EditorError(INVALID_PARAMS, f'unknown config option "{option}"')
    if isinstance(value, bool):
        raise EditorError(
            INVALID_PARAMS, f"config option {option} is a select; boolean values are not accepted"
        )
    if value not in _values(row.choices(session)):
        raise EditorError(INVALID_PARAMS, f'unknown {option} value "{value}"')
    if value != row.current(session):
        row.apply(session, str(value))


def set_mode(session: Session, mode: str) -> None:
    """Apply a mode the editor chose; EditorError for one that does not exist."""
    available = [choice["id"] for choice in MODES]
    if mode not in available:
        raise EditorError(
            INVALID_PARAMS,
            f'unknown session mode "{mode}" — available modes: {", ".join(available)}',
        )
    set_option(session, "mode", mode)


def model_value(config: Config, key: str) -> str:
    """The value of a model in the model option: JSON text of provider and key."""
    return json.dumps([config.models[key].provider, key], separators=(",", ":"))


def _model_choices(session: Session) -> Sequence[Choice]:
    config = session.config
    groups: dict[str, list[Choice]] = {}
    for key, model in config.models.items():
        choice = {"value": model_value(config, key), "name": model.name or key}
        groups.setdefault(model.provider, []).append(choice)
    if len(groups) == 1:
        return next(iter(groups.values()))
    return [{"group": name, "name": name, "options": group} for name, group in groups.items()]


def _apply_model(session: Session, value: str) -> None:
    session.record(Switched("model", json.loads(value)[1]))


def _mode_choices(_: Session) -> Sequence[Choice]:
    return [
        {"value": mode["id"], "name": mode["name"], "description": mode["description"]}
        for mode in MODES
    ]


def _effort_choices(session: Session) -> Sequence[Choice]:
    efforts = list(session.model.efforts)
    if session.effort is not None and session.effort not in efforts:
        efforts.append(session.effort)
    return [{"value": effort, "name": effort} for effort in efforts]


def _values(choices: Sequence[Choice]) -> list[str]:
    options = [option for choice in choices for option in choice.get("options", [choice])]
    return [option["value"] for option in options]


OPTIONS: tuple[OptionRow, ...] = (
    OptionRow(
        id="mode",
        name="Mode",
        description="Whether the agent plans or acts.",
        category="mode",
        current=lambda session: session.mode,
        choices=_mode_choices,
        apply=lambda session, value: session.record(Switched("mode", value)),
    ),
    OptionRow(
        id="model",
        name="Model",
        description="Sets this session's provider and model.",
        category="model",
        current=lambda session: model_value(session.config, session.model_key),
        choices=_model_choices,
        apply=_apply_model,
    ),
    OptionRow(
        id="thought_level",
        name="Reasoning effort",
        description="How long the model thinks before it answers.",
        category="thought_level",
        current=lambda session: session.effort or session.model.efforts[0],
        choices=_effort_choices,
        apply=lambda session, value: session.record(Switched("effort", value)),
    ),
    OptionRow(
        id="permission",
        name="Permissions",
        description="What the agent may do without asking you.",
        category="mode",
        current=lambda session: session.permission,
        choices=lambda _: PRESETS,
        apply=lambda session, value: session.record(Switched("permission", value)),
    ),
)
