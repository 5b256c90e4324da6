"""Fingerprints of figures: a result whose fingerprint has not changed is not computed again."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.base import paths
from repro.base.errors import DataMissingError
from repro.figures.cache import files_hash, key, tables_hash, versions
from repro.figures.data import OWN, PUBLIC, STAND_IN, own_file
from repro.figures.notebook import RUN_PARAMETERS, cells, parameter_defaults
from repro.figures.params import FigureEntry
from repro.figures.saved import damaged, fingerprints, read_result
from repro.files import public

#: Files of the package that only start, watch or show runs; any other file may change a result.
BYSTANDERS = (
    *("batch/**/*.py", "cli/**/*.py", "testing/**/*.py"),
    *("figures/fingerprint.py", "figures/progress.py"),
)


def shared_state() -> tuple[Any, ...]:
    """What all figures depend on: tables, code of the package, and versions of libraries."""
    return tables_hash(), files_hash(sources()), versions()


def fingerprint(
    entry: FigureEntry,
    profile: str,
    parameters: Mapping[str, Any],
    shared: tuple[Any, ...] | None = None,
) -> str:
    """Hash of everything that a figure's result depends on, except public and user's files.

    Parameters of the notebook that have their default value do not count, nor does ``out``. The id
    and the profile are hashed from the arguments, not from ``parameters``. ``shared`` is the
    present `shared_state`, given where several figures are hashed at once.
    """
    defaults = parameter_defaults(entry)
    # The default is `...` if the notebook computes it, or has no parameter of this name.
    changed = {
        name: value
        for name, value in parameters.items()
        if name not in RUN_PARAMETERS
        if defaults.get(name, ...) is ... or key(value) != key(defaults[name])
    }
    files = cells(entry.notebook), entry.params_file.read_bytes()
    return key(entry.id, *files, *(shared or shared_state()), profile, changed)


def is_current(folder: Path, stem: str, expected: str) -> bool:
    """Whether a folder has an undamaged result with this fingerprint, made from the present data.

    The present data are the public and user's files that are available now.
    """
    result, _ = read_result(folder)
    if expected not in fingerprints(folder, result) or "files" not in result:
        return False
    return not damaged(folder, stem, result) and not _data_changed(result)


def _data_changed(result: Mapping[str, Any]) -> bool:
    """Whether a user's file changed, or a public file disappeared or replaces a stand-in."""
    for used in result.get("data", []):
        name = used.get("name")
        kind = used.get("kind")
        if kind == OWN:
            try:
                if own_file(name).sha256 != used.get("sha256"):
                    return True
            except DataMissingError:
                return True
        is_public_file = kind in (PUBLIC, STAND_IN) and public.is_known(name)
        if is_public_file and public.available(name) != (kind == PUBLIC):
            return True
    return False


@functools.cache
def sources() -> tuple[Path, ...]:
    """Files of the package that a result may depend on, looks of series included."""
    files = {*paths.PACKAGE.rglob("*.py"), paths.PACKAGE / "plot" / "looks.csv"}
    bystanders = {path for pattern in BYSTANDERS for path in paths.PACKAGE.glob(pattern)}
    return tuple(sorted(files - bystanders))
