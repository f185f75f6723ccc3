from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import pytest

from tools.frozen import frozen


@frozen
class Point:
    """A place."""

    x: int
    y: int = 0
    secret: str = field(default="", repr=False)


T = TypeVar("T")


@frozen
class Pixel:
    """The same fields, another thing."""

    x: int
    y: int = 0
    secret: str = ""


def test_equal_fields_make_equal_values_of_one_class_only():
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(1, 3)
    assert Point(1, 2) != Pixel(1, 2)
    assert Point(1, 2) != (1, 2, "")


def test_equal_values_are_one_key():
    assert {Point(1, 2), Point(1, 2), Point(2, 1)} == {Point(1, 2), Point(2, 1)}


def test_a_field_kept_out_of_the_text_is_compared_but_not_printed():
    assert repr(Point(1, secret="s3cret")) == "Point(x=1, y=0)"
    assert Point(1, secret="a") != Point(1, secret="b")


def test_a_changed_copy_leaves_the_first_as_it_was():
    first = Point(1, 2)
    assert replace(first, y=5) == Point(1, 5)
    assert first == Point(1, 2)


def test_there_is_no_room_for_other_fields():
    with pytest.raises(AttributeError):
        Point(1).z = 3  # pyright: ignore[reportAttributeAccessIssue] (what is tried)


def test_a_value_is_taken_apart_by_position():
    match Point(3, 4):
        case Point(x, y):
            assert (x, y) == (3, 4)


def the_same_as(decorate: Any) -> Any:
    """A class with every kind of field."""

    @decorate
    class Every(Generic[T]):
        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list[int])
        d: int = field(kw_only=True)
        e: T | None = field(default=None, kw_only=True, repr=False)

        @property
        def twice(self) -> int:
            return self.a * 2

    return Every


def test_it_is_what_the_standard_decorator_makes():
    ours, theirs = the_same_as(frozen), the_same_as(dataclass(frozen=True, slots=True))
    assert is_dataclass(Point)
    for one, other in zip(fields(ours), fields(theirs), strict=True):
        named = ("name", "type", "default", "default_factory", "init", "repr", "kw_only")
        assert [getattr(one, name) for name in named] == [getattr(other, name) for name in named]
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    assert ours.__qualname__ == theirs.__qualname__
    assert repr(ours(1, d=2)) == repr(theirs(1, d=2))
    assert ours(1, "x", [2], d=3, e=4).twice == 2
    assert ours(1, d=2).c is not ours(1, d=2).c
    assert replace(ours(1, d=2), d=3) == ours(1, d=3)
    mistakes: list[tuple[Any, ...]] = [(), (1, "b", [], 2), (1, "b", [], 2, 3)]
    for wrong in mistakes:
        with pytest.raises(TypeError) as of_ours:
            ours(*wrong)
        with pytest.raises(TypeError) as of_theirs:
            theirs(*wrong)
        assert str(of_ours.value) == str(of_theirs.value)


def test_a_subclass_without_fields_of_its_own_has_those_of_its_base():
    class Marked(Point):
        """A place with another name."""

    assert [one.name for one in fields(Marked)] == ["x", "y", "secret"]
    assert [one.name for one in fields(Point)] == ["x", "y", "secret"]


def test_a_class_without_fields_has_values_that_are_equal():
    @frozen
    class Empty:
        pass

    assert Empty() == Empty()
    assert repr(Empty()).endswith("Empty()")


def test_fields_are_not_inherited():
    with pytest.raises(TypeError, match="inherits no fields"):

        @frozen
        class More(Point):  # pyright: ignore[reportUnusedClass] (it cannot be made)
            z: int = 0
