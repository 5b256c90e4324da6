"""Policies of divisible GPUs against the results of the public PCS simulator, on 64 GPUs.

Average JCT (s), average and 99th percentile of the prediction error and average unfairness (%), as
its authors' result files have them; under Themis as a second simulator of the present code does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from repro import load, make, simulate
from repro.model.records import finish_time_unfairness, prediction_errors
from repro.papers.pcs import artifact, runs
from repro.trace import synth

FIFO = "fifo-elastic"
SRSF = "srsf-elastic"
AFS = "afs"
GAVEL = {
    300: {
        FIFO: (1659.72, 0.0),
        SRSF: (1607.59, 0.49, 13.55, 0.32),
        AFS: (1607.54, 2.01, 45.78, 0.20),
        "themis": (1609.91, 3.87, 82.20, 0.40),
        "pcs-jct": (1606.61, 0.53, 13.43, 0.42),
    },
    3000: {
        FIFO: (8288.40, 0.0, 0.0, 261.38),
        SRSF: (2618.14, 13.43, 390.59, 3.75),
        AFS: (2679.89, 12.83, 384.39, 3.43),
        "pcs-jct": (3012.14, 6.14, 79.82, 3.14),
        "pcs-bal": (5400.99, 6.81, 35.65, 53.46),
        "pcs-pred": (6603.94, 3.03, 11.16, 81.58),
    },
}
#: The first 1,001 jobs of Philly virtual clusters.
PHILLY = {
    "0e4a51": {
        FIFO: (1233989.92, 0.0, 0.0, 49803.8),
        SRSF: (293838.58, 23.38, 253.19, 2.22),
        AFS: (289143.90, 22.42, 258.38, 2.01),
        "pcs-jct": (360524.89, 6.64, 199.49, 70.68),
        "pcs-bal": (464351.96, 1.52, 42.76),
        "pcs-pred": (565980.94, 0.98, 5.61),
    },
    "6214e9": {
        FIFO: (4118608.24, 0.0),
        SRSF: (390885.47, 1.40, 34.88),
        AFS: (389072.24, 1.28, 30.55),
        "pcs-jct": (422538.60, 1.06, 34.34),
        "pcs-bal": (1329441.65, 1.08, 37.75),
        "pcs-pred": (507529.65, 0.12, 3.85),
    },
    "6c71a0": {
        FIFO: (1124166.90, 0.0),
        SRSF: (231625.15, 18.31, 131.37),
        AFS: (240680.23, 22.23, 193.19),
        "pcs-jct": (299489.10, 3.15, 47.71),
        "pcs-bal": (287271.65, 3.46, 75.36),
        "pcs-pred": (355020.45, 2.43, 34.50),
    },
    "b436b2": {
        FIFO: (8811470.77, 0.0),
        SRSF: (765418.39, 41.61, 607.25),
        AFS: (686620.48, 33.52, 388.68),
        "pcs-jct": (1787576.90, 0.71, 11.43),
        "pcs-bal": (1352636.98, 2.25, 34.12),
        "pcs-pred": (1352251.76, 2.30, 35.38),
    },
}
#: Stored solutions of ee9e8c in whose average one job has no error: for 7, 23 and 39 it is job 221,
#: whose error alone is what is missing. The simulator keeps the first prediction that comes back,
#: which need not be that of the job's own arrival.
LATE = (7, 23, 36, 39)
#: Average JCT (s) of whole traces, nothing predicted.
WHOLE = {
    "0e4a51": {AFS: 237149.0, SRSF: 252226.9},
    "b436b2": {AFS: 210246.6, SRSF: 276677.3},
    "6214e9": {AFS: 155288.3, SRSF: 171091.0},
    "6c71a0": {AFS: 101502.5, SRSF: 108937.9},
    "ee9e8c": {AFS: 904775.6, SRSF: 1409128.9, FIFO: 13166935.8},
}


def policy(name, workload):
    """Return a policy, under the conditions of the results."""
    lease = {"lease": 10.0} if (name, workload) == ("themis", "gavel") else {}
    return artifact.policy(name, workload, **lease)


def philly(mirror, cluster):
    path = mirror / "abdullahfsm+PCS" / "simulation" / "traces" / f"trace_{cluster}.csv"
    if not path.is_file():
        pytest.skip(f"no {path.name} in the mirror of the public traces")
    return load(path, "pcs")


def check(trace, chosen, expected):
    jobs = simulate(trace, "1x64", chosen, rules="pcs").jobs
    errors = prediction_errors(jobs)
    found = (jobs["jct"].mean(), errors.mean(), errors.quantile(0.99))
    found += (finish_time_unfairness(jobs).mean(),)
    for value, printed in zip(found, expected, strict=False):
        digits = 2 if printed < 40000 or value == found[0] else 1
        assert round(value, digits) == pytest.approx(printed, abs=1e-9)


@pytest.mark.parametrize(("count", "name"), [(n, name) for n in GAVEL for name in GAVEL[n]])
def test_workload_of_gavel(count, name):
    trace = synth.make("pcs-workload", 4567, jobs=count, load=1.2)
    check(trace, policy(name, "gavel"), GAVEL[count][name])


@pytest.mark.parametrize(("cluster", "name"), [(c, name) for c in PHILLY for name in PHILLY[c]])
def test_first_jobs_of_philly(mirror, cluster, name):
    trace = philly(mirror, cluster).head(1001)
    check(trace, policy(name, cluster), PHILLY[cluster][name])


@pytest.mark.parametrize(("cluster", "name"), [(c, name) for c in WHOLE for name in WHOLE[c]])
def test_whole_traces(mirror, cluster, name):
    trace = philly(mirror, cluster)
    jobs = simulate(trace, "1x64", name, rules="pcs", predict=0).jobs
    assert round(jobs["jct"].mean(), 1) == WHOLE[cluster][name]
    assert jobs["predicted_jct"].isna().all()


@pytest.mark.parametrize("cluster", ["0e4a51", "6214e9", "6c71a0", "b436b2", "ee9e8c"])
def test_stored_solutions_of_the_search(mirror, cluster):
    """Six of 70 for each trace (pcs/fig03 has all): classes and weights are made from T and W."""
    trace = philly(mirror, cluster).head(2001)
    for _, row in artifact.front(cluster).iloc[::12].iterrows():
        jobs = simulate(trace, "1x64", artifact.solution(row), rules="pcs").jobs
        assert jobs["jct"].mean() == pytest.approx(row["avg_jct_s"], rel=1e-9)
        near = 3e-3 if (cluster, row["solution"]) in {("ee9e8c", one) for one in LATE} else 1e-3
        assert prediction_errors(jobs).mean() == pytest.approx(row["avg_pred_err_pct"], abs=near)


def test_the_toy_of_figure_1():
    """Predicted and true JCT of four jobs on one GPU."""
    trace = pd.DataFrame(
        {
            "job_id": ["J1", "J2", "J3", "J4"],
            "submit_time": [0.0, 0.0, 1.0, 10.0],
            "duration": [10.0, 8.0, 1.0, 8.0],
            "num_gpus": 1,
        }
    )
    expected = {
        SRSF: ([10, 8, 1, 8], [27, 9, 1, 8]),
        "themis": ([10, 15, 2, 17], [19, 16, 2, 17]),
        FIFO: ([10, 18, 18, 17], [10, 18, 18, 17]),
    }
    for name, (predicted, true) in expected.items():
        chosen = make(name, "pcs", **({"lease": 1.0} if name == "themis" else {}))
        jobs = simulate(trace, "1x1", chosen, rules="pcs").jobs
        assert jobs["predicted_jct"].tolist() == predicted
        assert jobs["jct"].tolist() == true
    assert np.isfinite(jobs["fair_jct"]).all()


FIVE_SEEDS = pd.read_csv(Path(__file__).with_name("pcs_five_seeds.csv"), comment="#")


@pytest.mark.parametrize("policy", sorted(FIVE_SEEDS["policy"].unique()))
def test_the_five_seeds_of_figure_8(policy):
    """All but AFS, which the authors changed after these runs."""
    for published in FIVE_SEEDS[FIVE_SEEDS["policy"] == policy].itertuples():
        options = {"workload": "gavel", "jobs": published.jobs, "load": 1.2, "by_job": True}
        trace = synth.make("pcs-workload", published.seed, **options)
        chosen = artifact.policy(policy, "gavel-five")
        result = simulate(trace, cluster="1x64", policy=chosen, rules="pcs")
        # some jobs of Themis end at other times, most of them at seed 9005
        is_themis = policy == "themis"
        tolerance = 0.002 if is_themis else 1e-6
        summary = result.summary()
        assert summary["avg_jct"] == pytest.approx(published.avg_jct_s, rel=tolerance, abs=0.0006)
        if policy != FIFO:
            for name in ("avg_pred_err", "p99_pred_err"):
                expected = getattr(published, f"{name}_pct")
                assert summary[name] == pytest.approx(expected, rel=tolerance, abs=0.0001), name
        unfairness = finish_time_unfairness(result.jobs).mean()
        limit = 0.01 if is_themis else 0.0001
        assert unfairness == pytest.approx(published.avg_unfairness_pct, rel=1e-5, abs=limit)


#: Submission (s), work (GPU-seconds) and JCT (s) of the first nine jobs of themis1 under FIFO:
#: result files new_results/orig/themis1 of commit d8409db.
THEMIS1 = [
    (0, 445170, 13490),
    (18147, 1573296, 196662),
    (45001, 1287000, 35100),
    (61164, 49770, 12767),
    (64889, 158574, 9076),
    (71774, 1474804, 737402),
    (102602, 1268402, 43738),
    (107292, 44638, 19208),
    (133643, 46332, 3564),
]


def test_jobs_of_trials_of_themis1():
    """Trials run and end one by one; the average JCT of 5,000 jobs is printed as 105,004 s."""
    options = {"workload": "themis1", "jobs": 5000, "load": 0.8, "by_trial": True}
    trials = synth.make("pcs-workload", 4567, **options)
    jobs = simulate(trials, "1x64", FIFO, rules="pcs", predict=0).jobs
    jct = runs.app_jct(jobs.assign(app=trials["app"]))
    assert jct.mean() == pytest.approx(105004.04, abs=0.005)
    apps = trials.groupby("app")
    first = pd.concat([apps["submit_time"].min(), apps["service"].sum(), jct], axis=1).head(9)
    np.testing.assert_allclose(first, THEMIS1, rtol=0, atol=1e-6)
