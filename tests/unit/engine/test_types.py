"""GPU types under policies that name none: typed orders, one cluster per type, wishes, refusals.

Ends are worked out by hand. V100 does 2 steps/s of model m and K80 does 1, and durations refer to
the V100, so that a job on a K80 takes twice its duration.
"""

import re
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.base.errors import InputWarning, ParamError, PolicyError, TraceError
from repro.model.cluster import Cluster, Node
from repro.model.decision import Run, RunSet
from repro.model.grouped import Grouped
from repro.model.policy import Policy
from repro.perf import Interleaving, OnTypes, ThroughputTable
from repro.testing import small_trace

GANGS = (1, 2, 3, 4)
TABLE = ThroughputTable({("m", gpus): {"v100": 2.0, "k80": 1.0} for gpus in GANGS}, "v100")


def trace(*jobs, **columns):
    """Jobs of model m, as (submission, duration, GPUs)."""
    submit, duration, gpus = zip(*jobs, strict=True)
    frame = pd.DataFrame(
        {"job_id": range(len(jobs)), "submit_time": submit, "duration": duration, "num_gpus": gpus}
    ).astype({"submit_time": float, "duration": float})
    return frame.assign(model="m", **columns)


def run(jobs, cluster, policy, **options):
    """Result of a run; throughputs of `TABLE` unless the options name others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return simulate(jobs, cluster, policy, **{"perf": TABLE, **options})


def ends(jobs, cluster, policy, **options):
    """End of each job (s)."""
    return run(jobs, cluster, policy, **options).jobs["end_time"].tolist()


def types(result):
    """GPU types of each job, in order of time."""
    spans = result.intervals.sort_values("start", kind="stable")
    return spans.groupby("job_id")["gpu_type"].agg(lambda names: "".join(n[0] for n in names))


def test_idle_gpus_of_a_slower_type_come_before_a_preemption():
    # C is the shortest, but the K80 is idle: it stops nobody.
    result = run(trace((0, 10, 1), (2, 3, 1)), "1xv100,1xk80", "srtf")
    assert result.jobs["end_time"].tolist() == [10.0, 8.0]


def test_a_queue_of_tiresias_keeps_gangs_on_one_type():
    # Limit 8 GPU-s: at 4 s A and B (2 GPUs each) fall to the second queue, and C goes before them.
    jobs = trace((0, 10, 2), (0, 10, 2), (3, 2, 2))
    policy = make("tiresias-l", thresholds=(8.0,))
    result = run(jobs, "1x2:v100,1x2:k80", policy)
    assert result.intervals.groupby(["job_id", "start"])["gpu_type"].nunique().eq(1).all()
    # C takes the V100 of A, A the K80 of B: 6 s are left of A, to 16 s. B, which had 4 s at half
    # speed, gets the V100 at 6 s for its last 8 s.
    assert result.jobs["end_time"].tolist() == [16.0, 14.0, 6.0]


@pytest.mark.parametrize("policy", ["srtf", "sf", "yarn-cs", "las-2d", "best-effort", "tiresias-l"])
def test_one_type_is_taken(policy):
    jobs = small_trace().assign(model="m")
    slow = ends(jobs, "1x4:k80", policy)
    twice_as_long = jobs.assign(duration=2 * jobs["duration"])
    assert slow == pytest.approx(ends(twice_as_long, "1x4", policy, perf=None))


@pytest.mark.parametrize(
    "policy",
    ["srtf", "yarn-cs", "pcs", "max-min", "themis", "srsf-elastic", "reservation", "tiresias-g"],
)
def test_types_without_speeds_are_one_pool(policy):
    jobs = small_trace()
    result = run(jobs, "1x2:v100,1x2:k80", policy, perf=None)
    assert result.jobs["end_time"].equals(run(jobs, "2x2", policy, perf=None).jobs["end_time"])
    assert "GPU types of the cluster" in result.summary()["ignored"]["options"]


def test_speeds_can_be_required():
    with pytest.raises(ParamError, match="has the GPU types v100, k80, and the run has no speeds"):
        run(small_trace(), "2xv100,2xk80", "srtf", perf=None, require_speeds=True)
    run(trace((0, 1, 1)), "2xv100,2xk80", "srtf", require_speeds=True)


@pytest.mark.parametrize(
    "policy",
    ["max-min", "fifo-elastic", "pcs", "afs", "antman", "gandiva", "liquid", "kubernetes"],
)
def test_a_policy_that_names_no_types_has_a_cluster_per_type(policy):
    # A joins the V100 (2 steps/s). B finds a shared V100 as fast as an idle K80, and takes the K80,
    # the first in the alphabet. C finds both busy: 2 / 2 on the V100 against 1 / 2 on the K80.
    jobs = trace((0, 10, 1), (1, 10, 1), (2, 1, 1))
    result = run(jobs, "1xv100,1xk80", policy)
    assert types(result).str[0].tolist() == ["v", "k", "v"]
    assert result.jobs["end_time"][1] == 21.0


@pytest.mark.parametrize(
    ("words", "cluster", "message"),
    [
        (("v100:3",), "2xv100,2xk80", "1 weights for 2 classes"),
        (("v100:x:1",), "2xv100,2xk80", "has 'v100:x:1'; give a GPU type and a weight above 0"),
        (("a100:3:1",), "2xv100,2xk80", "names no GPU type 'a100'"),
        (("v100:3:1",), "2xv100", "needs a cluster with several GPU types"),
    ],
)
def test_bad_weights_by_type(words, cluster, message):
    with pytest.raises(ParamError, match=message):
        run(trace((0, 1, 1)), cluster, make("pcs", thresholds=(100.0,), type_weights=words))


def test_groups_of_muri_hold_gpus_of_one_type():
    # Two jobs with complementary stages, 1 s + 1 s, alone 2 s per iteration, period 2 s as a group:
    # each runs as if alone. Six jobs of one GPU on one V100 and one K80.
    stages = {"stage_storage": 0.0, "stage_cpu": [1.0, 0.0] * 3, "stage_gpu": [1.0, 1.0] * 3}
    jobs = trace(*[(0, 20, 1)] * 6, **stages, stage_network=[0.0, 1.0] * 3)
    jobs = jobs.assign(iteration_time=2.0, iterations=10)
    result = run(jobs, "1xv100,1xk80", "muri-s")
    per_group = result.intervals.groupby(["group", "start"])["gpu_type"].nunique()
    assert per_group.eq(1).all()
    assert (result.intervals.groupby(["start", "gpu_type"])["gpus"].sum() <= 1 + 1e-9).all()


def test_the_rate_of_a_group_is_that_of_its_slowest_member():
    by_model = {
        ("a", 1): {"v100": 2.0, "k80": 1.0},
        ("b", 1): {"v100": 4.0, "k80": 1.0},
    }
    stages = {"stage_cpu": [2.0, 2.0], "stage_gpu": [1.0, 1.0]}
    jobs = trace((0, 9, 1), (0, 9, 1), **stages).assign(model=["a", "b"])

    @dataclass(frozen=True)
    class Pair(Grouped):
        def session(self, view):
            return lambda view: RunSet([Run(tuple(view.jobs), 1)] if view.jobs else [])

    perf = OnTypes(Interleaving(("stage_cpu", "stage_gpu")), ThroughputTable(by_model, "v100"))
    # period 4 s for 3 s alone; on the K80 the factors are 1/2 and 1/4: rate 3/4 * 1/4
    assert ends(jobs, "1xk80", Pair(), perf=perf) == pytest.approx([48.0, 48.0])


@pytest.mark.parametrize("policy", ["srtf", "max-min", "gandiva"])
def test_a_job_may_wish_for_a_type(policy):
    jobs = trace((0, 10, 1), (0, 4, 1), gpu_type=["v100", "k80"])
    assert ends(jobs, "1xv100,1xk80", policy, types="wished") == [10.0, 8.0]
    # without speeds both take their durations
    assert ends(jobs, "1xv100,1xk80", policy, types="wished", perf=None) == [10.0, 4.0]
    jobs.loc[1, "gpu_type"] = "a100"
    with pytest.raises(TraceError, match="job 1 asks for GPUs of type 'a100'"):
        run(jobs, "1xv100,1xk80", policy, types="wished")


@pytest.mark.parametrize(
    ("wish", "remedy"),
    [
        ("V100", "V100 and v100 differ only in case; spell the type as the cluster does"),
        (
            "a100|K80",
            "K80 and k80 differ only in case; spell the type as the cluster does",
        ),
        ("a100", "use another cluster"),
    ],
)
def test_a_wish_that_the_cluster_lacks_is_refused_with_a_remedy(wish, remedy):
    jobs = trace((0, 10, 1), gpu_type=[wish])
    with pytest.raises(TraceError) as error:
        run(jobs, "1xv100,1xk80", "srtf", types="wished")
    assert str(error.value) == (
        f"job 0 asks for GPUs of type '{wish}'; the cluster has k80, v100: {remedy}, or give "
        "--types fastest (types='fastest')"
    )


def test_a_wish_that_can_never_come_true_is_refused_before_the_first_event():
    late = trace((0, 10, 1), (500, 4, 2), gpu_type=["v100", "k80"])
    with pytest.raises(
        TraceError, match=r"job 1 asks for 2 GPUs of type 'k80' .* at most 1 of .* --types fastest"
    ):
        run(late, "1x4:v100,1xk80", "srtf", types="wished", stop_time=20.0)
    never = ThroughputTable({("m", 1): {"v100": 2.0, "k80": 0.0}}, "v100")
    late["num_gpus"] = 1
    with pytest.raises(TraceError, match=r"job 1 asks .* 'k80' and can never run there: its sp"):
        run(late, "1x4:v100,1xk80", "srtf", types="wished", perf=never, stop_time=20.0)


@pytest.mark.parametrize("policy", ["yarn-cs", "best-effort"])
def test_a_gang_that_its_placement_can_never_hold_on_its_type_is_refused(policy):
    wide = trace((0, 10, 1), (5, 4, 8), gpu_type=["k80", "v100"])
    with pytest.raises(TraceError, match=r"job 1 asks for 8 GPUs .* finds no nodes of type v100"):
        run(wide, "2x1x4:v100,1x8:k80", policy, types="wished", perf=None)


@pytest.mark.parametrize("policy", ["srtf", "max-min", "gandiva"])
@pytest.mark.parametrize("perf", [TABLE, None])
def test_a_job_may_wish_for_one_of_several_types(policy, perf):
    jobs = trace((0, 10, 1), (0, 4, 1), gpu_type=["v100|a100", "p100|k80"])
    ends_of_types = ends(jobs, "1xv100,1xk80", policy, types="wished", perf=perf)
    assert ends_of_types == [10.0, 4.0 if perf is None else 8.0]


@pytest.mark.parametrize("policy", ["srtf", "max-min", "gandiva"])
def test_a_wish_is_kept_on_a_cluster_of_one_type(policy):
    jobs = trace((0, 10, 1), (0, 4, 1), gpu_type=["v100", "k80"])
    with pytest.raises(TraceError, match="job 1 asks for GPUs of type 'k80'; the cluster has v100"):
        run(jobs, "2xv100", policy, types="wished")
    jobs["gpu_type"] = "v100"
    result = run(jobs, "2xv100", policy, types="wished")
    assert result.jobs["end_time"].tolist() == [10.0, 4.0]
    assert not result.meta["ignored"]


@pytest.mark.parametrize("policy", ["srtf", "gavel-las", "max-min", "gandiva", "liquid"])
def test_a_model_without_speed_is_refused_before_the_run(policy):
    jobs = trace((0, 10, 1), (500, 4, 1)).assign(model=["m", "n"])
    with pytest.raises(ParamError, match="job 1: the throughput table has no model 'n'"):
        run(jobs, "1xv100,1xk80", policy)


@pytest.mark.parametrize(
    ("policy", "cluster", "gpus", "message"),
    [
        ("allox", "1x4", 2, "job 1 asks for 2 GPUs; AlloX places jobs of one GPU only"),
        ("gandiva", "1x4,1x2", 5, "job 1 asks for 5 GPUs, and a set of all nodes has 4, 2 on each"),
        ("antman", "1x4,2x1", 6, "job 1 asks for 6 GPUs, as a guaranteed job 1 whole nodes"),
        ("liquid", "1x2,1x1", 4, "job 1 asks for 4 GPUs and can never run on"),
    ],
)
def test_a_job_that_the_policy_never_runs_is_refused_before_the_run(policy, cluster, gpus, message):
    jobs = trace((0, 1, 1), (500, 1, gpus))
    with pytest.raises((PolicyError, TraceError), match=message):
        run(jobs, cluster, policy, perf=None)


def test_a_type_without_an_event_keeps_the_order_of_its_gangs():
    # On the V100 B is guaranteed and A, which came first, shares its GPU. Events on the K80 must
    # not put A before its host.
    stages = {"stage_storage": 0.1, "stage_gpu": 0.1, "stage_network": 0.8, "iteration_time": 1.0}
    jobs = trace(
        (0, 50, 1), (1, 40, 1), (2, 10, 1), (9, 10, 1), gpu_type=["v100", "v100", "k80", "k80"]
    )
    jobs = jobs.assign(**stages, priority=[1, 0, 0, 0])
    assert len(run(jobs, "1xv100,1xk80", "antman", types="wished").jobs) == 4


def test_a_gang_without_a_type_takes_the_fastest_that_it_can_use():
    # Model n cannot run on the K80, which has more free GPUs.
    table = ThroughputTable(
        {("m", 1): {"v100": 2.0, "k80": 1.0}, ("n", 1): {"v100": 1.0, "k80": 0.0}}, "v100"
    )

    class InOrder(Policy):
        def decide(self, view):
            return RunSet(view.jobs)

    jobs = trace((0, 10, 1), (0, 10, 1), (0, 10, 1)).assign(model=["m", "n", "m"])
    # job 0 takes the V100, job 1 waits for it, and job 2 takes a K80
    assert ends(jobs, "1xv100,2xk80", InOrder(), perf=table) == [10.0, 20.0, 20.0]


class InNewGangs(Policy):
    """Names a new gang of every job at each decision, in order of arrival."""

    def decide(self, view):
        return RunSet([Run((job,), view.gpus(job)) for job in view.jobs])


def test_a_gang_stays_on_its_type_when_a_faster_one_comes_free():
    jobs = trace((0, 10, 1), (0, 20, 1))
    assert ends(jobs, "1xv100,1xk80", InNewGangs()) == [10.0, 40.0]


def test_a_job_waits_on_the_type_that_it_wishes_for():
    jobs = trace((0, 10, 1), (1, 10, 1), gpu_type="k80")
    assert ends(jobs, "1xv100,1xk80", "srtf", types="wished") == [20.0, 40.0]


def test_a_gang_need_not_fit_all_types():
    assert ends(trace((0, 10, 2)), "1x2:v100,1x1:k80", "yarn-cs") == [10.0]


def test_equally_fast_types_are_taken_in_alphabetical_order():
    names = [f"t{number:02}" for number in range(40)]
    fast = names[::2]
    speeds = {name: 1.0 if name in fast else 0.5 for name in names}
    table = ThroughputTable({("m", 1): speeds}, names[0])
    cluster = ",".join(f"1x{name}" for name in names)
    result = run(trace(*[(0, 10, 1)] * 20), cluster, "srtf", perf=table)
    assert result.intervals.sort_values("job_id")["gpu_type"].tolist() == fast


@dataclass(frozen=True)
class Blocking(Grouped):
    """Gangs in order of arrival; one that does not fit blocks those behind it."""

    def session(self, view):
        def decide(view):
            for job in view.running:
                assert view.run(job).jobs == (job,)
            return RunSet(view.jobs, fill="block")

        return decide


def test_a_gang_that_does_not_fit_its_type_blocks_those_behind_it():
    jobs = trace((0, 10, 1), (1, 10, 2), (2, 10, 1), gpu_type="v100")
    # one V100 is idle until job 0 ends, because job 1 needs two
    assert ends(jobs, "1x2:v100,1xk80", Blocking(), types="wished") == [10.0, 20.0, 30.0]


@dataclass(frozen=True)
class Mixed(Grouped):
    """All gangs at the first decision on a type, changes at the second, and all gangs after it."""

    def session(self, view):
        count = 0

        def decide(view):
            nonlocal count
            count += 1
            if count == 2:
                return RunSet([job for job in view.jobs if not view.is_running(job)], keep=True)
            return RunSet(view.jobs)

        return decide


def test_a_type_without_an_event_keeps_what_a_decision_of_changes_started():
    # On the V100s B starts by a decision that names only changes. Later events on the K80 end in
    # decisions that name all gangs.
    jobs = trace(
        (0, 50, 1), (1, 50, 1), (2, 5, 1), (4, 5, 1), gpu_type=["v100", "v100", "k80", "k80"]
    )
    jobs = jobs.assign(job_id=list("abcd"))
    result = run(jobs, "1x2:v100,1x2:k80", Mixed(), types="wished")
    assert result.jobs["end_time"].tolist() == [50.0, 51.0, 12.0, 14.0]
    assert result.jobs["preemptions"].tolist() == [0, 0, 0, 0]


def test_the_model_of_a_policy_and_the_speeds_of_types_multiply():
    @dataclass(frozen=True)
    class Pair(Grouped):
        def performance(self):
            return Interleaving(("stage_cpu", "stage_gpu"))

        def session(self, view):
            return lambda view: RunSet([Run(tuple(view.jobs), 1)] if view.jobs else [])

    jobs = trace((0, 9, 1), (0, 9, 1), stage_cpu=2.0, stage_gpu=1.0)
    # period 4 s for 3 s alone, at half speed on the K80: rate 3/4 * 1/2
    assert ends(jobs, "1xk80", Pair()) == pytest.approx([24.0, 24.0])


@pytest.mark.parametrize("policy", ["srtf", "max-min", "gavel-las", "muri-s"])
def test_nodes_without_a_type_beside_others_are_refused(policy):
    jobs = trace((0, 10, 1), (1, 3, 4))
    message = r"1x4,2x4:k80: 1 of 3 nodes, .* node 0, have no GPU type.*name the type of every node"
    with pytest.raises(ParamError, match=message):
        run(jobs, "1x4,2x4:k80", policy)


def test_types_that_play_no_role_may_be_missing():
    jobs = trace((0, 10, 1), (1, 3, 4))
    assert ends(jobs, "1x4,1x4:k80", "srtf", perf=None) == [10.0, 4.0]


@dataclass(frozen=True)
class InTurn(Policy):
    """Starts jobs of one GPU in order of arrival; it names the order of the types in ``orders``."""

    names_types = False

    orders: tuple[str, ...] = ()
    keep: bool = True
    fill: str = "skip"
    gpu_type: str = ""
    collect: object = tuple
    rows: tuple[object, ...] = ()

    def on_type(self, gpu_type, gpu_types):
        return replace(self, gpu_type=gpu_type)

    def decide(self, view):
        jobs = view.jobs[: view.cluster.num_gpus]
        if self.keep:
            jobs = [job for job in jobs if not view.is_running(job)]
        order = view.jobs if self.gpu_type in self.orders else ()
        return RunSet([*jobs, *self.rows], self.fill, keep=self.keep, order=self.collect(order))


@pytest.mark.parametrize("collect", [tuple, np.array])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("orders", [("v100",), ("v100", "k80")])
def test_a_type_without_an_event_keeps_its_order(orders, keep, collect):
    # At 5 s only the V100 has an event. The job on the K80 holds its GPU, too.
    jobs = trace((0, 10, 1), (0, 10, 1), (5, 10, 1))
    cluster = "1xv100,1xk80"
    expected = ends(jobs, cluster, InTurn(keep=keep))
    assert ends(jobs, cluster, InTurn(orders, keep, collect=collect)) == expected


@pytest.mark.parametrize("job", [2, -1, "a", None, [1], 0.0])
def test_an_unknown_row_number_is_refused_on_a_type(job):
    policy = InTurn(rows=(job,))
    with pytest.raises(PolicyError, match=f"names unknown row number {re.escape(repr(job))}$"):
        run(trace((0, 10, 1), (0, 10, 1)), "1xv100,1xk80", policy)


def test_an_unknown_fill_is_refused_on_a_type():
    with pytest.raises(PolicyError, match=r"returned RunSet\(fill='blok'\); give skip, block or"):
        run(trace((0, 10, 1)), "1xv100,1xk80", InTurn(fill="blok"))


class GuestOnB(Policy):
    """Runs job 0 on type b, and job 1, without a type, on the GPUs of job 0."""

    names_types = True

    def decide(self, view):
        runs = [Run((0,), 2, "b")] if view.is_unfinished(0) else []
        if view.is_unfinished(1):
            runs.append(Run((1,), 2, None, hosts=(0,), shared=2) if runs else Run((1,), 2, "b"))
        return RunSet(runs)


@pytest.mark.parametrize("placement", ["count", "yarn"])
def test_a_guest_runs_on_the_type_of_its_host(placement):
    jobs = trace((0, 100, 2), (0, 50, 2))
    intervals = simulate(jobs, "1x4:a,1x2:b", GuestOnB(), placement=placement).intervals
    assert set(intervals["gpu_type"]) == {"b"}


@pytest.mark.parametrize("gpu_type", ["k80", None])
@pytest.mark.parametrize(
    "policy",
    [
        *("yarn-cs", "sjf", "srtf", "tiresias-l", "gandiva", "muri-s", "themis", "max-min"),
        *("gavel-las", "gavel-strategy-proof", "isolated", "las-agnostic", "liquid-pack"),
    ],
)
def test_nodes_whose_gpus_are_all_in_use_change_no_run(policy, gpu_type):
    stages = {"stage_storage": 0.2, "stage_gpu": 1.0, "stage_network": 0.3, "iteration_time": 1.5}
    jobs = small_trace().assign(model="m", **stages)
    options = {"perf": TABLE} if gpu_type and policy != "muri-s" else {}
    in_use = (Node(0, gpu_type and "v100", used=8), Node(0, gpu_type and "v100", used=4))
    idle = (Node(4, gpu_type, switch=1), Node(4, gpu_type, switch=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", InputWarning)
        result = simulate(jobs, Cluster((*in_use, *idle)), policy, **options)
        expected = simulate(jobs, Cluster(idle), policy, **options)
    pd.testing.assert_frame_equal(result.jobs, expected.jobs)


# durations on the type ---------------------------------------------------------------------------

#: Jobs of model n run 4 times as fast on K80 as on V100, those of m half as fast.
UNEQUAL = ThroughputTable(
    {
        (name, gpus): speeds
        for gpus in GANGS
        for name, speeds in (("m", {"v100": 2.0, "k80": 1.0}), ("n", {"v100": 1.0, "k80": 4.0}))
    },
    "v100",
)
READS_DURATIONS = (
    *("srtf", "srsf", "sjf", "sf", "srsf-elastic", "fifo-elastic", "afs", "themis", "reservation"),
    *("pcs", "max-min"),
)


def unequal_jobs(seed):
    rng = np.random.default_rng(seed)
    count = 15
    frame = trace(
        *zip(
            # fractions, so that no two keys are equal
            np.sort(rng.uniform(0, 2000, count)),
            rng.uniform(10, 500, count),
            rng.choice([1, 2, 4], count),
            strict=True,
        )
    )
    frame["model"] = rng.choice(["m", "n"], count)
    on_k80 = frame["duration"] * frame["model"].map({"m": 2.0, "n": 0.25})
    return frame, frame.assign(duration=on_k80)


def test_a_policy_of_ones_own_reads_durations_on_the_only_type():
    read = []

    class Reads(Policy):
        needs = frozenset({"duration"})

        def decide(self, view):
            job = view.jobs[0] if view.jobs else None
            if job is not None:
                read.append((view.duration(job), view.trace_duration(job), view.remaining(job)))
            return RunSet([job] if job is not None else [])

    simulate(trace((0, 100, 1)), "1x2:k80", Reads(), perf=TABLE)
    assert read[0] == (200.0, 200.0, 200.0)
    read.clear()
    simulate(trace((0, 100, 1)), "1x2:k80,1x2:v100", Reads(), perf=TABLE)
    assert read[0] == (100.0, 100.0, 100.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("policy", READS_DURATIONS)
def test_policies_read_durations_on_the_only_type(policy, seed):
    in_trace, on_k80 = unequal_jobs(seed)
    typed = simulate(in_trace, "1x8:k80", policy, perf=UNEQUAL)
    plain = simulate(on_k80, "1x8", policy)
    assert typed.jobs["end_time"].tolist() == pytest.approx(plain.jobs["end_time"].tolist())


@pytest.mark.parametrize("policy", ["srsf-elastic", "afs", "themis", "reservation"])
def test_policies_read_durations_on_the_type_that_they_decide_on(policy):
    in_trace, on_k80 = unequal_jobs(7)
    wishes = in_trace.assign(gpu_type="k80")
    typed = simulate(wishes, "1x8:v100,1x8:k80", policy, perf=UNEQUAL, types="wished")
    plain = simulate(on_k80, "1x8", policy)
    assert typed.jobs["end_time"].tolist() == pytest.approx(plain.jobs["end_time"].tolist())


@pytest.mark.parametrize("policy", ["srtf", "sjf", "srsf-elastic"])
def test_durations_are_those_that_jobs_run_if_iteration_times_are_not_of_the_table(policy):
    jobs = trace((0, 100, 1), (0, 50, 1)).assign(iterations=[10, 100], iteration_time=[10.0, 0.5])
    table = ThroughputTable({("m", 1): {"v100": 1.0}}, "v100")
    ends = simulate(jobs.assign(model="m"), "1x1:v100", policy, perf=table, rules="gavel").jobs
    assert ends["end_time"].tolist() == [150.0, 50.0]


def test_durations_on_the_type_of_the_trace_stay_to_the_last_bit():
    in_trace, _ = unequal_jobs(1)
    typed = simulate(in_trace, "1x8:v100", "reservation", perf=UNEQUAL)
    plain = simulate(in_trace, "1x8", "reservation")
    assert typed.jobs["end_time"].tolist() == plain.jobs["end_time"].tolist()
