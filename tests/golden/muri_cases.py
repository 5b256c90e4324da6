"""Random traces with stage times, and both simulators on them (no tests of its own)."""

from __future__ import annotations

import csv

import muri_reference as reference
import numpy as np

import repro
from repro.model.policy import make
from repro.perf.muri_models import muri_profiles
from repro.trace.load import load

FOLDER = "Rivendile+Muri/simulator/trace-data"
TRACES = ("trace1", "trace2", "trace3", "trace4", "trace3_pr", "trace4_pr", "job_type_2")
CLUSTERS = ((8, 8), (4, 8), (8, 4), (16, 8), (2, 8))
#: name of a policy here and in the reference
NAMES = {"tiresias-l": "tiresias"}
TIMES = ("iteration_time", "stage_data", "stage_gpu", "stage_network")


def overheads():
    table = muri_profiles()
    keys = zip(table["model"], table["num_gpus"], strict=True)
    return dict(zip(keys, table["start_overhead"].tolist(), strict=True))


def subset(mirror, rng):
    """Some jobs of a public trace of the mirror."""
    return some_of(reference.read_rows(mirror / FOLDER / f"{rng.choice(TRACES)}.csv"), rng)


def some_of(rows, rng):
    """60 to 160 consecutive jobs or a sample, submission kept, shifted or compressed."""
    count = int(rng.integers(60, 160))
    if rng.random() < 0.5:
        first = int(rng.integers(len(rows) - count))
        picked = rows[first : first + count]
    else:
        picked = [rows[i] for i in sorted(rng.choice(len(rows), count, replace=False))]
    begin = float(picked[0]["submit_time"]) if rng.random() < 0.5 else 0.0
    factor = rng.choice([1.0, 0.3, 0.01])
    for row in picked:
        row["submit_time"] = round((float(row["submit_time"]) - begin) * factor)
    return picked


def generated(rng):
    """Bursts of jobs of few or many models, of equal and of wide-spread lengths, some twice."""
    table = muri_profiles().set_index(["model", "num_gpus"])
    known = sorted(set(table.index.get_level_values("model")))
    models = rng.choice(known, int(rng.integers(1, 9)), replace=False)
    gap, low, high = rng.choice([0, 1e3, 6e4, 6e5]), *sorted(rng.uniform(4, 8, 2))
    rows = []
    now = 0
    for number in range(int(rng.integers(5, 90))):
        gpus = int(rng.choice([1, 1, 2, 4, 8, 16]))
        model = str(rng.choice(models))
        times = [round(1000 * float(table.loc[(model, gpus), name]), 6) for name in TIMES]
        length = int(10 ** rng.uniform(low, high))
        row = {
            "job_id": number,
            "num_gpu": gpus,
            "submit_time": now,
            "model_name": model,
            "iterations": max(1, int(length // times[0])),
            "duration": length,
            "iteration_time": times[0],
            "resource_time_0": times[1],
            "resource_time_1": times[2],
            "resource_time_2": times[3],
            "priority": int(rng.integers(2)),
        }
        if rows and rng.random() < 0.2:
            twin = rows[int(rng.integers(len(rows)))]
            row = twin | {"job_id": number, "submit_time": now}
        rows.append(row)
        if rng.random() < 0.7:
            now += int(rng.exponential(gap)) if gap else 0
    return rows


class Both:
    """One trace on one cluster, ready for the engine and for the reference."""

    def __init__(self, rows, nodes, size, folder):
        self.rows = [row for row in rows if int(row["num_gpu"]) <= nodes * size]
        self.nodes = nodes
        self.size = size
        path = folder / f"{nodes}x{size}.csv"
        with open(path, "w", newline="") as handle:
            writer = csv.DictWriter(handle, list(self.rows[0]))
            writer.writeheader()
            writer.writerows(self.rows)
        self.frame = load(path, "muri")

    def ends(self, policy, **settings):
        """Start and end of every job here and there, in order of submission."""
        chosen = make(policy, "muri", **settings)
        found = repro.simulate(self.frame, f"{self.nodes}x{self.size}", chosen, rules="muri").jobs
        options = {("packing_num" if k == "max_group" else k): v for k, v in settings.items()}
        name = NAMES.get(policy, policy)
        jobs = reference.simulate(self.rows, name, overheads(), self.nodes, self.size, **options)
        jobs.sort(key=lambda job: job.submit)
        ids = [int(self.rows[job.number]["job_id"]) for job in jobs]
        assert found["job_id"].tolist() == ids
        here = found[["start_time", "end_time"]].to_numpy()
        return here, np.array([(job.start, job.end) for job in jobs])

    def average_jct(self, policy, **settings):
        """Average JCT here over that of the reference."""
        submit = self.frame["submit_time"].to_numpy()
        here, there = (ends[:, 1] for ends in self.ends(policy, **settings))
        return (here - submit).mean() / (there - submit).mean()
