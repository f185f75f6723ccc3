from dataclasses import field, replace

import pytest

from tools.frozen import frozen


@frozen
class Point:
    """A place."""

    x: int
    y: int = 0
    secret: str = field(default="", repr=False)


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
