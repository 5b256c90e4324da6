"""Registries of named items: policies, placements, trace formats."""

import ast
import importlib
import pkgutil
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from repro.base.errors import BrokenFileWarning, ParamError, ReproError, near
from repro.base.ipython import shell

T = TypeVar("T")
#: Beginnings of the file names of Python's import system and of this module. Messages on an error
#: leave out the stack frames in these files.
_MACHINERY = ("<frozen importlib", str(Path(importlib.__file__).parent), __file__)
#: Modules whose functions register what other modules define.
_REGISTERING = (__name__, "repro.model.policy")
#: Names that options such as ``--policies NAME,NAME`` and ``--placement NAME:K=V`` can carry.
_NAME = re.compile(r"[^\s,:=]+")


class _Place(NamedTuple):
    """File and line of a registration."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Registry(Generic[T]):
    """Named items, registered by decorators in the files that define them.

    A look-up imports the module of the package ``home``, at any depth, whose source registers the
    name. To list all names, the registry imports all modules, and the entry points ``group`` of
    installed packages. It does the same to look up a name that no source registers. A module that
    cannot be imported causes a warning.

    An unknown name raises ``error``, and ``kind`` is the noun of the message, such as "policy".
    ``explain`` maps an unknown name and all items to the lines of a better message. If it returns
    an empty list, the usual message is raised. ``aliases`` maps further names to registered names.
    A registered name comes before an alias. ``listing`` says where all names are listed, if they
    are too many for a line. ``check`` is called with name and item before an item is registered,
    and raises an error for an item that is of no use.

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
        aliases: Mapping[str, str] | None = None,
        listing: str = "",
        check: Callable[[str, T], None] | None = None,
    ) -> None:
        self.kind = kind
        self.error = error
        self._explain = explain
        self._listing = listing
        self._check = check
        self._aliases = aliases or {}
        #: package whose modules may still register items; None once all are imported
        self._home = home
        self._own_prefix = f"{home}."
        self._group = group
        self._items: dict[str, T] = {}
        #: file and line that registered each item; None for a notebook cell and the like
        self._places: dict[str, _Place | None] = {}
        #: name whose module or entry point cannot be imported -> text of the error
        self._broken: dict[str, str] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Register the decorated object under ``name``."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self.error(
                f"a {self.kind} is registered under {name!r:.60}; give a name without spaces and "
                f"the characters , : =, such as @register('my-name')"
            )

        def keep(item: T) -> T:
            if self._check is not None:
                self._check(name, item)
            if not self._is_own(item):
                # an item of the package with this name comes first, even if nobody used it yet
                self._import_module_of(name)
            place = _place_of(item)
            earlier = self._items.get(name)
            # a definition that runs again, as in a notebook cell, replaces the earlier item
            if earlier is not None and not self._runs_again(name, item, place):
                places = [str(where) for where in (self._places.get(name), place) if where]
                where = f": {' and '.join(places)}; rename one of them" if places else ""
                raise self.error(f"{self.kind} {name!r} is registered twice{where}")
            self._items[name] = item
            self._places[name] = place
            return item

        return keep

    def _runs_again(self, name: str, item: T, place: _Place | None) -> bool:
        """Whether the definition of a registered name runs again, perhaps after an edit."""
        earlier = self._items[name]
        is_same = _definition_of(earlier) == _definition_of(item)
        if not is_same or self._is_own(earlier) != self._is_own(item):
            return False
        earlier_place = self._places.get(name)
        if earlier is item or place is None or earlier_place is None or place == earlier_place:
            return True
        # An edit moves a definition to another line. Two definitions are in the file together.
        return place.path == earlier_place.path and _registrations(place.path, name) < 2

    def _is_own(self, item: object) -> bool:
        """Whether a module of the home package defines an item."""
        return str(getattr(item, "__module__", "")).startswith(self._own_prefix)

    def _import_module_of(self, name: str) -> None:
        """Import the module of the home package whose source registers ``name``."""
        if self._home is None or name in self._items:
            return
        for module in _modules(self._home):
            if name not in _registered(module.path):
                continue
            try:
                importlib.import_module(module.name)
            except (Exception, SystemExit):
                # `_import_everything` reports it
                self._forget(module.name)
            return

    def _import_everything(self) -> None:
        """Import all modules and entry points that may register items."""
        if self._home is None:
            return
        home = self._home
        self._home = None
        faults: dict[str, list[str]] = {}
        self._import_modules(home, faults)
        for point in metadata.entry_points(group=self._group) if self._group else ():
            self._import_entry_point(point, faults)
        for fault, names in faults.items():
            missing = [name for name in names if name not in self._items]
            self._broken |= dict.fromkeys(missing, fault)
            effect = f"; {self.kind} {', '.join(missing)} left out" if missing else ""
            warnings.warn(f"{fault}{effect}", BrokenFileWarning, stacklevel=2)

    def _import_modules(self, package: str, faults: dict[str, list[str]]) -> None:
        """Import the modules of a package. ``faults`` collects fault -> unavailable names."""
        for module in _modules(package):
            try:
                importlib.import_module(module.name)
            # a file may raise any exception, or exit the interpreter
            except (Exception, SystemExit) as error:
                self._forget(module.name)
                names = _registered(module.path)
                faults.setdefault(_error_line(error, module.name), []).extend(names)

    def _import_entry_point(self, point: metadata.EntryPoint, faults: dict[str, list[str]]) -> None:
        """Import an entry point.

        ``faults`` collects its name if it cannot be imported or does not register its name.
        """
        owner = f"{point.dist.name} {point.dist.version}" if point.dist else "an installed package"
        try:
            point.load()
            fault = None if point.name in self else f"{point.value} registers no {point.name!r}"
        except (Exception, SystemExit) as error:
            self._forget(point.module)
            fault = _error_line(error, point.module)
        if fault:
            faults.setdefault(f"{owner}: {fault}", []).append(point.name)

    def _forget(self, module: str) -> None:
        """Remove the items that a module registered before it failed."""
        for name, item in list(self._items.items()):
            if getattr(item, "__module__", None) == module:
                del self._items[name]

    def __getitem__(self, name: str) -> T:
        """Item of ``name``. The error for an unknown name lists similar names and all names."""
        self._import_module_of(name)
        if name in self._items:
            return self._items[name]
        self._import_everything()
        if name in self._items:
            return self._items[name]
        if name in self._aliases:
            return self[self._aliases[name]]
        if name in self._broken:
            raise self.error(f"{self.kind} {name!r} cannot be read: {self._broken[name]}")
        if self._explain is not None and (text := self._explain(name, self._items)):
            raise self.error(*text)
        raise self.error(f"unknown {self.kind} {name!r:.60}{self._names_hint(name)}")

    def _names_hint(self, name: str) -> str:
        """Names similar to ``name``, and all names, or where they are listed."""
        similar = near(name, self._items)
        names = ", ".join(sorted(self))
        return f"{similar}; {self._listing}" if self._listing else f"{similar} (known: {names})"

    def fault(self, name: str) -> str:
        """Text of the error for which the item of ``name`` is left out; empty without an error."""
        self._import_everything()
        return self._broken.get(name, "")

    def __iter__(self) -> Iterator[str]:
        """Iterate over the registered names, sorted."""
        self._import_everything()
        return iter(sorted(self._items))

    def __contains__(self, name: object) -> bool:
        """Whether ``name`` is registered; an alias is not."""
        self._import_module_of(str(name))
        if name not in self._items:
            self._import_everything()
        return name in self._items


def base_fault(kind: str, name: str, cls: type, bases: str) -> str:
    """Message on a registered class that derives from none of the classes ``bases`` of its kind."""
    return f"{kind} {name!r}: the class {cls.__name__} is no {kind}; derive it from {bases}"


def _definition_of(item: object) -> object:
    """Name of the definition of an item, without its module.

    A file may run as a script, and then be imported. The definition then has two modules.
    """
    return getattr(item, "__qualname__", item)


def _place_of(item: object) -> _Place | None:
    """Place that registers an item now; None for a notebook cell and code without a file."""
    is_cell = shell() is not None and getattr(item, "__module__", None) == "__main__"
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _REGISTERING:
        frame = frame.f_back
    path = Path(frame.f_code.co_filename)
    return None if is_cell or not path.is_file() else _Place(path.resolve(), frame.f_lineno)


def names_in_sources(folder: Path) -> dict[str, Path]:
    """Names that the sources of a folder register, without importing them.

    Returns
    -------
    dict
        Name -> file, sorted by name.
    """
    files = [module.path for module in _modules(folder.name, [str(folder)])]
    return dict(sorted((name, file) for file in files for name in _registered(file)))


class _Module(NamedTuple):
    """A module of a package that registers items, and its file."""

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
    """Names that the source of a module registers as literals."""
    text = path.read_text(errors="replace") if path.is_file() else ""
    return re.findall(r"""\bregister\(\s*["']([^"']+)["']""", text)


def _registrations(path: Path, name: str) -> int:
    """Number of calls of ``register`` for a literal name in a source."""
    try:
        tree = ast.parse(path.read_text(errors="replace"))
    except (OSError, SyntaxError):
        return 0
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    names = [
        call.args[0].value
        for call in calls
        if getattr(call.func, "attr", getattr(call.func, "id", "")) == "register"
        and isinstance(call.args[0], ast.Constant)
    ]
    return names.count(name)


def _error_line(error: BaseException, module: str) -> str:
    """Text ``file:line: error`` of the last frame in the folder of the module."""
    frames = [
        (Path(frame.filename), frame.lineno or 1)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_MACHINERY)
        # the backport of importlib.metadata, if installed, loads entry points
        and Path(frame.filename).parent.name != "importlib_metadata"
    ]
    file = Path(*module.split(".")).with_suffix(".py")
    line = 1
    for frame_file, frame_line in frames:
        if frame_file.parent == frames[0][0].parent:
            file = frame_file
            line = frame_line
    if isinstance(error, SyntaxError) and error.filename:
        file = Path(error.filename)
        line = error.lineno or 1
    message = str(error.msg if isinstance(error, SyntaxError) else error).strip().splitlines()
    depth = module.count(".") + (2 if file.stem == "__init__" else 1)
    shown = Path(*file.parts[-depth:])
    return f"{shown}:{line}: {type(error).__name__}: {message[0] if message else ''}".rstrip(": ")
