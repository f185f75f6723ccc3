"""Plain data that never changes: `frozen` in place of `dataclass(frozen=True, slots=True)`.

Rule 1: it is for the start. The standard decorator writes and compiles seven functions for every
such class, about a millisecond each; this one compiles the constructor and shares the rest.
Rule 2: a write to a field is an error of the type checker, not of the running program.
"""

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A slotted dataclass that compares, hashes and prints by its fields; works with `replace`."""
    made = dataclass(eq=False, repr=False, slots=True)(cls)
    for name, method in _SHARED.items():
        setattr(made, name, method)
    return made


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
