"""Windows of a trace and stretched arrivals, by hand."""

import pytest
from hand_traces import trace

from repro.base.errors import ParamError, TraceError
from repro.comparison.samples import Windows, at_loads, checked_seeds, cut, dressed_windows

HOUR = 3600.0
#: submissions over two hours
JOBS = trace((0, 100, 1), (1, 10, 1), (7199, 200, 1), (7200, 20, 1))


def test_windows_are_spread_evenly_and_have_clocks_of_their_own():
    parts = cut(JOBS, Windows.parse("3x1h"))
    # they begin at 0, 1800 and 3600 s; nothing is submitted in the second
    assert [number for number, _ in parts] == [0, 2]
    assert [jobs["job_id"].tolist() for _, jobs in parts] == [[0, 1], [2, 3]]
    assert [jobs["submit_time"].tolist() for _, jobs in parts] == [[0, 1], [3599, 3600]]


def test_a_window_to_be_stretched_needs_two_instants():
    jobs = trace((0, 100, 1), (7199, 200, 1), (7200, 20, 1))
    assert [number for number, _ in cut(jobs, Windows(2, HOUR), stretched=True)] == [1]
    with pytest.raises(ParamError, match="longer windows"):
        cut(jobs, Windows(1, HOUR), stretched=True)


def test_a_window_is_no_longer_than_the_trace():
    with pytest.raises(ParamError, match=r"span 0\.0833 days; give shorter windows"):
        cut(JOBS, Windows.parse("2x1d"))


def test_one_window_of_the_whole_span_has_the_last_submission():
    ((_, jobs),) = cut(JOBS, Windows(1, 2 * HOUR))
    assert jobs["job_id"].tolist() == [0, 1, 2, 3]
    ((_, first),) = cut(JOBS, Windows(1, HOUR))
    assert first["job_id"].tolist() == [0, 1]


@pytest.mark.parametrize("text", ["7d", "0x7d", "3x0d", "3x7", "3x7w", "x"])
def test_windows_have_one_form(text):
    with pytest.raises(ParamError, match="20x7d"):
        Windows.parse(text)


def test_arrivals_are_stretched_to_the_offered_load():
    jobs = trace((0, 60, 1), (10, 60, 3))
    # 240 GPU-seconds on 4 GPUs over 10 s are a load of 6
    as_it_is, three = [*at_loads(0, jobs, 0, 4, []), *at_loads(0, jobs, 0, 4, [3.0])]
    assert as_it_is.offered_load == 6.0 and as_it_is.stretch == 1.0
    assert three.trace["submit_time"].tolist() == [0, 20] and three.stretch == 2.0


def test_a_load_counts_the_whole_gpus_that_jobs_hold():
    jobs = trace((0, 60, 1), (10, 60, 3)).assign(gpu_share=0.25)
    (sample,) = at_loads(0, jobs, 0, 4, [3.0])
    assert sample.stretch == 2.0


def test_jobs_that_arrive_at_once_have_no_load():
    with pytest.raises(TraceError, match="all jobs arrive at once"):
        list(at_loads(0, trace((0, 60, 1), (0, 60, 1)), 0, 4, [0.5]))


@pytest.mark.parametrize("seeds", [0, -1, True, "3", [], [1, 1], [0.5]])
def test_seeds_are_a_number_or_a_list(seeds):
    with pytest.raises(ParamError, match="seeds is"):
        checked_seeds(seeds)


def test_windows_of_jobs_are_spread_over_the_jobs():
    submit = [0.0, 10.0, 20.0, 20.0, 50.0, 60.0]
    trace = JOBS.iloc[[0] * 6].assign(job_id=range(6), submit_time=submit)
    parts = cut(trace, Windows.parse("3x2j"))
    assert [jobs["job_id"].tolist() for _, jobs in parts] == [[0, 1], [2, 3], [4, 5]]
    assert [jobs["submit_time"].tolist() for _, jobs in parts] == [[0, 10], [0, 0], [0, 10]]
    assert [number for number, _ in cut(trace, Windows(3, jobs=2), stretched=True)] == [0, 2]
    assert not Windows(3, jobs=2).overlap(6, 60.0)
    assert Windows(3, jobs=3).overlap(6, 60.0)
    with pytest.raises(ParamError, match="windows of 7 jobs: the trace has 6"):
        cut(trace, Windows(1, jobs=7))


def test_dressed_windows_share_no_jobs_and_have_models_at_the_load():
    jobs = trace(*((10.0 * number, 60, 1) for number in range(5)))
    samples = dressed_windows(jobs, 10, 2, 4, 1.5, "muri")
    assert [window["job_id"].tolist() for window in samples.values()] == [[0, 1], [3, 4]]
    # 120 GPU-seconds on 4 GPUs over 20 s are a load of 1.5
    assert all(window["submit_time"].tolist() == [0, 20] for window in samples.values())
    assert all(window["stage_gpu"].notna().all() for window in samples.values())
    (whole,) = dressed_windows(jobs, 10, 99, 4, 1.5, "muri").values()
    assert len(whole) == 5


@pytest.mark.parametrize(
    ("number", "size", "load", "message"),
    [
        (1, 0, 1.5, "1 windows of 0 jobs: give at least 1 window and 2 jobs"),
        (0, 5, 1.5, "0 windows of 5 jobs: give at least 1 window"),
        (1, 5, 0, "load is 0; give a number above 0"),
    ],
)
def test_windows_without_jobs_or_load_are_refused(number, size, load, message):
    jobs = trace(*((10.0 * number, 60, 1) for number in range(5)))
    with pytest.raises(ParamError, match=message):
        dressed_windows(jobs, number, size, 4, load, "muri")
