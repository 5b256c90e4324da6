"""Old names of modules that moved since the last release. They work, with a warning."""

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Public module of the last release -> its name now. Its submodules moved with it.
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
#: Packages of the last release that no longer exist and had public modules.
GONE = {name.rpartition(".")[0] for name in MOVED} - {"repro", "repro.course"}


class MovedFinder(MetaPathFinder):
    """Finds a module by its old name."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Spec that imports a moved module by its new name; None for all other modules."""
        if name in GONE:
            return ModuleSpec(name, _EmptyPackage(), is_package=True)
        name_now = new_name(name)
        return ModuleSpec(name, _MovedModule(name_now)) if name_now else None


def new_name(name: str) -> str | None:
    """Present name of a public module of the last release; None if it did not move.

    >>> new_name("repro.core.policy")
    'repro.model.policy'
    """
    for old, new in MOVED.items():
        if name == old or name.startswith(f"{old}."):
            return new + name.removeprefix(old)
    return None


class _MovedModule(Loader):
    """Loads a module by its new name."""

    def __init__(self, name_now: str) -> None:
        self._name_now = name_now

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module by its new name; a copy would define its classes twice."""
        module = importlib.import_module(self._name_now)
        text = f"{spec.name} is now {self._name_now}; the next release removes the old name"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        # the import system overwrites these attributes with those of the old name
        self._attributes = {name: getattr(module, name) for name in ("__spec__", "__loader__")}
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the attributes of the module, which has already run under its new name."""
        vars(module).update(self._attributes)


class _EmptyPackage(Loader):
    """Loads an empty package in place of a package whose modules all moved."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system create an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing."""


def install() -> None:
    """Make imports by old names work."""
    if not any(isinstance(finder, MovedFinder) for finder in sys.meta_path):
        sys.meta_path.append(MovedFinder())
