"""Names to things: policies, placements, trace formats; unknown names get near matches."""

import importlib
import pkgutil
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Generic, TypeVar

from repro.base.errors import BrokenFileWarning, ParamError, ReproError, near

T = TypeVar("T")
_MACHINERY = ("<frozen importlib", str(Path(importlib.__file__).parent), __file__)


class Registry(Generic[T]):
    """A family of named things, filled by decorators in the files that define them.

    The first look-up imports the modules of the package ``home``, to any depth, and what installed
    packages announce under the entry points ``group``; one that fails is left out with a warning.
    ``kind`` ("policy") and ``error`` are those of messages. ``explain`` gets an unknown name and
    the known things, and returns the lines to answer with, none where it cannot tell more.

    >>> shapes: Registry[type] = Registry("shape")
    >>> @shapes.register("square")
    ... class Square: ...
    >>> shapes["square"] is Square
    True
    """

    def __init__(
        self,
        kind: str,
        home: str | None = None,
        error: type[ReproError] = ParamError,
        group: str | None = None,
        explain: Callable[[str, Mapping[str, T]], list[str]] | None = None,
    ) -> None:
        self.kind = kind
        self.error = error
        self._explain = explain
        self._home = home
        self._group = group
        self._items: dict[str, T] = {}
        self._broken: dict[str, str] = {}

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

    def _fill(self) -> None:
        if self._home is None:
            return
        home = self._home
        self._home = None
        faults: dict[str, list[str]] = {}
        self._walk(home, faults)
        for point in metadata.entry_points(group=self._group) if self._group else ():
            self._load(point, faults)
        for fault, names in faults.items():
            lost = [name for name in names if name not in self._items]
            self._broken |= dict.fromkeys(lost, fault)
            left = f"; {self.kind} {', '.join(lost)} left out" if lost else ""
            warnings.warn(f"{fault}{left}", BrokenFileWarning, stacklevel=2)

    def _walk(self, package: str, faults: dict[str, list[str]]) -> None:
        for folder in importlib.import_module(package).__path__:
            for module in pkgutil.iter_modules([folder]):
                name = f"{package}.{module.name}"
                try:
                    if module.ispkg:
                        self._walk(name, faults)
                    else:
                        importlib.import_module(name)
                # A file may fail in any way, even by leaving the interpreter.
                except (Exception, SystemExit) as error:
                    self._forget(name)
                    path = Path(folder) / f"{module.name}.py"
                    text = path.read_text(errors="replace") if path.is_file() else ""
                    names = re.findall(r"""\bregister\(\s*["']([^"']+)["']""", text)
                    faults.setdefault(_place(error, name), []).extend(names)

    def _load(self, point: metadata.EntryPoint, faults: dict[str, list[str]]) -> None:
        owner = f"{point.dist.name} {point.dist.version}" if point.dist else "an installed package"
        try:
            point.load()
            fault = None if point.name in self else f"{point.value} registers no {point.name!r}"
        except (Exception, SystemExit) as error:
            self._forget(point.module)
            fault = _place(error, point.module)
        if fault:
            faults.setdefault(f"{owner}: {fault}", []).append(point.name)

    def _forget(self, module: str) -> None:
        """Drop what a module registered before it failed."""
        for name, item in list(self._items.items()):
            if getattr(item, "__module__", None) == module:
                del self._items[name]

    def __getitem__(self, name: str) -> T:
        """Return what ``name`` stands for, or raise with near matches and the whole list."""
        self._fill()
        if name in self._items:
            return self._items[name]
        if name in self._broken:
            raise self.error(f"{self.kind} {name!r} cannot be read: {self._broken[name]}")
        if self._explain is not None and (text := self._explain(name, self._items)):
            raise self.error(*text)
        hint = f"{near(name, self._items)} (known: {', '.join(sorted(self))})"
        raise self.error(f"unknown {self.kind} {name!r}{hint}")

    def __iter__(self) -> Iterator[str]:
        """Iterate over the registered names, sorted."""
        self._fill()
        return iter(sorted(self._items))

    def __contains__(self, name: object) -> bool:
        """Tell whether ``name`` is registered."""
        self._fill()
        return name in self._items


def _place(error: BaseException, module: str) -> str:
    """Return ``file:line: error``, the line being the last one in the folder of the module."""
    frames = [
        (Path(frame.filename), frame.lineno or 1)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_MACHINERY)
        # the backport of importlib.metadata loads entry points where it is installed
        and Path(frame.filename).parent.name != "importlib_metadata"
    ]
    file = Path(*module.split(".")).with_suffix(".py")
    line = 1
    for place in frames:
        if place[0].parent == frames[0][0].parent:
            file, line = place
    if isinstance(error, SyntaxError) and error.filename:
        file = Path(error.filename)
        line = error.lineno or 1
    message = str(error.msg if isinstance(error, SyntaxError) else error).strip().splitlines()
    depth = module.count(".") + (2 if file.stem == "__init__" else 1)
    shown = Path(*file.parts[-depth:])
    return f"{shown}:{line}: {type(error).__name__}: {message[0] if message else ''}".rstrip(": ")
