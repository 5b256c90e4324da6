"""`--rules tiresias` against an independent reading of the public simulator's rules."""

from __future__ import annotations

import pytest
import reference_simulator as reference
from tiresias_cases import HISTORY, rows_of, trace_of

from repro import simulate
from repro.model.policy import make

SEEDS = range(12)
NODES = 6
SIZE = 4


def same(expected, rows, policy, placement=None, shift=0.0, cluster=f"{NODES}x{SIZE}"):
    jobs = simulate(
        trace_of(rows, shift), cluster, policy, placement=placement, rules="tiresias"
    ).jobs
    assert jobs["end_time"].tolist() == [job.end for job in expected]
    assert jobs["jct"].tolist() == [job.end - job.submit for job in expected]
    assert jobs["preemptions"].tolist() == [job.preempt for job in expected]
    assert jobs["promotions"].tolist() == [job.promote for job in expected]


@pytest.mark.parametrize("scheme", ["count", "yarn"])
@pytest.mark.parametrize(("name", "schedule"), [("yarn-cs", "fifo"), ("best-effort", "fjf")])
@pytest.mark.parametrize("seed", SEEDS)
def test_non_preemptive(seed, name, schedule, scheme):
    rows = rows_of(seed)
    expected = reference.non_preemptive(rows, NODES, SIZE, schedule, scheme)
    same(expected, rows, name, placement=scheme)


@pytest.mark.parametrize(("name", "schedule"), [("yarn-cs", "fifo"), ("best-effort", "fjf")])
@pytest.mark.parametrize("seed", SEEDS)
def test_several_switches(seed, name, schedule):
    rows = [(min(width, 8), submit, duration) for width, submit, duration in rows_of(seed)]
    expected = reference.non_preemptive(rows, 6, 4, schedule, "yarn", switches=3)
    same(expected, rows, name, placement="yarn", cluster="3x2x4")


@pytest.mark.parametrize(
    ("name", "schedule"), [("sf", "sjf"), ("srtf", "shortest"), ("srsf", "shortest-gpu")]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_known_durations(seed, name, schedule):
    rows = rows_of(seed)
    expected = reference.known_durations(rows, NODES * SIZE, schedule)
    assert sum(job.preempt for job in expected) > 0
    same(expected, rows, name)


@pytest.mark.parametrize("knob", [None, 0.5, 1, 2, 8])
@pytest.mark.parametrize("limits", [(3250, 7200), (3200,), (700, 2900, 11000)])
@pytest.mark.parametrize("seed", SEEDS)
def test_tiresias_l(seed, limits, knob):
    rows = rows_of(seed)
    expected = reference.discretised(rows, NODES * SIZE, limits, knob=knob or 0)
    promoting = {} if knob is None else {"promote_knob": knob}
    assert sum(job.preempt for job in expected) > 0
    same(expected, rows, make("tiresias-l", "tiresias", thresholds=limits, **promoting))


@pytest.mark.parametrize("knob", [None, 1, 4])
@pytest.mark.parametrize(
    ("limits", "delta"), [((3250, 7200), 3250), ((3200,), 3200), ((900,), 450)]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_tiresias_g(seed, limits, delta, knob):
    rows = rows_of(seed, n=70)
    table = reference.GittinsTable(HISTORY, delta)
    expected = reference.discretised(rows, NODES * SIZE, limits, knob=knob or 0, gittins=table)
    promoting = {} if knob is None else {"promote_knob": knob}
    settings = {"thresholds": limits, "history": tuple(HISTORY), **promoting}
    if delta != limits[0]:
        settings["delta"] = delta
    assert sum(job.preempt for job in expected) > 0
    same(expected, rows, make("tiresias-g", "tiresias", **settings))


def test_some_settings_promote():
    """The comparisons above are not vacuous."""
    jobs = reference.discretised(rows_of(0), NODES * SIZE, (3200,), knob=1)
    assert sum(job.promote for job in jobs) > 3


def test_fractions_of_seconds_are_cut():
    rows = rows_of(1)
    expected = reference.discretised(rows, NODES * SIZE, (3250, 7200))
    same(expected, rows, "tiresias-l", shift=0.75)
