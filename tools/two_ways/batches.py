"""Pairs of ways to run many simulations, and to pass their inputs."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import repro
from repro import make, simulate, simulate_many
from repro.base import paths
from repro.cli.app import main
from repro.engine import many_orders
from repro.figures import sweep
from repro.figures.progress import ENV_SCHEDULER
from repro.figures.sweep import Case
from repro.perf import ThroughputTable
from repro.perf.throughput_files import load_throughputs
from tools.two_ways import jobs
from tools.two_ways.pair import Difference, Pair, between, frames, one_by_one, records

#: Simulations of one sweep on processes or dask workers, which take seconds to start.
_PER_SWEEP = 50


def _many(rng: np.random.Generator) -> Difference:
    """Orders in compiled batches of `simulate_many`, and run by run."""
    spec = str(rng.choice(["1x4", "2x4", "2x8", "1x8"]))
    num_gpus = _gpus(spec)
    traces = {seed: jobs.trace(rng, num_gpus, most=25) for seed in range(int(rng.integers(1, 4)))}
    if rng.random() < 0.3:
        traces = {seed: jobs.with_predictions(rng, trace) for seed, trace in traces.items()}
    scale_s = float(traces[0]["duration"].median())
    policies = {str(number): jobs.linear_order(rng, scale_s) for number in range(2)}
    loads = tuple(np.round(rng.uniform(0.4, 3.0, 2), 3).tolist())
    with patch("repro.engine.many.simulate", side_effect=AssertionError("not in a batch")):
        batch = simulate_many(traces, spec, policies, loads=loads, keep_jct=True, workers=1)
    return _against_single_runs(batch, traces, spec, policies)


def _against_single_runs(
    batch: pd.DataFrame, traces: Any, spec: str, policies: Any, **options: Any
) -> float:
    """Largest difference of the rows of a batch from single runs."""
    largest = 0.0
    for row in batch.to_dict("records"):
        trace = traces[row["trace"]]
        at_load = trace.assign(submit_time=trace["submit_time"] / row["load"])
        run = simulate(at_load, spec, policies[row["policy"]], seed=row["seed"], **options)
        summary = run.summary()
        largest = max(largest, between(row["jct"], run.jobs["jct"]))
        for name in ("avg_jct", "p99_jct", "makespan", "avg_queueing", "utilisation"):
            largest = max(largest, between(row[name], summary[name]))
        largest = max(largest, between(row["preemptions"], summary["preemptions"]))
    return largest


def _workers(generators: Sequence[np.random.Generator]) -> Iterator[Difference]:
    """`simulate_many` with one worker, and with two: threads for batches, processes for others."""
    for rng in generators:
        traces = [jobs.trace(rng, 8, most=15) for _ in range(6)]
        policies = [
            str(name) for name in rng.choice(["srtf", "tiresias-l", "yarn-cs", "pcs"], 2, False)
        ]
        options: dict[str, Any] = {"loads": (1.0, float(rng.uniform(0.5, 2.0)))}
        options["seed"] = int(rng.integers(100))
        if rng.random() < 0.5:
            options["placement"] = "random"
            policies = ["srtf", "yarn-cs"]
        with patch.object(many_orders, "JOBS_PER_CALL", 30):
            one, two = (
                simulate_many(traces, "2x4", policies, workers=workers, **options)
                for workers in (1, 2)
            )
        yield frames(one, two)


def _arrays(rng: np.random.Generator) -> Difference:
    """Traces passed to `simulate_many` as arrays, and as frames."""
    first = jobs.trace(rng, 8, most=30)
    frames_of_traces = [first, first.sample(frac=1.0, random_state=int(rng.integers(1000)))]
    frames_of_traces = [
        frame.reset_index(drop=True).assign(job_id=np.arange(len(frame)))
        for frame in frames_of_traces
    ]
    names = ("submit_time", "duration", "num_gpus")
    arrays = {name: np.stack([frame[name] for frame in frames_of_traces]) for name in names}
    policies = ["srtf", str(rng.choice(["yarn-cs", "las-2d", "max-min"]))]
    options: dict[str, Any] = {"loads": (0.7, 1.0), "workers": 1}
    return frames(
        simulate_many(arrays, "2x4", policies, **options),
        simulate_many(frames_of_traces, "2x4", policies, **options),
    )


def _case(rng: np.random.Generator) -> Case:
    """A simulation for a sweep."""
    spec = str(rng.choice(["1x4", "2x4", "2x8"]))
    trace = jobs.trace(rng, _gpus(spec), most=15)
    scale_s = float(trace["duration"].median())
    name = str(rng.choice(["order", "elastic", "yarn-cs", "gavel-las", "muri-l"]))
    settings: dict[str, Any] = {}
    if name == "order":
        policy: Any = jobs.linear_order(rng, scale_s)
    elif name == "elastic":
        policy = jobs.elastic(rng, str(rng.choice(jobs.ELASTIC)), scale_s)
        settings["predict"] = 2
    elif name == "muri-l":
        stages = rng.choice([0.05, 0.1, 0.2, 0.4], (len(trace), 4))
        columns = ("stage_storage", "stage_cpu", "stage_gpu", "stage_network")
        trace = trace.assign(**dict(zip(columns, stages.T, strict=True)))
        trace["iteration_time"] = stages.sum(axis=1)
        policy = make("muri-l")
    else:
        policy = make(name)
    if name in ("order", "yarn-cs"):
        settings["placement"] = str(rng.choice(["count", "random", "skew"]))
    return Case(trace, spec, policy, seed=int(rng.integers(100)), settings=settings).resolved()


@contextlib.contextmanager
def empty_cache() -> Iterator[None]:
    """Simulate with a cache folder of the block's own, but the machine code of the usual one."""
    code = os.environ.get("NUMBA_CACHE_DIR", str(paths.cache_dir()))
    with tempfile.TemporaryDirectory(prefix="two-ways-") as folder:
        changes = {paths.ENV_CACHE: folder, "NUMBA_CACHE_DIR": code}
        with patch.dict(os.environ, changes):
            os.environ.pop(ENV_SCHEDULER, None)
            yield


def _silently(cases: Sequence[Case], workers: int) -> list[Any]:
    """Outcomes of a sweep, without its lines of progress."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return sweep.run(cases, workers)


def _in_sweeps(generators: Sequence[np.random.Generator]) -> Iterator[list[Case]]:
    """Simulations of one sweep after another."""
    for first in range(0, len(generators), _PER_SWEEP):
        yield [_case(rng) for rng in generators[first : first + _PER_SWEEP]]


def _cache(generators: Sequence[np.random.Generator]) -> Iterator[Difference]:
    """Outcomes that a sweep computes, and that it reads from the cache."""
    for cases in _in_sweeps(generators):
        with empty_cache():
            computed = _silently(cases, 1)
            with patch.object(sweep, "_computed", side_effect=AssertionError("not in the cache")):
                read = _silently(cases, 1)
        yield from map(records, computed, read)


def _processes(generators: Sequence[np.random.Generator]) -> Iterator[Difference]:
    """Outcomes of a sweep in this process, and in two processes."""
    for cases in _in_sweeps(generators):
        with empty_cache():
            here = _silently(cases, 1)
        with empty_cache():
            elsewhere = _silently(cases, 2)
        yield from map(records, here, elsewhere)


def _dask(generators: Sequence[np.random.Generator]) -> Iterator[Difference]:
    """Outcomes of a sweep in this process, and on a dask worker."""
    from distributed import LocalCluster

    for cases in _in_sweeps(generators):
        with empty_cache():
            here = _silently(cases, 1)
        with (
            empty_cache(),
            LocalCluster(
                n_workers=1,
                threads_per_worker=1,
                dashboard_address=None,
                # a client that leaves closes its connection while the scheduler still logs events
                silence_logs=logging.CRITICAL + 1,
            ) as cluster,
            patch.dict(os.environ, {ENV_SCHEDULER: cluster.scheduler_address}),
        ):
            elsewhere = _silently(cases, 1)
        yield from map(records, here, elsewhere)


def _command(rng: np.random.Generator) -> Difference:
    """`repro simulate` on a file, and `repro.simulate` on a frame."""
    spec = str(rng.choice(["1x4", "2x4", "2x8"]))
    trace = jobs.trace(rng, _gpus(spec), most=20).sort_values("submit_time", kind="stable")
    trace = trace.reset_index(drop=True)
    name = str(rng.choice(["srtf", "yarn-cs", "tiresias-l", "max-min", "gavel-las", "sjf"]))
    options: dict[str, Any] = {"seed": int(rng.integers(100))}
    if name in ("srtf", "yarn-cs", "sjf") and rng.random() < 0.5:
        options["placement"] = str(rng.choice(["random", "yarn", "skew"]))
    with tempfile.TemporaryDirectory(prefix="two-ways-") as folder:
        path = Path(folder) / "jobs.csv"
        out = Path(folder) / "out.csv"
        trace.to_csv(path, index=False)
        words = ["simulate", "--trace", str(path), "--cluster", spec, "--policy", name, "--json"]
        words += ["--out", str(out)]
        for option, value in options.items():
            words += [f"--{option}", str(value)]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            code = main(words)
        assert code == 0, f"repro {' '.join(words)} ends with code {code}"
        document = json.loads(printed.getvalue())
        written = pd.read_csv(out, dtype=str)
    run = simulate(trace, spec, name, **options)
    summary = run.summary()
    numbers = [
        between(document[key], value)
        for key, value in summary.items()
        if isinstance(value, int | float) and key != "wall_s"
    ]
    columns = ["start_time", "end_time", "jct"]
    return max(*numbers, between(written[columns].astype(float), run.jobs[columns]))


def _throughputs(rng: np.random.Generator) -> Difference:
    """Runs with throughputs from a table in memory, and from its CSV and JSON files."""
    models = [f"model {number}" for number in range(int(rng.integers(1, 5)))]
    types = ["v100", "k80"]
    rows: dict[Any, dict[str, float]] = {
        (model, gang): dict(zip(types, rng.uniform(0.5, 90.0, 2).tolist(), strict=True))
        for model in models
        for gang in (1, 2)
    }
    table = ThroughputTable(rows, "v100")
    trace = jobs.trace(rng, 2, most=12).assign(num_gpus=lambda frame: frame["num_gpus"].clip(1, 2))
    trace["model"] = rng.choice(models, len(trace))
    as_rows = [
        {"job_type": model, "scale_factor": gang, "gpu_type": name, "steps_per_second": speed}
        for (model, gang), speeds in rows.items()
        for name, speed in speeds.items()
    ]
    as_json = {
        name: {
            f"('{model}', {gang})": {"null": speeds[name]} for (model, gang), speeds in rows.items()
        }
        for name in types
    }
    with tempfile.TemporaryDirectory(prefix="two-ways-") as folder:
        csv_path = Path(folder) / "speeds.csv"
        json_path = Path(folder) / "speeds.json"
        pd.DataFrame(as_rows).to_csv(csv_path, index=False)
        json_path.write_text(json.dumps(as_json))
        tables = [table, load_throughputs(csv_path), load_throughputs(json_path)]
    policy = str(rng.choice(["gavel-las", "srtf", "gavel-fifo"]))
    first, *others = [simulate(trace, "2xv100,2xk80", policy, perf=perf) for perf in tables]
    return max(records(first, other) for other in others)


def _trace_files(rng: np.random.Generator) -> Difference:
    """Jobs of a frame, and of the frame written to a file and read again."""
    trace = jobs.trace(rng, 8).sort_values("submit_time", kind="stable", ignore_index=True)
    suffix = str(rng.choice([".csv", ".csv.gz"]))
    with tempfile.TemporaryDirectory(prefix="two-ways-") as folder:
        path = Path(folder) / f"jobs{suffix}"
        trace.to_csv(path, index=False)
        read = repro.load(path)
    return frames(trace, read[list(trace.columns)])


def _quiet(compare: Any) -> Any:
    """Comparison without the warnings that the inputs of a run deserve."""

    def compare_quietly(generators: Sequence[np.random.Generator]) -> Iterator[Difference]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from compare(generators)

    return compare_quietly


def _gpus(spec: str) -> int:
    """GPUs of a cluster such as 2x4."""
    nodes, gpus = map(int, spec.split("x"))
    return nodes * gpus


PAIRS: Sequence[Pair] = (
    Pair(
        "many",
        "orders in compiled batches of `simulate_many`",
        "single runs of `simulate`",
        0.0,
        "s",
        one_by_one(_many),
        quick=10,
        long=1000,
    ),
    Pair(
        "workers",
        "`simulate_many` with one worker",
        "with two",
        0.0,
        "s",
        _workers,
        quick=1,
        long=20,
    ),
    Pair(
        "arrays",
        "traces of `simulate_many` as arrays",
        "as frames",
        0.0,
        "s",
        one_by_one(_arrays),
        quick=8,
        long=1000,
    ),
    Pair(
        "cache",
        "outcomes that a sweep computes",
        "the same from the cache",
        0.0,
        "s",
        _cache,
        quick=15,
        long=1000,
    ),
    Pair(
        "processes",
        "simulations of a sweep in one process",
        "in two processes",
        0.0,
        "s",
        _processes,
        quick=10,
        long=1000,
    ),
    Pair(
        "dask",
        "simulations of a sweep in one process",
        "on a dask worker",
        0.0,
        "s",
        _dask,
        quick=10,
        long=1000,
        needs=("distributed",),
    ),
    Pair(
        "command",
        "`repro simulate` on a file",
        "`repro.simulate` on a frame",
        0.0,
        "s",
        one_by_one(_command),
        quick=6,
        long=1000,
    ),
    Pair(
        "throughput-files",
        "throughputs in memory",
        "from a CSV and a JSON file",
        0.0,
        "s",
        one_by_one(_throughputs),
        quick=6,
        long=1000,
    ),
    Pair(
        "trace-files",
        "a frame of jobs",
        "the frame written as CSV and read again",
        0.0,
        "s",
        one_by_one(_trace_files),
        quick=15,
        long=1000,
    ),
)
