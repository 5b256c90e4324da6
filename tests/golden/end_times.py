"""Runs whose end times are kept to the last bit in `end_times.csv` (no tests).

They cover every form of decision and every rule set, on generated traces, so that a change of names
or of layout shows at once where it moved a number. None of them depends on the CPU's order of sums.
`python tests/golden/end_times.py` writes the file anew; do so only where a change of results is
meant, and say why in CHANGELOG.md.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd

from repro import make, simulate
from repro.cli.settings import parse_settings
from repro.perf.throughput_files import load_throughputs
from repro.trace import dress, synth

HERE = Path(__file__).resolve().parent
FIGURES = HERE.parents[1] / "figures"
TABLE = HERE / "end_times.csv"
POINTS = HERE / "points.csv"
THROUGHPUTS = "gavel-like-throughputs"
# A search that ends early, so that every random number counts.
BATCH_SEARCH = "times=t4 every_s=100 generations=4 best_fit=false"

#: policy, settings of the policy, rules, cluster, workload, settings of the run
RUNS = [
    # an order of all jobs
    ("best-effort", "", "paper", "4x4", "mixed", {}),
    ("yarn-cs", "", "paper", "4x4", "mixed", {"placement": "yarn"}),
    ("srtf", "", "paper", "4x4", "mixed", {}),
    ("srsf", "", "tiresias", "4x4", "mixed", {}),
    ("sf", "", "paper", "4x4", "mixed", {"interval": 60.0}),
    ("las-2d", "", "paper", "4x4", "mixed", {}),
    ("tiresias-l", "thresholds=1000,20000", "paper", "4x4", "mixed", {}),
    ("tiresias-l", "", "tiresias", "4x4", "mixed", {}),
    ("tiresias-g", "history=mixed", "paper", "4x4", "mixed", {}),
    ("tiresias-g", "history=mixed", "tiresias", "4x4", "mixed", {}),
    ("gittins-2d", "history=mixed", "paper", "4x4", "mixed", {}),
    ("gandiva", "", "paper", "4x4", "mixed", {}),
    ("gandiva", "", "tiresias", "4x4", "mixed", {}),
    ("srtf", "", "muri", "2x8", "stages", {}),
    ("tiresias-l", "", "muri", "2x8", "stages", {}),
    # groups that share GPUs
    ("muri-s", "", "paper", "2x8", "stages", {}),
    ("muri-s", "", "muri", "2x8", "stages", {}),
    ("muri-l", "", "muri", "2x8", "stages", {}),
    ("antman", "", "muri", "2x8", "stages", {}),
    # shares of time on GPU types
    ("gavel-las", "", "paper", "8xv100,8xp100,8xk80", "gangs", {}),
    ("gavel-las", "", "gavel", "8xv100,8xp100,8xk80", "gangs", {}),
    ("gavel-las", "", "gavel", "8xv100,8xp100,8xk80", "gangs", {"rounds": {"ideal": "artifact"}}),
    ("gavel-las", "", "paper", "8xv100,8xp100,8xk80", "gangs", {"rounds": {"ideal": "fluid"}}),
    ("las-agnostic", "", "gavel", "8xv100,8xp100,8xk80", "gangs", {}),
    ("isolated", "", "gavel", "8xv100,8xp100,8xk80", "gangs", {}),
    ("gavel-fifo", "", "gavel", "8xv100,8xp100,8xk80", "gangs", {}),
    ("fifo-agnostic", "", "gavel", "8xv100,8xp100,8xk80", "gangs", {}),
    ("allox", "", "gavel", "3xv100,3xp100,3xk80", "singles", {}),
    ("gavel-ftf", "", "gavel", "8xv100,8xp100,8xk80", "gangs", {}),
    ("gavel-makespan", "", "paper", "8xv100,8xp100,8xk80", "gangs", {}),
    ("gavel-water-filling", "", "paper", "8xv100,8xp100,8xk80", "gangs", {}),
    ("gavel-las-ss", "", "paper", "8xv100,8xp100,8xk80", "gangs", {}),
    ("gavel-las-ss", "", "gavel", "8xv100,8xp100,8xk80", "gangs", {}),
    ("gavel-fifo-ss", "", "gavel", "8xv100,8xp100,8xk80", "gangs", {}),
    ("gavel-makespan-ss", "", "gavel", "8xv100,8xp100,8xk80", "gangs", {}),
    ("gandiva-ss", "", "gavel", "8xv100,8xp100,8xk80", "gangs", {}),
    ("themis", "form=shares", "muri", "2x8", "stages", {}),
    # containers of jobs on nodes
    ("liquid", "times=t4", "paper", "5x2", "containers", {}),
    ("liquid-batch", "times=t4 generations=5", "paper", "5x2", "containers", {}),
    ("liquid-batch", BATCH_SEARCH, "paper", "12x3", "containers", {}),
    ("kubernetes", "times=t4", "paper", "5x2", "containers", {}),
    # divisible GPUs
    ("fifo-elastic", "", "paper", "1x16", "mixed", {}),
    ("srsf-elastic", "", "pcs", "1x16", "mixed", {}),
    ("max-min", "", "pcs", "1x16", "mixed", {}),
    ("afs", "", "pcs", "1x16", "mixed", {}),
    ("themis", "", "paper", "1x16", "mixed", {}),
    ("themis", "", "pcs", "1x16", "mixed", {}),
    ("pcs", "c2=1 decay=0.5", "pcs", "1x16", "mixed", {}),
    ("pcs", "thresholds=4000,40000 weights=0.6,0.3,0.1", "paper", "1x16", "mixed", {}),
    ("reservation", "", "paper", "1x16", "mixed", {}),
    # GPU types under policies that name none
    ("srtf", "", "paper", "8xv100,8xp100,8xk80", "gangs", {}),
    ("tiresias-l", "thresholds=20000", "paper", "8xv100,8xp100,8xk80", "gangs", {}),
    ("yarn-cs", "", "paper", "2x4:v100,2x4:p100,2x4:k80", "gangs", {}),
    ("gandiva", "", "paper", "2x4:v100,2x4:p100,2x4:k80", "gangs", {}),
    ("liquid", "", "paper", "2x4:v100,2x4:p100,2x4:k80", "gangs", {}),
    ("srsf-elastic", "", "paper", "8xv100,8xp100,8xk80", "gangs", {}),
    ("pcs", "c2=1 decay=0.5", "paper", "8xv100,8xp100,8xk80", "gangs", {}),
    ("muri-s", "", "paper", "2x4:v100,2x4:p100,2x4:k80", "dressed", {}),
    ("muri-s", "", "paper", "4x4", "dressed", {}),
    ("srsf", "", "paper", "4x4", "dressed", {"slowdown": 1.3, "overhead": "tiresias"}),
    ("srtf", "", "paper", "4x4", "mixed", {"failures": "mtbf=20000,repair=100"}),
]


def mixed():
    """Forty jobs on 1, 2, 4 or 8 GPUs, some at one instant."""
    rng = np.random.default_rng(34)
    submit = np.sort(np.round(rng.exponential(400.0, 40).cumsum(), 3))
    submit[10:14] = submit[10]
    return pd.DataFrame(
        {
            "job_id": np.arange(40),
            "submit_time": submit,
            "duration": np.round(60.0 + rng.lognormal(7.0, 1.4, 40), 3),
            "num_gpus": rng.choice([1, 2, 4, 8], 40, p=[0.5, 0.2, 0.2, 0.1]),
        }
    )


def stages():
    """Sixty jobs with the times of their stages, close together, on at most 8 GPUs."""
    trace = synth.make("muri-like", 3, jobs=60)
    narrow = trace[trace["num_gpus"] <= 8]
    return narrow.assign(submit_time=narrow["submit_time"] // 40)


def gangs():
    """Jobs with training steps, on at most 8 GPUs."""
    return synth.make("gavel-multiple", 5, jobs=30, rate=3.0, throughputs=THROUGHPUTS)


def singles():
    """Jobs with training steps, on one GPU each."""
    return synth.make("gavel-single", 6, jobs=40, rate=3.0, throughputs=THROUGHPUTS)


def containers():
    """Jobs of workers and parameter servers."""
    return synth.make("liquid-batch-jobs", 7, jobs=12, gap_s=5.0)


def dressed():
    """The jobs of `mixed` with models that all tables of models know."""
    return dress(mixed(), "muri,gavel", 2, throughputs=THROUGHPUTS)


WORKLOADS = {made.__name__: made for made in (mixed, stages, gangs, singles, containers, dressed)}
TYPED = ("gangs", "singles")


def ends(policy, settings, rules, cluster, workload, options):
    """End time of every job, in order of their ids (s)."""
    parameters = parse_settings(settings.split())
    if parameters.get("history") == "mixed":
        parameters["history"] = tuple(mixed()["duration"])
    result = simulate(
        WORKLOADS[workload](),
        cluster,
        make(policy, rules, **parameters),
        rules=rules,
        perf=load_throughputs(THROUGHPUTS) if workload in TYPED else None,
        seed=11,
        **options,
    )
    return result.jobs.sort_values("job_id")["end_time"].to_numpy()


def name_of(run):
    """One line that tells a run from the others."""
    policy, settings, rules, cluster, workload, options = run
    extra = [f"{key}={value}" for key, value in options.items()]
    return " ".join([policy, *settings.split(), f"rules={rules}", cluster, workload, *extra])


def summary(run):
    """Hash of the bits of all end times, and their mean (s) for whoever reads a failure."""
    values = np.ascontiguousarray(ends(*run), dtype="<f8")
    digest = hashlib.sha256(values.tobytes()).hexdigest()
    return {"run": name_of(run), "mean_end_s": repr(float(values.mean())), "sha256": digest}


def points():
    """Hash of the numbers of every committed figure that are counted as published numbers.

    Texts, origins and points that only claims judge are no numbers.
    """
    rows = []
    for path in sorted(FIGURES.rglob("*.points.csv")):
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if "uncounted" in table:
            table = table[table["uncounted"] != "True"]
        numbers = table[["series", "x", "published", "ours"]].to_csv(index=False)
        digest = hashlib.sha256(numbers.encode()).hexdigest()
        rows.append({"file": path.relative_to(FIGURES).as_posix(), "sha256": digest})
    return pd.DataFrame(rows)


def main():
    """Write both files anew."""
    pd.DataFrame([summary(run) for run in RUNS]).to_csv(TABLE, index=False)
    points().to_csv(POINTS, index=False)


if __name__ == "__main__":
    main()
