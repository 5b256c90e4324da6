"""Data that results were made from, as entities of a crate."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.base.errors import ReproError
from repro.batch.crate.graph import Graph, reference, slug
from repro.figures.data import OWN, PUBLIC, STAND_IN
from repro.figures.saved import checksum
from repro.files import public

SPDX = "https://spdx.org/licenses"
#: Licences that a public file or this project may have, by SPDX identifier.
KNOWN_LICENCES = ("MIT", "Apache-2.0", "CC-BY-4.0")
#: Folders of the checkout whose tables travel with a crate; other files are only named.
OWN_FOLDERS = ("traces", "params")


def licence(graph: Graph, text: str) -> str:
    """Describe a licence: an SPDX identifier, or the words of its source; return the id."""
    if text in KNOWN_LICENCES:
        return graph.add(f"{SPDX}/{text}", "CreativeWork", name=text, identifier=text)
    return graph.add(f"#licence-{slug(text)}", "CreativeWork", name=text)


def data_entity(graph: Graph, used: Mapping[str, Any], root: Path, version: str) -> str:
    """Describe a data set of a result; return the id.

    A public file is referenced by its address. A table of the checkout is copied. A generated data
    set and a user's own file have name and checksum only. ``version`` is that of the package that
    made the result.

    Raises
    ------
    ReproError
        If a table of the checkout is no longer the file that the result was made from.
    """
    name = used["name"]
    kind = used["kind"]
    if kind == PUBLIC and public.is_known(name):
        file = public.entry(name)
        if used["sha256"] == file.sha256:
            return _public_file(graph, file)
    if kind == OWN:
        return _own_file(graph, used, root, version)
    return _named_only(graph, used, version)


def _public_file(graph: Graph, file: public.PublicFile) -> str:
    """Describe a public file by its address, licence and checksum; it is not copied."""
    member = f"#{file.member}" if file.member else ""
    where = f", member {file.member} of the archive" if file.member else ""
    return graph.add(
        f"{file.url}{member}",
        "File",
        name=file.name,
        description=f"{file.description} ({file.repository}, commit {file.commit}{where}).",
        license=reference(licence(graph, file.licence)),
        encodingFormat=_media_type(file.member or file.path),
        contentSize=str(file.bytes),
        sha256=file.sha256,
    )


def _own_file(graph: Graph, used: Mapping[str, Any], root: Path, version: str) -> str:
    """Copy a table of the checkout into the crate; of other files take name and checksum only."""
    path = Path(used["name"])
    if path.is_absolute() or path.parts[0] not in OWN_FOLDERS:
        return _named_only(graph, {**used, "name": path.name}, version)
    try:
        content = (root / path).read_bytes()
    except OSError as error:
        raise ReproError(f"{path}: cannot be read ({error.strerror}); restore it") from None
    if checksum(content) != used["sha256"]:
        raise ReproError(f"{path}: changed since results were made from it; run them again")
    return graph.add_file(
        path.as_posix(),
        content,
        name=path.name,
        description="Table of this project.",
        license=reference(licence(graph, "MIT")),
    )


def _named_only(graph: Graph, used: Mapping[str, Any], version: str) -> str:
    """Describe data that no address leads to: kind, seed, and checksum where there is one."""
    kind = used["kind"]
    seed = used.get("seed")
    sha256 = used.get("sha256")
    made = f"by repro {version}" + (f" with seed {seed}" if seed is not None else "")
    texts = {
        PUBLIC: "Public file at an earlier commit than the registered one.",
        OWN: "File of the user, not part of this crate.",
        STAND_IN: f"Stand-in for a public file, generated {made}.",
    }
    parts = [slug(used["name"]), *([str(seed)] if seed is not None else []), (sha256 or "")[:12]]
    return graph.add(
        f"#data-{'-'.join(filter(None, parts))}",
        "CreativeWork",
        name=used["name"],
        description=texts.get(kind, f"Generated {made}. The checksum is of its values."),
        sha256=sha256,
    )


def _media_type(path: str) -> str:
    """Media type of a public file, by suffix."""
    types = {".csv": "text/csv", ".json": "application/json", ".gz": "application/gzip"}
    return types.get(Path(path).suffix, "text/plain")
