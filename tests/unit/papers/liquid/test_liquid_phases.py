"""Launch, training and saving on one GPU: utilisation by second, idle time, sequences."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro.base.errors import ParamError
from repro.papers.liquid import figure_data, phases

HEARTBEAT = {"heartbeat_s": 5.0}
AHEAD = {"heartbeat_s": 5.0, "ahead_s": 15.0}
NUMBERS = ("11a", "11b", "12a", "12b", "16a", "16b", "17a", "17b")


@pytest.mark.parametrize(
    ("figure", "window", "earlier", "busy"),
    [
        # what the specification reads from the curves: gap, seconds by which the next burst comes
        # earlier, busy seconds in the gap
        ("11a", 18, 11, 6),
        ("11b", 36, 27, 27),
        ("12a", 29, 12, 3),
        ("12b", 35, 10, 10),
        ("16a", 26, 4, 4),
        ("16b", 31, 3, 3),
        ("17a", 25, 5, 3),
        ("17b", 40, 4, 4),
    ],
)
def test_idle_time_of_the_published_curves(figure, window, earlier, busy):
    names = ("baseline", "pre_scheduling") if figure < "13" else ("heartbeat", "event_driven")
    known = figure_data.curves(figure).groupby("series")["value"]
    curves = [known.get_group(name).to_numpy() for name in names]
    found = phases.longest_idle_gap(*curves, phases.BUSY_PCT[phases.JobModel.of(figure).model])
    assert found.window_s == window
    assert found.shift * window / 100 == pytest.approx(earlier)
    assert found.busy * window / 100 == pytest.approx(busy)


def test_a_curve_without_a_gap_is_refused():
    with pytest.raises(ParamError, match="no idle gap between two bursts of 30 %"):
        phases.longest_idle_gap(np.array([80.0, 80.0, 0.0]), np.zeros(3), 30.0)


@pytest.mark.parametrize("figure", NUMBERS)
def test_the_gap_is_saving_report_and_launch(figure):
    panel = phases.JobModel.of(figure)
    for lag in (0.5, 4.5):
        first, second = phases.two_in_sequence(panel, HEARTBEAT, lag)
        assert second.train_at - first.last_step_at == pytest.approx(
            panel.save_s + lag + panel.launch_s
        )
        assert first.left_at - first.last_step_at == panel.save_s


@pytest.mark.parametrize("figure", NUMBERS)
def test_what_the_optimisations_leave_of_the_gap(figure):
    panel = phases.JobModel.of(figure)
    # at once when the first has left
    first, second = phases.two_in_sequence(panel, {})
    assert second.train_at - first.left_at == pytest.approx(panel.launch_s)
    # launched long before: two reports, or the saving
    first, second = phases.two_in_sequence(panel, AHEAD)
    assert second.launch_at < first.last_step_at - panel.launch_s - 10
    assert second.train_at - first.last_step_at == max(panel.save_s, panel.handover_s)


def test_idle_time_saved_agrees_with_the_curves():
    panel = phases.JobModel.of("11b")
    runs = {
        "plain": phases.two_in_sequence(panel, HEARTBEAT),
        "ahead": phases.two_in_sequence(panel, AHEAD),
    }
    starts = {name: jobs[0].last_step_at - 5 for name, jobs in runs.items()}
    drawn = phases.utilisation_curves(panel, runs, 50, starts)
    plain, ahead = (drawn.query("series == @name")["value"].to_numpy() for name in runs)
    saved = phases.idle_time_saved(panel, HEARTBEAT, AHEAD, [2.5]).iloc[0]
    by_second = phases.longest_idle_gap(plain, ahead, 10.0)
    assert by_second.from_s == 5
    # a second that is busy for half of it counts as busy
    shares = 100 * saved[["sooner_s", "busy_s"]] / saved["window_s"]
    assert by_second[1:] == pytest.approx([saved["window_s"], *shares], abs=2.5)
    assert plain[:5] == pytest.approx(panel.tail_level)
    assert plain[-5:] == pytest.approx(panel.level)
    assert drawn["value"].between(0, 100).all()


def test_a_report_saves_half_its_interval_on_average():
    saved = phases.idle_time_saved(
        phases.JobModel.of("16a"), HEARTBEAT, {}, [0.5, 1.5, 2.5, 3.5, 4.5]
    )
    assert saved["sooner_s"].mean() == pytest.approx(2.5)


def test_a_late_launch_saves_less():
    panel = phases.JobModel.of("12b")
    saved = phases.idle_time_saved(panel, HEARTBEAT, AHEAD, [2.5], [0.0, panel.late_s, 60.0])
    assert saved["sooner_s"].is_monotonic_decreasing
    assert saved["sooner_s"].iloc[-1] == pytest.approx(0)


def test_two_jobs_use_the_gpu_as_their_slow_down_lets_them():
    panel = phases.JobModel.of("13b")
    job = phases.JobPhases(0.0, 100.0, [(0.0, 100.0, 0.5)])
    value = phases.utilisation([job, job], panel, 10.0, 5)["value"]
    assert value.tolist() == pytest.approx([panel.level] * 5)


def test_progress_goes_on_through_intervals_of_other_speed():
    trace = pd.DataFrame({"job_id": [0, 1], "submit_time": [0.0, 50.0], "duration": 100.0})
    trace = trace.assign(num_gpus=1, model="a", gpu_util=30.0)
    costs = phases.Phases({"a": 20.0}, {"a": 5.0})
    run = phases.simulate(trace, "1x1", phases.make("liquid", share=1.3), overhead=costs)
    first, second = phases.job_phases(run, costs)
    assert [pytest.approx(step) for step in first.steps] == [
        (20.0, 50.0, 1.0),
        (50.0, 136.8, 1 / 1.24),
    ]
    assert (first.left_at, second.train_at) == pytest.approx((141.8, 70.0))


def test_sequences_of_the_published_bars():
    cnn, neumf = phases.MODELS
    assert phases.sequence_minutes("K80", [cnn] * 8, None) == pytest.approx(42)
    assert phases.sequence_minutes("T4", [cnn, cnn, neumf, neumf], None) == pytest.approx(87)
    # the specification predicts 51.5
    assert phases.sequence_minutes("T4", [cnn, cnn, neumf, neumf], 1.3) == pytest.approx(
        51.5, abs=0.5
    )
    assert phases.sequence_minutes("K80", [neumf] * 4, 1.3, [cnn]) == pytest.approx(128, rel=0.1)


def test_an_unknown_panel_is_named():
    with pytest.raises(ParamError, match="no panel '18' of phases; there are 11a, 11b"):
        phases.JobModel.of("18")
