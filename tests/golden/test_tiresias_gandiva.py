"""`gandiva` under `--rules tiresias` is the public simulator job by job, also while jobs queue.

The numbers are what SymbioticLab/Tiresias, simulator/, commit 959f9b0, gives under Python 2.7 with
``--scheme=gandiva --schedule=gandiva`` on these jobs, which are generated here.
"""

from __future__ import annotations

import hashlib
import math
import random

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.policies.tiresias.gandiva import Gandiva

# jobs (GPUs, submission, duration) and their end times
SMALL = {
    # One job fills the cluster. At its end the first and third pending jobs enter; the second is
    # passed over, and so is the fourth.
    "every second pending job": (
        "4x4",
        [(16, 0, 100), (1, 10, 500), (2, 20, 500), (4, 30, 500), (8, 40, 500), (2, 50, 90)],
        "100 600 690 600 1100 190",
    ),
    # Three sets, more jobs than they can run: a job goes to the second least used set.
    "time sharing": (
        "3x4",
        [(4, 0, 100), (4, 0, 210), (4, 0, 320), (4, 0, 130), (4, 0, 240), (4, 0, 350), (4, 5, 70)],
        "105 215 325 235 455 585 525",
    ),
    # The usage of a set stays as high as it was when the first job ends.
    "usage": (
        "4x4",
        [(2, 0, 90), (2, 0, 350), (1, 0, 220), (2, 100, 70), (2, 100, 220)],
        "90 400 220 230 340",
    ),
    # The sizes want to grow, no node is free: their jobs are dealt out anew at every step.
    "dealt anew": (
        "4x4",
        [
            (1, 0, 400),
            (1, 0, 410),
            (1, 0, 420),
            (1, 0, 430),
            (1, 0, 440),
            (4, 3, 300),
            (4, 3, 310),
            (4, 3, 320),
            (4, 3, 330),
            (8, 7, 250),
            (8, 7, 260),
            (8, 7, 270),
            (2, 9, 50),
            (2, 9, 60),
        ],
        "409 419 429 439 849 309 319 339 639 649 1109 919 379 399",
    ),
}

# cluster, first submission, seed, jobs, sizes, mean duration (s), offered load, jobs that come at
# one instant; average JCT, and hash of the end times
GENERATED = [
    ("1x4", 0, 1, 40, (1, 2, 4), 200, 1.5, 1, 1809.725, "6e410963eddfe521"),
    ("2x4", 57, 2, 60, (1, 2, 4, 8), 300, 2.0, 1, 4317.566666666667, "b34e2d11fee8114f"),
    ("3x8", 0, 3, 80, (1, 2, 8, 16, 24), 400, 1.2, 4, 1408.5875, "7008dc14e93753ad"),
    ("4x4", 3, 4, 100, (1, 1, 1, 2, 4, 8, 12, 16), 500, 1.0, 1, 3181.45, "5db7e96169cefa46"),
    ("4x8", 1000, 5, 120, (1, 2, 4, 8, 12, 16, 24, 32), 300, 3.0, 1, 4717.225, "eadff934525e5f05"),
    ("5x8", 0, 6, 60, (8, 16, 32), 600, 1.5, 3, 5328.333333333333, "d7fb15cbda2ba5af"),
    ("8x4", 0, 7, 150, (1, 2, 4), 900, 1.1, 50, 4860.086666666667, "bdb3ba59017599b0"),
    (
        "8x8",
        11,
        8,
        150,
        (1, 1, 1, 1, 2, 4, 8, 64),
        700,
        0.9,
        2,
        3128.0666666666666,
        "9addba602b7f9647",
    ),
    ("12x4", 60, 9, 100, (4, 12, 24), 250, 2.5, 10, 1538.09, "4f7b3977f829754b"),
    (
        "16x8",
        0,
        10,
        300,
        (1, 1, 1, 1, 2, 4, 8, 12, 16, 24, 32, 64),
        1500,
        1.2,
        1,
        6572.1866666666665,
        "76b3f44af1f41481",
    ),
    ("16x8", 0, 11, 250, (1, 8, 16), 300, 8.0, 250, 2595.92, "dd6da98d304b24f5"),
    ("16x4", 29, 12, 200, (64, 32, 2), 120, 1.0, 1, 1667.39, "1e2a7b0da1d502ef"),
]


def jobs_of(cluster, first, seed, number, sizes, mean_s, load, at_once):
    """Return (GPUs, submission, duration) of generated jobs, the same on every machine."""
    draw = random.Random(seed).random
    nodes, node_gpus = map(int, cluster.split("x"))
    gap_s = mean_s * sum(sizes) / len(sizes) / (nodes * node_gpus * load)
    jobs = []
    submit = first
    for job in range(number):
        if job % at_once == 0 and job:
            submit += int(-math.log(1.0 - draw()) * gap_s * at_once)
        gpus = sizes[int(draw() * len(sizes))]
        jobs.append((gpus, submit, 1 + int(-math.log(1.0 - draw()) * mean_s)))
    return jobs


def simulated(jobs, cluster, policy):
    """Return the end times of jobs (GPUs, submission, duration), in their order."""
    gpus, submit, duration = zip(*jobs, strict=True)
    trace = pd.DataFrame(
        {
            "job_id": range(len(jobs)),
            "submit_time": np.array(submit, float),
            "duration": np.array(duration, float),
            "num_gpus": gpus,
        }
    )
    return simulate(trace, cluster, policy, rules="tiresias").jobs["end_time"].astype(int).tolist()


@pytest.fixture(params=["compiled run", "step by step"])
def policy(request, monkeypatch):
    """Return the policy, whose run is simulated as a whole or by the engine."""
    if request.param == "step by step":
        monkeypatch.setattr(Gandiva, "compiled_run", lambda policy, cluster: None)
    return Gandiva()


@pytest.mark.parametrize("case", SMALL)
def test_few_jobs(case, policy):
    cluster, jobs, ends = SMALL[case]
    assert simulated(jobs, cluster, policy) == [int(end) for end in ends.split()]


@pytest.mark.parametrize("case", GENERATED, ids=lambda case: f"{case[0]}-{case[2]}")
def test_jobs_that_queue(case, policy):
    *numbers, average, digest = case
    jobs = jobs_of(*numbers)
    ends = simulated(jobs, numbers[0], policy)
    assert (
        np.mean([end - submit for end, (_, submit, _) in zip(ends, jobs, strict=True)]) == average
    )
    assert hashlib.sha256(" ".join(map(str, ends)).encode()).hexdigest()[:16] == digest
