"""Who may do what."""

import pytest

from bridge.core.policy import (
    NOT_IN_PLAN_MODE,
    Allow,
    Ask,
    Mode,
    Preset,
    Verdict,
    judge,
    reach,
    refusal,
)
from tools.base import Access

RUN, ASK, REFUSE = Allow(), Ask(), NOT_IN_PLAN_MODE

READ = Access("read", "/w/a")
READ_OUTSIDE = Access("read", "/etc/a", outside=True)
READ_SECRET = Access("read", "/w/.env", secret=True)
EDIT = Access("edit", "/w/a")
EDIT_OUTSIDE = Access("edit", "/etc/a", outside=True)
EDIT_PROTECTED = Access("edit", "/w/.git/config", protected=True)
EDIT_SECRET = Access("edit", "/w/.env", secret=True)
SHELL = Access("run", "make")
LOOK = Access("run", "ls", harmless=True)
LOOK_OUTSIDE = Access("run", "ls", harmless=True, outside=True)
HELD = Access("run", "make", held=True)
HELD_OUTSIDE = Access("run", "make", held=True, outside=True)
WIDER = Access("run", "make", wider=True)
CALL = Access("call", "s: drop 12")
LOOKUP = Access("call", "s: find 34", harmless=True)
NOTHING = Access("none")

TABLE: list[tuple[Access, tuple[Verdict, Verdict, Verdict, Verdict, Verdict]]] = [
    # plan, plan + full access, ask, workspace-write, full access
    (NOTHING, (RUN, RUN, RUN, RUN, RUN)),
    (READ, (RUN, RUN, RUN, RUN, RUN)),
    (READ_OUTSIDE, (ASK, RUN, ASK, ASK, RUN)),
    (READ_SECRET, (ASK, RUN, ASK, ASK, RUN)),
    (EDIT, (REFUSE, REFUSE, ASK, RUN, RUN)),
    (EDIT_OUTSIDE, (REFUSE, REFUSE, ASK, ASK, RUN)),
    (EDIT_PROTECTED, (REFUSE, REFUSE, ASK, ASK, RUN)),
    (EDIT_SECRET, (REFUSE, REFUSE, ASK, RUN, RUN)),
    (SHELL, (ASK, ASK, ASK, ASK, RUN)),
    (HELD, (RUN, RUN, ASK, RUN, RUN)),
    (HELD_OUTSIDE, (ASK, ASK, ASK, ASK, RUN)),
    (WIDER, (ASK, ASK, ASK, ASK, RUN)),
    (LOOK, (RUN, RUN, ASK, ASK, RUN)),
    (LOOK_OUTSIDE, (ASK, ASK, ASK, ASK, RUN)),
    (CALL, (REFUSE, REFUSE, ASK, ASK, RUN)),
    (LOOKUP, (RUN, RUN, RUN, RUN, RUN)),
]
COLUMNS: tuple[tuple[Mode, Preset], ...] = (
    ("plan", "workspace-write"),
    ("plan", "danger-full-access"),
    ("default", "ask"),
    ("default", "workspace-write"),
    ("default", "danger-full-access"),
)


@pytest.mark.parametrize(("access", "verdicts"), TABLE)
def test_the_table_of_permissions(access: Access, verdicts: tuple[Verdict, ...]) -> None:
    for (mode, preset), verdict in zip(COLUMNS, verdicts, strict=True):
        assert judge(mode, preset, access) == verdict, (mode, preset)


def test_what_commands_may_change_follows_from_mode_and_preset() -> None:
    reaches = [reach(mode, preset) for mode, preset in COLUMNS]
    ordinary, free = "workspace-write", "danger-full-access"
    assert reaches == ["read-only", "read-only", ordinary, ordinary, free]


def test_plan_mode_refuses_what_changes_things_before_it_looks() -> None:
    assert refusal("plan", mutates=True) == NOT_IN_PLAN_MODE
    assert refusal("plan", mutates=False) is None
    assert refusal("default", mutates=True) is None
