"""`simulate_many` gives what `simulate` gives, run by run, to the last digit."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import dataclass
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from repro import simulate, simulate_many
from repro.base.compiled import CompiledFunction
from repro.base.errors import InputWarning, ParamError, PolicyError, ReproError, TraceError
from repro.engine import many, many_inputs, many_orders
from repro.engine.many_inputs import Workload
from repro.engine.many_orders import LinearOrder
from repro.engine.select import order_batches
from repro.model.cluster.spec import Cluster
from repro.model.policy import LinearKey, Order, make
from repro.policies.baselines.known_durations import SRTF
from repro.testing import small_trace
from repro.trace import synth

LOADS = (0.5, 1.0, 2.7)
IN_BATCHES = {
    "srtf": "srtf",
    "srsf": "srsf",
    "las-2d": make("las-2d", quantum=300.0),
    "tiresias-l": "tiresias-l",
    "four queues": make("tiresias-l", thresholds=(500.0, 3000.0, 20000.0)),
}


def trace_of(seed, jobs=120):
    """Jobs that queue; some submitted at one instant, rows in no order, ids that are no rows."""
    rng = np.random.default_rng(seed)
    trace = synth.make("philly-like", rng, jobs=jobs, load=2.0, num_gpus=16)
    trace["num_gpus"] = np.minimum(trace["num_gpus"], 16)
    trace.loc[::3, "submit_time"] = trace.loc[::3, "submit_time"] // 600 * 600 + 100
    trace["job_id"] = 7000 - 3 * trace["job_id"]
    columns = ["job_id", "submit_time", "duration", "num_gpus"]
    return trace[columns].iloc[rng.permutation(jobs)].reset_index(drop=True)


TRACES = {11: trace_of(11), 12: trace_of(12), 13: trace_of(13, jobs=75)}


class Half:
    """Every job at half speed."""

    def rates(self, table, run, nodes):
        return [0.5] * len(run.jobs)


@dataclass(frozen=True)
class Slow(SRTF):
    """SRTF with a performance model of its own."""

    def performance(self):
        return Half()


@dataclass(frozen=True)
class Seldom(SRTF):
    """SRTF with a decision every 7 s."""

    interval: float = 7.0


def assert_same(runs, traces, cluster, policies, **options):
    """Each row of the runs is the summary of one simulation."""
    assert runs["jct"].notna().all()
    for row in runs.to_dict("records"):
        trace = traces[row["trace"]]
        trace = trace.assign(submit_time=trace["submit_time"] / row["load"])
        result = simulate(trace, cluster, policies[row["policy"]], seed=row["seed"], **options)
        summary = result.summary()
        for name in set(summary) - {"policy", "trace", "cluster", "wall_s", "ignored"}:
            expected = summary[name]
            if isinstance(expected, list):
                expected = "; ".join(expected)
            np.testing.assert_equal(row[name], expected, err_msg=f"{row['policy']} {name}")
        np.testing.assert_array_equal(row["jct"], result.jobs["jct"])


def test_batches_equal_single_runs():
    with patch.object(many, "simulate", side_effect=AssertionError):
        runs = simulate_many(TRACES, "2x8", IN_BATCHES, loads=LOADS, keep_jct=True)
    assert len(runs) == 3 * 3 * 5
    assert (runs.groupby("policy")["preemptions"].sum() > 20).all()
    assert_same(runs, TRACES, "2x8", IN_BATCHES)


def test_runs_longer_than_the_arrays_are_repeated():
    whole = simulate_many(TRACES, "1x16", IN_BATCHES, loads=LOADS)
    with patch.object(order_batches, "_INTERVALS_PER_JOB", 1):
        pd.testing.assert_frame_equal(
            simulate_many(TRACES, "1x16", IN_BATCHES, loads=LOADS), whole, check_exact=True
        )


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same():
    def runs(workers):
        policies = ["srtf", "tiresias-l", "yarn-cs"]
        with patch.object(many_orders, "JOBS_PER_CALL", 200):
            return simulate_many(TRACES, "2x8", policies, loads=LOADS, workers=workers)

    pd.testing.assert_frame_equal(runs(1), runs(2), check_exact=True)


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("yarn-cs", {}),
        ("srtf", {"rules": "tiresias"}),
        ("srtf", {"placement": "random"}),
        ("srtf", {"stop_time": 5000.0}),
        ("max-min", {"rules": "pcs"}),
        ("srtf", {"failures": "mtbf=20000,repair=600"}),
    ],
)
def test_other_runs_equal_single_runs(policy, options):
    traces = {label: trace.head(40) for label, trace in TRACES.items()}
    policies = {policy: policy}
    runs = simulate_many(
        traces, "2x8", policies, loads=(1.0, 2.0), seed=[4, 5, 6], keep_jct=True, workers=1,
        **options,
    )  # fmt: skip
    assert runs["seed"].tolist() == [4, 4, 5, 5, 6, 6]
    assert_same(runs, traces, "2x8", policies, **options)


def test_ids_of_awaited_jobs_may_come_from_a_generator():
    ids = small_trace()["job_id"].tolist()[:2]
    names = ["srtf", "las-2d"]
    expected = simulate_many(small_trace(), "1x4", names, until=ids, workers=1)
    runs = simulate_many(small_trace(), "1x4", names, until=(job for job in ids), workers=1)
    pd.testing.assert_frame_equal(runs, expected)


def test_traces_of_one_length_come_once_each():
    traces = [SimpleNamespace(submit=np.zeros(jobs)) for jobs in (3, 2, 3, 3)]
    assert list(many_inputs.of_equal_length(traces)) == [[0, 2, 3], [1]]


@pytest.mark.parametrize(
    ("policy", "is_linear"),
    [
        (make("srtf"), True),
        (make("tiresias-l"), True),
        (Seldom(), False),
        (Slow(), False),
        (make("gandiva"), False),
    ],
)
def test_orders_that_batches_simulate(policy, is_linear):
    workload = Workload("t", np.zeros(1), np.ones(1), np.ones(1), TRACES[13].head(1), None)
    assert (LinearOrder.of(policy, Cluster.parse("2x8"), workload) is not None) == is_linear


def test_arrays_are_traces():
    frames = [TRACES[11], TRACES[12]]
    names = ("submit_time", "duration", "num_gpus")
    arrays = {name: np.stack([frame[name] for frame in frames]) for name in names}
    options = {"cluster": "2x8", "policies": ["srtf", "yarn-cs"], "loads": LOADS, "workers": 1}
    pd.testing.assert_frame_equal(
        simulate_many(arrays, **options), simulate_many(frames, **options), check_exact=True
    )
    same_jobs = simulate_many({**arrays, "num_gpus": np.ones(120, int)}, "1x4", "srtf")
    assert same_jobs["trace"].tolist() == [0, 1]
    alone = simulate(frames[1].assign(num_gpus=1), "1x4", "srtf").summary()
    assert same_jobs.loc[1, "avg_jct"] == alone["avg_jct"]


def test_keys_that_a_batch_cannot_compute():
    @dataclass(frozen=True)
    class LongestFirst(SRTF):
        def key(self, view, job):
            return -view.remaining(job)

        def slope(self, view, job):
            return view.rate(job)

    @dataclass(frozen=True)
    class LateFirst(Order):
        def key(self, view, job):
            return -view.submit(job) * view.attained(job)

        def slope(self, view, job):
            return -view.submit(job) * view.gpus(job)

        def linear_key(self, view):
            return LinearKey(per_service=-view.submits)

    policies = {"longest": LongestFirst(), "late": LateFirst(), "srtf": "srtf"}
    runs = simulate_many(TRACES, "2x8", policies, keep_jct=True, workers=1)
    assert_same(runs, TRACES, "2x8", policies)


OWN = """
import repro
from repro.testing import small_trace

@repro.register("narrowest")
def narrowest(view, job):
    return view.gpus(job)

if __name__ == "__main__":
    runs = repro.simulate_many(small_trace(), "1x4", "narrowest", loads=(1, 2), workers=2)
    print(runs["avg_jct"].tolist())
"""


@pytest.mark.slow
def test_a_key_function_of_a_script_reaches_the_processes(tmp_path):
    script = tmp_path / "own.py"
    script.write_text(OWN)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    expected = [
        simulate(
            small_trace().assign(submit_time=lambda trace, load=load: trace["submit_time"] / load),
            "1x4",
            "sf",
        ).summary()["avg_jct"]
        for load in (1, 2)
    ]
    assert done.stdout == f"{expected}\n", done.stderr


def test_one_warning_has_the_notes_of_all_runs():
    late = small_trace().assign(submit_time=lambda trace: trace["submit_time"] + 1e6)
    late.attrs = {"notes": ["three lines left out"], "stand_in_for": "philly"}
    with pytest.warns(InputWarning) as caught:
        runs = simulate_many({"a": small_trace(), "b": late}, "1x4", ["srtf", "yarn-cs"], workers=1)
    text = "2 of 4 runs have notes (column notes), the first is trace b at load 1 under srtf: three"
    assert [str(warning.message)[: len(text)] for warning in caught] == [text]
    assert runs["notes"].str.count("; ").tolist() == [0, 0, 1, 1]
    assert runs["notes"].nunique() == 2
    assert runs["stand_in"].tolist() == ["", "", "trace philly", "trace philly"]


def broken(**columns):
    return {"a": small_trace(), "b": small_trace().assign(**columns)}


ARRAYS = {"submit_time": [[0.0, 1.0]], "duration": [[2.0, 3.0]], "num_gpus": [[1, 1]]}


@pytest.mark.parametrize(
    ("traces", "options", "error", "shown"),
    [
        (broken(duration=-1.0), {}, TraceError, "trace b: trace:row 0:duration: not positive (-1)"),
        (broken(num_gpus=1.5), {}, TraceError, "trace b: trace:row 0:num_gpus: not a whole number"),
        (broken(submit_time="x"), {}, TraceError, "trace b: trace:row 0:submit_time: not a number"),
        (broken(job_id=1), {}, TraceError, "trace b: trace:row 1:job_id: duplicate id"),
        (broken(duration=float("nan")), {}, TraceError, "trace b: trace:row 0:duration: missing"),
        (broken(priority=0.5), {}, TraceError, "trace b: trace:row 0:priority: not a whole"),
        (broken(num_gpus=5), {}, TraceError, "trace b at load 1 under srtf: job 0 asks for 5 GPUs"),
        (broken(submit_time=1e9), {"loads": (1, 0.01)}, TraceError, "trace b at load 0.01: trace:"),
        (broken(notes=1), {"loads": (1, 0)}, ParamError, "loads are (1, 0); give positive numbers"),
        ([], {}, TraceError, "no traces; give a DataFrame"),
        (3, {}, TraceError, "the traces are a int; give a DataFrame"),
        ([3], {}, TraceError, "trace 0: the trace is an int; give a DataFrame"),
        ([small_trace().head(0)], {}, TraceError, "trace 0: trace: no jobs"),
        ({**ARRAYS, "duration": [[2.0, -3.0]]}, {}, TraceError, "trace 0: trace:row 1:duration: n"),
        (
            {**ARRAYS, "duration": [["a", "b"]]},
            {},
            TraceError,
            "traces: array 'duration' holds <U1",
        ),
        ({**ARRAYS, "duration": [[1.0]] * 3}, {}, None, ""),
        ({**ARRAYS, "duration": [[1.0, 2, 3]]}, {}, TraceError, "traces: arrays of different shap"),
        ({**ARRAYS, "duration": 1.0}, {}, TraceError, "traces: array 'duration' has 0 dimensions"),
        ({**ARRAYS, "user": [[1, 2]]}, {}, ParamError, "arrays of traces have no column 'user'"),
        ({"duration": [[1.0]]}, {}, TraceError, "traces: no array 'submit_time'; give submit_time"),
        (broken(), {"policies": ["srtf", "srtf"]}, ParamError, "policies: two are named 'srtf'"),
        (broken(), {"policies": []}, ParamError, "policies: none; give a policy"),
        (broken(), {"policies": ["srtx"]}, PolicyError, "unknown policy 'srtx'"),
        (broken(), {"policies": [SRTF]}, ParamError, "policy is"),
        (broken(), {"policies": SRTF}, ParamError, "policy is"),
        (broken(), {"policies": 3}, ParamError, "policy is 3; give a policy"),
        (broken(), {"loads": 2}, ParamError, "loads are 2; give positive numbers"),
        (broken(), {"loads": np.zeros(900)}, ParamError, "loads are array([0., 0., 0.,"),
        (broken(), {"seed": 1.5}, ParamError, "seed is 1.5; give a whole number"),
        (broken(), {"workers": 0}, ParamError, "workers is 0; give a number of threads"),
        (broken(), {"seed": [1, 2, 3]}, ParamError, "seed: 3 seeds for 2 traces; give one, or"),
        (broken(), {"seed": [1, -2]}, ParamError, "seed is -2; give a whole number"),
        (broken(), {"speed": 2}, ParamError, "simulate_many has no argument 'speed'"),
        (broken(), {"interval": -1}, ParamError, "interval is -1; give a positive number"),
        (
            broken(duration=1e9),
            {"policies": make("las-2d", quantum=1e-3)},
            ParamError,
            "trace b at load 1 under las-2d: quantum is 0.001 s",
        ),
    ],
)
def test_bad_input_gets_one_line(traces, options, error, shown):
    options = {"policies": "srtf", "workers": 1, **options}
    if error is None:
        assert len(simulate_many(traces, "1x4", **options)) == 3
        return
    with pytest.raises(error) as caught:
        simulate_many(traces, "1x4", **options)
    assert isinstance(caught.value, ReproError)
    assert str(caught.value).startswith(shown)
    assert "\n" not in str(caught.value)


def test_a_refused_run_in_a_worker_is_the_only_message():
    with pytest.raises(TraceError, match="trace b at load 1 under srtf"), warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate_many(broken(num_gpus=5) | {"c": small_trace()}, "1x4", "srtf", workers=2)


@dataclass(frozen=True)
class Lottery(Order):
    """Order of jobs by the seed."""

    def key(self, view, job):
        return (view.seed + 2) * (job + 3) ** 2 % 7


def test_every_run_has_its_seed_and_the_first_is_0():
    for seed in (None, 5):
        options = {} if seed is None else {"seed": seed}
        runs = simulate_many(small_trace(), "1x4", Lottery(), workers=1, keep_jct=True, **options)
        alone = simulate(small_trace(), "1x4", Lottery(), seed=seed or 0)
        assert runs["seed"].tolist() == [seed or 0]
        np.testing.assert_array_equal(runs["jct"][0], alone.jobs["jct"])
    ends = [simulate(small_trace(), "1x4", Lottery(), seed=n).jobs["jct"].sum() for n in (0, 1, 5)]
    assert len(set(ends)) == 3


def test_an_order_of_small_traces_runs_in_batches():
    with patch.object(many, "simulate", side_effect=AssertionError):
        runs = simulate_many(
            [small_trace(), small_trace()], "1x4", "srtf", workers=1, keep_jct=True
        )
    assert runs["jct"].notna().all()


@pytest.mark.parametrize("compiled_after", [0, 1, 2, 9])
def test_runs_go_on_in_one_call_once_the_loops_are_compiled(compiled_after):
    class Loops(CompiledFunction):
        """Interpreted loops, which count as compiled after some calls."""

        calls = 0

        def __call__(self, *values):
            self.calls += 1
            return simulate_runs(*values)

        @property
        def is_compiled(self):
            return self.calls >= compiled_after

    simulate_runs = order_batches.simulate_runs
    loops = Loops(lambda: None, __name__, {}, is_exact=True)
    options = {"loads": (1.0, 2.0, 3.0), "workers": 1, "keep_jct": True}
    whole = simulate_many(small_trace(), "1x4", "srtf", **options)
    with (
        patch.object(many, "simulate", side_effect=AssertionError),
        patch.object(order_batches, "simulate_runs", loops),
    ):
        runs = simulate_many(small_trace(), "1x4", "srtf", **options)
    pd.testing.assert_frame_equal(runs, whole, check_exact=True)
    # runs before are calls of their own, the others are one call
    assert loops.calls == min(compiled_after + 1, 3)


def test_an_order_with_a_model_or_an_interval_of_its_own():
    policies = {"slow": Slow(), "seldom": Seldom()}
    traces = {"a": small_trace()}
    runs = simulate_many(traces, "1x4", policies, workers=1, keep_jct=True)
    assert_same(runs, traces, "1x4", policies)


def test_each_of_several_traces_is_checked():
    bad = small_trace().assign(duration=-1.0)
    with pytest.raises(TraceError, match="trace 0"):
        simulate_many([bad, small_trace()], "1x4", "srtf")


def test_ids_are_checked_whatever_their_type():
    bad = small_trace().assign(job_id=["a", None, "c", "d", "e", "f"])
    with pytest.raises(TraceError, match="job_id"):
        simulate_many([bad], "1x4", "srtf")
