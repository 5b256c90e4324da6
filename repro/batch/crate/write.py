"""Writes results of figures as a Workflow Run RO-Crate, version 0.5 of the profile.

The crate has the layout of the checkout: ``notebooks/``, ``params/``, ``figures/``, and the tables
that the results were made from. ``commands.sh`` is its main workflow: it makes the results again.
Equal results and equal times give equal bytes.
"""

import os
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.base.errors import ReproError
from repro.base.extras import needed_for
from repro.batch.check import StoredFigure
from repro.batch.crate.dates import Dates
from repro.batch.crate.describe import describe
from repro.batch.crate.graph import Entity, Graph, references

#: Version of RO-Crate that the profiles build on.
RO_CRATE = "1.1"
#: Terms of the profiles that the context of RO-Crate lacks, such as ``sha256``.
TERMS = "https://w3id.org/ro/terms/workflow-run/context"
#: Profiles that the metadata file of a crate conforms to.
METADATA_PROFILES = (
    f"https://w3id.org/ro/crate/{RO_CRATE}",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
)


@dataclass(frozen=True)
class Summary:
    """What a crate holds: number of figures and files, size in bytes, source of its dates."""

    figures: int
    files: int
    size: int
    dates: str


def write_crate(folder: Path, figures: Sequence[StoredFigure], root: Path) -> Summary:
    """Write results as a research object into a new folder.

    Parameters
    ----------
    folder : Path
        Folder to write: a new or an empty one.
    figures : sequence of StoredFigure
        Figures with results.
    root : Path
        Checkout with the notebooks and parameter files of the figures.

    Returns
    -------
    Summary
        Number of figures and files, size, and the source of the dates.

    Raises
    ------
    ReproError
        If the folder is not empty, or a result or a table it was made from is damaged.
    ExtraMissingError
        If the package ``rocrate`` is not installed.
    """
    _refuse_filled(folder)
    for figure in figures:
        if figure.damage:
            raise ReproError(
                f"{figure.entry.id}: {figure.damage[0]}; `repro run {figure.entry.id}` makes it "
                "again"
            )
    dates = Dates.from_environment()
    graph = Graph()
    root_properties = describe(graph, figures, root, dates)
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        dir=folder.absolute().parent, prefix=".unfinished-"
    ) as temporary:
        finished = Path(temporary) / "crate"
        _write(graph, root_properties, Path(temporary) / "files", finished)
        os.replace(finished, folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return Summary(len(figures), len(files), size, dates.source)


def _refuse_filled(folder: Path) -> None:
    """Refuse a file, and a folder that has something in it."""
    if folder.is_dir() and any(folder.iterdir()):
        raise ReproError(f"{folder}: is not empty; give a new folder")
    if folder.exists() and not folder.is_dir():
        raise ReproError(f"{folder}: is no folder; give a new folder")


def _write(graph: Graph, root_properties: dict[str, Any], sources: Path, finished: Path) -> None:
    """Write files, metadata and preview by the library ``rocrate``."""
    with needed_for("a research object"):
        from rocrate.model.contextentity import ContextEntity
        from rocrate.model.dataset import Dataset
        from rocrate.model.file import File
        from rocrate.rocrate import ROCrate

    crate = ROCrate(gen_preview=True, version=RO_CRATE)
    crate.metadata.extra_contexts.append(TERMS)
    crate.metadata["conformsTo"] = references(METADATA_PROFILES)
    for identifier, entity in graph.entities.items():
        properties = _without_lists_of_one(entity)
        kinds = entity["@type"] if isinstance(entity["@type"], list) else [entity["@type"]]
        if identifier in graph.contents:
            source = sources / identifier
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_bytes(graph.contents[identifier])
            crate.add(File(crate, source, identifier, properties=properties))
        elif "File" in kinds:
            crate.add(File(crate, identifier, properties=properties))
        elif "Dataset" in kinds:
            crate.add(Dataset(crate, dest_path=identifier, properties=properties))
        else:
            crate.add(ContextEntity(crate, identifier, properties=properties))
    crate.root_dataset._jsonld.update(_without_lists_of_one(root_properties))
    with warnings.catch_warnings():
        # folders of results have no source of their own: their files are copied one by one
        warnings.simplefilter("ignore")
        crate.write(finished)


def _without_lists_of_one(entity: Entity) -> Entity:
    """Properties of an entity without its id; a list of one value becomes the value."""
    return {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value
        for name, value in entity.items()
        if name != "@id"
    }
