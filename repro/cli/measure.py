"""``repro measure``: tables of job types on the GPU of this machine."""

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from repro.base.counts import refuse_below
from repro.base.errors import ParamError
from repro.base.extras import require
from repro.cli import complete
from repro.cli.lines import complain, say
from repro.files.checks import shown
from repro.measure.job_types import JOB_TYPES, JobType, job_types

#: Job types of `repro measure sequence`, and those of each measurement with --tiny.
_SEQUENCE = ("cnn_mnist", "neumf")
_TINY = {
    "profiles": ("cnn_mnist", "a2c"),
    "pairs": ("a2c",),
    "stages": ("a2c", "dqn"),
    "pause": ("a2c",),
    "sequence": ("a2c",),
}

OutOption = Annotated[
    Path,
    typer.Option(
        metavar="DIR", help="Folder of the tables; rows of earlier runs stay and are not repeated."
    ),
]
MinutesOption = Annotated[
    float,
    typer.Option(metavar="MIN", help="No measurement begins after so many minutes."),
]
ModelsOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL,…",
        help="Job types, with commas (default: all; sequence: cnn_mnist,neumf).",
        autocompletion=complete.job_type_list,
    ),
]
TinyOption = Annotated[
    bool,
    typer.Option("--tiny", help="Smallest sizes on the CPU, to try the command without a GPU."),
]
SeedOption = Annotated[
    int, typer.Option(metavar="N", help="Seed of random configurations and groups.")
]


def profiles(
    out: OutOption,
    minutes: MinutesOption = 30,
    models: ModelsOption = None,
    seed: SeedOption = 0,
    tiny: TinyOption = False,
) -> None:
    """Measure random configurations of each job type: times, memory, traffic, power."""
    _measure("profiles", out, minutes, models, seed, tiny=tiny)


def pairs(
    out: OutOption,
    minutes: MinutesOption = 30,
    models: ModelsOption = None,
    tiny: TinyOption = False,
) -> None:
    """Measure job types alone and in pairs, by time slicing and, if it starts, under MPS."""
    _measure("pairs", out, minutes, models, 0, tiny=tiny)


def stages(
    out: OutOption,
    minutes: MinutesOption = 30,
    models: ModelsOption = None,
    seed: SeedOption = 0,
    tiny: TinyOption = False,
) -> None:
    """Measure storage, CPU, GPU and network stage of job types, alone and in groups."""
    _measure("stages", out, minutes, models, seed, tiny=tiny)


def pause(
    out: OutOption,
    minutes: MinutesOption = 30,
    models: ModelsOption = None,
    tiny: TinyOption = False,
) -> None:
    """Measure launch, save, exit, restore and offloading of job types."""
    _measure("pause", out, minutes, models, 0, tiny=tiny)


def sequence(
    out: OutOption,
    minutes: MinutesOption = 30,
    models: ModelsOption = None,
    tiny: TinyOption = False,
) -> None:
    """Measure two jobs in a row, with four ways to launch the second."""
    _measure("sequence", out, minutes, models, 0, tiny=tiny)


def _measure(
    name: str, out: Path, minutes: float, models: str | None, seed: int, *, tiny: bool
) -> None:
    """Check the arguments, then run one measurement."""
    if not 0 < minutes < math.inf:
        raise ParamError(f"--minutes {minutes:g}: give a number of minutes above 0")
    refuse_below("--seed", seed, 0)
    jobs = _jobs(name, models, tiny=tiny)
    if out.exists() and not out.is_dir():
        raise ParamError(f"--out {shown(out)}: is a file; give a folder")
    require("measure", f"repro measure {name}")
    # these import PyTorch, which only this command needs
    session = importlib.import_module("repro.measure.session")
    measure: Callable[..., int] = importlib.import_module(f"repro.measure.{name}").measure
    with session.opened(out, jobs, minutes, complain, tiny=tiny, seed=seed) as opened:
        added = measure(opened)
    say(f"{added:,} measurements of {name} in {out}")


def _jobs(name: str, models: str | None, *, tiny: bool) -> list[JobType]:
    """Job types of a measurement."""
    if models is None:
        default = _SEQUENCE if name == "sequence" else tuple(JOB_TYPES)
        return job_types(_TINY[name] if tiny else default)
    names = [word.strip() for word in models.split(",") if word.strip()]
    if not names:
        raise ParamError(f"--models {shown(repr(models))}: names no job type")
    return job_types(names)
