"""A CSV file that grows by a row per measurement, and goes on where a run was interrupted."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from repro.base.errors import ParamError
from repro.measure.columns import COLUMNS, KEYS


class RowTable:
    """One measured table of a folder.

    Rows of an earlier run stay. A last line without a line end is the rest of a run that was
    killed, and is removed.

    Parameters
    ----------
    folder : Path
        Folder of the table; it must exist.
    file : str
        A file of `repro.measure.columns.COLUMNS`.

    Raises
    ------
    ParamError
        If the file has other columns.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = RowTable(Path(folder), "machine.csv")
    ...     table.add({"name": "gpu_type", "value": "h100"})
    ...     RowTable(Path(folder), "machine.csv").has("gpu_type")
    True
    """

    def __init__(self, folder: Path, file: str) -> None:
        self.path = folder / file
        self.columns = COLUMNS[file]
        self._keys = KEYS[file]
        self.rows: list[dict[str, str]] = []
        if self.path.exists():
            self._read()

    @property
    def names(self) -> set[tuple[str, ...]]:
        """Values of the key columns of all rows."""
        return {tuple(row[key] for key in self._keys) for row in self.rows}

    def has(self, *name: object) -> bool:
        """Whether there is a row with these values of the key columns."""
        return tuple(map(str, name)) in self.names

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; columns without a value are empty."""
        self.extend([row])

    def extend(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows in one write, so that none of them is there without the others."""
        texts = [{name: _cell(row.get(name)) for name in self.columns} for row in rows]
        stream = io.StringIO(newline="")
        writer = csv.DictWriter(stream, self.columns, lineterminator="\n")
        if not self.path.exists():
            writer.writeheader()
        writer.writerows(texts)
        with self.path.open("ab") as file:
            file.write(stream.getvalue().encode())
        self.rows += texts

    def _read(self) -> None:
        """Read the rows of an earlier run; cut a line that was not written to its end."""
        raw = self.path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        if not whole:
            self.path.unlink()
            return
        if whole != raw:
            self.path.write_bytes(whole)
        lines = [line for line in whole.decode().splitlines() if not line.startswith("#")]
        reader = csv.DictReader(lines)
        if tuple(reader.fieldnames or ()) != self.columns:
            raise ParamError(
                f"{self.path}: other columns than this measurement writes; give another --out"
            )
        self.rows = list(reader)


def _cell(value: Any) -> str:
    """Text of a cell: six significant digits; empty for no value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
