"""``repro measure profiles``: iterations of random configurations, one by one."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from repro.measure.gpu import GpuSamples
from repro.measure.job_types import LOADER_WORKERS, OPTIMIZERS, PRECISIONS, JobType
from repro.measure.session import Session
from repro.measure.worker import Worker, WorkerError

#: Length of the window of a profile (s).
_WINDOW_S = 0.8
#: Range of the nominal number of batches of a job.
_BATCHES = (100, 3000)
#: Configurations of each job type.
PER_JOB = 25
_TINY_PER_JOB = 1


def measure(session: Session) -> int:
    """Append a row per configuration to ``profiles.csv``; number of new rows."""
    table = session.table("profiles.csv")
    per_job = _TINY_PER_JOB if session.tiny else PER_JOB
    # one configuration of every job type, then the next of every job type, so that all job types
    # have about as many rows when the budget is spent
    runs = [(number, job) for number in range(per_job) for job in session.jobs]
    todo = [(number, job) for number, job in runs if not table.has(f"{job.name}-{number}")]
    for done, (number, job) in enumerate(todo):
        if not session.begins(f"profile {number} of {job.name}", done, len(todo)):
            return done
        table.add(_profile(session, job, number))
    return len(todo)


def _profile(session: Session, job: JobType, number: int) -> dict[str, Any]:
    """Row of one configuration; a configuration that cannot run has the error."""
    rng = np.random.default_rng([session.seed, number, zlib.crc32(f"profile {job.name}".encode())])
    configuration = session.configuration(
        job,
        batch_size=int(rng.choice(job.batch_sizes())),
        input_size=int(rng.choice(job.sizes)),
        precision=str(rng.choice(PRECISIONS)),
        optimizer=str(rng.choice(OPTIMIZERS)),
    )
    uses_pool = bool(rng.random() < 0.3)
    workers = int(rng.choice(LOADER_WORKERS))
    num_ps = int(rng.integers(0, 2))
    num_batches = int(rng.integers(*_BATCHES))
    mode = "pool" if uses_pool else "loader"
    if job.kind == "env":
        mode = "env"
    workers = workers if mode == "loader" else 0
    row: dict[str, Any] = {
        "run": f"{job.name}-{number}",
        "model": job.name,
        "kind": job.kind,
        "batch_size": configuration.batch_size,
        "input_size": configuration.input_size,
        "precision": configuration.precision,
        "optimizer": configuration.optimizer,
        "input_mode": mode,
        "loader_workers": workers,
        "num_ps": num_ps,
        "num_workers": 1,
        "num_batches": num_batches,
        "dataset_samples": num_batches * configuration.batch_size,
        "status": "ok",
    }
    try:
        with Worker(configuration) as worker, session.samples(with_pcie=True) as samples:
            values: dict[str, float] = worker.ask(
                "profile",
                seconds=session.window_s(_WINDOW_S),
                loader_workers=None if mode == "pool" else workers,
                with_server=num_ps > 0,
            )
    except WorkerError as error:
        return row | {"status": "error", "error": str(error)}
    return row | values | _derived(row, values, samples)


def _derived(
    row: dict[str, Any], values: dict[str, float], samples: GpuSamples
) -> dict[str, float | None]:
    """Columns that follow from the times of a profile and from the samples of the GPU."""
    rate = row["batch_size"] / values["iter_s"]
    power = samples.mean("power_w")
    pcie = {name: samples.mean(f"pcie_{name}_kb_s") for name in ("tx", "rx")}
    return {
        "samples_per_s": rate,
        "train_s_extrapolated": values["iter_s"] * row["num_batches"],
        "gpu_util_mean": samples.mean("gpu_util"),
        "gpu_util_std": samples.std("gpu_util"),
        "gpu_util_n": float(len(samples.values("gpu_util"))),
        "gpu_membus_util": samples.mean("mem_util"),
        "gpu_mem_nvml_mb": max(samples.values("mem_used_mb"), default=None),
        "power_w": power,
        "energy_j_per_iter": None if power is None else power * values["iter_s"],
        "sm_mhz": samples.mean("sm_mhz"),
        **{
            f"pcie_{name}_mb_s": None if rate_kb is None else rate_kb / 1000
            for name, rate_kb in pcie.items()
        },
    }
