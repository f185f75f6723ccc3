"""Who may do what."""

from dataclasses import replace
from typing import cast

import pytest

from bridge.core.permission import Decision, decide, offers
from bridge.core.policy import (
    NOT_IN_PLAN_MODE,
    Allow,
    Ask,
    Deny,
    Mode,
    Preset,
    Verdict,
    judge,
    reach,
    refusal,
)
from bridge.core.rule import Rule, Sort
from bridge.core.rules import parsed
from tools.base import Access
from tools.shell_line import look

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


# -- rules -----------------------------------------------------------------------------------------

SCOPE = ("/w", "/home/me")
PUSH = replace(Access("run", "git push"), line=look("git push"))
TEST = replace(Access("run", "npm test"), line=look("npm test"))
ODD = replace(Access("run", "$X push"), line=look("$X push"))


def of(*texts: str) -> list[Rule]:
    """Rules, each written with its sort before it."""
    return [parsed(cast("Sort", one.split(" ")[0]), one.partition(" ")[2], "here") for one in texts]


@pytest.mark.parametrize(
    ("mode", "preset", "access", "rules", "verdict"),
    [
        # What denies wins, under every preset and over every other rule.
        ("default", "danger-full-access", PUSH, ["allow shell git push", "deny shell git"], Deny),
        ("plan", "workspace-write", READ, ["deny read a"], Deny),
        ("default", "workspace-write", EDIT, ["allow edit a", "ask edit a", "deny edit a"], Deny),
        # What asks comes before what allows, and before a preset that would not ask.
        ("default", "danger-full-access", PUSH, ["allow shell git push", "ask shell git"], Ask),
        ("default", "workspace-write", EDIT, ["ask edit a"], Ask),
        ("default", "workspace-write", replace(TEST, held=True), ["ask shell npm"], Ask),
        # What may be a denied command asks, also where nothing else would.
        ("default", "danger-full-access", ODD, ["deny shell git push"], Ask),
        ("default", "danger-full-access", ODD, ["ask shell git push"], Ask),
        ("default", "danger-full-access", TEST, ["deny shell git push"], Allow),
        # What allows comes before the preset.
        ("default", "ask", TEST, ["allow shell npm test"], Allow),
        ("default", "ask", EDIT, ["allow edit a"], Allow),
        ("default", "ask", EDIT, ["allow edit b"], Ask),
        ("default", "ask", PUSH, ["allow shell npm test"], Ask),
        ("default", "workspace-write", READ_OUTSIDE, ["allow read /etc/**"], Allow),
        ("default", "workspace-write", EDIT_OUTSIDE, ["allow edit /etc/**"], Allow),
        ("default", "workspace-write", READ_SECRET, ["allow read .env"], Allow),
        ("default", "workspace-write", CALL, ["allow mcp__s__*"], Allow),
        # Nothing is allowed that is wider, runs elsewhere, or is what other programs run.
        ("default", "workspace-write", replace(TEST, wider=True), ["allow shell npm test"], Ask),
        ("default", "workspace-write", replace(TEST, outside=True), ["allow shell npm test"], Ask),
        ("default", "workspace-write", EDIT_PROTECTED, ["allow edit .git/**"], Ask),
        # Plan mode stays what it is.
        ("plan", "workspace-write", EDIT, ["allow edit a"], Deny),
        ("plan", "workspace-write", CALL, ["allow mcp__s__drop"], Deny),
        ("plan", "workspace-write", TEST, ["allow shell npm test"], Ask),
        ("plan", "workspace-write", READ_OUTSIDE, ["allow read /etc/**"], Allow),
        ("plan", "workspace-write", EDIT, ["ask edit a"], Deny),
    ],
)
def test_rules_are_decided_in_their_order(
    mode: Mode, preset: Preset, access: Access, rules: list[str], verdict: type[Verdict]
) -> None:
    name = "mcp__s__drop" if access.action == "call" else access.action
    decision = decide(mode, preset, name, access, of(*rules), SCOPE)
    assert isinstance(decision.verdict, verdict)
    assert (decision.reason != "") is (verdict is Ask)


def test_a_denial_names_the_rule_and_where_it_is_from() -> None:
    decision = decide("default", "ask", "shell", PUSH, of("deny shell git push"), SCOPE)
    assert decision.verdict == Deny(
        'is denied by the permission rule "shell git push" (here): do not look for another way, go '
        "on without it or ask the user"
    )


@pytest.mark.parametrize(
    ("mode", "preset", "access", "rules", "reason"),
    [
        ("default", "ask", EDIT, [], 'The permission "ask" asks before every edit and every com'),
        ("default", "ask", SHELL, [], 'The permission "ask" asks before every edit and every com'),
        ("default", "workspace-write", SHELL, [], "No sandbox holds it here."),
        (
            "default",
            "workspace-write",
            replace(SHELL, unheld="The sandbox has gaps here."),
            [],
            "The sandbox has gaps here.",
        ),
        ("default", "workspace-write", HELD_OUTSIDE, [], "It runs outside the workspace."),
        ("default", "workspace-write", EDIT_OUTSIDE, [], "It lies outside the workspace."),
        ("default", "workspace-write", READ_SECRET, [], "Such a file usually holds credentials."),
        ("default", "ask", EDIT_PROTECTED, [], "Other programs run what is written there."),
        ("default", "ask", WIDER, [], "It is to run with fewer limits than other commands."),
        ("default", "ask", CALL, [], "What tools of MCP servers do cannot be known."),
        ("plan", "ask", SHELL, [], "In plan mode nothing may change, and this might change"),
        ("default", "ask", PUSH, ["ask shell git push"], 'The rule "shell git push" (here) asks.'),
        (
            "default",
            "ask",
            ODD,
            ["deny shell git"],
            'It may be what the rule "shell git" (here) is',
        ),
    ],
)
def test_a_question_says_why_it_is_asked(
    mode: Mode, preset: Preset, access: Access, rules: list[str], reason: str
) -> None:
    assert decide(mode, preset, "x", access, of(*rules), SCOPE).reason.startswith(reason)


# -- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("access", "labels"),
    [
        (TEST, ("npm test …", "npm test …", "npm test …")),
        (SHELL, ("this exact command",) * 3),
        (EDIT, ("all edits in the workspace", "edits of /a", "editing this file")),
        (EDIT_OUTSIDE, ("editing this file",) * 3),
        (READ_SECRET, ("reading this file",) * 3),
        (CALL, (*("this tool, as its server describes it now,",) * 2, "this tool")),
    ],
)
def test_an_answer_for_good_says_what_it_is_about_and_how_long(
    access: Access, labels: tuple[str, str, str]
) -> None:
    name = "mcp__s__drop" if access.action == "call" else access.action
    session, project, never = labels
    offered = offers("default", name, access, Decision(Ask()), ("/w",))
    assert [(one.id, one.kind, one.label, one.allows) for one in offered] == [
        ("allow_once", "allow_once", "Allow once", True),
        ("allow_always", "allow_always", f"Allow {session} for this session", True),
        (
            "allow_always_project",
            "allow_always",
            f"Allow {project} in this project from now on",
            True,
        ),
        ("reject_once", "reject_once", "Reject", False),
        ("reject_always", "reject_always", f"Never allow {never} in this session", False),
    ]
    for one in offered:
        if one.rule is not None:
            expected = Allow if one.allows else Deny
            decision = decide("default", "ask", name, access, [one.rule], SCOPE)
            assert isinstance(decision.verdict, expected), one


@pytest.mark.parametrize(
    ("mode", "access", "decision"),
    [
        ("default", WIDER, Decision(Ask())),
        ("default", EDIT_PROTECTED, Decision(Ask())),
        ("default", HELD_OUTSIDE, Decision(Ask())),
        ("plan", SHELL, Decision(Ask())),
        ("plan", READ_OUTSIDE, Decision(Ask())),
        ("default", TEST, Decision(Ask(), is_final=True)),
    ],
)
def test_no_answer_for_good_is_offered_where_none_would_hold(
    mode: Mode, access: Access, decision: Decision
) -> None:
    assert [one.kind for one in offers(mode, "x", access, decision, ("/w",))] == [
        "allow_once",
        "reject_once",
    ]
