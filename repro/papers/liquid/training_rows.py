"""Rows that a requirement estimator learns from: drawn from the iteration model, or measured."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, TraceError, refuse_unknown
from repro.base.typing import Floats
from repro.files.table import Document, Table
from repro.files.tables import ModelTable
from repro.perf.parameter_server import IterationModel, named

#: What is known of a container before it runs; a role is 1 for a parameter server, 0 for a worker.
FEATURES = (
    *("model", "role", "gpus_per_task", "num_ps", "num_workers"),
    *("batch_size", "num_batches"),
)
#: What was measured of a container while it ran, units in the names (bandwidth: received).
LABELS = ("gpu_mem_mb", "gpu_util_pct", "gpu_util_std_pct", "bandwidth_kb_s", "mem_mb")
#: Amounts beyond which a job hardly runs faster, by `marginal_utility`.
ENOUGH = ("enough_workers", "enough_mb_s")
WORKERS = tuple(range(1, 9))
BANDWIDTHS_MB_S = tuple(range(25, 1001, 25))
_GRIDS = (WORKERS, BANDWIDTHS_MB_S)
#: Columns of a measured file to the labels made from them, and their factor.
_MEASURED = {
    "gpu_mem_nvml_mb": ("gpu_mem_mb", 1.0),
    "gpu_util_mean": ("gpu_util_pct", 1.0),
    "gpu_util_std": ("gpu_util_std_pct", 1.0),
    "gpu_busy_frac": ("gpu_busy_pct", 100.0),
    "ps_mb_s_each_way": ("bandwidth_kb_s", 1000.0),
    "host_pss_mb": ("mem_mb", 1.0),
    "cpu_cores": ("cpu_pct", 100.0),
    "iter_s": ("iter_s", 1.0),
}
_NUMBERS = (
    *("batch_size", "input_size", "loader_workers", "num_ps", "num_batches"),
    *("num_workers", "params_m"),
)
_TEXTS = ("model", "precision", "optimizer", "input_mode", "status")
#: What is known of a measured job before it runs (and ``params_m``, its parameters in millions).
MEASURED_FEATURES = (*_TEXTS[:-1], *_NUMBERS[:5])
_GENERATED = ModelTable(
    "liquid_synthetic.csv",
    ("model", "base_mb", "activation_mb", "host_mb", "saturation", "noise", "outliers"),
)


def marginal_utility(seconds: Sequence[float] | Floats, eps: float = 0.05) -> int:
    """Return which of growing amounts is enough: the first within 1 + eps of the least time.

    ``seconds`` are the times with each amount. Liquid, section 4.1, has no formula; this is ours.

    Examples
    --------
    >>> marginal_utility([100, 60, 52, 50])
    2
    """
    times = np.asarray(seconds, dtype=float)
    if times.ndim != 1 or times.size == 0 or not (np.isfinite(times).all() and times.min() > 0):
        raise ParamError("marginal utility needs one time above 0 s for each amount")
    if not 0 <= eps < 1:
        raise ParamError(f"eps is {eps!r}; give a number from 0 to below 1, such as 0.05")
    return int(np.argmax(times <= (1 + eps) * times.min()))


def image_s(model: IterationModel, name: str, batch: float, num_ps: int = 1) -> Floats:
    """Return the time (s) per image with each of `WORKERS`, every task on a node of its own."""
    steps = [sum(model.iteration_s(name, range(num_ps + n), batch, num_ps)) for n in WORKERS]
    return np.asarray(np.divide(steps, batch * np.array(WORKERS)))


def step_s(model: IterationModel, name: str, batch: float) -> Floats:
    """Return the time (s) of an iteration with each of `BANDWIDTHS_MB_S` to the server."""
    links = [
        replace(model, pair_mb_s=mb_s, node_mb_s=mb_s).iteration_s(name, (0, 1), batch)
        for mb_s in BANDWIDTHS_MB_S
    ]
    return np.asarray(np.sum(links, axis=1))


def synthetic(
    rng: np.random.Generator,
    rows: int = 450,
    models: Sequence[str] | None = None,
    *,
    gpu: str = "k80",
    noise: float | None = None,
    outliers: float | None = None,
) -> pd.DataFrame:
    """Draw profiles of containers from the iteration model, with noise and outliers.

    Half of the jobs are one task on 1 or 2 GPUs, half have 1 or 2 parameter servers and 1 to 8
    workers and give a row for each role; batch sizes and numbers of batches as the authors'
    launcher draws them (Liquid, section 7.1; no rows were published).

    Parameters
    ----------
    rng : Generator
        Source of every draw.
    rows : int
        Rows returned.
    models : sequence of str, optional
        Models to draw from, by default all of ``params/liquid_synthetic.csv``.
    gpu : {"k80", "t4"}
        Whose iteration times the labels follow.
    noise, outliers : float, optional
        Sigma of the log-normal factor and share of rows far off, by default those of the table.

    Returns
    -------
    DataFrame
        Columns `FEATURES`, `LABELS` and `ENOUGH` (by `marginal_utility`).

    Examples
    --------
    >>> table = synthetic(np.random.default_rng(0), 4)
    >>> len(table), [name for name in FEATURES if name not in table]
    (4, [])
    """
    facts = _GENERATED.frame.set_index("model").to_dict("index")
    names = list(map(str, facts)) if models is None else list(models)
    refuse_unknown("there are no profiles of", names, list(map(str, facts)))
    timing = named(gpu)
    if not isinstance(timing, IterationModel):
        raise ParamError(f"times {gpu!r} know no batch sizes; accepted are k80, t4")
    found: list[dict[str, Any]] = []
    while len(found) < rows:
        name = str(rng.choice(names))
        found += _containers(rng, name, facts[name], timing)
    table = pd.DataFrame(found[:rows])
    sigma = _GENERATED.column("noise")[names[0]] if noise is None else noise
    share = _GENERATED.column("outliers")[names[0]] if outliers is None else outliers
    for label in LABELS:
        factor = np.exp(sigma * rng.standard_normal(rows))
        # a neighbour's use counted in, or a run that stopped early
        grew = rng.random(rows) < 0.5
        more = rng.uniform(1.5, 2.5, rows)
        far = np.where(grew, more, rng.uniform(0.2, 0.6, rows))
        factor = np.where(rng.random(rows) < share, factor * far, factor)
        limit = 100.0 if label.endswith("pct") else np.inf
        table[label] = np.floor(np.minimum(table[label] * factor, limit))
    return table


def _containers(
    rng: np.random.Generator, name: str, fact: Any, timing: IterationModel
) -> list[dict[str, Any]]:
    """Return the rows of one job: its worker's, and before it its parameter server's."""
    size = timing.models[name].model_mb
    distributed = bool(rng.random() < 0.5)
    batch = 4 * int(rng.integers(1, 9))
    batches = 50 * int(rng.integers(4, 21))
    num_ps, workers = (int(rng.integers(1, 3)), int(rng.integers(1, 9))) if distributed else (0, 1)
    per_task = 1 if distributed else int(rng.integers(1, 3))
    job = dict(zip(FEATURES, (name, 0, per_task, num_ps, workers, batch, batches), strict=True))
    compute, sync = timing.iteration_s(name, range(num_ps + workers), batch, num_ps)
    period = compute + sync
    busy = compute / period * batch / (batch + fact["saturation"])
    moved = 1000 * size / period if distributed else 0.0
    scatter = (busy * (1 - busy)) ** 0.5
    # the framework's allocator doubles what it holds: parameters and their companions, activations
    own = _doubled(4 * size)
    images = _doubled(fact["activation_mb"] * batch)
    memory = fact["base_mb"] + own + images, fact["host_mb"] + own + _doubled(8 * batch)
    times = image_s(timing, name, batch, num_ps or 1), step_s(timing, name, batch)
    enough = [grid[marginal_utility(t)] for grid, t in zip(_GRIDS, times, strict=True)]
    job |= dict(zip(ENOUGH, enough, strict=True))
    worker = (memory[0], 100 * busy, 100 * scatter, moved, memory[1])
    found = [job | dict(zip(LABELS, worker, strict=True))]
    if distributed:
        held = _doubled(2 * size / num_ps)
        received = moved * workers / num_ps
        server = (fact["base_mb"] + held, 0.0, 0.0, received, fact["host_mb"] + held)
        found.insert(0, job | {"role": 1} | dict(zip(LABELS, server, strict=True)))
    return found


def _doubled(megabytes: float) -> float:
    """Return the smallest power of two that holds an amount."""
    return float(2.0 ** np.ceil(np.log2(max(megabytes, 1.0))))


def measured(path: str | Path) -> pd.DataFrame:
    """Read measured profiles as training rows; a bad row raises file, line and column.

    Rows with status ``error`` are left out and counted in ``attrs["left_out"]``. Columns:
    `MEASURED_FEATURES` and the labels in ``traces/measured/profiles.csv`` (units in the names).
    """
    table = Table(Document.read(path), (*_TEXTS, *_NUMBERS, *_MEASURED), text=_TEXTS)
    status = table.frame["status"]
    count = len(table.frame)
    strange = ~status.isin(["ok", "error"]).to_numpy(bool)
    table.refuse(strange, "status", "unknown status", "a status is ok or error")
    table.frame = table.frame[status == "ok"]
    if table.frame.empty:
        raise TraceError(f"{path}: none of its {count} rows ran; give profiles of status ok")
    rows = table.complete(_TEXTS[:-1], (*_NUMBERS, *_MEASURED)).reset_index(drop=True)
    for name, (label, factor) in _MEASURED.items():
        rows[label] = factor * rows.pop(name)
    rows.attrs["left_out"] = count - len(rows)
    return rows
