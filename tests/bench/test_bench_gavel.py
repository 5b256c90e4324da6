"""What a point of Gavel's Fig 8 costs, in units of a bare event loop.

36 GPUs of each of three types, 5,000 jobs and those that arrive after them, until the thousand
measured ones are done; X is computed at every round boundary after a change.
"""

from __future__ import annotations

import pytest
from costs import busy, measure, note

from repro import make, simulate
from repro.trace import synth

CLUSTER = "36xv100,36xp100,36xk80"
MEASURED = range(4000, 5000)


def point(trace, policy, keep_intervals=False):
    return simulate(
        trace,
        CLUSTER,
        make(policy, "gavel"),
        rules="gavel",
        rounds={"min_realloc_interval_s": 0.0},
        until=MEASURED,
        keep_intervals=keep_intervals,
    )


@pytest.mark.parametrize(
    ("policy", "rate", "jobs", "limit"),
    [
        ("gavel-las", 0.8, 5500, 100),
        ("gavel-las", 4.8, 6500, 200),
        ("las-agnostic", 4.8, 7500, 100),
    ],
)
def test_a_point_of_figure_8(benchmark, policy, rate, jobs, limit):
    trace = synth.make(
        "gavel-single", 0, jobs=jobs, rate=rate, throughputs="gavel-like-throughputs"
    )
    # what is compiled on first use is kept on disk; loading it is not the simulation
    simulate(trace.head(50), CLUSTER, make(policy, "gavel"), rules="gavel")
    name = f"gavel {policy}, {rate} jobs/h"
    cost, result = measure(benchmark, name, 1, point, trace, policy)
    # who held which GPUs is not kept where it is timed, as in the figures
    note(name, **busy(point(trace, policy, keep_intervals=True)))
    found = result.jobs
    assert found.loc[MEASURED, "end_time"].notna().all()
    assert found["submit_time"].max() > found["end_time"].max(), "arrivals ran out"
    assert cost <= limit
