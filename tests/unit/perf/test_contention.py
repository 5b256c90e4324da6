"""Jobs side by side on the same GPUs: cases by hand, bounds, and the engine."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro import simulate
from repro.base.errors import ParamError, TraceError
from repro.model.decision import Run
from repro.perf.contention import Contention
from repro.policies.baselines.scripted import Scripted

FULL = Contention((1.0, 1.0, 1.0, 1.0))


def test_equal_jobs_on_one_resource_share_it_evenly():
    assert FULL.rates_of([(0, 0, 3, 0)] * 3) == pytest.approx([1 / 3] * 3)


def test_two_jobs_by_hand():
    # Each job is half of its time on the GPU: d = 1 + d_gpu, d_gpu = 1 + d_gpu / (1 + d_gpu).
    gpu = (1 + 5**0.5) / 2
    rates = FULL.rates_of([(0, 1, 1, 0), (0, 0, 1, 1)])
    assert rates == pytest.approx([2 / (1 + gpu)] * 2)


def test_without_contention_nobody_is_slower():
    assert Contention((0.0,) * 4).rates_of([(1, 2, 3, 4), (4, 3, 2, 1)]) == (1.0, 1.0)


STAGES = st.tuples(*[st.floats(0.001, 10)] * 4)
FACTORS = st.tuples(*[st.floats(0, 1)] * 4)


@given(st.lists(STAGES, min_size=2, max_size=4), FACTORS)
def test_rates_do_not_depend_on_the_order_and_keep_their_bounds(members, factors):
    rates = Contention(factors).rates_of(members)
    assert Contention(factors).rates_of(members[::-1]) == rates[::-1]
    assert all(1 / len(members) - 1e-9 <= rate <= 1 + 1e-9 for rate in rates)


@given(st.lists(STAGES, min_size=2, max_size=4), st.floats(0.1, 10))
def test_longer_iterations_of_one_job_change_no_rate(members, scale):
    longer = tuple(scale * time for time in members[0])
    assert FULL.rates_of([longer, *members[1:]]) == pytest.approx(FULL.rates_of(members), rel=1e-6)


def trace(**stages):
    jobs = pd.DataFrame({"submit_time": 0.0, "duration": 12.0, "num_gpus": 1}, index=[0, 1])
    return jobs.assign(job_id=[0, 1], **stages)


TOGETHER = Scripted((Run((0, 1), 1),))


def test_a_run_with_merged_stages():
    jobs = trace(stage_storage=0.0, stage_gpu=2.0, stage_network=0.0)
    result = simulate(jobs, "1x1", TOGETHER, perf=Contention((0.0, 1.0, 0.0)))
    assert result.jobs["jct"].tolist() == pytest.approx([24.0, 24.0])


@pytest.mark.parametrize(
    ("stages", "factors", "error", "message"),
    [
        ({"stage_gpu": 1.0}, (1.0,) * 3, TraceError, "no column 'stage_storage'"),
        (
            {"stage_storage": 1.0, "stage_gpu": 1.0, "stage_network": 0.0},
            (1.0,) * 4,
            ParamError,
            "4 factors, and a job has 3 stages",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(stages, factors, error, message):
    with pytest.raises(error, match=message) as caught:
        simulate(trace(**stages), "1x1", TOGETHER, perf=Contention(factors))
    assert "\n" not in str(caught.value)


def test_the_job_of_another_number_of_stages_is_named():
    with pytest.raises(ParamError, match="2 factors, and a job has 3 stages"):
        Contention((0.0, 1.0)).rates_of([(1, 1), (1, 1, 1)])


def test_bad_factors_are_refused():
    with pytest.raises(ParamError, match="give numbers of 0 or more"):
        Contention((-0.1, 1.0, 1.0))
