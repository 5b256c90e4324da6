"""Names to things: policies, placements, trace formats; unknown names get near matches."""

import importlib
import pkgutil
import re
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from repro.base.errors import BrokenFileWarning, ParamError, ReproError, near

T = TypeVar("T")
_MACHINERY = ("<frozen importlib", str(Path(importlib.__file__).parent), __file__)


class Registry(Generic[T]):
    """A family of named things, filled by decorators in the files that define them.

    A look-up imports the module of the package ``home``, at any depth, whose source registers the
    name. A list of all names, and a name that no source registers, import all modules and what
    installed packages announce under the entry points ``group``; a module that fails is left out
    with a warning.
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

    def _import_one(self, name: str) -> None:
        """Import the module that registers ``name``, if a source of the home package does."""
        if self._home is None or name in self._items:
            return
        for module in _modules(self._home):
            if name not in _registered(module.path):
                continue
            try:
                importlib.import_module(module.name)
            except (Exception, SystemExit):
                # reported when all modules are imported
                self._forget(module.name)
            return

    def _fill(self) -> None:
        """Import all modules that may register something."""
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
        for module in _modules(package):
            try:
                importlib.import_module(module.name)
            # A file may fail in any way, even by leaving the interpreter.
            except (Exception, SystemExit) as error:
                self._forget(module.name)
                names = _registered(module.path)
                faults.setdefault(_place(error, module.name), []).extend(names)

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
        self._import_one(name)
        if name in self._items:
            return self._items[name]
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
        self._import_one(str(name))
        if name not in self._items:
            self._fill()
        return name in self._items


class _Module(NamedTuple):
    """A module of a package that registers things, and the file that it may be."""

    name: str
    path: Path


def _modules(package: str, folders: Iterable[str] | None = None) -> Iterator[_Module]:
    """Yield the modules of a package, to any depth."""
    if folders is None:
        folders = importlib.import_module(package).__path__
    for folder in folders:
        for module in pkgutil.iter_modules([folder]):
            name = f"{package}.{module.name}"
            path = Path(folder) / module.name
            if module.ispkg:
                yield from _modules(name, [str(path)])
            else:
                yield _Module(name, path.with_suffix(".py"))


def _registered(path: Path) -> list[str]:
    """Names that the source of a module registers, as far as they stand in it."""
    text = path.read_text(errors="replace") if path.is_file() else ""
    return re.findall(r"""\bregister\(\s*["']([^"']+)["']""", text)


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
