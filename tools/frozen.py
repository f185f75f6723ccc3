"""Plain data that never changes: `frozen` in place of `dataclass(frozen=True, slots=True)`.

Rule 1: it is for the start. The standard decorator writes and compiles seven functions for every
such class, about a millisecond each; here most are shared, and the constructor is compiled when the
first instance is made: of most classes a start makes none.
Rule 2: a write to a field is an error of the type checker, not of the running program.
"""

from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A slotted dataclass that compares, hashes and prints by its fields; works with `replace`."""
    made: Any = dataclass(init=False, eq=False, repr=False, slots=True)(cls)
    for name, method in _SHARED.items():
        setattr(made, name, method)

    def construct(self: object, *values: object, **named: object) -> None:
        made.__init__ = _constructor(made)
        made.__init__(self, *values, **named)

    made.__init__ = construct
    return made


def _constructor(cls: Any) -> Any:
    """What the standard decorator would have compiled."""
    every = fields(cls)
    names = [_parameter(each) for each in every if not each.kw_only]
    only_named = [_parameter(each) for each in every if each.kw_only]
    parameters = ", ".join(["self", *names, *(["*", *only_named] if only_named else ())])
    body = [f" self.{each.name} = {_value(each)}" for each in every] or [" pass"]
    known = {f"_default_{each.name}": each.default for each in every}
    known |= {f"_make_{each.name}": each.default_factory for each in every}
    source = "\n".join([f"def __init__({parameters}):", *body])
    exec(source, known)  # noqa: S102 (names of fields alone)
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _parameter(of: Field[Any]) -> str:
    if of.default is MISSING and of.default_factory is MISSING:
        return of.name
    return f"{of.name}=_default_{of.name}"


def _value(of: Field[Any]) -> str:
    if of.default_factory is MISSING:
        return of.name
    return f"_make_{of.name}() if {of.name} is _default_{of.name} else {of.name}"


def _values(of: Any) -> tuple[object, ...]:
    return tuple(getattr(of, each.name) for each in fields(of))


def _equal(self: object, other: object) -> bool:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: object) -> int:
    return hash(_values(self))


def _text(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


_SHARED = {"__eq__": _equal, "__hash__": _hash, "__repr__": _text}
