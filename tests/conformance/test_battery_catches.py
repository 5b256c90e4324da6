"""Each rule of the battery is broken on purpose once, and is the one that is named."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ParamError, PolicyError, TraceError
from repro.model.cluster.spec import Cluster
from repro.model.decision import Run, RunSet, Shares
from repro.model.policy import Order, Policy, make
from repro.perf import ThroughputTable
from repro.perf.overhead import CheckpointOverhead, Phases, RoundRestarts
from repro.policies.baselines.known_durations import SRTF
from repro.policies.tiresias.las_2d import Las2D
from repro.testing import check_policy, scaled, small_trace, stress_traces
from repro.testing.audit import _Audit, check_records

#: Jobs with a model, and its speeds on two GPU types.
MODELLED = small_trace().assign(model="a")
FAST_AND_SLOW = ThroughputTable(
    {("a", gpus): {"v100": 2.0, "k80": 1.0} for gpus in (1, 2, 4)}, "v100"
)


@dataclass(frozen=True)
class Greedy(Policy):
    """Gives everything to everyone."""

    def decide(self, view):
        return RunSet(view.jobs, fill="exact")


@dataclass(frozen=True)
class HalfGangs(Policy):
    """Starts wide jobs on one GPU."""

    def decide(self, view):
        return RunSet([Run((job,), 1) for job in view.jobs])


@dataclass(frozen=True)
class Idle(Policy):
    """Keeps asking for another minute."""

    def decide(self, view):
        return RunSet((), wake=view.now + 60.0)


@dataclass(frozen=True)
class Stuck(Policy):
    """Never runs a job wider than one node."""

    def decide(self, view):
        return RunSet([job for job in view.jobs if view.gpus(job) <= 4])


@dataclass(frozen=True)
class Moody(Order):
    """Draws from the process-wide generator."""

    def key(self, view, job):
        return random.random()


@dataclass(frozen=True)
class Grudging(Policy):
    """Remembers earlier runs in the class."""

    runs: ClassVar[list[int]] = []

    def session(self, view):
        self.runs.append(1)
        turned = len(self.runs) % 2

        def decide(view):
            return RunSet(view.jobs[::-1] if turned else view.jobs)

        return decide


@dataclass(frozen=True)
class ByName(Order):
    """Favours small job ids."""

    needs: ClassVar[frozenset[str]] = frozenset({"job_id"})

    def key(self, view, job):
        return int(view.column("job_id")[job])


@dataclass(frozen=True)
class ByRow(Order):
    """Favours jobs that stand early in the file."""

    def key(self, view, job):
        return int(view._table.positions[job])


@dataclass(frozen=True)
class Hesitant(Policy):
    """Looks at a job for a while before it starts it."""

    hesitation: float = 2.0
    time_fields: ClassVar[tuple[str, ...]] = ("hesitation",)

    def decide(self, view):
        ready = [job for job in view.jobs if view.now >= view.submit(job) + self.hesitation]
        later = [view.submit(job) + self.hesitation for job in view.jobs if job not in ready]
        return RunSet(ready, wake=min(later, default=float("inf")))


@dataclass(frozen=True)
class Restless(Policy):
    """Stops each job once, 1 s after its start."""

    def decide(self, view):
        waits = [
            job for job in view.jobs if 0 < view.run_seconds(job) <= 1 and view.is_running(job)
        ]
        first = [job for job in view.jobs if job not in waits][:1]
        return RunSet(first, wake=view.now + 1)


@dataclass(frozen=True)
class SecretQuantum(Las2D):
    """Has a parameter in seconds and does not say so."""

    time_fields: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class Peeking(Order):
    """Reads true durations behind the view's back."""

    def key(self, view, job):
        return view._table.work[job]


@dataclass(frozen=True)
class Undeclared(Order):
    """Reads true durations through the view."""

    def key(self, view, job):
        return view.duration(job)


@dataclass(frozen=True)
class Overdeclared(Order):
    """Asks for durations and does not use them."""

    needs: ClassVar[frozenset[str]] = frozenset({"duration"})

    def key(self, view, job):
        return view.gpus(job)


@dataclass(frozen=True)
class Remaining(Order):
    """Shortest remaining time first, whose key falls by ``fall`` per second."""

    fall: float = 1.0

    needs: ClassVar[frozenset[str]] = frozenset({"duration"})

    def key(self, view, job):
        return (0, view.remaining(job))

    def slope(self, view, job):
        return -self.fall


@dataclass(frozen=True)
class OtherKeys(Order):
    """Has other keys for many jobs than for one."""

    def key(self, view, job):
        return view.submit(job)

    def keys(self, view, jobs):
        return -view.submits[jobs]


@dataclass(frozen=True)
class PlainSet(Order):
    """Declares its needs as a set, one more than it reads."""

    needs: ClassVar[set[str]] = {"duration", "user"}

    def key(self, view, job):
        return view.duration(job)


@dataclass(frozen=True)
class Hourly(Policy):
    """Has an interval that is no parameter."""

    interval: ClassVar[float] = 7.0

    def decide(self, view):
        return RunSet(view.jobs)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Greedy(), "GPUs, but only"),
        (HalfGangs(), "give all or none"),
        (Idle(), "'ends'"),
        (Stuck(), "'ends'"),
        (Moody(), "'repeatable'"),
        (Grudging(), "'repeatable'"),
        (ByName(), "'ids'"),
        (ByRow(), "'file order'"),
        (Hesitant(), "'alone'"),
        (SecretQuantum(), "'scaling'"),
        (Peeking(), "'blind'"),
        (Undeclared(), "does not declare"),
        (Remaining(fall=2.0), "'key': its key is"),
        (OtherKeys(), "'key': `keys` gives"),
        (Overdeclared(), "'needs'"),
        (PlainSet(), "'needs': it declares 'user'"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Policy) else "",
)
def test_a_broken_policy_is_caught_by_its_rule(policy, message):
    random.seed(7)
    with pytest.raises(PolicyError, match=message) as caught:
        check_policy(policy)
    assert "\n" not in str(caught.value)
    assert repr(policy.name) in str(caught.value)


def test_a_check_leaves_the_policy_as_it_is():
    with pytest.raises(PolicyError, match="'needs'"):
        check_policy(PlainSet())
    assert PlainSet.needs == {"duration", "user"}


def test_the_message_names_trace_and_job():
    with pytest.raises(PolicyError, match=r"trace 'steady': job 965 breaks rule 'alone': alone"):
        check_policy(Hesitant())
    with pytest.raises(
        PolicyError, match=r"trace 'steady': policy 'unnamed', time \d+ s, job \d+: gives"
    ):
        check_policy(HalfGangs())


def test_a_lone_job_is_not_stopped_at_a_cost():
    with pytest.raises(PolicyError, match="rule 'alone': alone it is preempted 1 times, at a cost"):
        check_policy(Restless(), traces=small_trace().head(1), overhead=2.0)


def test_traces_of_ones_own_are_named_too():
    frame = small_trace()
    with pytest.raises(PolicyError, match=r"trace 'mine': job 1 "):
        check_policy(Hesitant(), traces={"mine": frame})
    with pytest.raises(PolicyError, match=r"trace 'number 0': job 1 "):
        check_policy(Hesitant(), traces=[frame])
    frame.attrs["name"] = "named"
    for traces in (frame, [frame]):
        with pytest.raises(PolicyError, match=r"trace 'named': job 1 "):
            check_policy(Hesitant(), traces=traces)


@pytest.mark.parametrize(
    ("traces", "message"),
    [
        ([], "no traces; give a DataFrame"),
        ({}, "no traces; give a DataFrame"),
        (3, "the trace is an int; give a DataFrame"),
        ([small_trace(), None], "the trace is None; give a DataFrame"),
        ({"mine": 3}, "the trace is an int; give a DataFrame"),
        (small_trace().drop(columns="duration"), "duration: missing column"),
        ("testbed", "testbed: is a generator of traces"),
    ],
)
def test_traces_that_are_none_are_refused(traces, message):
    with pytest.raises(TraceError, match=message):
        check_policy("srtf", traces=traces)


def test_numbers_of_a_trace_may_be_texts():
    check_policy("srtf", traces=small_trace().astype(str))


@pytest.mark.parametrize(
    "options",
    [{"until": [0]}, {"stop_time": 5.0}, {"keep_intervals": False}, {"predict_interval": 0.9}],
)
def test_options_without_ends_or_intervals_are_refused(options):
    with pytest.raises(ParamError, match=f"check_policy takes no {next(iter(options))}"):
        check_policy("srtf", **options)


def test_failures_do_not_scale_with_the_times():
    check_policy("srtf", failures="mtbf=500,repair=20")


def test_traces_of_one_name_are_all_checked():
    frame = small_trace()
    frame.attrs["name"] = "halves"
    # only jobs that wait for others make the policy unsound
    halves = [frame.head(3), frame.tail(1)]
    with pytest.raises(PolicyError, match="trace 'halves': policy 'unnamed', time 1 s"):
        check_policy(Greedy(), traces=halves, cluster="1x4")
    with pytest.raises(PolicyError, match="trace 'halves, number 1': policy 'unnamed', time 1 s"):
        check_policy(Greedy(), traces=halves[::-1], cluster="1x4")


# policies of a student's kind ------------------------------------------------------------------


@dataclass(frozen=True)
class OldestFirst(Policy):
    """Ten lines with `decide`."""

    def decide(self, view):
        return RunSet(sorted(view.jobs, key=lambda job: (view.submit(job), job)))


@dataclass(frozen=True)
class ShortestFirst(Policy):
    needs: ClassVar[frozenset[str]] = frozenset({"duration"})

    def decide(self, view):
        return RunSet(sorted(view.jobs, key=lambda job: (view.remaining(job), job)))


@dataclass(frozen=True)
class WidestFirst(Order):
    def key(self, view, job):
        return -view.gpus(job)


@dataclass(frozen=True, slots=True)
class Slotted(Order):
    needs: ClassVar[frozenset[str]] = frozenset({"duration"})

    def key(self, view, job):
        return view.duration(job)


@dataclass(frozen=True)
class Halves(Policy):
    """Elastic: every job may get half a share less than it wants."""

    elastic: ClassVar[bool] = True

    def decide(self, view):
        wanted = sum(view.gpus(job) for job in view.jobs)
        cut = min(1.0, view.cluster.num_gpus / wanted) if wanted else 1.0
        return RunSet([Run((job,), view.gpus(job) * cut) for job in view.jobs])


@dataclass(frozen=True)
class EqualTime(Policy):
    def decide(self, view):
        jobs = tuple(view.jobs)
        widths = np.array([view.gpus(job) for job in jobs], float)
        share = np.minimum(1.0, view.cluster.num_gpus / widths.sum())
        return Shares(jobs, (None,), np.full((len(jobs), 1), share))


@pytest.mark.parametrize(
    "policy",
    [
        OldestFirst(),
        ShortestFirst(),
        WidestFirst(),
        Remaining(),
        Hourly(),
        Slotted(),
        Halves(),
        EqualTime(),
    ],
)
def test_sound_policies_pass(policy):
    check_policy(policy)


@pytest.mark.filterwarnings("ignore:speed-up curve of a relative")
@pytest.mark.parametrize("policy", ["afs", "themis"])
def test_rules_with_a_clock_of_ticks(policy):
    check_policy(policy, rules="pcs", cluster="1x8")


@pytest.mark.parametrize("policy", ["themis", "reservation"])
def test_predicted_durations_are_doubled_with_all_times(policy):
    rng = np.random.default_rng(0)
    count = 25
    durations = rng.integers(100, 3000, count).astype(float)
    trace = pd.DataFrame(
        {
            "job_id": range(count),
            "submit_time": np.sort(rng.integers(0, 4000, count)).astype(float),
            "duration": durations,
            "num_gpus": rng.choice([1, 2, 4], count),
            "predicted_duration": durations * rng.choice([0.25, 1.0, 2.0, 4.0], count),
        }
    )
    check_policy(policy, traces=[trace], cluster="2x4")


@pytest.mark.parametrize("rounds", [{"round_s": 10.0}, {"ideal": "fluid"}])
def test_shares_pass_in_rounds_and_in_the_limit(rounds):
    check_policy(EqualTime(), rounds=rounds)


# costs of starts and preemptions ---------------------------------------------------------------


@dataclass(frozen=True)
class CostlySRTF(SRTF):
    """Loses 5 s at every resumption."""

    def overhead(self):
        return CheckpointOverhead({}, 5.0)


@pytest.mark.parametrize(
    ("policy", "rounds"),
    [
        (CostlySRTF(), {}),
        (SRTF(), {"preemption_overhead_s": 5.0}),
        (EqualTime(), {"round_s": 10.0, "preemption_overhead_s": 5.0}),
    ],
)
def test_costs_of_the_policy_and_of_rounds_are_no_excess_of_work(policy, rounds):
    check_policy(policy, traces=[small_trace()], cluster="1x4", rounds=rounds)


@pytest.mark.parametrize(
    "options",
    [
        {"overhead": Phases({"a": 5.0}, {"a": 3.0})},
        {"overhead": RoundRestarts(launch=4.0, start={"a": 3.0}), "interval": 10.0},
    ],
)
def test_a_job_alone_also_takes_the_costs_of_its_start(options):
    check_policy("srtf", traces=[MODELLED], cluster="1x4", **options)
    with pytest.raises(PolicyError, match=r"job 1 breaks rule 'alone': alone it takes \d+ s"):
        check_policy(Hesitant(), traces=[MODELLED], cluster="1x4", **options)


# records ---------------------------------------------------------------------------------------


def tampered(**changes):
    result = simulate(small_trace(), "1x4", "yarn-cs")
    spans = result.intervals.copy()
    for column, (row, value) in changes.items():
        spans.loc[row, column] = value
    return replace(result, intervals=spans)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"gpus": (0, 9.0)}, "capacity"),
        ({"used": (1, 0.5)}, "gang"),
        ({"rate": (2, 0.5)}, "work"),
        ({"rate": (2, 1.5)}, "work"),
        ({"start": (0, -3.0)}, "ends"),
        ({"end": (3, 1e6)}, "capacity|ends"),
        ({"job_id": (0, 99)}, "ends"),
    ],
)
def test_records_that_cannot_be(changes, rule):
    with pytest.raises(PolicyError, match=f"breaks rule '({rule})'"):
        check_records(tampered(**changes), Cluster.parse("1x4"))


def test_a_job_that_holds_gpus_twice():
    result = simulate(small_trace(), "4x4", "yarn-cs")
    twice = pd.concat([result.intervals, result.intervals.iloc[:1]], ignore_index=True)
    twice = twice.drop(columns="nodes")
    with pytest.raises(PolicyError, match="job 1 breaks rule 'gang': holds GPUs twice"):
        check_records(replace(result, intervals=twice), Cluster.parse("4x4"))


def test_a_job_without_an_end():
    result = simulate(small_trace(), "1x4", "srtf")
    jobs = result.jobs.assign(end_time=[np.nan, *result.jobs["end_time"].iloc[1:]])
    with pytest.raises(PolicyError, match="never ends"):
        check_records(replace(result, jobs=jobs), Cluster.parse("1x4"))


def test_a_node_with_more_gpus_than_it_has():
    result = simulate(small_trace(), "2x4", "yarn-cs")
    spans = result.intervals.copy()
    spans["nodes"] = [((1, int(gpus)),) for gpus in spans["gpus"]]
    with pytest.raises(PolicyError, match="4 GPUs of node 1"):
        check_records(replace(result, intervals=spans), Cluster.parse("2x4"))


def test_a_gpu_type_with_more_gpus_than_it_has():
    result = simulate(MODELLED, "1x4:v100,1x4:k80", "gavel-fifo", perf=FAST_AND_SLOW)
    spans = result.intervals.assign(gpu_type="k80")
    with pytest.raises(PolicyError, match="'capacity': more than the 4 GPUs of type k80"):
        check_records(replace(result, intervals=spans), Cluster.parse("1x4:v100,1x4:k80"))


def test_nodes_of_another_gpu_type():
    cluster = Cluster.parse("1x4:v100,1x4:k80")
    result = simulate(MODELLED.head(1), cluster, "srtf", perf=FAST_AND_SLOW, placement="yarn")
    check_records(result, cluster)
    spans = result.intervals.assign(nodes=[((1, 2),)])
    with pytest.raises(PolicyError, match=r"'nodes': holds GPUs of type v100 on nodes of {'k80'}"):
        check_records(replace(result, intervals=spans), cluster)


def test_nodes_with_fewer_gpus_than_the_job_holds():
    result = simulate(small_trace().head(1), "2x4", "yarn-cs")
    spans = result.intervals.assign(nodes=[((0, 1),)])
    with pytest.raises(PolicyError, match="job 0 breaks rule 'nodes': has 1 GPUs on nodes"):
        check_records(replace(result, intervals=spans), Cluster.parse("2x4"))


@pytest.mark.parametrize("column", ["start_time", "jct", "queueing"])
def test_records_that_do_not_follow_from_the_intervals(column):
    result = simulate(small_trace(), "1x4", "srtf")
    jobs = result.jobs.copy()
    jobs.loc[2, column] += 0.5
    with pytest.raises(PolicyError, match=f"job 2 breaks rule 'records': {column} is"):
        check_records(replace(result, jobs=jobs), Cluster.parse("1x4"))


def test_more_gpu_time_than_the_cluster_has():
    result = simulate(small_trace().head(1), "1x4", "srtf")
    spans = result.intervals.assign(gpus=4.0)
    check_records(replace(result, intervals=spans), Cluster.parse("1x4"))
    audit = _Audit(replace(result, intervals=spans))
    with pytest.raises(PolicyError, match="jobs hold 40 GPU-seconds of 30"):
        audit.records(3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"job_id": 7}, "other jobs than the trace"),
        ({"submit_time": 1.5}, "asks for 2 GPUs at 0 s, not 2 at 1.5 s"),
        ({"num_gpus": 3}, "asks for 2 GPUs at 0 s, not 3 at 0 s"),
    ],
)
def test_records_of_other_jobs(changes, message):
    trace = small_trace()
    result = simulate(trace, "1x4", "srtf")
    check_records(result, Cluster.parse("1x4"), trace=trace)
    for column, value in changes.items():
        trace[column] = trace[column].astype(float)
        trace.loc[0, column] = value
        trace[column] = trace[column].astype(result.jobs[column].dtype)
    with pytest.raises(PolicyError, match=message):
        check_records(result, Cluster.parse("1x4"), trace=trace)


def test_more_work_than_required_is_fine_when_preemption_costs():
    result = tampered(rate=(2, 1.5))
    check_records(result, Cluster.parse("1x4"), exact=False)


# scaling ---------------------------------------------------------------------------------------


def test_scaled_multiplies_what_is_in_seconds():
    policy = make("tiresias-g", thresholds=(3.0, 5.0), history=(1.0, 2.0), delta=4.0)
    assert scaled(policy, 2.0) == replace(
        policy, thresholds=(6.0, 10.0), history=(2.0, 4.0), delta=8.0
    )
    assert scaled(SRTF(), 2.0) == SRTF()


def test_a_history_given_by_name_cannot_be_scaled():
    assert scaled(make("tiresias-g", thresholds=(3.0,)), 2.0) is None


def test_stress_traces_are_the_same_each_time():
    first = stress_traces([1, 2, 4])
    second = stress_traces([1, 2, 4])
    for name, frame in first.items():
        pd.testing.assert_frame_equal(frame, second[name])
        assert frame["num_gpus"].max() <= 4


@pytest.mark.parametrize(
    "settings",
    [
        {"index": "total", "history": (3.5, 9.25, 17.0), "thresholds": (4.5, 11.0)},
        {"exact_demotion": False, "history": (3.5, 9.25, 17.0), "thresholds": (4.5, 11.0)},
        {"cumulative_waiting": True, "history": (3.5, 9.25, 17.0), "promote_knob": 0.5},
    ],
)
def test_a_policy_that_rounds_times_need_not_scale(settings):
    policy = make("tiresias-g", **settings)
    assert policy.rounds_times
    assert scaled(policy, 2.0) is None
    check_policy(policy)
    exact = make("tiresias-g", history=(3.5, 9.25, 17.0))
    assert scaled(exact, 2.0).history == (7.0, 18.5, 34.0)
