"""What is fitted to Gavel's throughputs for their synthetic double: trends, none of the values."""

import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd

from repro.files.tables import MEASURED
from repro.perf.synthetic_throughputs import GANGS, GPU_TYPES, JobType, job_types
from repro.perf.throughput import UNCONSOLIDATED, ThroughputTable
from repro.solve.linear import minimise_linear

COLUMNS = MEASURED["gavel_speeds"]
#: Room left and right of the limit of the memory, so that the two gpu_types of pairs stay apart.
_MARGIN = 0.02

_Term = tuple[str, str, str, int, float, float, float]


def calibrate(measured: ThroughputTable) -> pd.DataFrame:
    """Fit the trends behind :func:`repro.perf.synthetic_throughputs.gavel_like`."""
    terms = [*_alone(measured), *_gangs(measured)]
    for fit in (_kept, _memory):
        for gpu_type in GPU_TYPES:
            terms += fit(measured, gpu_type)
    frame = pd.DataFrame(terms, columns=COLUMNS)
    order = {name: place for place, name in enumerate(frame["quantity"].unique())}
    frame = frame.sort_values("quantity", key=lambda column: column.map(order), kind="stable")
    # The third digit of a logarithm is 0.07 % of a speed, far below what the trends leave open.
    rounded = frame.round(dict.fromkeys(COLUMNS[4:6], 3) | {"curvature": 4}).reset_index(drop=True)
    # whether 0 or -0 comes out depends on the machine
    return rounded.assign(**{name: rounded[name] + 0.0 for name in COLUMNS[4:]})


def _models() -> dict[str, list[JobType]]:
    return {model: list(jobs) for model, jobs in itertools.groupby(job_types(), lambda j: j.model)}


def _fit(x: list[float], y: list[float], degree: int) -> tuple[float, float, float]:
    fitted = np.polyfit(x, y, min(degree, len(x) - 1))[::-1]
    constant, slope, curvature = np.pad(fitted, (0, 3 - len(fitted))).tolist()
    return constant, slope, curvature


def _alone(measured: ThroughputTable) -> Iterator[_Term]:
    for model, members in _models().items():
        for gpu_type in GPU_TYPES:
            speeds = [np.log2(measured.steps_per_s(job.name, 1, gpu_type)) for job in members]
            yield "alone", model, gpu_type, 1, *_fit([job.size for job in members], speeds, 2)


def _gangs(measured: ThroughputTable) -> Iterator[_Term]:
    for model, members in _models().items():
        if not members[0].distributed:
            continue
        for gpu_type, gang in itertools.product(GPU_TYPES, GANGS):
            near = (gang, gpu_type)
            far = (gang, gpu_type + UNCONSOLIDATED)
            for quantity, above, below in (
                ("scale_out", near, (1, gpu_type)),
                ("unconsolidated", far, near),
            ):
                held = [job for job in members if _speed(measured, job, above) > 0]
                gains = [
                    _speed(measured, job, above) / _speed(measured, job, below) for job in held
                ]
                sizes = [job.size for job in held]
                yield quantity, model, gpu_type, gang, *_fit(sizes, np.log2(gains).tolist(), 1)


def _speed(measured: ThroughputTable, job: JobType, place: tuple[int, str]) -> float:
    gang, gpu_type = place
    return measured.rows[job.name, gang].get(gpu_type, 0.0)


def _kept(measured: ThroughputTable, gpu_type: str) -> list[_Term]:
    """Fit what a job keeps in a pair: a line in its own size plus a line in the other's."""
    models = list(_models())
    features = []
    kept = []
    for job in job_types():
        alone = measured.steps_per_s(job.name, 1, gpu_type)
        for other in job_types():
            reached = measured.pair_speeds(job.name, 1, other.name, 1, (gpu_type,))[0, 0]
            if reached > 0:
                row = np.zeros((2, len(models), 2))
                row[0, models.index(job.model)] = 1.0, job.size
                row[1, models.index(other.model)] = 1.0, other.size
                features.append(row.ravel())
                kept.append(np.log2(reached / alone))
    fitted = np.linalg.lstsq(np.array(features), np.array(kept), rcond=None)[0]
    return [
        (quantity, model, gpu_type, 1, *line, 0.0)
        for quantity, part in zip(
            ("kept", "pressure"), fitted.reshape(2, len(models), 2).tolist(), strict=True
        )
        for model, line in zip(models, part, strict=True)
    ]


def _memory(measured: ThroughputTable, gpu_type: str) -> list[_Term]:
    """Separate the pairs that run from those that do not: least sum of violations."""
    models = list(_models())
    rows = []
    limits = []
    for place, job in enumerate(job_types()):
        for other in job_types()[: place + 1]:
            use = np.zeros((len(models), 2))
            for member in (job, other):
                use[models.index(member.model)] += 1.0, (member.batch_size or 0) / 1000
            runs = measured.pair_speeds(job.name, 1, other.name, 1, (gpu_type,))[0, 0] > 0
            sign = 1.0 if runs else -1.0
            rows.append(sign * use.ravel())
            limits.append(sign - _MARGIN)
    costs = np.concatenate([np.full(2 * len(models), 1e-3), np.ones(len(rows))])
    matrix = np.hstack([np.array(rows), -np.eye(len(rows))])
    found = minimise_linear(costs, matrix, limits)
    shares = found.x[: 2 * len(models)].reshape(len(models), 2)
    return [
        ("memory", model, gpu_type, 1, float(constant), float(slope), 0.0)
        for model, (constant, slope) in zip(models, shares, strict=True)
    ]
