"""Names to things: policies, placements, trace formats; unknown names get near matches."""

from __future__ import annotations

import difflib
import importlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from repro.errors import BrokenFileWarning, ParamError, ReproError

T = TypeVar("T")


class Registry(Generic[T]):
    """A family of named things, filled by decorators in the files that define them.

    ``discover()`` of the package ``home`` imports those files; it is called on the first look-up.
    ``kind`` ("policy") and ``error`` are those of messages.

    >>> shapes: Registry[type] = Registry("shape")
    >>> @shapes.register("square")
    ... class Square: ...
    >>> shapes["square"] is Square
    True
    """

    def __init__(
        self, kind: str, home: str | None = None, error: type[ReproError] = ParamError
    ) -> None:
        self.kind, self.home, self.error = kind, home, error
        self._items: dict[str, T] = {}
        self._broken: dict[str, str] = {}
        self._complete = home is None

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

    def forget(self, module: str) -> None:
        """Drop what a module registered before it failed."""
        for name, item in list(self._items.items()):
            if getattr(item, "__module__", None) == module:
                del self._items[name]

    def leave_out(self, fault: str, names: Iterable[str]) -> None:
        """Warn of a file that cannot be read; asking for a name of it becomes an error."""
        lost = [name for name in names if name not in self._items]
        self._broken |= dict.fromkeys(lost, fault)
        left = f"; {self.kind} {', '.join(lost)} left out" if lost else ""
        warnings.warn(f"{fault}{left}", BrokenFileWarning, stacklevel=2)

    def _fill(self) -> None:
        if not self._complete and self.home:
            self._complete = True
            importlib.import_module(self.home).discover()

    def __getitem__(self, name: str) -> T:
        """Return what ``name`` stands for, or raise with near matches and the whole list."""
        self._fill()
        if name in self._items:
            return self._items[name]
        if name in self._broken:
            raise self.error(f"{self.kind} {name!r} cannot be read: {self._broken[name]}")
        near = difflib.get_close_matches(name, self._items, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise self.error(f"unknown {self.kind} {name!r}{hint} (known: {', '.join(sorted(self))})")

    def __iter__(self) -> Iterator[str]:
        """Iterate over the registered names, sorted."""
        self._fill()
        return iter(sorted(self._items))

    def __contains__(self, name: object) -> bool:
        """Tell whether ``name`` is registered."""
        self._fill()
        return name in self._items
