"""PCS's workloads, drawn from its simulator's random stream, and traces like its Philly ones."""

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.files.tables import measured
from repro.perf.speedup import pcs_speedups
from repro.trace.synth import generators
from repro.trace.synth.draws import inverse_cdf, jobs_apart, strata

#: GPU counts of trials that every workload draws; each trial then picks one of them.
_POOL = 100


@generators.register("pcs-workload")
def pcs_workload(
    seed: int,
    workload: str = "gavel",
    jobs: int = 3000,
    load: float | None = None,
    num_gpus: int = 64,
) -> pd.DataFrame:
    """Draw a workload of PCS's simulator: jobs of one or several trials, one GPU or more each.

    The same seed gives the same jobs as the public simulator; jobs are no prefix of those of a
    larger number of ``jobs``. A job asks for the GPUs of all its trials. ``service`` is its work on
    one GPU, ``duration`` that on all it asks for; speed-up is linear. Times are whole seconds.

    Options: ``workload`` is gavel, gavel-contmultiple (its services; trials and GPUs of gavel),
    gavel-contsingle (the same as gavel), themis1, themis2, themis-scaled-2, afs, or workload_ and
    the name of a Philly virtual cluster. ``load`` is the mean service over the mean gap x
    ``num_gpus``, 0.8 if not given; virtual clusters have gaps of their own and take none.

    PCS, arXiv 2401.10354, section 5; artifact ``simulation/sim.py``, table
    ``traces/pcs_workloads.csv``.
    """
    if not 0 <= seed < 2**32:
        raise ParamError(f"seed={seed}: give a whole number from 0 to {2**32 - 1:,}")
    tables = _tables(workload)
    if load is not None and "interarrival" in tables:
        raise ParamError(f"load={load}: the gaps of {workload} are given; leave load out")
    stream = np.random.RandomState(seed)
    service = _drawn(stream, tables["service"], jobs)
    trials = _drawn(stream, tables["trials"], jobs)
    pool = _drawn(stream, tables["gpus"], _POOL)
    # the simulator draws as many smallest GPU counts, and uses none
    stream.random_sample((_POOL, 2))
    if "interarrival" in tables:
        gaps = _drawn(stream, tables["interarrival"], jobs)
    else:
        mean = np.mean(service) / ((load or 0.8) * num_gpus)
        gaps = stream.exponential(mean, jobs).astype(np.int64)
    picked = stream.choice(pool, trials.sum())
    gpus = np.add.reduceat(picked, np.cumsum(trials) - trials)
    work = (np.maximum(service // trials, 1) * trials).astype(float)
    return jobs_apart(gaps[:-1], duration=work / gpus, num_gpus=gpus, service=work)


@generators.register("pcs-like")
def pcs_like(
    rng: np.random.Generator,
    workload: str = "workload_0e4a51",
    jobs: int = 2465,
) -> pd.DataFrame:
    """Draw a trace like one of PCS's Philly virtual clusters: jobs with models and services.

    GPUs asked for, services and gaps have the distributions of the virtual cluster, one drawn
    without regard to the other. The model is any whose speed-up curve reaches the GPUs asked for;
    duration is whole seconds, service is duration x speed-up.

    Options: ``workload`` is workload_ and the name of a virtual cluster.

    PCS, arXiv 2401.10354, section 5; table ``traces/pcs_workloads.csv``.
    """
    tables = _tables(workload)
    if "interarrival" not in tables:
        raise ParamError(f"workload={workload!r}: give workload_ and a virtual cluster of Philly")
    # rows of the public files are not all in order
    tables = {name: table[np.lexsort(table.T)] for name, table in tables.items()}
    value, share = tables["gpus"].T
    gpus = value[np.searchsorted(share, strata(rng, jobs))].astype(np.int64)
    curves = pcs_speedups()
    models = np.empty(jobs, dtype=object)
    for width in np.unique(gpus):
        rows = np.flatnonzero(gpus == width)
        long = [model for model, curve in curves.curves.items() if len(curve) >= width]
        models[rows] = rng.choice(long, rows.size)
    speeds, row = curves.table(models.tolist(), gpus.tolist(), range(jobs))
    speed = speeds[row, gpus]
    value, share = tables["service"].T
    service = inverse_cdf(strata(rng, jobs), share, value)
    duration = np.maximum(np.round(service / speed), 1.0)
    # some gaps are 0
    value, share = tables["interarrival"].T
    gaps = np.floor(inverse_cdf(strata(rng, jobs - 1), share, value + 1) - 1)
    trace = jobs_apart(gaps, duration=duration, num_gpus=gpus, model=models)
    return trace.assign(model=trace["model"].astype("str"), service=duration * speed)


def _tables(workload: str) -> dict[str, Floats]:
    """Return (value, share) rows by quantity."""
    rows = measured("pcs_workloads")
    held = rows[rows["workload"] == workload]
    if held.empty:
        known = ", ".join(sorted(rows["workload"].unique()))
        raise ParamError(f"workload={workload!r}: give one of {known}")
    parts = held.groupby("quantity")[["value", "share"]]
    return {str(quantity): table.to_numpy(float) for quantity, table in parts}


def _drawn(stream: np.random.RandomState, table: Floats, size: int) -> Ints:
    """Return whole numbers: the first row whose share is reached, then a point below its value."""
    which, where = stream.random_sample((size, 2)).T
    value, share = table.T
    row = np.argmax(which[:, None] <= share, axis=1)
    low = np.concatenate([[0.0], value])[row]
    drawn: Ints = (low + (value[row] - low) * where).astype(np.int64)
    return drawn
