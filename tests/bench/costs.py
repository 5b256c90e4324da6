"""Costs in U, and how busy the cluster was: in build/bench/costs.csv and on the terminal."""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import pandas as pd
from unit import cpu_of, unit

from repro import Result
from repro.base.interpreted import ENV_SECONDS

# what is measured is machine code
os.environ[ENV_SECONDS] = "0"
OUT = Path(__file__).resolve().parents[2] / "build" / "bench"
#: Names of what was noted in this run.
NOTED: list[str] = []


def measure(benchmark, name, runs, task, *args, **options):
    """Run under the benchmark fixture; return the median cost in U and the last result.

    The unit is measured before and after, since the machine may change its pace in between.
    """
    costs = []
    results = []

    def once():
        cpu, result = cpu_of(task, *args, **options)
        costs.append(cpu)
        results[:] = [result]

    before = unit()
    benchmark.pedantic(once, rounds=runs, iterations=1)
    pace = (before + unit()) / 2
    cost = statistics.median(costs) / pace
    benchmark.extra_info.update(U=pace, cost_U=cost)
    note(name, U_s=pace, cpu_s=statistics.median(costs), cost_U=cost)
    if isinstance(results[0], Result) and len(results[0].intervals):
        note(name, **busy(results[0]))
    return cost, results[0]


def busy(result):
    """How much a scheduler had to do: an empty cluster makes any simulation cheap.

    utilisation: GPU time held over GPUs times the time to the last end; queued_share: jobs that
    waited for GPUs, before they began or after a preemption, of those submitted by then.
    """
    spans = result.intervals
    end = result.intervals["end"].max()
    jobs = result.jobs[result.jobs["submit_time"] <= end]
    held = (spans["gpus"] * (spans["end"] - spans["start"])).sum()
    late = ~(jobs["start_time"] - jobs["submit_time"] <= 1e-6)
    return {
        "utilisation": float(held / (result.meta["num_gpus"] * (end - jobs["submit_time"].min()))),
        "queued_share": float((late | (jobs["preemptions"] > 0)).mean()),
        "preemptions": int(jobs["preemptions"].sum()),
    }


def note(name, **figures):
    """Keep figures in build/bench/costs.csv, one row per name."""
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / "costs.csv"
    table = pd.read_csv(path).set_index("name") if path.is_file() else pd.DataFrame()
    if name not in NOTED:
        NOTED.append(name)
        table = table.drop(index=name, errors="ignore")
    row = pd.DataFrame([figures], index=pd.Index([name], name="name"))
    table = row.combine_first(table).sort_index()
    unfinished = path.with_suffix(".unfinished")
    table.to_csv(unfinished, index_label="name", float_format="%.8g")
    os.replace(unfinished, path)


def lines():
    """What was noted in this run, one line per cost."""
    table = pd.read_csv(OUT / "costs.csv").set_index("name")
    for name, row in table.loc[NOTED].iterrows():
        line = f"{name}: {row['cost_U']:.3g} U (U = {row['U_s']:.3f} s)"
        if pd.notna(row.get("utilisation")):
            line += f"; GPUs {row['utilisation']:.0%} in use, {row['queued_share']:.0%} of the jobs"
            line += f" queued, {row['preemptions']:,.0f} preemptions"
        yield line
