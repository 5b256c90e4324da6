"""Rounds of whole training steps, compiled: as many as pass before anything happens.

Between two events (an arrival, a completion) X stays as it is, and nobody looks at the rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from repro.compiled import njit
from repro.sim.rounds.greedy import ranks, walk

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Rows(NamedTuple):
    """Rows of X, as the attributes of `ledger.Ledger`; ``time`` and ``total`` change.

    ``able`` is false for all of a row with a finished member.
    """

    members: Ints
    able: Bools
    allocated: Bools
    x: Floats
    owed: Floats
    time: Floats
    total: Floats
    speeds: Floats


class Jobs(NamedTuple):
    """Where every job of the trace stands; all of shape (jobs,), all change.

    ``left`` in steps, ``kind`` the column of the GPU type held and ``partner`` the job it is shared
    with (-1: none), ``hold`` since when (s), ``seconds`` held before that, ``first`` and ``last``
    the instants at which GPUs were first taken and last given back, ``stops`` how often they were
    given back before the end, ``rate`` in steps per second while they are held. ``taken`` is
    scratch, all false between calls.
    """

    left: Floats
    widths: Ints
    kind: Ints
    partner: Ints
    hold: Floats
    seconds: Floats
    first: Floats
    last: Floats
    stops: Ints
    rate: Floats
    taken: Bools


class Rule(NamedTuple):
    """How rounds go; the settings of `repro.sim.rounds.settings.RoundSettings` that matter here."""

    capacity: Ints
    round_s: float
    overhead_s: float
    whole_queue: bool
    idle_ok: bool
    counts_rounds: bool
    drop: bool
    lease: bool


class Round(NamedTuple):
    """The last round that was played; it has begun and is not booked.

    ``rows`` and ``kinds`` are the choice, ``ends`` when the steps of each row are done (s);
    ``jobs``, ``steps`` and ``last`` the members, their steps, and when they may leave (s).
    """

    rows: Ints
    kinds: Ints
    ends: Floats
    jobs: Ints
    steps: Floats
    last: Floats


class Played(NamedTuple):
    """What `play` did.

    ``rounds`` played, the last until ``until`` (s); ``gap`` is the end of the one before it.
    ``fresh`` marks the rows of the last round that did not run in the one before. ``began`` lists
    pairs (two jobs, column of the GPU type) that began to share GPUs, ``moved`` jobs that took GPUs
    or gave them back, and ``worked`` jobs that did steps, the last round included.
    """

    rounds: int
    until: float
    gap: float
    fresh: Bools
    began: Ints
    moved: Ints
    worked: Ints


@njit()
def book(rows: Rows, jobs: Jobs, last: Round, since: float) -> None:
    """Book the steps of a round, and the time from ``since`` on that its rows received."""
    for n in range(len(last.jobs)):
        jobs.left[last.jobs[n]] -= last.steps[n]
    for n in range(len(last.rows)):
        spent = last.ends[n] - since
        rows.time[last.rows[n], last.kinds[n]] += spent
        rows.total[last.kinds[n]] += spent


@njit()
def _begin(rows: Rows, jobs: Jobs, rule: Rule, chosen: Ints, kinds: Ints, fresh: Bools, now: float):  # type: ignore[no-untyped-def]
    """Return the round of a choice."""
    count = len(chosen)
    second = 0
    for n in range(count):
        second += rows.members[chosen[n], 1] >= 0
    ends = np.empty(count)
    who = np.empty(count + second, dtype=np.int64)
    steps, last = np.empty(count + second), np.empty(count + second)
    at = count
    for n in range(count):
        a, j = chosen[n], kinds[n]
        one = rows.members[a, 0]
        begin, length = now, rule.round_s
        if rule.overhead_s > 0 and fresh[n] and jobs.first[one] < np.inf:
            begin, length = now + rule.overhead_s, rule.round_s - rule.overhead_s
        end = now
        for member in range(2):
            job = rows.members[a, member]
            if job < 0:
                continue
            pace = rows.speeds[a, member, j]
            most = np.floor(pace * length)
            if most <= 0:
                # slower than a step a round: part of one
                most = pace * length
            done = min(most, jobs.left[job])
            # both of a pair are done when the later one is
            end = max(end, begin + done / pace)
            slot = n if member == 0 else at
            who[slot], steps[slot] = job, done
        ends[n] = last[n] = end
        if rows.members[a, 1] >= 0:
            last[at] = end
            at += 1
    return Round(chosen, kinds, ends, who, steps, last)


@njit()
def play(  # type: ignore[no-untyped-def]
    rows: Rows,
    jobs: Jobs,
    rule: Rule,
    orders: Ints,
    running: Ints,
    now: float,
    gap: float,
    limit: float,
):
    """Play rounds until one has a completion or lasts until ``limit``, or ``orders`` are used up.

    Parameters
    ----------
    rows, jobs, rule
        State and settings.
    orders : ndarray, shape (rounds, GPU types)
        The order in which each round fills the types.
    running : ndarray
        Jobs of the round before; those that have finished hold no type.
    now : float
        Beginning of the first round (s).
    gap : float
        End of the round before (s); an idle gap before a round counts to its first steps.
    limit : float
        The next event (s).

    Returns
    -------
    Round, Played
    """
    most = max(64, 2 * len(rows.members))
    moved, worked = np.empty(len(jobs.left), np.int64), np.empty(len(jobs.left), np.int64)
    moves = works = 0
    is_moved, is_worked = np.zeros(len(jobs.left), np.bool_), np.zeros(len(jobs.left), np.bool_)
    began, pairs = np.empty((most, 3), np.int64), 0
    widths = jobs.widths[rows.members[:, 0]]
    number = 0
    while True:
        rank = ranks(rows.x, rows.time, rows.total, rule.counts_rounds)
        chosen, kinds = walk(
            rows.members,
            widths,
            rows.able,
            rank,
            rows.owed,
            rows.x,
            rule.capacity,
            orders[number],
            rule.whole_queue,
            rule.idle_ok,
            jobs.taken,
        )
        if rule.drop:
            kept = rows.allocated[chosen]
            chosen, kinds = chosen[kept], kinds[kept]
        fresh = np.empty(len(chosen), np.bool_)
        for n in range(len(chosen)):
            one, two = rows.members[chosen[n], 0], rows.members[chosen[n], 1]
            fresh[n] = not rule.lease or jobs.kind[one] != kinds[n] or jobs.partner[one] != two
        last = _begin(rows, jobs, rule, chosen, kinds, fresh, now)
        for job in last.jobs:
            jobs.taken[job] = True
        for job in running:
            if not jobs.taken[job] and jobs.kind[job] >= 0:
                jobs.seconds[job] += now - jobs.hold[job]
                jobs.kind[job] = jobs.partner[job] = -1
                jobs.last[job] = now
                jobs.stops[job] += 1
                if not is_moved[job]:
                    is_moved[job] = True
                    moved[moves] = job
                    moves += 1
        for n in range(len(chosen)):
            a, j = chosen[n], kinds[n]
            if fresh[n] and rows.members[a, 1] >= 0:
                began[pairs, 0], began[pairs, 1], began[pairs, 2] = (
                    rows.members[a, 0],
                    rows.members[a, 1],
                    j,
                )
                pairs += 1
            for member in range(2):
                job = rows.members[a, member]
                if job < 0:
                    continue
                jobs.taken[job] = False
                if not is_worked[job]:
                    is_worked[job] = True
                    worked[works] = job
                    works += 1
                if jobs.kind[job] < 0:
                    jobs.hold[job] = now
                    jobs.first[job] = min(jobs.first[job], now)
                    if not is_moved[job]:
                        is_moved[job] = True
                        moved[moves] = job
                        moves += 1
                if fresh[n]:
                    jobs.kind[job], jobs.partner[job] = j, rows.members[a, 1 - member]
                    jobs.rate[job] = rows.speeds[a, member, j]
        running = last.jobs
        number += 1
        until = last.ends.max() if len(chosen) else -np.inf
        event = not len(chosen) or until >= limit or number == len(orders)
        for n in range(len(last.jobs)):
            event = event or last.steps[n] >= jobs.left[last.jobs[n]]
        if event or pairs + len(rows.members) > most:
            done = Played(number, until, gap, fresh, began[:pairs], moved[:moves], worked[:works])
            return last, done
        book(rows, jobs, last, gap)
        gap = now = until
