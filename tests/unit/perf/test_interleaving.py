"""Speeds of the members of a group, with stage times from the trace."""

from __future__ import annotations

from functools import partial

import pandas as pd
import pytest

from repro.base.errors import TraceError
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.rules import Rules
from repro.perf.stages import Interleaving, interleaving_time, stage_columns

three_stage_time = partial(interleaving_time, merged=True)
MERGED = ("stage_storage", "stage_gpu", "stage_network")
FACTORS = (1.5, 2.0)


def table(stages, **columns):
    names = MERGED if len(stages[0]) == 3 else ("stage_storage", "stage_cpu", *MERGED[1:])
    frame = pd.DataFrame(stages, columns=list(names)).assign(
        job_id=range(len(stages)), submit_time=0.0, duration=10.0, num_gpus=2, **columns
    )
    return JobTable(frame)


def test_four_stages_follow_equation_3_and_three_the_merged_rule():
    four = [(1.0, 2.0, 1.0, 1.0), (1.0, 1.0, 2.0, 1.0)]
    three = [(0.5, 160.0, 0.0), (117.0, 68.0, 0.0)]
    for ordering in ("best", "worst"):
        perf = Interleaving(ordering=ordering)
        assert perf.period(four) == interleaving_time(four, ordering)
        assert perf.period(three, merged=True) == three_stage_time(three, ordering)
    assert perf.period(three, merged=True) == 345.0
    run = Run((0, 1), 2)
    for stages, period in ((four, 5.0), (three, 228.0)):
        rates = Interleaving().rates(table(stages), run, ())
        assert rates == [sum(stage) / period for stage in stages]


def test_a_member_that_overlaps_its_own_stages_says_how_long_it_takes_alone():
    jobs = table([(1.0, 2.0, 0.0), (2.0, 1.0, 0.0)], iteration_time=[2.0, 2.5])
    period = three_stage_time([(1.0, 2.0, 0.0), (2.0, 1.0, 0.0)])
    assert Interleaving().rates(jobs, Run((0, 1), 2), ()) == [2.0 / period, 2.5 / period]


def test_factors_stretch_groups_by_their_size():
    perf = Interleaving(factors=FACTORS)
    stages = [(1.0, 1.0, 1.0)] * 4
    for members, factor in ((1, 1.0), (2, 1.5), (3, 2.0), (4, 1.0)):
        expected = three_stage_time(stages[:members]) * factor
        assert perf.period(stages[:members], merged=True) == expected


def test_alone_the_share_of_the_gang_counts():
    jobs = table([(1.0, 1.0, 1.0)])
    perf = Interleaving(factors=FACTORS)
    assert perf.rates(jobs, Run((0,), 2), ()) == [1.0]
    assert perf.rates(jobs, Run((0,), 1), ()) == [0.5]


def test_paces_are_periods_where_work_is_counted_in_iterations():
    stages = [(0.1, 0.3, 0.0), (0.2, 0.1, 0.05)]
    frame = table(stages, iteration_time=[0.4, 0.3]).frame.assign(iterations=100.0)
    jobs = JobTable(frame, Rules(iterations=1.015))
    perf = Interleaving(factors=FACTORS)
    run = Run((0, 1), 2)
    period = three_stage_time(stages) * 1.5
    assert perf.paces(jobs, run, ()) == [period, period]
    # on half of the GPUs an iteration takes twice as long
    assert perf.paces(jobs, Run((0, 1), 1), ()) == [2 * period, 2 * period]
    assert perf.paces(jobs, Run((1,), 2), ()) == [jobs.solo[1]]
    seconds = JobTable(frame)
    rates = perf.rates(seconds, run, ())
    assert perf.paces(seconds, run, ()) == [1 / rate for rate in rates]


def test_columns_are_found_and_the_missing_one_is_named():
    assert stage_columns(["stage_cpu", *MERGED]) == ("stage_storage", "stage_cpu", *MERGED[1:])
    assert stage_columns(["x", *MERGED]) == MERGED
    with pytest.raises(TraceError, match="jobs: no column 'stage_network'; grouped jobs need"):
        stage_columns(MERGED[:2], "jobs")
    with pytest.raises(TraceError, match="no column 'stage_cpu'"):
        perf = Interleaving(("stage_cpu", "stage_gpu"))
        perf.rates(table([(1.0, 1.0, 1.0)] * 2), Run((0, 1), 2), ())
