"""Names to factories: policies, placements, trace formats; unknown names get near matches."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from repro.errors import BrokenFileWarning, ParamError, ReproError

T = TypeVar("T")


class Registry(Generic[T]):
    """A family of named things, filled by decorators in the files that define them.

    A file that cannot be imported is named in a `BrokenFileWarning`; only asking for what it
    defines is an error.

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
        self._broken: dict[str, str] = {}
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
        faults: dict[str, list[str]] = {}
        self._walk(self.package, faults)
        for line, names in faults.items():
            self._broken |= dict.fromkeys(names, line)
            lost = f"; {self.kind} {', '.join(names)} left out" if names else ""
            warnings.warn(f"{line}{lost}", BrokenFileWarning, stacklevel=3)

    def _walk(self, package: str, faults: dict[str, list[str]]) -> None:
        """Import every module of a package and of the packages inside it."""
        for folder in map(Path, importlib.import_module(package).__path__):
            top = folder.parents[package.count(".")]
            for module in pkgutil.iter_modules([str(folder)]):
                full_name = f"{package}.{module.name}"
                try:
                    if module.ispkg:
                        self._walk(full_name, faults)
                    else:
                        importlib.import_module(full_name)
                # A file may fail in any way, even by leaving the interpreter.
                except (Exception, SystemExit) as error:
                    path = folder / f"{module.name}.py"
                    names = self._leave_out(full_name, path)
                    faults.setdefault(_place(error, path, top), []).extend(names)

    def _leave_out(self, module: str, path: Path) -> list[str]:
        """Forget what a file has registered before it failed; return the names it speaks of."""
        for name, item in list(self._items.items()):
            if getattr(item, "__module__", None) == module:
                del self._items[name]
        text = path.read_text(errors="replace") if path.is_file() else ""
        return re.findall(r"""\bregister\(\s*["']([^"']+)["']""", text)

    def __getitem__(self, name: str) -> T:
        """Return what ``name`` stands for, or raise with near matches and the whole list."""
        self._load()
        if name in self._broken:
            raise self.error(f"{self.kind} {name!r} cannot be read: {self._broken[name]}")
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


def _place(error: BaseException, path: Path, top: Path) -> str:
    """Return ``file:line: error``, the line being the last one inside the file's package."""
    file, line = str(path), 1
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).parent == path.parent:
            file, line = frame.filename, frame.lineno or 1
    if isinstance(error, SyntaxError) and error.filename:
        file, line = error.filename, error.lineno or 1
    message = str(error.msg if isinstance(error, SyntaxError) else error).strip().splitlines()
    shown = Path(file).relative_to(top) if Path(file).is_relative_to(top) else file
    return f"{shown}:{line}: {type(error).__name__}: {message[0] if message else ''}".rstrip(": ")
