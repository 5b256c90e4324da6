"""Priorities and choices of single rounds (Gavel, section 5) for one allocation X."""

from collections.abc import Sequence

import numpy as np

from repro.base.typing import Floats
from repro.engine.rounds import kernel


def priorities(fractions: Floats, received: Floats) -> Floats:
    """X / rounds received, (jobs, types); infinite where a positive share received no round."""
    rounds = np.asarray(received, dtype=float)
    x = np.asarray(fractions, dtype=float)
    priority: Floats = kernel.priorities(x, rounds, rounds.sum(axis=0), True)
    return priority


def choose(
    fractions: Floats, received: Floats, widths: Sequence[int], capacity: Sequence[int]
) -> list[tuple[int, int]]:
    """Pairs (job, GPU type) of the next round, greedily by priority, each job at most once.

    ``received`` is the number of rounds received so far, (jobs, types).

    Ties are broken by larger X, then by order of types, then by order of jobs.
    """
    x = np.asarray(fractions, dtype=float)
    jobs, types = x.shape
    chosen = kernel.choose_greedily(
        members=np.column_stack([np.arange(jobs), np.full(jobs, -1)]),
        demands=np.asarray(widths, dtype=np.int64),
        runnable=np.ones(x.shape, dtype=np.bool_),
        priority=priorities(x, received),
        deficit=np.zeros_like(x),
        x=x,
        capacity=np.asarray(capacity, dtype=np.int64),
        order=np.arange(types),
        whole_queue=True,
        idle_ok=True,
        scratch=np.zeros(jobs, dtype=np.bool_),
    )
    return list(zip(*(column.tolist() for column in chosen), strict=True))


def received_after(
    fractions: Floats,
    received: Floats,
    widths: Sequence[int],
    capacity: Sequence[int],
    more: int = 1,
) -> Floats:
    """Received rounds after ``more`` further rounds of the same X, (jobs, types)."""
    total = received.astype(float)
    for _ in range(more):
        for job, column in choose(fractions, total, widths, capacity):
            total[job, column] += 1
    return total
