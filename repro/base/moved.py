"""Modules under their names of the last release, which work until the next one, with a warning."""

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Public module of the last release -> where it is now; what lies inside it moved along.
MOVED = {
    "repro.cluster": "repro.model.cluster",
    "repro.core": "repro.model",
    "repro.course.grade": "repro_course.grade",
    "repro.course.release": "repro_course.release",
    "repro.errors": "repro.base.errors",
    "repro.metrics": "repro.model.metrics",
    "repro.preferences.encodings": "repro.papers.pcs.encodings",
    "repro.preferences.interface": "repro.papers.pcs.preferences",
    "repro.preferences.objectives": "repro.papers.pcs.objectives",
    "repro.search.fronts": "repro.papers.pcs.fronts",
    "repro.sim": "repro.engine",
}
#: Packages of the last release that hold public modules and are gone.
GONE = {name.rpartition(".")[0] for name in MOVED} - {"repro", "repro.course"}


class MovedFinder(MetaPathFinder):
    """Finds a module by its old name and says its new one."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec that imports the module by its new name; None for all other modules."""
        if name in GONE:
            return ModuleSpec(name, _Empty(), is_package=True)
        new = new_name(name)
        return ModuleSpec(name, _Moved(new)) if new else None


def new_name(name: str) -> str | None:
    """Where a public module of the last release is now; None if it did not move.

    >>> new_name("repro.core.policy")
    'repro.model.policy'
    """
    for old, new in MOVED.items():
        if name == old or name.startswith(f"{old}."):
            return new + name.removeprefix(old)
    return None


class _Moved(Loader):
    """Loads a module by its new name."""

    def __init__(self, new: str) -> None:
        self._new = new

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of the new name itself, so that its classes exist once."""
        module = importlib.import_module(self._new)
        text = f"{spec.name} is {self._new} now; the old name goes with the next release"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        # the import system writes the old name into the module that it is given
        self._kept = {name: getattr(module, name) for name in ("__spec__", "__loader__")}
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own name back; it ran when it was imported by the new one."""
        vars(module).update(self._kept)


class _Empty(Loader):
    """Loads a package that only holds modules that moved."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


def install() -> None:
    """Let imports by old names work."""
    if not any(isinstance(finder, MovedFinder) for finder in sys.meta_path):
        sys.meta_path.append(MovedFinder())
