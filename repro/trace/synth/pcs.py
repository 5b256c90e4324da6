"""PCS's workloads from the random stream of its simulator, and traces like its Philly traces."""

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.files.tables import measured
from repro.perf.speedup import pcs_speedups
from repro.trace.synth import generators
from repro.trace.synth.draws import inverse_cdf, jobs_with_gaps, strata

#: Number of GPU counts that a workload samples; each trial then takes one of these.
_POOL_SIZE = 100


@generators.register("pcs-workload")
def pcs_workload(
    seed: int,
    workload: str = "gavel",
    jobs: int = 3000,
    load: float | None = None,
    num_gpus: int = 64,
    by_job: bool = False,
    by_trial: bool = False,
) -> pd.DataFrame:
    """Generate a workload of PCS's simulator: jobs of one or more trials of one or more GPUs.

    The same seed gives the same jobs as the public simulator. Another number of ``jobs`` gives
    other jobs. A job asks for the GPUs of all its trials. ``service`` is its work in GPU-seconds;
    ``duration`` is its run time on all these GPUs, with linear speed-up. Submit times are whole
    seconds.

    Options: ``workload`` is gavel, gavel-contmultiple (own services; trials and GPUs of gavel),
    gavel-contsingle (the same as gavel), themis1, themis2, themis-scaled-2, afs, or workload_ and
    the name of a Philly virtual cluster. ``load`` is mean service / (mean gap x ``num_gpus``), by
    default 0.8; virtual clusters have their own gaps and take no load. ``by_job``: the sampler of
    the simulator's earlier versions (commit d8409db), in which each job in turn samples its GPUs
    and then its gap. The workloads of the paper's Figs 8 and 11 come from it. ``by_trial``: another
    early sampler, in which each trial samples a largest and a smallest GPU count in turn. Rows
    are then trials, and column ``app`` is the number of their job. The result files of themis1 at
    seed 4567 come from it. In these files each trial runs and ends independently of the others.

    PCS, arXiv 2401.10354, section 5; artifact ``simulation/sim.py``, table
    ``traces/pcs_workloads.csv``.
    """
    if not 0 <= seed < 2**32:
        raise ParamError(f"seed={seed}: give a whole number from 0 to {2**32 - 1:,}")
    tables = _distributions(workload)
    if load is not None and "interarrival" in tables:
        raise ParamError(f"load={load}: the gaps of {workload} are given; leave load out")
    for name, is_chosen in (("by_job", by_job), ("by_trial", by_trial)):
        if is_chosen and "interarrival" in tables:
            raise ParamError(f"{name}: the gaps of {workload} are given; leave {name} out")
    if by_job and by_trial:
        raise ParamError("by_job and by_trial are two samplers; give one of them")
    stream = np.random.RandomState(seed)
    service = _sampled(stream, tables["service"], jobs)
    trials = _sampled(stream, tables["trials"], jobs)
    pool = _sampled(stream, tables["gpus"], _POOL_SIZE)
    # the simulator also samples smallest GPU counts, which it does not use
    stream.random_sample((_POOL_SIZE, 2))
    mean_gap = float(np.mean(service)) / ((load or 0.8) * num_gpus)
    # all trials of a job have the same whole number of GPU-seconds
    trial_work = np.maximum(service // trials, 1).astype(float)
    if by_trial:
        return _trials(stream, pool, trials, trial_work, mean_gap)
    if by_job:
        gaps = np.empty(jobs, np.int64)
        gpus = np.empty(jobs, np.int64)
        for job, count in enumerate(trials):
            gpus[job] = stream.choice(pool, count).sum()
            gaps[job] = int(stream.exponential(mean_gap))
    else:
        if "interarrival" in tables:
            gaps = _sampled(stream, tables["interarrival"], jobs)
        else:
            gaps = stream.exponential(mean_gap, jobs).astype(np.int64)
        picked = stream.choice(pool, trials.sum())
        gpus = np.add.reduceat(picked, np.cumsum(trials) - trials)
    work = trial_work * trials
    return jobs_with_gaps(gaps[:-1], duration=work / gpus, num_gpus=gpus, service=work)


def _trials(
    stream: np.random.RandomState, pool: Ints, trials: Ints, trial_work: Floats, mean_gap: float
) -> pd.DataFrame:
    """Trials of jobs; each trial samples its GPUs and an unused count, each job then its gap."""
    gpus = np.empty(trials.sum(), np.int64)
    gaps = np.zeros(trials.sum(), np.int64)
    trial = 0
    for count in trials:
        for _ in range(count):
            gpus[trial] = stream.choice(pool)
            stream.choice(pool)
            trial += 1
        gaps[trial - 1] = int(stream.exponential(mean_gap))
    app = np.repeat(np.arange(trials.size), trials)
    work = trial_work[app]
    return jobs_with_gaps(gaps[:-1], duration=work / gpus, num_gpus=gpus, service=work, app=app)


@generators.register("pcs-like")
def pcs_like(
    rng: np.random.Generator,
    workload: str = "workload_0e4a51",
    jobs: int = 2465,
) -> pd.DataFrame:
    """Generate a trace like one of PCS's Philly virtual clusters: jobs with models and services.

    Demands, services and gaps have the distributions of the virtual cluster and are independent.
    The model is random among the models whose speed-up curve reaches the demand. ``duration`` is
    whole seconds, and ``service`` is duration x speed-up.

    Options: ``workload`` is workload_ and the name of a virtual cluster.

    PCS, arXiv 2401.10354, section 5; table ``traces/pcs_workloads.csv``.
    """
    tables = _distributions(workload)
    if "interarrival" not in tables:
        raise ParamError(f"workload={workload!r}: give workload_ and a virtual cluster of Philly")
    # rows of the public files are not sorted
    tables = {name: table[np.lexsort(table.T)] for name, table in tables.items()}
    value, share = tables["gpus"].T
    gpus = value[np.searchsorted(share, strata(rng, jobs))].astype(np.int64)
    speedups = pcs_speedups()
    models = np.empty(jobs, dtype=object)
    for width in np.unique(gpus):
        rows = np.flatnonzero(gpus == width)
        fitting_models = [model for model, curve in speedups.curves.items() if len(curve) >= width]
        models[rows] = rng.choice(fitting_models, rows.size)
    speeds, row = speedups.table(models.tolist(), gpus.tolist(), range(jobs))
    speed = speeds[row, gpus]
    value, share = tables["service"].T
    service = inverse_cdf(strata(rng, jobs), share, value)
    duration = np.maximum(np.round(service / speed), 1.0)
    # some gaps are 0, which have no logarithm
    value, share = tables["interarrival"].T
    gaps = np.floor(inverse_cdf(strata(rng, jobs - 1), share, value + 1) - 1)
    trace = jobs_with_gaps(gaps, duration=duration, num_gpus=gpus, model=models)
    return trace.assign(model=trace["model"].astype("str"), service=duration * speed)


def _distributions(workload: str) -> dict[str, Floats]:
    """Quantity -> rows of (value, share of jobs up to this value)."""
    rows = measured("pcs_workloads")
    selected = rows[rows["workload"] == workload]
    if selected.empty:
        workloads = ", ".join(sorted(rows["workload"].unique()))
        raise ParamError(f"workload={workload!r}: give one of {workloads}")
    groups = selected.groupby("quantity")[["value", "share"]]
    return {str(quantity): table.to_numpy(float) for quantity, table in groups}


def _sampled(stream: np.random.RandomState, table: Floats, size: int) -> Ints:
    """Whole numbers from a table of `_distributions`, (size,).

    A row is sampled by its share. The number is then uniform between the value of the row before,
    or 0, and the value of the row.
    """
    level, position = stream.random_sample((size, 2)).T
    value, share = table.T
    row = np.argmax(level[:, None] <= share, axis=1)
    low = np.concatenate([[0.0], value])[row]
    sampled: Ints = (low + (value[row] - low) * position).astype(np.int64)
    return sampled
