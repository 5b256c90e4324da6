"""What an allocation with space sharing costs, in units of a bare event loop."""

from __future__ import annotations

import numpy as np
import pytest
from costs import measure

from repro.engine.rounds.mechanism import Ledger
from repro.policies.gavel.estimator import complete
from repro.solve.pairs.makespan import makespan_pairs
from repro.solve.pairs.programme import PairableKinds, programme, solved_shares, spread_evenly


def workload(types, jobs, widths=(1,), seed=0):
    """Job types like Gavel's: values within a factor of ten, one pair in three out of memory."""
    rng = np.random.default_rng(seed)
    speeds = (
        rng.uniform(1, 3, (types, 1)) * np.array([1.0, 2.0, 4.0]) * rng.uniform(1, 2, (types, 3))
    )
    paired = speeds[:, None] * rng.uniform(0.3, 0.9, (types, types, 3))
    lost = rng.random((types, types)) < 0.3
    paired[lost | lost.T] = 0.0
    place = np.concatenate([np.arange(types), rng.integers(0, types, jobs - types)])
    return speeds, paired, rng.choice(widths, types).astype(float), place


@pytest.mark.parametrize(
    ("types", "jobs", "widths", "limit"),
    [(26, 100, (1,), 0.07), (60, 200, (1, 2, 4, 8), 0.15), (83, 1000, (1, 2, 4, 8), 0.5)],
)
def test_one_allocation(benchmark, types, jobs, widths, limit):
    speeds, paired, wide, place = workload(types, jobs, widths)
    capacity = np.full(3, 36.0)
    counts = np.bincount(place).astype(float)
    scale = (wide / (speeds @ capacity / capacity.sum()))[:, None]
    numbers = np.arange(jobs)

    def allocate():
        problem = programme(
            PairableKinds(speeds * scale, paired * scale[:, None], wide, capacity), counts
        )
        return spread_evenly(numbers, place, counts, solved_shares(problem))

    allocate()
    cost, (members, _) = measure(benchmark, f"pairs of {types} types, {jobs} jobs", 9, allocate)
    assert len(members) >= jobs
    assert cost <= limit


def test_one_makespan(benchmark):
    speeds, paired, wide, place = workload(83, 700, (1, 2, 4, 8))
    rng = np.random.default_rng(1)
    left = 10 ** np.where(rng.random(700) < 0.2, rng.uniform(3, 4, 700), rng.uniform(1.5, 3, 700))
    capacity = np.full(3, 36.0)
    crowd = PairableKinds(speeds, paired, wide, capacity)
    makespan_pairs(crowd, place, left)
    cost, (*_, end) = measure(
        benchmark, "makespan with pairs, 700 jobs", 3, makespan_pairs, crowd, place, left
    )
    assert end > 0
    assert cost <= 3


def test_one_renewal(benchmark):
    """Deficits of all pairs of 100 jobs, carried from one allocation to the next."""
    one, two = np.triu_indices(100, 1)
    both = np.concatenate(
        [np.stack([np.arange(100), np.full(100, -1)], 1), np.stack([one, two], 1)]
    )
    members = both[np.lexsort((both[:, 0], both[:, 1] >= 0, both.max(axis=1)))]
    x = np.full((len(members), 3), 0.01)
    speeds = np.ones((len(members), 2, 3))
    ledger = Ledger(5000, 3, 180.0)
    ledger.replace_x(members, x, speeds, 0.0)
    ledger.replace_x(members, x, speeds, 360.0)
    cost, _ = measure(
        benchmark, "renewal of 5050 rows of pairs", 9, ledger.replace_x, members, x, speeds, 360.0
    )
    assert ledger.rows.deficit.shape == x.shape
    assert cost <= 0.008


def test_one_profile(benchmark):
    """A new job beside 16 references on three GPU types, a fifth of it measured."""
    rng = np.random.default_rng(0)
    values = rng.uniform(0.3, 1, (17, 48))
    known = np.ones((17, 48), dtype=bool)
    known[-1] = rng.random(48) < 0.2
    complete(values, known)
    cost, found = measure(benchmark, "completion of one profile", 9, complete, values, known)
    assert found.shape == values.shape
    assert cost <= 0.03
