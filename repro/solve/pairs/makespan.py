"""Least makespan where two jobs may share GPUs, over pools of jobs.

max tau subject to thr_i(X) >= rem_i tau, with tau = 1 / makespan, is a programme over jobs, because
jobs of one kind have different remaining work rem_i. Jobs of one kind can still be pooled. Let Y be
the shares of a pool with work R = sum rem_i, and let each job have the part rem_i / R of Y. Then

- every job has thr_i = thr(Y) rem_i / R >= rem_i tau if thr(Y) >= R tau, and
- the job is busy for rem_i / R of the pool's time. The pool's time must therefore not exceed
  R / max rem_i, which is at most the number of jobs in the pool.

The first condition is exact. The second changes nothing if the longest job of the pool, on its
slowest GPU type, needs no more time than the makespan. Otherwise it may change the optimum.
Therefore only jobs much shorter than the longest of all are pooled, and every other job is a pool
of its own.

Jobs of a pool may share GPUs with each other only if no job has more than half of R. A job with
more than half has too few partners in the pool: for part of its time it would be paired with
itself. A short job with more than half is a pool of its own, too.
"""

import numpy as np

from repro.base.typing import Floats, Ints
from repro.solve.max_min import bisected_makespan
from repro.solve.pairs.programme import (
    PairableKinds,
    programme,
    solved_shares,
    spread_over_few_pairs,
)

#: Jobs that need less than this part of the longest job's time are pooled by kind.
SHORT = 0.2


def pools(kind_of: Ints, remaining_steps: Floats, fastest: Floats, short: float = SHORT) -> Ints:
    """Pool of each job, shape (jobs,).

    The short jobs of a kind are one pool; every other job is a pool of its own. A job is short if
    it needs less than the part ``short`` of the longest job's time. Short jobs with more than half
    of the work of the pool are pools of their own. ``fastest`` is the throughput (steps/s) of each
    job on its fastest GPU type.
    """
    needed_s = remaining_steps / fastest
    is_pooled = needed_s < short * needed_s.max()
    for kind in np.unique(kind_of[is_pooled]).tolist():
        jobs = np.flatnonzero(is_pooled & (kind_of == kind))
        by_work = jobs[np.argsort(remaining_steps[jobs], kind="stable")]
        work = remaining_steps[by_work]
        has_no_majority = 2 * work <= np.cumsum(work)
        num_pooled = int(np.flatnonzero(has_no_majority).max(initial=-1)) + 1
        is_pooled[by_work[num_pooled:]] = False
    # Pools are numbered by kind; within a kind pooled jobs come first, then by remaining work.
    order = np.lexsort((remaining_steps, ~is_pooled, kind_of))
    same_kind = kind_of[order] == np.roll(kind_of[order], 1)
    begins_pool = ~(is_pooled[order] & np.roll(is_pooled[order], 1) & same_kind)
    begins_pool[0] = True
    pool_of = np.empty(len(kind_of), dtype=np.int64)
    pool_of[order] = np.cumsum(begins_pool) - 1
    return pool_of


def makespan_pairs(
    job_kinds: PairableKinds,
    kind_of: Ints,
    remaining_steps: Floats,
    *,
    tolerance: float = 0.0,
    pairs: str = "all",
    short: float = SHORT,
) -> tuple[Ints, Floats, float]:
    """Rows of jobs and pairs that minimise the makespan max_i rem_i / thr_i, and the makespan (s).

    ``job_kinds`` has throughputs (steps/s) as values. ``kind_of`` and ``remaining_steps`` have an
    entry per job. With a ``tolerance`` the makespan is that of `bisected_makespan`, and the shares
    are the centre of all shares that reach it. ``pairs`` is as in `programme`. ``short`` is as in
    `pools`; 0 makes every job a pool. The members of the rows are indices of ``kind_of`` (Gavel,
    sections 4.1 and 4.2).
    """
    remaining_steps = np.maximum(remaining_steps, 1e-9 * max(float(remaining_steps.max()), 1e-300))
    fastest = job_kinds.value.max(axis=1)
    pool_of = pools(kind_of, remaining_steps, fastest[kind_of], short)
    counts = np.bincount(pool_of).astype(float)
    total = np.bincount(pool_of, remaining_steps)
    longest = np.zeros(len(counts))
    np.maximum.at(longest, pool_of, remaining_steps)
    kind_of_pool = np.empty(len(counts), dtype=np.int64)
    kind_of_pool[pool_of] = kind_of
    scale = 1.0 / fastest[kind_of_pool]
    # Time is in units of the longest job's time on its best GPU type.
    unit = float((longest * scale).max())
    problem = programme(
        PairableKinds(
            job_kinds.value[kind_of_pool] * scale[:, None],
            job_kinds.paired[np.ix_(kind_of_pool, kind_of_pool)] * scale[:, None, None],
            job_kinds.widths[kind_of_pool],
            job_kinds.gpus,
        ),
        counts,
        value_per_level=total * scale / unit,
        time_limits=np.minimum(counts, total / longest),
        pairs_within_kind=(counts >= 2) & (2 * longest <= total),
        pairs=pairs,
    )
    pool_shares = solved_shares(problem)
    makespan = unit / pool_shares.level
    if tolerance > 0:
        makespan = bisected_makespan(makespan, tolerance)
        pool_shares = solved_shares(problem, level=unit / makespan)
    fractions = remaining_steps / total[pool_of]
    jobs = np.arange(len(remaining_steps))
    return *spread_over_few_pairs(jobs, pool_of, fractions, pool_shares), makespan
