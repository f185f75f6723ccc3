from dataclasses import replace

from bridge.core import goal
from bridge.core.records import GoalChanged

SHIP = GoalChanged("Ship it", rounds=3)
COMMANDS = "Commands: /goal edit <objective>, /goal pause, /goal resume, /goal clear"


def test_the_goal_is_shown_with_what_it_waits_for() -> None:
    def check(given: GoalChanged, *lines: str, armed: bool = False) -> None:
        shown = goal.view(given, "Goal", armed=armed, most_rounds=20)
        assert shown.split("\n") == ["Goal", *lines, "", COMMANDS]

    begun = ("Objective: Ship it", "Rounds: 3/20")
    check(SHIP, f"Status: {SHIP.status}", *begun, "Activation: armed", armed=True)
    blocked = replace(SHIP, status="blocked", blocker="no key")
    rests = "Activation: disarmed, /goal resume goes on"
    check(blocked, "Status: blocked", "Blocker: no key", *begun, rests)
    check(replace(blocked, blocker=""), "Status: blocked", *begun, rests)
    check(replace(blocked, status="complete"), "Status: complete", *begun, rests)
