"""Trends fitted to Gavel's throughputs, for the stand-in of their table."""

import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd

from repro.files.tables import MEASURED
from repro.perf.synthetic_throughputs import GANG_WIDTHS, GPU_TYPES, JobType, job_types
from repro.perf.throughput import UNCONSOLIDATED, ThroughputTable
from repro.solve.linear import minimise_linear

COLUMNS = MEASURED["gavel_speeds"]
#: Margin on both sides of the memory limit, between pairs that run and pairs that do not.
_MARGIN = 0.02

#: Quantity, model, GPU type, GPUs, constant, slope, curvature.
_Term = tuple[str, str, str, int, float, float, float]


def calibrate(measured: ThroughputTable) -> pd.DataFrame:
    """Fit the trends behind :func:`repro.perf.synthetic_throughputs.gavel_like`."""
    terms = [*_alone(measured), *_gangs(measured)]
    for fit in (_kept, _memory):
        for gpu_type in GPU_TYPES:
            terms += fit(measured, gpu_type)
    frame = pd.DataFrame(terms, columns=COLUMNS)
    order = {name: position for position, name in enumerate(frame["quantity"].unique())}
    frame = frame.sort_values("quantity", key=lambda column: column.map(order), kind="stable")
    # The third digit of a logarithm is 0.07 % of a speed, far below the errors of the trends.
    rounded = frame.round(dict.fromkeys(COLUMNS[4:6], 3) | {"curvature": 4}).reset_index(drop=True)
    # The sum turns -0 into 0. Which of the two the fit gives depends on the machine.
    return rounded.assign(**{name: rounded[name] + 0.0 for name in COLUMNS[4:]})


def _models() -> dict[str, list[JobType]]:
    """Job types by model."""
    return {model: list(jobs) for model, jobs in itertools.groupby(job_types(), lambda j: j.model)}


def _fit(x: list[float], y: list[float], degree: int) -> tuple[float, float, float]:
    """Constant, slope and curvature of a fitted polynomial of degree 1 or 2."""
    coefs = np.polyfit(x, y, min(degree, len(x) - 1))[::-1]
    constant, slope, curvature = np.pad(coefs, (0, 3 - len(coefs))).tolist()
    return constant, slope, curvature


def _alone(measured: ThroughputTable) -> Iterator[_Term]:
    """Fit the logarithm of the throughput on one GPU: a parabola."""
    for model, members in _models().items():
        for gpu_type in GPU_TYPES:
            speeds = [np.log2(measured.steps_per_s(job.name, 1, gpu_type)) for job in members]
            sizes = [job.log2_batch_size for job in members]
            yield "alone", model, gpu_type, 1, *_fit(sizes, speeds, 2)


def _gangs(measured: ThroughputTable) -> Iterator[_Term]:
    """Fit the logarithms of the gain of a gang and of the loss by spreading it: lines."""
    for model, members in _models().items():
        if not members[0].distributed:
            continue
        for gpu_type, gang in itertools.product(GPU_TYPES, GANG_WIDTHS):
            consolidated = (gang, gpu_type)
            unconsolidated = (gang, gpu_type + UNCONSOLIDATED)
            for quantity, numerator, denominator in (
                ("scale_out", consolidated, (1, gpu_type)),
                ("unconsolidated", unconsolidated, consolidated),
            ):
                jobs = [job for job in members if _speed(measured, job, numerator) > 0]
                ratios = [
                    _speed(measured, job, numerator) / _speed(measured, job, denominator)
                    for job in jobs
                ]
                sizes = [job.log2_batch_size for job in jobs]
                yield quantity, model, gpu_type, gang, *_fit(sizes, np.log2(ratios).tolist(), 1)


def _speed(measured: ThroughputTable, job: JobType, gang_on_type: tuple[int, str]) -> float:
    """Throughput (steps/s) of a job on a gang of GPUs of one type; 0 if it cannot run there."""
    gang, gpu_type = gang_on_type
    return measured.rows[job.name, gang].get(gpu_type, 0.0)


def _kept(measured: ThroughputTable, gpu_type: str) -> list[_Term]:
    """Fit the logarithm of the part of its throughput that a job keeps in a pair.

    The fit is a line in the size of the job plus a line in the size of the other job.
    """
    models = list(_models())
    features = []
    kept_logs = []
    for job in job_types():
        alone = measured.steps_per_s(job.name, 1, gpu_type)
        for other in job_types():
            reached = measured.pair_speeds(job.name, 1, other.name, 1, (gpu_type,))[0, 0]
            if reached > 0:
                row = np.zeros((2, len(models), 2))
                row[0, models.index(job.model)] = 1.0, job.log2_batch_size
                row[1, models.index(other.model)] = 1.0, other.log2_batch_size
                features.append(row.ravel())
                kept_logs.append(np.log2(reached / alone))
    coefs = np.linalg.lstsq(np.array(features), np.array(kept_logs), rcond=None)[0]
    own_lines, other_lines = coefs.reshape(2, len(models), 2).tolist()
    return [
        (quantity, model, gpu_type, 1, *line, 0.0)
        for quantity, lines in (("kept", own_lines), ("pressure", other_lines))
        for model, line in zip(models, lines, strict=True)
    ]


def _memory(measured: ThroughputTable, gpu_type: str) -> list[_Term]:
    """Fit the memory of jobs so that pairs that run use less than 1 and all others more.

    The fit has the least sum of violations.
    """
    models = list(_models())
    rows = []
    limits = []
    for position, job in enumerate(job_types()):
        for other in job_types()[: position + 1]:
            use = np.zeros((len(models), 2))
            for member in (job, other):
                use[models.index(member.model)] += 1.0, (member.batch_size or 0) / 1000
            runs = measured.pair_speeds(job.name, 1, other.name, 1, (gpu_type,))[0, 0] > 0
            sign = 1.0 if runs else -1.0
            rows.append(sign * use.ravel())
            limits.append(sign - _MARGIN)
    costs = np.concatenate([np.full(2 * len(models), 1e-3), np.ones(len(rows))])
    matrix = np.hstack([np.array(rows), -np.eye(len(rows))])
    optimum = minimise_linear(costs, matrix, limits)
    lines = optimum.x[: 2 * len(models)].reshape(len(models), 2)
    return [
        ("memory", model, gpu_type, 1, float(constant), float(slope), 0.0)
        for model, (constant, slope) in zip(models, lines, strict=True)
    ]
