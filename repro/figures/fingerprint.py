"""What a figure's result depends on, as one hash: a result with the same hash is not run again."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.base.errors import DataMissingError
from repro.figures.cache import PACKAGE, files_hash, key, tables_hash, versions
from repro.figures.data import OWN, PUBLIC, STAND_IN, own_file
from repro.figures.notebook import accepted, cells
from repro.figures.params import FigureEntry
from repro.figures.saved import damaged, read_result
from repro.files import public

#: Files of the package that only start, watch or show runs. All others may change a result.
BYSTANDERS = (
    *("batch/**/*.py", "cli/**/*.py", "testing/**/*.py"),
    *("figures/fingerprint.py", "figures/progress.py"),
)


def fingerprint(entry: FigureEntry, profile: str, parameters: Mapping[str, Any]) -> str:
    """Return the hash of everything a figure's result depends on, but for public and own data.

    Of ``parameters`` given to the notebook, those given their default count as not given.
    """
    default = accepted(entry.notebook)
    given = {
        name: value
        for name, value in parameters.items()
        if default.get(name, ...) is ... or key(value) != key(default[name])
    }
    files = cells(entry.notebook), entry.params.read_bytes()
    return key(*files, tables_hash(), files_hash(sources()), versions(), profile, given)


def is_current(folder: Path, stem: str, wanted: str) -> bool:
    """Tell whether a folder holds the complete result of a fingerprint and of today's data."""
    result, _ = read_result(folder)
    if result.get("fingerprint") != wanted or "files" not in result:
        return False
    return not damaged(folder, stem, result) and not _data_changed(result)


def _data_changed(result: Mapping[str, Any]) -> bool:
    """Tell whether an own file changed, a stand-in could now be real data, or that is gone."""
    for used in result.get("data", []):
        name = used.get("name")
        kind = used.get("kind")
        if kind == OWN:
            try:
                if own_file(name).sha256 != used.get("sha256"):
                    return True
            except DataMissingError:
                return True
        named = kind in (PUBLIC, STAND_IN) and public.is_known(name)
        if named and public.available(name) != (kind == PUBLIC):
            return True
    return False


@functools.cache
def sources() -> tuple[Path, ...]:
    """Return the files of the package that a result may depend on, how series look among them."""
    others = {path for pattern in BYSTANDERS for path in PACKAGE.glob(pattern)}
    return tuple(sorted({*PACKAGE.rglob("*.py"), PACKAGE / "plot" / "looks.csv"} - others))
