"""What the simulator costs, in units of a bare event loop measured in the same run.

Not part of the normal run: `pytest tests/bench --benchmark-only`, with `-m "not slow"` to leave the
million jobs out. Only ratios are asserted; tables and the plot go to build/bench/.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from costs import OUT, busy, measure, note
from unit import bare_queue, cpu_of, unit

from repro import simulate, simulate_many
from repro.trace import synth
from repro.trace.load import load

HERE = Path(__file__).resolve().parent
MURI = "Rivendile+Muri/simulator/trace-data/trace4.csv"
PHILLY = "siasosp23+artifacts/sia-simulator/traces/philly.csv"


def test_unit(benchmark):
    """The bare loop is what it claims to be: M/M/64 at load 0.9 responds in 1.06 service times."""
    assert benchmark(bare_queue) == pytest.approx(1.06, abs=0.03)


@pytest.mark.parametrize(("policy", "limit"), [("srtf", 5), ("tiresias-l", 6)])
def test_muri_trace(benchmark, mirror, policy, limit):
    trace = load(mirror / MURI, "muri")
    cost, result = measure(benchmark, f"muri-trace4 {policy}", 5, simulate, trace, "8x8", policy)
    assert result.summary()["n_finished"] == 2638
    assert cost <= limit


@pytest.mark.parametrize(
    ("cluster", "policy", "limit", "held", "preemptions"),
    [
        ("60x8", "tiresias-l", 60, 0.78, 156_000),
        ("60x8", "srtf", 45, 0.61, 126_000),
        ("80x8", "tiresias-l", 60, 0.58, 88_000),
    ],
)
def test_philly(benchmark, mirror, cluster, policy, limit, held, preemptions):
    """On fewer GPUs than Philly had, so that there is something to schedule."""
    trace = load(mirror / PHILLY, "philly")
    name = f"philly {policy}, {cluster}"
    cost, result = measure(benchmark, name, 1, simulate, trace, cluster, policy)
    found = result.summary()
    assert found["n_finished"] == len(trace) > 82_000
    assert found["utilisation"] == pytest.approx(held, abs=0.02)
    assert found["preemptions"] == pytest.approx(preemptions, rel=0.02)
    assert cost <= limit


@pytest.mark.parametrize(
    ("policy", "limit", "preemptions"),
    [
        ("tiresias-l", 12, 4_274),
        ("tiresias-g", 35, 9_890),
        ("srtf", 20, 15_242),
        ("srsf", 20, 7_393),
        ("gittins-2d", 40, 9_909),
    ],
)
def test_philly_under_rules_tiresias(benchmark, mirror, policy, limit, preemptions):
    """Orders that keep one list of unfinished jobs, event by event."""
    trace = load(mirror / PHILLY, "philly").head(10_000)
    simulate(trace.head(300), "60x8", policy, rules="tiresias")
    name = f"philly {policy}, 60x8, rules tiresias"
    cost, result = measure(benchmark, name, 1, simulate, trace, "60x8", policy, rules="tiresias")
    found = result.summary()
    assert found["n_finished"] == len(trace)
    assert found["preemptions"] == preemptions
    assert cost <= limit


def crowd(jobs, gpus, runs=1):
    """Simulate generated jobs in a process of their own."""
    command = [sys.executable, str(HERE / "million.py"), str(jobs), str(gpus), str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["n_finished"] == jobs
    return figures | {"cost_U": figures["cpu_s"] / figures["U"]}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("jobs", "limit", "gib"), [(1_000_000, 650, 4), (5_000_000, 3400, 8)])
def test_millions_of_jobs(benchmark, jobs, limit, gib):
    figures = benchmark.pedantic(crowd, (jobs, 100_000), rounds=1, iterations=1)
    benchmark.extra_info.update(figures)
    kept = ("cost_U", "cpu_s", "peak_gib", "utilisation", "queued_share", "preemptions")
    note(f"{jobs:,} jobs tiresias-l", U_s=figures["U"], **{k: figures[k] for k in kept})
    assert figures["cost_U"] <= limit
    assert figures["peak_gib"] <= gib


def test_help_answers_at_once(benchmark):
    """Half a second of CPU where U is 0.06 s."""
    command = [sys.executable, "-c", "from repro.cli import main; main()", "--help"]

    def children():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    costs = []

    def run():
        before = children()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        costs.append(children() - before)
        assert "simulate" in done.stdout

    benchmark.pedantic(run, rounds=5, iterations=1, warmup_rounds=1)
    pace = unit()
    cpu = statistics.median(costs)
    note("repro --help", U_s=pace, cpu_s=cpu, cost_U=cpu / pace)
    assert cpu <= 0.5 / 0.06 * pace


@pytest.mark.parametrize(("policy", "limit"), [("srtf", 0.15), ("tiresias-l", 0.2)])
def test_many_seeds(benchmark, policy, limit):
    """A run of 1,000 jobs among many, next to `simulate` run by run in the same process."""
    rng = np.random.default_rng(0)
    traces = [synth.make("philly-like", rng, jobs=1000, load=0.9, num_gpus=64) for _ in range(25)]
    loads = np.linspace(0.7, 1.6, 8)

    def alone():
        for trace in traces:
            simulate(trace, "8x8", policy).summary()

    simulate_many(traces[:2], "8x8", policy, workers=1)
    name = f"many runs of 1,000 jobs, {policy}"
    options = {"loads": loads, "workers": 1}
    cost, runs = measure(benchmark, name, 3, simulate_many, traces, "8x8", policy, **options)
    alone()
    pace = unit()
    single = cpu_of(alone)[0] / len(traces) / pace
    cost /= len(runs)
    note(name, cost_U=cost, cpu_s=cost * pace, ratio=cost / single)
    assert (runs["n_finished"] == 1000).all()
    assert cost <= limit * single


# growth ----------------------------------------------------------------------------------------

SIZES = [64, 256, 1024, 4096, 16384]


def busy_trace(gpus, seed=0):
    """As many jobs as GPUs at the start, three times as many more at load 1: a queue all along."""
    rng = np.random.default_rng(seed)
    jobs = 4 * gpus
    widths = rng.choice([1, 2, 4, 8], jobs, p=[0.7, 0.1, 0.1, 0.1])
    durations = np.ceil(rng.exponential(2000.0, jobs))
    gaps = rng.exponential(float((widths * durations).mean()) / gpus, jobs)
    gaps[:gpus] = 0.0
    return pd.DataFrame(
        {
            "job_id": np.arange(jobs),
            "submit_time": np.cumsum(gaps),
            "duration": durations,
            "num_gpus": widths,
        }
    )


@pytest.mark.parametrize("policy", ["tiresias-l", "srtf", "yarn-cs"])
def test_cost_per_job_grows_like_the_log_of_the_active_jobs(benchmark, policy):
    rows = []

    def sweep():
        for gpus in SIZES:
            trace = busy_trace(gpus)
            pace = unit(3)
            # small traces several times, so that each size is timed for about as long
            runs = max(1, 4096 // gpus)
            cost = sum(
                cpu_of(simulate, trace, f"{gpus // 8}x8", policy)[0] for _ in range(runs)
            ) / (runs * len(trace))
            result = simulate(trace, f"{gpus // 8}x8", policy)
            span = float(result.jobs["end_time"].max())
            active = float(result.jobs["jct"].sum()) / span  # Little's law
            rows.append({"gpus": gpus, "jobs": len(trace), "active": active})
            rows[-1] |= {"cost_us": 1e6 * cost, "cost_micro_U": 1e6 * cost / pace}
            rows[-1] |= busy(result)

    benchmark.pedantic(sweep, rounds=1, iterations=1)
    table = pd.DataFrame(rows)
    OUT.mkdir(parents=True, exist_ok=True)
    table.to_csv(OUT / f"growth-{policy}.csv", index=False, float_format="%.4g")
    slope, base = np.polyfit(np.log2(table["active"]), table["cost_micro_U"], 1)
    draw(table, slope, base, policy)
    benchmark.extra_info.update(slope_micro_U_per_doubling=slope)
    first, last = table.iloc[0], table.iloc[-1]
    logs = np.log2(last["active"]) / np.log2(first["active"])
    # half as much again for caches: the largest state no longer fits them
    assert last["cost_micro_U"] / first["cost_micro_U"] <= 1.5 * logs


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_cost_grows_with_the_jobs(benchmark):
    """A GPU for every 50 jobs, from a thousand jobs to five million."""
    sizes = [10**3, 10**4, 10**5, 10**6, 5 * 10**6]

    def sweep():
        return [crowd(jobs, jobs // 50 // 8 * 8, max(1, 10**5 // jobs)) for jobs in sizes]

    table = pd.DataFrame(benchmark.pedantic(sweep, rounds=1, iterations=1))
    table.to_csv(OUT / "growth-jobs.csv", index=False, float_format="%.4g")
    exponent, base = np.polyfit(np.log(table["n_jobs"]), np.log(table["cost_U"]), 1)
    note("exponent of cost against jobs", cost_U=exponent, U_s=table["U"].mean())
    figure, axes = plt.subplots(figsize=(3.33, 2.5), layout="constrained")
    axes.plot(table["n_jobs"], table["cost_U"], "o", color="black")
    axes.plot(table["n_jobs"], np.exp(base) * table["n_jobs"] ** exponent, "--", color="0.5")
    axes.set(xscale="log", yscale="log", xlabel="jobs", ylabel="cost (U)")
    axes.set_title(f"tiresias-l, load 0.9: dashed line to the power {exponent:.2f}", fontsize=7)
    figure.savefig(OUT / "growth-jobs.png", dpi=150)
    plt.close(figure)
    assert exponent <= 1.1


def draw(table, slope, base, policy):
    figure, axes = plt.subplots(figsize=(3.33, 2.5), layout="constrained")
    axes.plot(table["active"], table["cost_micro_U"], "o", color="black")
    grid = np.geomspace(table["active"].min(), table["active"].max(), 50)
    axes.plot(grid, base + slope * np.log2(grid), "--", color="0.5")
    axes.set_xscale("log")
    axes.set_ylim(0)
    axes.set_xlabel("active jobs (mean)")
    axes.set_ylabel("cost per job (millionths of U)")
    axes.set_title(f"{policy}: dashed line linear in the logarithm", fontsize=7)
    figure.savefig(OUT / f"growth-{policy}.png", dpi=150)
    plt.close(figure)
