"""The map of names: one name per model over the tables of the five papers.

The map is the file ``params/model_names.csv``. A table may lack a model and have a *relative* of
it, a model of the same family. The map then gives the name of the relative, which stands in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from repro.base.errors import ParamError
from repro.files.tables import ModelTable

T = TypeVar("T")

#: Names of the tables that the map covers, one of each paper.
TABLES = ("muri", "gavel", "pcs", "liquid", "tiresias")
#: Table -> its content, for messages.
CONTENTS = {
    "muri": "stage times",
    "gavel": "throughputs by GPU type",
    "pcs": "speed-up curve",
    "liquid": "phases of an iteration",
    "tiresias": "sizes",
}
_MAP = ModelTable("model_names.csv", ("model", "batch_size", *TABLES, "stand_ins"))


@dataclass(frozen=True)
class MappedModel:
    """A model of the map, with its name in each table that has the model or a relative."""

    name: str
    batch_size: int
    #: table -> name in this table, of the model or of the relative that stands in
    names: Mapping[str, str]
    #: tables in which a relative stands in
    tables_with_relative: frozenset[str]

    def is_itself_in(self, table: str) -> bool:
        """Whether the table has the model itself."""
        return table in self.names and table not in self.tables_with_relative


def mapped_models() -> Mapping[str, MappedModel]:
    """Models of the map by name, in the order of the file; callers must not change it.

    Examples
    --------
    >>> mapped_models()["gpt2"].names["pcs"]
    'TransformerModel256'
    """
    return _read(_MAP.path)


def name_in(table: str, model: object) -> str:
    """Name of a model of the map in a table of `TABLES`; empty if it has none there."""
    mapped = mapped_models().get(model) if isinstance(model, str) else None
    return "" if mapped is None else mapped.names.get(table, "")


def further_names(table: str) -> dict[str, str]:
    """Names of the map that differ from those of a table, each with the name in the table."""
    names = {name: mapped.names.get(table) for name, mapped in mapped_models().items()}
    return {name: own for name, own in names.items() if own is not None and own != name}


def with_further_names(table: str, values: Mapping[str, T]) -> dict[str, T]:
    """Values of a table, by the names in the table and also by the names of the map."""
    mapped = {name: values[own] for name, own in further_names(table).items() if own in values}
    return mapped | dict(values)


def stand_in_note(table: str, models: Iterable[str]) -> list[str]:
    """Note on those of ``models`` that have the values of a relative in a table; empty if none."""
    known = mapped_models()
    pairs = [
        f"{name} as {known[name].names[table]}"
        for name in sorted(set(models))
        if table in known[name].tables_with_relative
    ]
    if not pairs:
        return []
    return [f"{CONTENTS[table]} of a relative (params/model_names.csv): {', '.join(pairs)}"]


@lru_cache(maxsize=4)
def _read(path: Path) -> Mapping[str, MappedModel]:
    """Read and check the map."""
    models: dict[str, MappedModel] = {}
    rows = _MAP.frame.astype(object).where(_MAP.frame.notna(), None).to_dict("records")
    for row in rows:
        names = {table: str(row[table]) for table in TABLES if row[table]}
        stand_ins = frozenset(str(row["stand_ins"] or "").split())
        name = str(row["model"])
        if name in models or not stand_ins < names.keys():
            raise ParamError(
                f"{path}: model {name!r}: give it once, with a name of its own in one table at "
                f"least, and stand_ins among the tables that have a name ({', '.join(TABLES)})"
            )
        models[name] = MappedModel(name, int(row["batch_size"]), names, stand_ins)
    return models
