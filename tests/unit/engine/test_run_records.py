"""Intervals that are open when a simulation ends early."""

import numpy as np
import pytest

from repro import simulate
from repro.model.metrics import busy_gpus
from repro.perf import ThroughputTable
from repro.testing import small_trace

MODELS = small_trace().assign(model="vgg16", iteration_time=0.5, iterations=20)
SPEEDS = ThroughputTable({("vgg16", gpus): {"v100": 2.0} for gpus in (1, 2, 4)}, "v100")
#: name of a way to simulate -> cluster, policy and options
WAYS = {
    "compiled order": ("1x4", "srtf", {}),
    "order, event by event": ("1x4", "srtf", {"interval": 0.5}),
    "order with nodes": ("2x2", "srtf", {"placement": "yarn"}),
    "costs of starts": ("1x4", "tiresias-l", {"overhead": 2.0}),
    "divided GPUs": ("1x4", "max-min", {}),
    "rounds": ("4xv100", "gavel-las", {"rounds": {"round_s": 3.0}}),
    "rounds of pairs": ("1x4", "gandiva-ss", {"rounds": {"round_s": 3.0}}),
    "rounds with nodes": ("1x4", "gavel-las", {"rounds": {"round_s": 3.0}, "placement": "yarn"}),
    "whole steps": ("4xv100", "gavel-las", {"rules": "gavel", "perf": SPEEDS}),
    "ideal execution": ("4xv100", "gavel-las", {"rounds": {"ideal": "fluid"}}),
    "groups": ("1x4", "antman", {}),
}


def held_until(result, instant):
    """GPU-seconds that each job held up to an instant."""
    spans = result.intervals
    seconds = spans["end"].clip(upper=instant) - spans["start"].clip(upper=instant)
    held = (seconds * spans["gpus"]).groupby(spans["job_id"]).sum()
    return held.reindex(result.jobs["job_id"], fill_value=0.0)


@pytest.mark.parametrize("way", WAYS)
def test_open_intervals_end_with_a_simulation_that_ends_early(way):
    cluster, policy, options = WAYS[way]
    trace = MODELS.assign(submit_time=MODELS["submit_time"] + 100.0)
    whole = simulate(trace, cluster, policy, **options)
    instant = float(whole.jobs["end_time"].median()) - 0.25
    stopped = simulate(trace, cluster, policy, stop_time=instant, **options)
    assert held_until(stopped, np.inf).tolist() == pytest.approx(held_until(whole, instant))
    assert stopped.intervals["end"].max() == instant
    awaited = simulate(trace, cluster, policy, until=[1], **options)
    end = float(awaited.jobs["end_time"][1])
    assert held_until(awaited, np.inf).tolist() == pytest.approx(held_until(whole, end))


def test_gpus_in_use_count_jobs_that_run_at_the_stop_time():
    result = simulate(small_trace().head(1), "1x4", "srtf", stop_time=6.0)
    assert busy_gpus(result, 2.0).tolist() == [2.0, 2.0, 2.0]


def test_a_simulation_that_stops_before_its_first_job_has_no_intervals():
    late = small_trace().assign(submit_time=lambda jobs: jobs["submit_time"] + 10.0)
    assert simulate(late, "1x4", "srtf", stop_time=5.0).intervals.empty
