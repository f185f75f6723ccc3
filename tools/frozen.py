"""Plain data that never changes: `frozen` in place of `dataclass(frozen=True, slots=True)`.

Rule 1: it is for the start. The standard decorator looks closely at every such class, and writes
and compiles seven functions for it, about a millisecond each. Here most functions are shared; the
constructor is compiled when the first instance is made, and the fields are looked at when somebody
asks for them: of most classes a start does neither.
Rule 2: to the module dataclasses it is a dataclass: `fields` and `replace` work.
Rule 3: a write to a field is an error of the type checker, not of the running program.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

_FIELDS = "__dataclass_fields__"
"""Where the module dataclasses looks for them."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A slotted dataclass that compares, hashes and prints by its fields.

    TypeError if it would inherit some.
    """
    if any(_FIELDS in vars(base) for base in cls.__mro__[1:]):
        raise TypeError(f"{cls.__qualname__}: plain data inherits no fields")
    types: dict[str, Any] = getattr(cls, "__annotations__", {})
    body = {name: value for name, value in vars(cls).items() if name not in _OF_AN_UNSLOTTED_CLASS}
    given = {name: body.pop(name) for name in types if name in body}
    body |= _SHARED
    body["__qualname__"] = cls.__qualname__
    body["__slots__"] = tuple(types)
    body["__match_args__"] = tuple(name for name in types if not _is_only_named(given.get(name)))
    body[_FIELDS] = _Fields(types, given)
    made: Any = type(cls)(cls.__name__, cls.__bases__, body)

    def construct(self: object, *values: object, **named: object) -> None:
        made.__init__ = _constructor(made, types, given)
        made.__init__(self, *values, **named)

    made.__init__ = construct
    return made


class _Fields:
    """The fields of a class, as the module dataclasses describes them, when somebody asks."""

    def __init__(self, types: Mapping[str, Any], given: Mapping[str, object]) -> None:
        self._body = {"__annotations__": types, **given}

    def __get__(self, instance: object, owner: type) -> Mapping[str, Field[Any]]:
        described: Any = dataclass(init=False, eq=False, repr=False)(type("_", (), self._body))
        made = getattr(described, _FIELDS)
        for cls in owner.__mro__:
            if vars(cls).get(_FIELDS) is self:
                setattr(cls, _FIELDS, made)
        return made


def _constructor(cls: Any, types: Mapping[str, Any], given: Mapping[str, object]) -> Any:
    """What the standard decorator would have compiled."""
    known: dict[str, Any] = {}
    named: list[str] = []
    parameters = ["self"]
    body: list[str] = []
    for name in types:
        parameter, value = name, name
        default: Any = given.get(name, MISSING)
        make: Any = default.default_factory if _is_field(default) else MISSING
        if make is not MISSING:
            known |= {f"_default_{name}": make, f"_make_{name}": make}
            parameter = f"{name}=_default_{name}"
            value = f"_make_{name}() if {name} is _default_{name} else {name}"
        elif (plain := default.default if _is_field(default) else default) is not MISSING:
            known[f"_default_{name}"] = plain
            parameter = f"{name}=_default_{name}"
        (named if _is_only_named(default) else parameters).append(parameter)
        body.append(f" self.{name} = {value}")
    if named:
        parameters += ["*", *named]
    source = "\n".join([f"def __init__({', '.join(parameters)}):", *(body or [" pass"])])
    exec(source, known)  # noqa: S102 (names of fields alone)
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _is_field(given: object) -> bool:
    return isinstance(given, Field)


def _is_only_named(given: Any) -> bool:
    return _is_field(given) and given.kw_only is True


def _values(of: Any) -> tuple[object, ...]:
    return tuple(getattr(of, name) for name in of.__slots__)


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
_OF_AN_UNSLOTTED_CLASS = ("__dict__", "__weakref__")
