"""The section "Validity" says what the committed rows say, and rows come out again."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="not run from a checkout")


@pytest.fixture(scope="module")
def validity():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        patch.syspath_prepend(ROOT / "tests" / "golden")
        yield importlib.import_module("validity")


@pytest.fixture(scope="module")
def stored(validity):
    return validity.stored()


def test_the_page_has_the_committed_rows(validity, stored):
    assert validity.marks.read(validity.PAGE, validity.MARK) == validity.section(stored).strip()


def test_every_case_has_its_rows_with_the_present_formula(validity, stored):
    rows = iter(stored.itertuples())
    for case in validity.CASES:
        for load in case.size.jobs:
            for name, formula in case.quantities.items():
                row = next(rows)
                key = (case.queue, case.durations, case.policy, case.settings_text, case.gpus)
                assert (row.queue, row.durations, row.policy, row.settings, row.gpus) == key
                assert (row.run, row.quantity, row.load) == (case.run, name, load)
                assert row.jobs == case.size.replications * case.size.jobs[load]
                found = formula(load)
                pair = found if isinstance(found, tuple) else (found, found)
                assert (row.low, row.high) == pytest.approx(pair, rel=1e-9)
    assert next(rows, None) is None


def test_every_miss_has_a_reason(validity, stored):
    for row in stored.itertuples():
        expected = (row.low, row.high)
        found = validity.Estimate(row.simulated, row.half_width)
        assert found.misses(expected) == bool(row.reason), row
        if row.reason:
            again = validity.Estimate(row.repeated, row.repeated_half_width)
            assert again.misses(expected) == (row.reason != validity.CHANCE), row
    assert validity.UNEXPLAINED not in set(stored["reason"])
    # a quantum explains a small error only
    exact = stored[stored["low"] == stored["high"]]
    small = exact[~exact["settings"].str.contains("quantum=0.2")]
    assert (small["simulated"] / small["low"] - 1 - small["half_width"] / small["low"]).max() < 0.03
    # misses by chance are as many as intervals of 95 % have
    chances = (exact["reason"] == validity.CHANCE).sum()
    assert chances < 0.05 * len(exact) + 3 * math.sqrt(0.05 * 0.95 * len(exact))


def test_fifo_equals_the_recursion_in_every_job(validity, stored):
    gaps = stored["fifo_gap"].dropna()
    assert len(gaps) == stored["queue"].isin(validity.FIFO_QUEUES).sum() > 0
    assert gaps.max() < 1e-9


def test_intervals_are_narrow_enough_to_say_something(validity, stored):
    """FIFO on one server has no control that narrows its interval; its jobs are compared."""
    width = stored["half_width"] / stored["low"]
    is_deterministic = stored["durations"] == "deterministic"
    is_order = stored["queue"].isin(["M/G/1 SRPT", "M/G/1 SJF"])
    is_single_fifo = (stored["queue"] == "M/G/1 FIFO") | (is_deterministic & is_order)
    assert width[~is_single_fifo].max() < 0.2
    assert width.median() < 0.03


SAMPLE = [
    ("M/M/c FIFO", "fifo-elastic", "compiled"),
    ("M/G/1 PS", "max-min", "compiled"),
    ("M/G/c PS", "max-min", "compiled"),
    ("M/G/1 FB", "las-2d", "compiled"),
    ("M/G/1 multilevel FIFO", "tiresias-l", "compiled"),
    ("M/G/1 SRPT", "srtf", "compiled"),
    ("M/G/1 SRPT", "afs", "compiled"),
    ("M/G/1 SJF", "sjf", "by event"),
    ("M/M/1 two classes", "sjf", "by event"),
    ("M/G/1 two classes, preemptive", "edf", "by event"),
    ("M/G/1 two classes, preemptive", "pcs", "compiled"),
    ("M/G/1 Gittins", "gittins-2d", "by event"),
]


@pytest.mark.parametrize(("queue", "policy", "run"), SAMPLE)
def test_a_smaller_run_agrees(validity, queue, policy, run):
    """Seeds that the committed rows do not use; three standard errors and a tenth of a quantum."""
    case = next(
        case
        for case in validity.CASES
        if (case.queue, case.policy, case.run) == (queue, policy, run)
    )
    is_compiled = run == "compiled"
    size = validity.Size(20, {0.7: 2_000}) if is_compiled else validity.Size(10, {0.7: 500})
    slack = 0.02 if case.approximate else 0.0
    for name, found in validity.simulated(case, 0.7, size, first_seed=1_000).items():
        expected = case.quantities[name](0.7)
        error = found.half_width / 2
        assert 0 < error < 0.12 * expected, "too few jobs for a test of anything"
        assert abs(found.mean - expected) < 3 * error + slack * expected


def test_a_committed_row_comes_out_again(validity, stored):
    case = next(case for case in validity.CASES if case.policy == "srtf")
    row = validity.rows(case, 0.3)[0]
    kept = stored[(stored["policy"] == "srtf") & (stored["load"] == 0.3)].iloc[0]
    for name in ("simulated", "half_width"):
        assert kept[name] == pytest.approx(row[name], rel=1e-6)


def test_a_control_narrows_the_interval_and_keeps_the_mean(validity):
    rng = np.random.default_rng(1)
    control = rng.normal(size=(400, 20, 1))
    values = 5.0 + 2.0 * control[..., 0] + 0.1 * rng.normal(size=(400, 20))
    found = [validity.estimate(*pair) for pair in zip(values, control, strict=True)]
    plain = [validity.estimate(numbers, np.zeros((20, 0))) for numbers in values]
    for estimates in (found, plain):
        holds = np.mean([not estimate.misses(5.0) for estimate in estimates])
        assert 0.92 < holds < 0.98
    widths = [np.mean([each.half_width for each in estimates]) for estimates in (found, plain)]
    assert widths[0] < 0.1 * widths[1]


def test_a_wrong_formula_is_noticed(validity):
    """Processor sharing is not FIFO once durations vary."""
    case = next(case for case in validity.CASES if case.policy == "max-min")
    law = validity.q.HYPEREXPONENTIAL
    case = validity.Case("M/G/1 PS", "hyperexponential", "max-min", case.quantities)
    size = validity.Size(20, {0.7: 2_000})
    found = validity.simulated(case, 0.7, size, first_seed=1_000)["JCT"]
    assert found.misses(validity.q.fifo(law, 0.7))
