"""What is left out of the libraries' loading is missed by nobody."""

import dataclasses
import subprocess
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from bridge import lean


@pytest.fixture
def delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes are made as in the agent's process, as long as the test runs."""
    original = getattr(dataclasses, "_create_fn", None)
    if original is None:
        pytest.skip("this Python compiles all methods of a class together")
    monkeypatch.setattr(dataclasses, "_create_fn", original)  # put back at the end
    lean.delay_dataclasses()


def made() -> dict[str, Any]:
    """One class of each sort."""

    @dataclass
    class Plain:
        a: int
        b: list[int] = field(default_factory=list[int])
        c: str = field(default="c", kw_only=True)

        def __post_init__(self) -> None:
            self.d = self.a + 1

    @dataclass
    class Child(Plain):
        e: int = 5

    @dataclass(frozen=True, slots=True, order=True)
    class Frozen:
        a: int
        b: str = field(default="x", compare=False, repr=False)

    @dataclass
    class Odd:
        self: int

    return {"Plain": Plain, "Child": Child, "Frozen": Frozen, "Odd": Odd}


def behaviour(classes: dict[str, Any]) -> list[object]:
    """What the classes do, as plain values."""
    plain, child, frozen, odd = classes.values()
    told: list[object] = [
        repr(odd(self=1)),
        repr(plain(1)), repr(child(1, [2], 3, c="z")), repr(frozen(1)),
        plain(1).d, child(2).d, plain(1).b is plain(1).b,
        plain(1) == plain(1), plain(1) == plain(2), plain(1) == child(1),
        frozen(1, "a") == frozen(1, "b"), frozen(1) < frozen(2), frozen(2) <= frozen(1),
        hash(frozen(1)) == hash(frozen(1, "b")), replace(frozen(1), a=4).a,
        plain.__init__.__qualname__.split(".")[-2:], plain.__hash__,
    ]  # fmt: skip
    wrong = (
        plain, lambda: plain(1, 2, 3), lambda: plain(1, x=2),
        lambda: setattr(frozen(1), "a", 2), lambda: delattr(frozen(1), "a"),
        lambda: hash(plain(1)), lambda: frozen(1) < 1,
    )  # fmt: skip
    for attempt in wrong:
        with pytest.raises(Exception) as caught:  # noqa: PT011 (it is compared below)
            attempt()
        told.append((type(caught.value), str(caught.value)))
    return told


def test_a_class_whose_methods_are_compiled_later_does_the_same(
    request: pytest.FixtureRequest,
) -> None:
    at_once = behaviour(made())
    request.getfixturevalue("delayed")
    assert behaviour(made()) == at_once


@pytest.mark.usefixtures("delayed")
def test_a_method_is_compiled_when_it_is_first_called() -> None:
    plain = made()["Plain"]
    before: dict[str, Any] = {
        name: vars(plain)[name] for name in ("__init__", "__repr__", "__eq__")
    }
    plain(1)
    after: dict[str, Any] = {name: vars(plain)[name] for name in before}
    assert [name for name in before if before[name] is not after[name]] == ["__init__"]


def test_a_class_says_nothing_of_its_constructor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataclasses, "inspect", getattr(dataclasses, "inspect"))  # noqa: B009 (put back at the end)
    lean.without_signatures()

    @dataclass
    class Silent:
        a: int

    @dataclass
    class Told:
        """A text."""

        a: int

    assert (Silent.__doc__, Told.__doc__) == ("Silent", "A text.")
    assert [each.name for each in dataclasses.fields(Silent)] == ["a"]


def test_typed_dicts_are_themselves_again() -> None:
    source = """
import typing, typing_extensions
from bridge import lean
kept = typing.TypedDict, typing_extensions.TypedDict
with lean.plain_typed_dicts():
    from typing_extensions import TypedDict
    class Table(TypedDict, total=False):
        a: int
assert (typing.TypedDict, typing_extensions.TypedDict) == kept
assert Table(a=1) == {"a": 1} and Table.__annotations__ == {"a": int}
lean.without_plugins()
with lean.plain_typed_dicts():
    import pydantic_core
from pydantic import BaseModel, TypeAdapter
class Row(typing_extensions.TypedDict):
    b: int
class Model(BaseModel):
    rows: list[Row]
assert Model.model_validate({"rows": [{"b": "1"}]}).rows == [{"b": 1}]
assert TypeAdapter(Row).json_schema()["required"] == ["b"]
assert Model.model_json_schema()["$defs"]["Row"]["type"] == "object"
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", source], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
