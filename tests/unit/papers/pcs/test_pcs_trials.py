"""Apps of trials: costs by hand, falling demands, and equality with the engine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ParamError, PolicyError, TraceError
from repro.figures.sweep import Case
from repro.model.policy import make
from repro.papers.pcs.trials import Costs, TrialJobs, simulate_trials

APP_COLUMNS = ["submit_time", "num_gpus", "duration"]


def apps_of(*rows: tuple[float, int, float]) -> pd.DataFrame:
    """Apps of (submission, trials, training time of a trial)."""
    frame = pd.DataFrame(rows, columns=APP_COLUMNS)
    return frame.assign(job_id=np.arange(len(rows)))


def test_starts_reports_and_stops_by_hand() -> None:
    """Two GPUs, a start of 1 s, a report every 4 s. App A: two trials of 10 s. App B: one of 4 s.

    ====  ==========================================================================
    t     event
    ====  ==========================================================================
    0     A arrives and starts both trials, which train from 1 s
    3     B is shorter and gets a GPU; A's second trial stops and loses its 2 s
    8     B trains from 4 s and ends; A's second trial starts again, trains from 9 s
    13    A's first trial ends with the report at 12 s of training
    21    A's second trial ends with the report at 12 s of training
    ====  ==========================================================================

    Without costs A takes 10 s and B 4 s. A sees 1, 1, 2, 1, 1 apps at the events of its life, so
    its fair share is min(2 / 1.2, 2) GPUs.
    """
    apps = apps_of((0, 2, 10), (3, 1, 4))
    jobs = simulate_trials(apps, 2, make("srsf-elastic", "pcs"), Costs(1, 4))
    assert jobs["end_time"].tolist() == [21, 8]
    assert jobs["jct"].tolist() == [21, 5]
    assert jobs["predicted_jct"].tolist() == [10, 4]
    assert jobs["fair_jct"].tolist() == pytest.approx([12, 4])
    assert jobs.attrs == {"starts": 4, "stops": 1}


def test_a_stop_loses_the_epoch_under_way_only() -> None:
    """App A trains from 0 s; at 9 s it has reported 8 s of training, and loses 1 s.

    B runs from 9 to 13 s. A then trains the 2 s that are left, and ends with the report at 12 s of
    training, 4 s after its restart.
    """
    apps = apps_of((0, 1, 10), (9, 1, 1.5))
    jobs = simulate_trials(apps, 1, make("srsf-elastic", "pcs"), Costs(0, 4))
    assert jobs["end_time"].tolist() == [17, 13]


def test_stopped_trials_wait_behind_trials_that_never_ran() -> None:
    """A has three trials of 10 s on two GPUs; B takes a GPU from 4 to 5 s.

    A's second trial stops at 4 s with 6 s left. At 5 s the third starts and ends at 15 s. The
    second goes on at 10 s, when the first ends, and ends at 16 s.
    """
    apps = apps_of((0, 3, 10), (4, 1, 1))
    jobs = simulate_trials(apps, 2, make("srsf-elastic", "pcs"))
    assert jobs["end_time"].tolist() == [16, 5]


@pytest.mark.slow
def test_a_class_with_fewer_trials_leaves_its_gpus() -> None:
    """PCS gives two of three GPUs to A's class until A's demand falls to its last trial, at 10 s.

    B's second trial then starts at 10 s instead of 20 s.
    """
    apps = apps_of((0, 3, 10), (0, 2, 20))
    policy = make("pcs", "pcs", thresholds=(35.0,), weights=(2.0, 1.0), turn=600.0)
    jobs = simulate_trials(apps, 3, policy)
    assert jobs["jct"].tolist() == [20, 30]


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        make("fifo-elastic", "pcs"),
        make("srsf-elastic", "pcs"),
        make("afs", "pcs"),
        make("themis", "pcs", lease=7.0),
        make("pcs", "pcs", thresholds=(30.0, 60.0), turn=50.0),
    ],
    ids=lambda policy: policy.name,
)
def test_apps_of_one_trial_are_jobs_of_one_gpu(policy) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(4)
    submit = np.cumsum(rng.integers(1, 20, 60)).astype(float)
    apps = apps_of(*zip(submit, [1] * 60, rng.integers(5, 90, 60).astype(float), strict=True))
    ours = simulate_trials(apps, 4, policy)
    theirs = simulate(apps, "1x4", policy, rules="pcs").jobs
    for column in ("jct", "predicted_jct", "fair_jct"):
        assert ours[column].to_numpy() == pytest.approx(theirs[column].to_numpy(), abs=1e-5)


def test_the_measure_simulates_the_case() -> None:
    apps = apps_of((0, 2, 10), (3, 1, 4))
    case = Case(apps, "1x2", "srsf-elastic", "pcs", measure=TrialJobs(Costs(1, 4), False))
    jobs = case.measure(case.resolved()).jobs  # type: ignore[union-attr]
    assert jobs["jct"].tolist() == [21, 5]
    assert jobs["predicted_jct"].isna().all()


def test_a_policy_without_a_rule_is_refused() -> None:
    with pytest.raises(ParamError, match="no compiled division rule"):
        simulate_trials(apps_of((0, 1, 1)), 1, make("themis", form="shares"))
    with pytest.raises(ParamError, match="does not divide GPUs"):
        TrialJobs()(Case(apps_of((0, 1, 1)), "1x1", "srtf"))


def test_themis_knows_the_demand_of_an_app_with_fewer_trials() -> None:
    """Three GPUs. C gets its second GPU at 60 s, when B ends, and has one trial from 100 s on.

    So D, which arrives at 105 s, gets the third GPU. Its second trial begins at 155 s.
    """
    apps = apps_of((0, 1, 500), (0, 1, 60), (0, 2, 100), (105, 2, 50))
    jobs = simulate_trials(apps, 3, make("themis", "pcs"))
    assert jobs["end_time"].tolist() == [500, 60, 160, 205]


def test_a_policy_that_gives_fractions_of_gpus_is_refused() -> None:
    apps = apps_of(*[(0, 1, 10)] * 6)
    with pytest.raises(PolicyError, match=r"^policy 'max-min': app 0 gets 0\.5 GPUs at 0 s"):
        simulate_trials(apps_of((0, 1, 10), (0, 1, 10)), 1, make("max-min", "pcs"))
    with pytest.raises(PolicyError, match="trials run on whole GPUs"):
        simulate_trials(apps, 1, make("max-min", "pcs"))
    # equal parts that are whole numbers of GPUs
    jobs = simulate_trials(apps_of((0, 1, 10), (0, 1, 10)), 2, make("max-min", "pcs"))
    assert jobs["jct"].tolist() == [10, 10]


def test_a_cluster_without_gpus_is_refused() -> None:
    with pytest.raises(ParamError, match=r"^0 GPUs; give 1 or more"):
        simulate_trials(apps_of((0, 1, 10)), 0, make("fifo-elastic", "pcs"))


@pytest.mark.parametrize(
    ("app", "column"),
    [
        ((0, 1, np.nan), "duration"),
        ((0, 0, 10), "num_gpus"),
        ((0, 1.5, 10), "num_gpus"),
        ((np.nan, 1, 10), "submit_time"),
    ],
)
def test_a_malformed_app_is_refused(app, column) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TraceError, match=column):
        simulate_trials(apps_of((0, 1, 10), app), 2, make("fifo-elastic", "pcs"))


def test_records_have_a_row_per_app_in_the_order_of_the_trace() -> None:
    apps = apps_of((5, 1, 10), (0, 1, 3)).set_index(pd.Index([0, 0]))
    jobs = simulate_trials(apps, 1, make("fifo-elastic", "pcs"))
    assert jobs["end_time"].tolist() == [15, 3]
    assert jobs.index.tolist() == [0, 0]
    assert jobs.attrs["starts"] == 2
