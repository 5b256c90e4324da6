"""Parameter servers: patterns of a placement, the iteration model against Liquid's measurements."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ParamError, PolicyError, TraceError
from repro.model.decision import Run
from repro.perf import IterationModel, MeasuredPlans, TrainedModel
from repro.perf.parameter_server import PlanTimes, pattern
from repro.policies.baselines.scripted import Scripted

# parameters and measured times (s) of pww, pw_w, p_ww, p_w_w: Liquid Figures 1b and 6
NETWORKS = {
    "vgg16": TrainedModel(553, 35.4, 1.0, 30),
    "resnet50": TrainedModel(102, 49.5, 0.63, 10),
    "inception3": TrainedModel(95, 29.3, 0.39, 24),
}
LINKS = {"pair_mb_s": 463, "node_mb_s": 798, "local_mb_s": 1487}
MODEL = IterationModel(NETWORKS, **LINKS)
PLANS = [(0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 2)]
TIMES = {
    "vgg16": ([533, 722, 1224, 802], [510, 767, 1190, 810]),
    "resnet50": ([183, 205, 263, 214], [203, 204, 255, 210]),
    "inception3": ([274, 287, 320, 292], [289, 295, 310, 290]),
}


@pytest.mark.parametrize("name", TIMES)
def test_fitted_model(name):
    ours = [MODEL.run_s(name, plan, 32, 210) for plan in PLANS]
    fitted, measured = TIMES[name]
    assert ours == pytest.approx(fitted, abs=1.6)
    assert ours == pytest.approx(measured, rel=0.105)


def test_slowest_link_counts():
    model = IterationModel({}, pair_mb_s=100, node_mb_s=250, local_mb_s=1000)
    assert model.sync_s(50, (0, 0)) == 0.1
    assert model.sync_s(50, (0, 1)) == 1.0
    # two workers on nodes of their own: the server's node carries both
    assert model.sync_s(50, (0, 1, 2)) == 1.0
    assert model.sync_s(50, (0, 1, 2, 3)) == 300 / 250
    # two servers halve what each pair carries
    assert model.sync_s(50, (0, 1, 2, 3), num_ps=2) == 0.5


def test_pattern_with_two_servers():
    assert pattern((4, 2, 4, 4, 7), num_ps=2) == "pww_p_w"


@pytest.mark.parametrize("tasks", [(), (0,)])
def test_needs_server_and_worker(tasks):
    with pytest.raises(ParamError, match="worker"):
        MODEL.sync_s(1, tasks)


def jobs(**columns):
    base = {"job_id": [0], "submit_time": 0.0, "duration": 510.0, "num_gpus": 3}
    return pd.DataFrame(base | {"model": "vgg16"} | columns)


def run(trace, perf, tasks=(0, 1, 2), cluster="3x4"):
    policy = Scripted((Run((0,), 3, tasks=tasks),))
    return simulate(trace, cluster, policy, placement="wished", perf=perf)


def test_unmeasured_plan_is_named():
    plans = MeasuredPlans({"vgg16": {"pww": 510.0, "pw_w": 540.0}})
    with pytest.raises(ParamError, match=r"as 'p_w_w'; measured plans of 'vgg16': pww, pw_w$"):
        run(jobs(), plans)
    with pytest.raises(ParamError, match=r"for 'lm' placed as 'p_w_w'; measured models: vgg16$"):
        run(jobs(model="lm"), plans)
    with pytest.raises(ParamError, match=r"measured models: none$"):
        run(jobs(), MeasuredPlans({}))


def test_run_times_without_a_model_are_refused_at_once():
    with pytest.raises(TypeError, match="abstract"):
        PlanTimes()


def test_unknown_model_is_named():
    with pytest.raises(ParamError, match="alexnet"):
        run(jobs(model="alexnet", batch_size=32, iterations=210.0), MODEL)


def test_missing_size_is_named():
    with pytest.raises(TraceError, match="batch_size"):
        run(jobs(iterations=210.0), MODEL)


def test_places_must_be_known():
    with pytest.raises(ParamError, match=r"Run\.tasks"):
        run(jobs(batch_size=32, iterations=210.0), MODEL, tasks=())


def test_the_model_decides_whatever_the_trace_says():
    trace = jobs(duration=100.0, batch_size=32, iterations=210.0)
    wanted = MODEL.run_s("vgg16", (0, 1, 2), 32, 210)
    assert run(trace, MODEL).jobs["jct"][0] == pytest.approx(wanted)


@pytest.mark.parametrize("tasks", [(0, 0, 0), (9, 9, 9)])
def test_wish_for_what_is_not_there(tasks):
    with pytest.raises(PolicyError, match="names"):
        run(jobs(), MeasuredPlans({"vgg16": {"pww": 510.0}}), tasks=tasks, cluster="3x2")
