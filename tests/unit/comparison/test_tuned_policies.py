"""Thresholds and histories from the jobs of a trace, by hand."""

from hand_traces import trace

from repro.comparison.tuned import tuned

#: GPU-times of 10, 40 and 90 GPU-seconds
JOBS = trace((0, 10, 1), (0, 20, 2), (0, 30, 3))


def test_the_threshold_is_the_median_gpu_time():
    assert tuned("tiresias-l", JOBS).thresholds == (40.0,)
    assert tuned("tiresias-l", JOBS, thresholds=(7.0,), promote_knob=2.0).thresholds == (7.0,)


def test_the_history_has_the_quantiles_of_gpu_time():
    history = tuned("gittins-2d", JOBS).history
    assert (history[0], history[-1]) == (10.0, 90.0)
    assert sorted(history) == list(history)


def test_other_policies_are_as_made():
    assert tuned("srtf", JOBS) == tuned("srtf", JOBS.head(1))
