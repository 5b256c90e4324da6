"""Data of a figure: generated and public traces, stand-ins, user's files, and their provenance."""

import hashlib
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro.base import paths
from repro.base.errors import DataMissingError, ParamError, StandInWarning
from repro.figures.cache import content_hash
from repro.files import public
from repro.perf.throughput_files import measured_folders_of
from repro.trace import synth
from repro.trace.load import load_public

#: Kinds of data sets.
PUBLIC = "public"
GENERATED = "generated"
STAND_IN = "synthetic stand-in"
OWN = "own file"


@dataclass(frozen=True)
class Provenance:
    """Name of a data set (path of a user's file), its kind, and the hash of its file or values."""

    name: str
    kind: str
    sha256: str | None
    #: whether the values are generated (kinds GENERATED and STAND_IN)
    synthetic: bool
    #: seed of generated values
    seed: int | None = None


def stream(*purpose: str | int) -> np.random.Generator:
    """Random generator of a purpose, with the same numbers in every process."""
    digest = hashlib.sha256(json.dumps(purpose).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence(words))


def open_trace(name: str, seed: int = 0, **options: Any) -> tuple[pd.DataFrame, Provenance]:
    """Open a generated trace, a public one or its stand-in; the second value is its provenance."""
    if name in synth.generators:
        return _generated(name, name, GENERATED, seed, options)
    if not public.is_known(name):
        raise ParamError(
            f"unknown trace {name!r}: no file {own_path(name)}, no generator "
            f"({', '.join(synth.generators)}), nor {public.trace_hint(name)}"
        )
    try:
        public.fetch(name)
    except DataMissingError as error:
        generator, generator_options = synth.stand_in_for(name)
        if generator is None:
            raise
        warnings.warn(f"{error}; generating a {STAND_IN} for it", StandInWarning, stacklevel=3)
        return _generated(name, generator, STAND_IN, seed, generator_options | options)
    frame = load_public(name, **options)
    # The trace is public, but durations may come from a stand-in throughput table.
    stands_in = bool(frame.attrs.get("stand_in"))
    kind = STAND_IN if stands_in else PUBLIC
    return frame, Provenance(name, kind, frame.attrs.get("sha256"), stands_in)


def _generated(
    name: str, generator: str, kind: str, seed: int, options: dict[str, Any]
) -> tuple[pd.DataFrame, Provenance]:
    """Generate a trace; the second value is its provenance under ``name``."""
    random_source = seed if synth.takes_seed(generator) else stream("trace", generator, seed)
    frame = synth.make(generator, random_source, **options)
    frame.attrs.setdefault("name", generator)
    frame.attrs["synthetic"] = True
    if kind == STAND_IN:
        frame.attrs["stand_in_for"] = name
    # The durations of a generated trace may come from a stand-in throughput table.
    kind = STAND_IN if frame.attrs.get("stand_in") else kind
    return frame, Provenance(name, kind, content_hash(frame), True, seed)


def describe_file(name: str) -> Provenance:
    """Provenance of a public file, or of its stand-in if the file is not available here.

    A file that has no stand-in keeps its own provenance, with the registered hash.
    """
    if public.available(name) or synth.stand_in_for(name)[0] is None:
        return Provenance(name, PUBLIC, public.entry(name).sha256, False)
    return Provenance(name, STAND_IN, None, True)


def own_path(path: str | Path) -> Path:
    """Absolute path of a user's file; ``path`` starts at the project's root."""
    return paths.project_root() / paths.expanded(path)


def is_own(name: str) -> bool:
    """Whether a name is the path of a user's file and no name of the package's data."""
    is_package_data = name in synth.generators or public.is_known(name)
    return os.path.isfile(own_path(name)) and not is_package_data


def own_throughputs(name: str) -> str:
    """Absolute path of a user's throughput table (file or measured folder); else the name itself.

    A relative path starts at the project's root.
    """
    path = str(own_path(name))
    is_folder = not public.is_known(name) and measured_folders_of(path) is not None
    return path if is_folder or is_own(name) else name


def own_file(path: str | Path) -> Provenance:
    """Provenance of a user's file; ``path`` starts at the project's root."""
    file = own_path(path)
    root = paths.project_root()
    if not os.path.isfile(file):
        raise DataMissingError(f"{path}: no such file; paths are relative to {root}")
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    real = file.resolve()
    name = real.relative_to(root).as_posix() if real.is_relative_to(root) else str(file)
    return Provenance(name, OWN, digest, False)
