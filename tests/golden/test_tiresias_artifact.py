"""`--rules tiresias` gives the numbers of the public Tiresias simulator, to the last digit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.model.policy import make, policies
from repro.policies.tiresias._gittins import TotalServiceTable
from repro.trace.load import load

FOLDER = "SymbioticLab+Tiresias/simulator"
CLUSTER = "4x4"

# (num_gpu, submit, duration) of job 0..15
SIXTEEN = [
    (8, 0, 2400),
    (4, 10, 1800),
    (4, 30, 300),
    (1, 40, 200),
    (2, 60, 2500),
    (16, 100, 600),
    (8, 150, 150),
    (1, 200, 4000),
    (4, 300, 900),
    (2, 360, 130),
    (1, 400, 125),
    (8, 500, 1000),
    (1, 800, 600),
    (4, 1000, 2000),
    (2, 1500, 3000),
    (1, 2000, 121),
]

# average JCT, preemptions, promotions, end times by job; what the unmodified simulator prints
SCHEDULES = {
    "fifo-count": (
        "yarn-cs",
        {"placement": "count"},
        {},
        3325.375,
        0,
        0,
        "2400 1810 330 530 2830 3430 3580 7430 4330 3560 3555 4580 4180 6330 7330 4451",
    ),
    "fifo-yarn": (
        "yarn-cs",
        {"placement": "yarn"},
        {},
        3325.375,
        0,
        0,
        "2400 1810 330 530 2830 3430 3580 7430 4330 3560 3555 4580 4180 6330 7330 4451",
    ),
    "fjf-count": (
        "best-effort",
        {"placement": "count"},
        {},
        2311.0,
        0,
        0,
        "2400 1810 330 530 2830 6150 2550 4330 2710 2680 655 3830 1400 4550 5550 2121",
    ),
    "fjf-yarn": (
        "best-effort",
        {"placement": "yarn"},
        {},
        2404.75,
        0,
        0,
        "2400 1810 330 530 2830 6150 2550 4330 2710 2680 655 5330 1400 4550 5550 2121",
    ),
    "sjf": (
        "sf",
        {},
        {},
        2274.75,
        1,
        0,
        "4920 1810 330 240 2560 6250 4650 4200 1200 490 525 5650 1400 3000 4500 2121",
    ),
    "shortest": (
        "srtf",
        {},
        {},
        1841.0,
        17,
        0,
        "5685 3125 330 240 3325 1095 300 5165 1800 490 525 2070 1695 4070 4870 2121",
    ),
    "shortest-gpu": (
        "srsf",
        {},
        {},
        1909.75,
        3,
        0,
        "6520 1960 330 240 2560 5100 300 4200 1200 490 525 3560 1400 3000 4500 2121",
    ),
    "dlas-gpu-K2": (
        "tiresias-l",
        {},
        {"thresholds": (3200,)},
        2142.875,
        12,
        0,
        "4410 2310 330 530 2880 5410 550 4530 2050 680 655 5010 1400 4170 4700 2121",
    ),
    "dlas-gpu-1-K2": (
        "tiresias-l",
        {},
        {"thresholds": (3200,), "promote_knob": 1},
        2221.1875,
        24,
        8,
        "5200 2860 330 530 3690 5053 550 5090 2300 680 655 2600 1400 4400 5530 2121",
    ),
    "dlas-gpu-2-K2": (
        "tiresias-l",
        {},
        {"thresholds": (3200,), "promote_knob": 2},
        2203.9375,
        23,
        5,
        "5193 2697 330 530 3280 4930 550 4730 2050 680 655 3480 1400 4600 5487 2121",
    ),
    "dlas-gpu-gittins-K2": (
        "tiresias-g",
        {},
        {"thresholds": (3200,), "history": None},
        2216.4375,
        36,
        0,
        "5681 3581 1025 340 3215 4800 860 4493 2060 490 525 3830 1400 3492 5000 2121",
    ),
    "dlas-gpu-K3": (
        "tiresias-l",
        {},
        {},
        2171.5625,
        11,
        0,
        "5880 2310 330 530 2880 5100 650 4723 2050 780 655 4393 1400 3500 4893 2121",
    ),
    "dlas-gpu-1-K3": (
        "tiresias-l",
        {},
        {"promote_knob": 1},
        2160.3125,
        13,
        5,
        "4783 2800 330 530 3200 5213 650 4723 2040 780 655 2980 1400 4220 5590 2121",
    ),
    "dlas-gpu-2-K3": (
        "tiresias-l",
        {},
        {"promote_knob": 2},
        2303.0,
        16,
        3,
        "5110 2810 330 530 4083 4966 650 4723 2860 780 655 3000 1400 5180 5100 2121",
    ),
    "dlas-gpu-gittins-K3": (
        "tiresias-g",
        {},
        {"history": None},
        2204.5625,
        36,
        0,
        "5709 3285 1025 340 3224 4800 860 4496 2060 490 525 3860 1400 3528 5000 2121",
    ),
    "gandiva": (
        "gandiva",
        {},
        {},
        2737.5,
        None,
        None,
        "3550 4120 570 370 6110 7220 450 4200 2850 3740 530 2500 1400 4890 6620 2130",
    ),
}

# 60_job.csv with the shipped queues: policy, placement, average JCT on 16 GPUs (4 decimals)
SIXTY = [
    ("yarn-cs", "count", 200.8167),
    ("yarn-cs", "yarn", 219.1833),
    ("best-effort", "count", 190.6833),
    ("best-effort", "yarn", 219.1833),
    ("sf", "count", 198.2),
    ("srtf", "count", 192.1167),
    ("srsf", "count", 195.9),
    ("tiresias-l", "count", 190.6833),
    ("tiresias-g", "count", 219.05),
]

GITTINS = [
    (
        3200,
        {
            0: 301.0341,
            500: 251.2199,
            1000: 192.3952,
            2000: 129.7648,
            3000: 89.737,
            5000: 59.4018,
            1e4: 30.2417,
            1e5: 4.1027,
            1e6: 0.9047,
        },
    ),
    (3250, {0: 299.701, 1000: 191.5154, 3000: 89.4121, 1e4: 29.9396}),
]


@pytest.fixture(scope="module")
def history(mirror):
    return tuple(np.loadtxt(mirror / FOLDER / "yarn-gput1000.csv", skiprows=1))


@pytest.fixture(scope="module")
def sixty(mirror):
    return load(mirror / FOLDER / "60_job.csv", "tiresias")


def sixteen():
    widths, submits, durations = zip(*SIXTEEN, strict=True)
    return pd.DataFrame(
        {
            "job_id": range(16),
            "submit_time": np.array(submits, float),
            "duration": np.array(durations, float),
            "num_gpus": widths,
        }
    )


@pytest.mark.parametrize("case", SCHEDULES)
def test_sixteen_jobs(case, request):
    name, options, settings, average, preemptions, promotions, ends = SCHEDULES[case]
    if name not in policies:
        pytest.skip(f"policy {name!r} is not registered")
    if "history" in settings:
        settings = settings | {"history": request.getfixturevalue("history")}
    policy = make(name, "tiresias", **settings)
    jobs = simulate(sixteen(), CLUSTER, policy, rules="tiresias", **options).jobs
    assert jobs["end_time"].tolist() == [float(end) for end in ends.split()]
    assert jobs["jct"].mean() == average
    if preemptions is not None:
        assert jobs["preemptions"].sum() == preemptions
        assert jobs["promotions"].sum() == promotions


def settings_for(name, history):
    return {"history": history} if name == "tiresias-g" else {}


@pytest.mark.parametrize(("name", "placement", "average"), SIXTY)
def test_sixty_jobs(name, placement, average, sixty, history):
    policy = make(name, "tiresias", **settings_for(name, history))
    result = simulate(sixty, CLUSTER, policy, placement=placement, rules="tiresias")
    assert round(result.summary()["avg_jct"], 4) == average


@pytest.mark.parametrize(("name", "placement"), [row[:2] for row in SIXTY])
def test_sixty_jobs_do_not_queue_on_sixty_gpus(name, placement, sixty, history):
    policy = make(name, "tiresias", **settings_for(name, history))
    result = simulate(sixty, "15x4", policy, placement=placement, rules="tiresias")
    assert round(result.summary()["avg_jct"], 4) == 178.4167
    assert result.summary()["avg_queueing"] == 0


@pytest.mark.parametrize(("delta", "values"), GITTINS)
def test_gittins_table(delta, values, history):
    table = TotalServiceTable(np.array(history), delta)
    assert {attained: table(attained) for attained in values} == values
    assert table(max(history) + 1) == 0


def test_the_paper_rules_differ():
    """What `--rules` changes is visible on this very trace."""
    paper = simulate(sixteen(), CLUSTER, make("tiresias-l", thresholds=(3200,))).jobs
    public = simulate(
        sixteen(), CLUSTER, make("tiresias-l", "tiresias", thresholds=(3200,)), rules="tiresias"
    ).jobs
    assert paper["jct"].mean() != public["jct"].mean()
