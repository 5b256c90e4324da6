"""Two jobs on one GPU: GPU sharing, pre-scheduling, completions noticed at reports."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import make, simulate
from repro.base.errors import ParamError, PolicyError, TraceError
from repro.model.cluster import Cluster, Node
from repro.model.decision import Run
from repro.perf.overhead import Phases
from repro.perf.throughput import ThroughputTable
from repro.policies.baselines.scripted import Scripted
from repro.policies.liquid.gpu_sharing import ByUtilisation, slow_down
from repro.testing import check_policy, stress_traces


def jobs(*submits, model="a", **columns):
    frame = {"job_id": range(len(submits)), "submit_time": submits, "duration": 100.0}
    return pd.DataFrame(frame | {"num_gpus": 1, "model": model, "gpu_util": 30.0} | columns)


def ends(trace, cluster="1x1", phases=None, perf=None, **settings):
    done = simulate(trace, cluster, make("liquid", **settings), overhead=phases, perf=perf)
    return done.jobs["end_time"].tolist()


def test_sharing_slows_a_job_down_without_a_new_start():
    phases = Phases(launch={"a": 20.0}, save={})
    first, second = ends(jobs(0.0, 50.0), phases=phases, share=1.3)
    # 70 s of work remain at 50 s; worked out by hand
    assert first == pytest.approx(136.8)
    assert second == pytest.approx(136.8 + 100 - (136.8 - 70) / 1.24)


def test_at_most_two_jobs_on_a_gpu():
    assert ends(jobs(0.0, 0.0, 0.0), share=1.3) == pytest.approx([124, 124, 224])


@pytest.mark.parametrize(
    ("settings", "columns", "node", "shares"),
    [
        ({"share": 1.3}, {}, {}, True),
        ({"share": 0.6}, {}, {}, False),
        ({"share": 0.61}, {}, {}, True),
        ({"share": 1.1}, {"gpu_util": 55.0}, {}, False),
        ({"share": 1.3}, {"gpu_mem_mb": 4096.0}, {"gpu_mem_mb": 11439}, True),
        ({"share": 1.3}, {"gpu_mem_mb": 8192.0}, {"gpu_mem_mb": 11439}, False),
    ],
)
def test_utilisation_and_memory_must_fit(settings, columns, node, shares):
    cluster = Cluster((Node(1, **node),))
    together = ends(jobs(0.0, 0.0, **columns), cluster, **settings)
    assert together == pytest.approx([124, 124] if shares else [100, 200])


def test_jobs_share_above_a_load_with_the_least_used_job():
    trace = jobs(0.0, 0.0, 0.0, gpu_util=[60.0, 20.0, 30.0])
    done = simulate(trace, "4x1", make("liquid", share=1.3, load=0.5))
    assert done.intervals.query("job_id == 2")["group"].tolist() == [1]
    assert ends(trace, "4x1", share=1.3) == [100, 100, 100]


def test_jobs_of_several_containers_share_nothing():
    trace = jobs(0.0, 0.0, num_gpus=2)
    assert ends(trace, "1x2", share=1.3) == [100, 200]


TIMES = {"total_s": 130.0, "pre_s": 20.0, "post_s": 10.0}
PHASES = Phases(launch={"a": 20.0}, save={"a": 10.0}, handover=7.5)


def test_a_job_launches_ahead_of_the_end_of_the_running_one():
    trace = jobs(0.0, 0.0, 0.0, **TIMES)
    done = simulate(trace, "1x1", make("liquid", ahead_s=15.0), overhead=PHASES).jobs
    # the rule of the public scheduler: total - post - pre(next) - 15 s after the start
    assert done["start_time"].tolist() == [0, 130 - 10 - 20 - 15, 195]
    assert done["end_time"].tolist() == [130, 240, 350]
    assert ends(trace, phases=PHASES) == [130, 260, 390]


def test_a_job_does_not_launch_before_its_time():
    trace = jobs(0.0, 84.5, **TIMES)
    done = simulate(trace, "1x1", make("liquid", ahead_s=15.0), overhead=PHASES).jobs
    assert done["start_time"].tolist() == [0, 130 - 10 - 20 - 15]


def test_a_vacant_gpu_is_preferred():
    done = simulate(
        jobs(0.0, 90.0, **TIMES), "2x1", make("liquid", ahead_s=15.0), overhead=PHASES
    ).jobs
    assert done["end_time"].tolist() == [130, 220]


def test_an_estimate_that_is_too_long_launches_late():
    trace = jobs(0.0, 0.0, **TIMES | {"total_s": 160.0})
    done = simulate(trace, "1x1", make("liquid", ahead_s=15.0), overhead=PHASES).jobs
    assert done["start_time"][1] == 115
    assert done["end_time"][1] == 115 + 20 + 100 + 10


def test_without_phases_launching_ahead_changes_nothing():
    assert ends(jobs(0.0, 0.0, **TIMES), ahead_s=15.0) == [100, 200]


def test_completions_are_noticed_at_reports():
    assert ends(jobs(0.0, 0.0, duration=[98.0, 99.0]), heartbeat_s=5.0) == [100, 200]
    for end in (96.2, 97.9, 99.5):
        noticed = ends(jobs(0.0, duration=end), heartbeat_s=5.0)[0]
        assert noticed - end == pytest.approx(5 - end % 5)


@pytest.mark.parametrize(
    "settings",
    [
        {"heartbeat_s": 5.0},
        {"share": 1.3, "load": 0.5},
        {"ahead_s": 15.0},
        {"share": 1.3, "ahead_s": 15.0, "heartbeat_s": 5.0},
    ],
)
def test_the_battery_with_the_optimisations(settings):
    estimates = {
        "gpu_util": 40.0,
        "gpu_mem_mb": 4096.0,
        "total_s": 100.0,
        "pre_s": 10.0,
        "post_s": 1.0,
    }
    traces = [trace.assign(**estimates) for trace in stress_traces([1, 2]).values()]
    check_policy(make("liquid", **settings), traces=traces, overhead=Phases({}, {}))


def test_the_error_names_a_container_that_fits_no_node():
    trace = jobs(0.0, gpu_mem_mb=40000.0)
    with pytest.raises(PolicyError, match="job 0 can never be placed by 'liquid'"):
        ends(trace, Cluster((Node(1, gpu_mem_mb=11439),)), share=1.3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": 0.0}, "share is 0.0; give a number above 0"),
        ({"load": 2.0}, "load is 2.0; give a number from 0 to 1"),
        ({"share": "much"}, "share is 'much'; give a number above 0 or none"),
    ],
)
def test_bad_settings_are_one_line(settings, message):
    with pytest.raises(ParamError, match=message):
        make("liquid", **settings)


def test_a_heartbeat_of_0_s_is_refused():
    with pytest.raises(ParamError, match=r"heartbeat_s is 0\.0"):
        ends(jobs(0.0), heartbeat_s=0.0)


def test_speed_of_two_jobs_on_a_gpu():
    assert slow_down(150.0, offset=0.1, capacity=100.0) == pytest.approx(1.6)
    trace = jobs(0.0, 0.0, gpu_util=[80.0, 70.0])
    assert ends(trace, perf=ByUtilisation(0.1), share=2.0) == pytest.approx([160, 160])
    both = {("b", "a", 1): {"h100": (1.0, 0.8)}}
    pair = ThroughputTable.of({"a": {"h100": 1.0}, "b": {"h100": 2.0}}, "h100", both)
    trace = jobs(0.0, 0.0, model=["a", "b"])
    assert ends(trace, "1x1:h100", perf=pair, share=1.3) == pytest.approx([125, 162.5])


def test_the_error_names_a_missing_column():
    pair = Scripted((Run((0, 1), 1),))
    trace = jobs(0.0, 0.0)
    with pytest.raises(TraceError, match="has no 'gpu_util'"):
        simulate(trace.drop(columns="gpu_util"), "1x1", pair, perf=ByUtilisation())


@pytest.mark.parametrize(
    ("setting", "column"), [({"share": 1.3}, "gpu_util"), ({"ahead_s": 15.0}, "total_s")]
)
def test_a_setting_names_the_column_that_it_needs(setting, column):
    # the other column alone is not enough
    trace = jobs(0.0, 0.0, **TIMES).drop(columns=column)
    with pytest.raises(PolicyError, match=rf"needs trace column {column} \(estimate"):
        ends(trace, **setting)
