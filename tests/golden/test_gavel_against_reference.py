"""The round mechanism against a re-implementation with lists, job by job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from gavel_reference import Job, Reference

from repro import simulate
from repro.model.decision import Shares
from repro.model.share_policy import SharePolicy
from repro.perf.throughput import ThroughputTable

GPUS = {"k80": 3, "p100": 2, "v100": 4}
CLUSTER = "3xk80,2xp100,4xv100"
MODELS = ("a", "b", "c", "d")


def weight(*numbers):
    """A share that depends on nothing but the numbers."""
    return (np.sin(7.3 * sum((k + 1) * n for k, n in enumerate(numbers))) + 1.0) / 2


def shares(active, gangs, pairs):
    """Feasible shares of jobs (and pairs) that are far from symmetric."""
    entries = list(active)
    if not entries:
        return [], np.empty((0, 3))
    if pairs:
        entries += [
            (a, b)
            for k, b in enumerate(active)
            for a in active[:k]
            if gangs[a] == gangs[b] and (a + b) % 3
        ]
    raw = np.array(
        [[weight(k, *(e if isinstance(e, tuple) else (e, 1))) for k in range(3)] for e in entries]
    )
    raw[raw < 0.3] = 0.0
    widths = np.array([gangs[e[0] if isinstance(e, tuple) else e] for e in entries])
    used = widths @ raw
    limits = np.array([GPUS[kind] for kind in sorted(GPUS)])
    raw *= np.minimum(1.0, limits / np.maximum(used, 1e-9))
    time = dict.fromkeys(active, 0.0)
    for entry, row in zip(entries, raw, strict=True):
        for job in entry if isinstance(entry, tuple) else (entry,):
            time[job] += row.sum()
    most = max(1.0, max(time.values()))
    return entries, raw / most


@dataclass(frozen=True)
class Lopsided(SharePolicy):
    """The shares above."""

    pairs: bool = False
    tells_types = False

    @property
    def pairs_up(self):
        return self.pairs

    def decide(self, view):
        gangs = {job: view.gpus(job) for job in view.jobs}
        entries, x = shares(view.jobs, gangs, self.pairs)
        return Shares(entries, ("k80", "p100", "v100"), x)


def drawn(seed, jobs, gap, gangs):
    rng = np.random.default_rng(seed)
    speeds = {
        (m, g): dict(zip(sorted(GPUS), rng.uniform(0.02, 8.0, 3).round(3).tolist(), strict=True))
        for m in MODELS
        for g in (1, 2)
    }
    for g in (1, 2):
        speeds["a", g]["k80"] = 0.0
    pairs = {
        (m, n, g): {
            k: (speeds[m, g][k] * 0.7, speeds[n, g][k] * (0.0 if (m, n) == ("b", "c") else 0.6))
            for k in GPUS
        }
        for g in (1, 2)
        for i, m in enumerate(MODELS)
        for n in MODELS[i:]
    }
    frame = pd.DataFrame(
        {
            "job_id": range(jobs),
            "submit_time": np.cumsum(rng.exponential(gap, jobs)).round(3) - 1.0,
            "num_gpus": rng.choice(gangs, jobs),
            "model": rng.choice(MODELS, jobs),
            "iterations": rng.integers(20, 20_000, jobs).astype(float),
        }
    )
    frame["submit_time"] = (frame["submit_time"] - frame["submit_time"].min()).round(3)
    keys = zip(frame["model"], frame["num_gpus"], strict=True)
    frame["duration"] = [
        n / speeds[k]["v100"] for n, k in zip(frame["iterations"], keys, strict=True)
    ]
    return frame, ThroughputTable(speeds, "v100", pairs)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("interval", [0.0, 1920.0])
@pytest.mark.parametrize("seed", range(8))
def test_every_job_ends_when_the_reference_says(seed, interval, pairs):
    gap = (150.0, 600.0, 4000.0)[seed % 3]
    frame, table = drawn(seed, 40, gap, (1, 1, 2) if seed % 2 else (1,))

    def pair_speed(one, two, kind):
        a, b = (one.name, two.name)
        gang = one.gang
        return table.pair_speeds(a, gang, b, gang, (kind,))[:, 0].tolist()

    jobs = []
    for row in frame.itertuples():
        job = Job(
            row.submit_time, row.iterations, row.num_gpus, table.rows[row.model, row.num_gpus]
        )
        job.name = row.model
        jobs.append(job)

    def policy(active, jobs):
        entries, x = shares(active, {j: jobs[j].gang for j in active}, pairs)
        return {
            e: dict(zip(sorted(GPUS), r.tolist(), strict=True))
            for e, r in zip(entries, x, strict=True)
        }

    reference = Reference(
        jobs,
        GPUS,
        policy,
        pair_speed if pairs else None,
        interval=interval,
        shuffled=True,
        seed=seed,
    )
    ends = reference.run()
    result = simulate(
        frame,
        CLUSTER,
        Lopsided(pairs),
        rules="gavel",
        perf=table,
        seed=seed,
        rounds={"min_realloc_interval_s": interval},
    )
    np.testing.assert_allclose(result.jobs["end_time"], ends, rtol=0, atol=1e-6)
