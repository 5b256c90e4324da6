"""Names to factories: policies, placements, trace formats; unknown names get near matches."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from repro.errors import ParamError, ReproError

T = TypeVar("T")


class Registry(Generic[T]):
    """A family of named things, filled by decorators in the files that define them.

    Parameters
    ----------
    kind : str
        What is registered, for messages ("policy").
    package : str
        Package whose modules are imported on first look-up.
    error : type of ReproError
        Raised for an unknown or doubly used name.

    Examples
    --------
    >>> shapes: Registry[type] = Registry("shape", "repro.placement")
    >>> @shapes.register("square")
    ... class Square: ...
    >>> shapes["square"] is Square
    True
    """

    def __init__(self, kind: str, package: str, error: type[ReproError] = ParamError) -> None:
        self.kind, self.package, self.error = kind, package, error
        self._items: dict[str, T] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files its argument under ``name``."""

        def keep(item: T) -> T:
            held = self._items.get(name)
            same = getattr(held, "__qualname__", held) == getattr(item, "__qualname__", item)
            if held is not None and not same:
                raise self.error(f"{self.kind} {name!r} is registered twice")
            self._items[name] = item
            return item

        return keep

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self.package}.{module.name}")

    def __getitem__(self, name: str) -> T:
        """Return what ``name`` stands for, or raise with near matches and the whole list."""
        self._load()
        if name in self._items:
            return self._items[name]
        near = difflib.get_close_matches(name, self._items, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise self.error(f"unknown {self.kind} {name!r}{hint} (known: {', '.join(sorted(self))})")

    def __iter__(self) -> Iterator[str]:
        """Iterate over the registered names, sorted."""
        self._load()
        return iter(sorted(self._items))

    def __contains__(self, name: object) -> bool:
        """Tell whether ``name`` is registered."""
        self._load()
        return name in self._items
