"""Named data of a figure: generators, public traces, stand-ins, and what was really used."""

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
from repro.trace import synth
from repro.trace.load import load

#: What a data set is.
PUBLIC = "public"
GENERATED = "generated"
STAND_IN = "synthetic stand-in"
OWN = "own file"


@dataclass(frozen=True)
class Used:
    """Provenance of a data set: the name asked for (a path, if own), SHA-256 of file or values."""

    name: str
    kind: str
    sha256: str | None
    synthetic: bool
    seed: int | None = None


def stream(*purpose: str | int) -> np.random.Generator:
    """Return the random generator that belongs to a purpose, the same in every process."""
    digest = hashlib.sha256(json.dumps(purpose).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence(words))


def open_trace(name: str, seed: int = 0, **options: Any) -> tuple[pd.DataFrame, Used]:
    """Return a generated or a public trace, or a stand-in where there is one, and what it is."""
    if name in synth.generators:
        return _drawn(name, name, GENERATED, seed, options)
    if not public.is_known(name):
        raise ParamError(
            f"unknown trace {name!r}: no file {own_path(name)}, no generator "
            f"({', '.join(synth.generators)}), nor {public.unknown(name)}"
        )
    try:
        public.fetch(name)
    except DataMissingError as error:
        stand_in, chosen = synth.stand_in_for(name)
        if stand_in is None:
            raise
        warnings.warn(f"{error}; drawing a {STAND_IN} for it", StandInWarning, stacklevel=3)
        return _drawn(name, stand_in, STAND_IN, seed, chosen | options)
    frame = load(name, **options)
    # Steps are public, but their seconds come from a table that may not be.
    drawn = bool(frame.attrs.get("stand_in"))
    return frame, Used(name, STAND_IN if drawn else PUBLIC, frame.attrs.get("sha256"), drawn)


def _drawn(
    asked: str, generator: str, kind: str, seed: int, options: dict[str, Any]
) -> tuple[pd.DataFrame, Used]:
    """Return what a generator draws, and its provenance."""
    source = seed if synth.takes_seed(generator) else stream("trace", generator, seed)
    frame = synth.make(generator, source, **options)
    frame.attrs.setdefault("name", generator)
    frame.attrs["synthetic"] = True
    if kind == STAND_IN:
        frame.attrs["stand_in_for"] = asked
    kind = STAND_IN if frame.attrs.get("stand_in") else kind
    return frame, Used(asked, kind, content_hash(frame), True, seed)


def describe_file(name: str) -> Used:
    """Return what a named public file is at the moment: itself, or a stand-in for it."""
    if public.available(name) or synth.stand_in_for(name)[0] is None:
        return Used(name, PUBLIC, public.entry(name).sha256, False)
    return Used(name, STAND_IN, None, True)


def own_path(path: str | Path) -> Path:
    """Return where a file of the user's own is: its path is meant from the project's root."""
    return paths.project_root() / Path(path).expanduser()


def is_own(name: str) -> bool:
    """Tell whether a name means a file of the user's own: names of the package's data go first."""
    ours = name in synth.generators or public.is_known(name)
    return os.path.isfile(own_path(name)) and not ours


def own_file(path: str | Path) -> Used:
    """Return what a file of the user's own is now; its path is from the project's root."""
    found = own_path(path)
    root = paths.project_root()
    if not os.path.isfile(found):
        raise DataMissingError(f"{path}: no such file; its path is meant from {root}")
    with found.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    real = found.resolve()
    name = real.relative_to(root).as_posix() if real.is_relative_to(root) else str(found)
    return Used(name, OWN, digest, False)
