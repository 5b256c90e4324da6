"""What a figure's result depends on, as one hash: a result with the same hash is not run again."""

from __future__ import annotations

import fnmatch
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.batch.cache import PACKAGE, files_hash, key, tables_hash
from repro.batch.data import PUBLIC, STAND_IN
from repro.batch.files import RESULT, read_json
from repro.batch.record import versions
from repro.errors import ParamError
from repro.params import Entry

#: Files of the package that only start, watch or show runs. All others may change a result.
BYSTANDERS = (
    "cli*.py",
    "testing.py",
    "trace/commands.py",
    "batch/check.py",
    "batch/execute.py",
    "batch/fingerprint.py",
    "batch/kernel.py",
    "batch/page.py",
    "batch/report.py",
    "batch/task.py",
)


def fingerprint(entry: Entry, profile: str, parameters: Mapping[str, Any]) -> str:
    """Return the hash of everything a figure's result depends on, but for public data.

    Parameters
    ----------
    entry : Entry
        The figure.
    profile : str
        ``quick`` or ``paper``.
    parameters : mapping
        Parameters given to the notebook.

    Raises
    ------
    ParamError
        If the notebook cannot be read.
    """
    return key(
        cells(entry.notebook),
        entry.params.read_bytes(),
        tables_hash(),
        files_hash(sources()),
        versions(),
        profile,
        dict(parameters),
    )


def is_current(folder: Path, stem: str, wanted: str) -> bool:
    """Tell whether a folder holds the complete result of this fingerprint and of today's data.

    Parameters
    ----------
    folder : Path
        Result folder of the figure.
    stem : str
        File name of picture and table.
    wanted : str
        From :func:`fingerprint`.
    """
    result = read_json(folder / RESULT)
    if result is None or result.get("fingerprint") != wanted:
        return False
    files = (folder / f"{stem}.{suffix}" for suffix in ("png", "svg", "csv"))
    return all(file.is_file() for file in files) and not _data_changed(result)


def _data_changed(result: Mapping[str, Any]) -> bool:
    """Tell whether a stand-in could now be the real data, or real data is gone."""
    from repro.trace import remote

    for used in result.get("data", []):
        name, kind = used.get("name"), used.get("kind")
        named = kind in (PUBLIC, STAND_IN) and remote.is_known(name)
        if named and remote.available(name) != (kind == PUBLIC):
            return True
    return False


@functools.cache
def sources() -> tuple[Path, ...]:
    """Return the files of the package that a result may depend on."""
    found = sorted(PACKAGE.rglob("*.py"))
    names = {path: path.relative_to(PACKAGE).as_posix() for path in found}
    return tuple(
        path
        for path, name in names.items()
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in BYSTANDERS)
    )


def cells(notebook: Path) -> list[tuple[str, str, list[str]]]:
    """Return type, source and tags of each cell; outputs and counters do not matter.

    Raises
    ------
    ParamError
        If the file is no notebook.
    """
    try:
        found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return [
            (
                str(cell["cell_type"]),
                "".join(cell["source"]),
                list(cell.get("metadata", {}).get("tags", [])),
            )
            for cell in found
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParamError(
            f"{notebook}: not a notebook ({type(error).__name__}: {error}); open it in JupyterLab"
        ) from None
