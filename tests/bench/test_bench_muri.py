"""What Muri costs, in units of a bare event loop measured in the same run; see test_bench.py."""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from costs import OUT, measure
from unit import unit

from repro import make, simulate
from repro.base.errors import ReproError
from repro.model.policy import policies
from repro.perf.muri_models import muri_profiles
from repro.trace.load import load

TRACES = "Rivendile+Muri/simulator/trace-data"


@pytest.mark.parametrize(
    ("name", "policy", "runs", "limit"),
    [
        ("trace3", "muri-s", 3, 17),
        ("trace3", "themis", 3, 40),
        ("trace1", "muri-s", 5, 20),
        ("trace2", "muri-s", 1, 250),
    ],
)
def test_rules_of_the_simulator(benchmark, mirror, name, policy, runs, limit):
    trace = load(mirror / TRACES / f"{name}.csv", "muri")
    simulate(trace.head(100), "8x8", policy, rules="muri")  # loaded before the clock starts
    cost, result = measure(
        benchmark,
        f"muri-{name} {policy}, rules muri",
        runs,
        simulate,
        trace,
        "8x8",
        policy,
        rules="muri",
    )
    assert result.summary()["n_finished"] == len(trace)
    assert cost <= limit


def mixed(jobs, gpus, load, seed=0):
    """Jobs of eight models, lognormal durations, arriving evenly at a multiple of the capacity."""
    rng = np.random.default_rng(seed)
    profiles = muri_profiles()
    widths = rng.choice([1, 2, 4, 8, 16, 32], jobs, p=[0.36, 0.02, 0.3, 0.27, 0.03, 0.02])
    durations = np.round(np.clip(rng.lognormal(9.2, 1.8, jobs), 60, 2e6))
    span = float((widths * durations).sum()) / (gpus * load)
    models = rng.choice(profiles["model"].unique(), jobs)
    chosen = profiles.set_index(["model", "num_gpus"]).loc[list(zip(models, widths, strict=True))]
    return pd.DataFrame(
        {
            "job_id": np.arange(jobs),
            "submit_time": np.sort(rng.uniform(0, span, jobs)),
            "duration": durations,
            "num_gpus": widths,
            "model": models,
            "iteration_time": chosen["iteration_time"].to_numpy(),
            "stage_storage": chosen["stage_data"].to_numpy(),
            "stage_gpu": chosen["stage_gpu"].to_numpy(),
            "stage_network": chosen["stage_network"].to_numpy(),
        }
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("load_factor", "interval"), [(1.5, None), (4.0, 360.0)])
def test_a_hundred_thousand_jobs(benchmark, load_factor, interval):
    trace = mixed(100_000, 8192, load_factor)
    cost, result = measure(
        benchmark,
        f"100,000 jobs muri-l, load {load_factor:g}",
        1,
        simulate,
        trace,
        "1024x8",
        make("muri-l"),
        interval=interval,
    )
    assert result.summary()["n_finished"] == 100_000
    assert cost <= 5000


# growth ----------------------------------------------------------------------------------------

QUEUED = [128, 256, 512, 1024, 4096, 16384]
#: node by node the cost grows with the third power
QUEUED_ALONE = 512


class Enough(ReproError):
    """The first decision is made."""


def seconds_of_first_decision(queued, collapse):
    """CPU seconds to group so many queued one-GPU jobs that four have to share each GPU."""
    trace = mixed(queued, 1, 1.0).assign(submit_time=0.0)
    one = muri_profiles().query("num_gpus == 1").set_index("model").loc[trace["model"]]
    trace = trace.assign(num_gpus=1, stage_storage=one["stage_data"].to_numpy())
    spent = []

    class Timed(policies["muri-l"]):
        def session(self, view):
            decide = super().session(view)

            def timed(view):
                begin = time.process_time()
                decide(view)
                spent.append(time.process_time() - begin)
                raise Enough

            return timed

    with pytest.raises(Enough):
        simulate(trace, f"{queued // 32}x8", Timed(collapse=collapse))
    return spent[0]


def test_a_round_does_not_slow_down_with_the_queue(benchmark):
    rows = []

    def sweep():
        for queued in QUEUED:
            pace = unit(3)
            row = {"queued": queued, "by_kind_U": seconds_of_first_decision(queued, True) / pace}
            if queued <= QUEUED_ALONE:
                row["job_by_job_U"] = seconds_of_first_decision(queued, False) / pace
            rows.append(row)

    benchmark.pedantic(sweep, rounds=1, iterations=1)
    table = pd.DataFrame(rows)
    OUT.mkdir(parents=True, exist_ok=True)
    table.to_csv(OUT / "muri-rounds.csv", index=False, float_format="%.4g")
    draw(table)
    by_kind = table.set_index("queued")["by_kind_U"]
    # filling the groups is linear in the jobs; matching is not to add to that
    assert by_kind[16384] / by_kind[128] <= 2 * 16384 / 128
    alone = table.set_index("queued")["job_by_job_U"]
    assert alone[512] > 5 * by_kind[512]


def draw(table):
    figure, axes = plt.subplots(figsize=(3.33, 2.5), layout="constrained")
    axes.plot(table["queued"], table["by_kind_U"], "o-", color="black", label="by kind")
    axes.plot(table["queued"], table["job_by_job_U"], "s--", color="0.5", label="job by job")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("queued jobs")
    axes.set_ylabel("cost of a round (U)")
    axes.legend()
    figure.savefig(OUT / "muri-rounds.png", dpi=150)
    plt.close(figure)
