"""Who may do what."""

import pytest

from bridge.core.policy import (
    NOT_IN_PLAN_MODE,
    Allow,
    Ask,
    Grant,
    Mode,
    Preset,
    Verdict,
    judge,
    lasting,
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


@pytest.mark.parametrize(
    ("mode", "access", "offered"),
    [
        ("default", EDIT, Grant("edit", "")),
        ("default", EDIT_OUTSIDE, Grant("edit", "/etc/a")),
        ("default", EDIT_PROTECTED, None),
        ("default", READ_SECRET, Grant("read", "/w/.env")),
        ("default", SHELL, Grant("run", "make")),
        ("default", WIDER, None),
        ("default", NOTHING, None),
        ("plan", SHELL, None),
    ],
)
def test_a_lasting_permission_is_as_wide_as_its_label(
    mode: Mode, access: Access, offered: Grant | None
) -> None:
    assert lasting(mode, access) == offered
    if offered is not None:
        assert "session" in offered.label
        assert offered.covers(access)


@pytest.mark.parametrize(
    ("grant", "access", "covered"),
    [
        (Grant("edit", ""), EDIT, True),
        (Grant("edit", ""), EDIT_OUTSIDE, False),
        (Grant("edit", ""), EDIT_PROTECTED, False),
        (Grant("edit", "/w/.git/config"), EDIT_PROTECTED, False),
        (Grant("edit", ""), SHELL, False),
        (Grant("run", "make"), SHELL, True),
        (Grant("run", "make "), SHELL, False),
        (Grant("run", "make"), HELD, True),
        (Grant("run", "make"), WIDER, False),
        (Grant("read", "/etc/a"), READ_OUTSIDE, True),
        (Grant("read", "/etc/a"), READ_SECRET, False),
    ],
)
def test_a_grant_covers_nothing_else(grant: Grant, access: Access, covered: bool) -> None:
    assert grant.covers(access) is covered
