"""The way from the first answer to the program: the libraries load without what is of no use.

It must not know what the program does. What it changes shows in nothing but the time it takes, and
where Python is built otherwise than expected here, everything is as it always was.

Rule 1: it is for the agent's own process, whose editor waits until everything has loaded.
"""

import dataclasses
import gc
import inspect
import sys
import typing
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

from tools.late import patterns


def serve(*given: Any, **more: Any) -> int:
    """Load the program and run it: `serve` of bridge/app.py."""
    # Loading makes many objects and no garbage; app.py switches the collector on again.
    gc.disable()
    delay_dataclasses()
    without_signatures()
    without_plugins()
    with patterns():
        with plain_typed_dicts():  # pydantic describes its own tables with a hundred of them
            import_module("pydantic.main")
        import_module("asyncio")  # anyio loads it when it runs
        from bridge.app import serve as run  # noqa: PLC0415 (it is to load with less)

    return run(*given, **more)


def delay_dataclasses() -> None:
    """Have each method of a dataclass compiled when it is first called.

    The libraries define a hundred such classes, of which a start uses a few. Python 3.13 compiles
    the methods of a class together, which takes less, and is left alone.
    """
    create: Callable[..., Any] | None = getattr(dataclasses, "_create_fn", None)
    if create is not None:
        setattr(dataclasses, "_create_fn", _delayed(create))  # noqa: B010 (it is private, and so has no type)


def _delayed(create: Callable[..., Any]) -> Callable[..., Any]:
    def create_later(name: str, *given: Any, **more: Any) -> Callable[..., Any]:
        def method(self: object, /, *values: Any, **named: Any) -> Any:
            made = create(name, *given, **more)
            for cls in type(self).__mro__:
                if cls.__dict__.get(name) is method:
                    made.__qualname__ = f"{cls.__qualname__}.{name}"
                    type.__setattr__(cls, name, made)
                    break
            return made(self, *values, **named)

        method.__name__ = name
        return method

    return create_later


def without_signatures() -> None:
    """Keep dataclasses that have no docstring from getting one that shows their constructor.

    To find out what it takes is the slowest part of making such a class.
    """

    def unsigned(_cls: type) -> str:
        return ""

    known = SimpleNamespace(**{**vars(inspect), "signature": unsigned})
    setattr(dataclasses, "inspect", known)  # noqa: B010 (it is no part of the module's interface)


def without_plugins() -> None:
    """Keep pydantic from looking in every installed package for plugins, and running them.

    PYDANTIC_DISABLE_PLUGINS would do so too, but after it has loaded what it looks with.
    """
    none: Any = ModuleType("pydantic.plugin._loader")
    none.get_plugins = tuple
    sys.modules[none.__name__] = none


class _Table(dict[str, Any]):
    """What a TypedDict is once the program runs: a dict, and names for those who read the code."""

    def __init_subclass__(cls, **_: object) -> None:
        """Its totality is for type checkers."""


class _Tables:
    """In the place of TypedDict."""

    def __mro_entries__(self, _bases: tuple[object, ...]) -> tuple[type, ...]:
        return (_Table,)


@contextmanager
def plain_typed_dicts() -> Generator[None]:
    """Have classes that are defined meanwhile as TypedDict be dicts, and nothing more."""
    import typing_extensions  # noqa: PLC0415 (it is no part of the first answer)

    kept = [(module, getattr(module, "TypedDict")) for module in (typing, typing_extensions)]  # noqa: B009 (as below)
    try:
        for module, _ in kept:
            setattr(module, "TypedDict", _Tables())  # noqa: B010 (a module has no type of its own)
        yield
    finally:
        for module, original in kept:
            setattr(module, "TypedDict", original)  # noqa: B010 (as above)
