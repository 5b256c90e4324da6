"""Compiled rounds: rows of X and what they are owed, the greedy choice, rounds of whole steps.

``members`` has shape (rows, 2), -1 for none; X, time and deficits have shape (rows, GPU types).
"""

from typing import Any, NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints
from repro.model.jobs import State

#: Relative overshoot of the GPUs of a type that is left as it is.
ROUNDING = 1e-8


@njit()
def trim(members: Any, x: Any, widths: Any, gpus: Any, tolerance: float) -> tuple[bool, Any]:
    """Tell whether shares are possible, and return them without rounding errors."""
    count, types = x.shape
    used = np.zeros(types)
    possible = True
    first, last = len(widths), -1
    for a in range(count):
        for job in members[a]:
            if job >= 0:
                first, last = min(first, job), max(last, job)
    spent = np.zeros(max(0, last - first + 1))
    for a in range(count):
        time = 0.0
        for j in range(types):
            possible &= x[a, j] >= -tolerance
            time += x[a, j]
            used[j] += widths[members[a, 0]] * x[a, j]
        for job in members[a]:
            if job >= 0:
                spent[job - first] += time
                possible &= spent[job - first] <= 1.0 + tolerance
                possible &= widths[job] == widths[members[a, 0]]
    trimmed = np.empty((count, types))
    for j in range(types):
        possible &= used[j] <= gpus[j] * (1.0 + tolerance)
        # what sums and solvers round is left alone: the last bit decides between equal priorities
        factor = gpus[j] / used[j] if used[j] > gpus[j] * (1.0 + ROUNDING) else 1.0
        for a in range(count):
            trimmed[a, j] = max(x[a, j], 0.0) * factor
    return possible, trimmed


@njit()
def settle(
    members: Any, x: Any, time: Any, deficit: Any, prior: float, elapsed: float, alone: Any
) -> Any:  # fmt: skip
    """Write the deficits of jobs alone; return keys of pairs, theirs, and whether keys ascend.

    A deficit grows by X times the ``elapsed`` seconds less the time received; every row was taken
    to have received ``prior`` seconds.
    """
    count, types = x.shape
    keys = np.empty(count, dtype=np.int64)
    due = np.empty((count, types))
    k = 0
    ascending = True
    for a in range(count):
        one, two = members[a, 0], members[a, 1]
        for j in range(types):
            # in this order: the last bit decides between equal priorities
            value = deficit[a, j] + (x[a, j] * elapsed - (time[a, j] - prior))
            if two < 0:
                alone[one, j] = value
            else:
                due[k, j] = value
        if two >= 0:
            keys[k] = max(one, two) * len(alone) + min(one, two)
            ascending &= k == 0 or keys[k - 1] < keys[k]
            k += 1
    return keys[:k], due[:k], ascending


@njit()
def deficits(members: Any, alone: Any, keys: Any, due: Any, known: Any, prior: float) -> Any:
    """Return the deficits of rows: jobs alone and pairs, from what `settle` returned.

    A pair of jobs that were not both ``known`` when X was computed before begins with ``prior``
    seconds. Fastest if pairs ascend by (larger, smaller).
    """
    types = alone.shape[1]
    found = np.zeros((len(members), types))
    at = 0
    for a in range(len(members)):
        one, two = members[a, 0], members[a, 1]
        if two < 0:
            for j in range(types):
                found[a, j] = alone[one, j]
            continue
        if not (known[one] and known[two]):
            found[a, :] = prior
            continue
        key = max(one, two) * len(alone) + min(one, two)
        if at > 0 and keys[at - 1] >= key:
            at = np.searchsorted(keys, key)
        while at < len(keys) and keys[at] < key:
            at += 1
        if at < len(keys) and keys[at] == key:
            for j in range(types):
                found[a, j] = due[at, j]
    return found


@njit(no_cpython_wrapper=True)
def _before(one: int, other: int, keys: Floats, place: Ints, rows: Ints) -> bool:
    """Tell whether entry ``one`` comes before ``other``."""
    for k in range(3):
        if keys[one, k] != keys[other, k]:
            return bool(keys[one, k] > keys[other, k])
    if place[one] != place[other]:
        return bool(place[one] < place[other])
    return bool(rows[one] < rows[other])


@njit(no_cpython_wrapper=True)
def _sink(heap: Ints, top: int, size: int, keys: Floats, place: Ints, rows: Ints) -> None:
    entry = heap[top]
    while True:
        child = 2 * top + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[child + 1], heap[child], keys, place, rows):
            child += 1
        if not _before(heap[child], entry, keys, place, rows):
            break
        heap[top] = heap[child]
        top = child
    heap[top] = entry


@njit()
def ranks(x: Floats, time: Floats, total: Floats, counts_rounds: bool) -> Floats:
    """Return the priority of every (row, GPU type): X over what the row received.

    With ``counts_rounds``, X over ``time``, infinite before the first round; otherwise X over the
    row's part of the ``total`` time of all rows. All but ``total`` have shape (rows, GPU types).
    """
    found = np.zeros_like(x)
    for a in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[a, j] <= 0.0:
                continue
            if counts_rounds:
                found[a, j] = x[a, j] / time[a, j] if time[a, j] > 0.0 else np.inf
            else:
                part = time[a, j] / total[j] if total[j] > 0.0 else 0.0
                found[a, j] = x[a, j] / part if part > 0.0 else x[a, j] * 1e9
    return found


@njit(no_cpython_wrapper=True)
def _distinct(members: Ints, taken: Flags) -> int:
    """Count the jobs of all rows; ``taken`` is scratch, left as it was found, all false."""
    found = 0
    for a in range(members.shape[0]):
        for job in members[a]:
            if job >= 0 and not taken[job]:
                taken[job] = True
                found += 1
    for a in range(members.shape[0]):
        for job in members[a]:
            if job >= 0:
                taken[job] = False
    return found


@njit()
def walk(
    members: Ints,
    widths: Ints,
    able: Flags,
    rank: Floats,
    deficit: Floats,
    x: Floats,
    capacity: Ints,
    order: Ints,
    whole_queue: bool,
    idle_ok: bool,
    taken: Flags,
) -> tuple[Ints, Ints]:
    """Return rows and GPU types, chosen greedily by (priority, deficit, share), each job once.

    ``members`` has shape (rows, 2), -1 for none; ``widths`` are the GPUs of all jobs; ``able`` (may
    be chosen at all), ``rank``, ``deficit`` (s) and ``x`` have shape (rows, GPU types); ``order``
    is that of filling the types, or of ties. ``whole_queue``: one queue over all types, not one
    after the other; ``idle_ok``: GPUs idle rather than go to entries of priority 0. ``taken`` is
    scratch of shape (jobs,), all false, and left so.
    """
    count, types = x.shape
    free = capacity.copy()
    rows = np.empty(count, dtype=np.int64)
    columns = np.empty(count, dtype=np.int64)
    most = count * types if whole_queue else count
    heap = np.empty(most, dtype=np.int64)
    keys = np.empty((most, 3))
    row_of = np.empty(most, dtype=np.int64)
    place = np.empty(most, dtype=np.int64)
    # once nobody is left to be chosen the rest of the queue need not be read
    waiting = _distinct(members, taken)
    chosen = 0
    # entries of priority 0 come after all others, and are mostly not needed
    steps = 1 if whole_queue else types
    for turn in range(steps if idle_ok else 2 * steps):
        number, positive = (turn, True) if idle_ok else (turn // 2, turn % 2 == 0)
        left = free.sum() if whole_queue else free[order[number]]
        if left <= 0 or waiting <= 0:
            continue
        size = 0
        for nth in range(types if whole_queue else 1):
            at = nth if whole_queue else number
            j = order[at]
            for a in range(count):
                if not able[a, j] or (rank[a, j] > 0.0) != positive:
                    continue
                if taken[members[a, 0]] or (members[a, 1] >= 0 and taken[members[a, 1]]):
                    continue
                keys[size, 0] = rank[a, j]
                keys[size, 1] = deficit[a, j]
                keys[size, 2] = x[a, j]
                row_of[size] = a
                place[size] = at
                heap[size] = size
                size += 1
        for top in range(size // 2 - 1, -1, -1):
            _sink(heap, top, size, keys, place, row_of)
        while size > 0 and left > 0 and waiting > 0:
            entry = heap[0]
            size -= 1
            heap[0] = heap[size]
            _sink(heap, 0, size, keys, place, row_of)
            a = row_of[entry]
            j = order[place[entry]]
            one, two = members[a, 0], members[a, 1]
            if taken[one] or (two >= 0 and taken[two]) or widths[one] > free[j]:
                continue
            taken[one] = True
            waiting -= 1
            if two >= 0:
                taken[two] = True
                waiting -= 1
            free[j] -= widths[one]
            left -= widths[one]
            rows[chosen] = a
            columns[chosen] = j
            chosen += 1
    for number in range(chosen):
        taken[members[rows[number], 0]] = False
        if members[rows[number], 1] >= 0:
            taken[members[rows[number], 1]] = False
    return rows[:chosen], columns[:chosen]


class Rows(NamedTuple):
    """Rows of X."""

    #: jobs of each row, -1 for none
    members: Ints
    #: where all members can run; nowhere once one of them has finished
    able: Flags
    #: rows of jobs that were there when X was computed
    allocated: Flags
    #: by (row, GPU type): share, deficit carried over (s), time received since (s)
    x: Floats
    deficit: Floats
    time: Floats
    #: time received by all rows (s)
    total: Floats
    #: steps per second of both members, by (row, member, GPU type); 0 where they cannot run
    speeds: Floats


class RoundRules(NamedTuple):
    """How rounds go; the settings of `repro.engine.rounds.settings.RoundSettings` that matter here.

    ``widths``, ``solo`` (seconds per unit of work) and ``reference`` (steps per second on the type
    of the durations) are those of all jobs, ``taken`` is scratch, all false between calls, ``lost``
    counts the rounds that each job lost, of which it has ``tries`` (0: it loses none). With
    ``books``, what jobs hold and held is written to the state, otherwise the engine does so; with
    ``moves``, a hold ends where the GPU type changes.
    """

    widths: Ints
    solo: Floats
    reference: Floats
    taken: Flags
    lost: Ints
    tries: int
    books: bool
    moves: bool
    capacity: Ints
    round_s: float
    overhead_s: float
    whole_queue: bool
    idle_ok: bool
    counts_rounds: bool
    drop: bool
    lease: bool


class Choice(NamedTuple):
    """Rows and GPU types of a round, and which of the rows did not run in the one before."""

    rows: Ints
    columns: Ints
    fresh: Flags


class Round(NamedTuple):
    """The last round that was played; it has begun and is not booked.

    ``rows`` and ``columns`` are the choice; ``jobs``, ``steps`` and ``ends`` the first members of
    every row, then the second ones, their steps, and when those of the row are done (s).
    """

    rows: Ints
    columns: Ints
    jobs: Ints
    steps: Floats
    ends: Floats


class Played(NamedTuple):
    """What `simulate_rounds` did.

    ``rounds`` played, the last until ``until`` (s); ``gap`` is the end of the one before it.
    ``fresh`` marks the rows of the last round that did not run in the one before. ``began`` lists
    pairs (two jobs, column of the GPU type) that began to share GPUs, ``ended`` the holds that
    ended as the last round began (see `close`).
    """

    rounds: int
    until: float
    gap: float
    fresh: Flags
    began: Ints
    ended: Floats


@njit()
def choose(rows: Rows, on_type: Ints, partner: Ints, rule: RoundRules, order: Ints) -> Choice:
    """Choose the rows of a round; ``on_type`` and ``partner`` are those of the `State`."""
    rank = ranks(rows.x, rows.time, rows.total, rule.counts_rounds)
    chosen, columns = walk(
        rows.members, rule.widths, rows.able, rank, rows.deficit, rows.x, rule.capacity,
        order, rule.whole_queue, rule.idle_ok, rule.taken,
    )  # fmt: skip
    fresh = np.empty(len(chosen), np.bool_)
    kept = 0
    for n in range(len(chosen)):
        a = chosen[n]
        j = columns[n]
        if rule.drop and not rows.allocated[a]:
            continue
        one, two = rows.members[a, 0], rows.members[a, 1]
        chosen[kept] = a
        columns[kept] = j
        fresh[kept] = not rule.lease or on_type[one] != j or partner[one] != two
        kept += 1
    return Choice(chosen[:kept], columns[:kept], fresh[:kept])


@njit()
def book(rows: Rows, jobs: State, last: Round, since: float, until: float) -> None:
    """Book the steps of a round that is over, and the time since ``since`` its rows received."""
    for n in range(len(last.jobs)):
        jobs.left[last.jobs[n]] -= last.steps[n]
        jobs.since[last.jobs[n]] = until
    for n in range(len(last.rows)):
        spent = last.ends[n] - since
        rows.time[last.rows[n], last.columns[n]] += spent
        rows.total[last.columns[n]] += spent


@njit()
def close(jobs: State, who: Ints, solo: Floats, now: float) -> Floats:
    """Book holds up to now, when the next begin; return `repro.model.records.Intervals.blocks`."""
    found = np.empty((8, len(who)))
    for n in range(len(who)):
        job = who[n]
        other = jobs.partner[job]
        spent = now - jobs.hold[job]
        found[0, n] = job
        found[1, n] = job if other < 0 else min(job, other)
        found[2, n] = jobs.hold[job]
        found[3, n] = now
        found[4, n] = jobs.held[job] / (1 if other < 0 else 2)
        found[5, n] = jobs.held[job]
        found[6, n] = jobs.rate[job] * solo[job]
        found[7, n] = jobs.on_type[job]
        jobs.seconds[job] += spent
        jobs.service[job] += spent * jobs.held[job]
        jobs.hold[job] = now
    return found


@njit()
def hand_over(
    rows: Rows, jobs: State, rule: RoundRules, choice: Choice, running: Ints, now: float
) -> tuple[Ints, Floats]:
    """Let the chosen rows hold GPUs instead of ``running``; return their jobs and what ended.

    The jobs are the first of every row, then the second ones. With ``rule.books``, jobs that
    change are brought up to date, and holds that end are returned as by `close`.
    """
    chosen, columns, fresh = choice
    who = np.empty(2 * len(chosen), dtype=np.int64)
    count = len(chosen)
    for n in range(len(chosen)):
        who[n] = rows.members[chosen[n], 0]
        two = rows.members[chosen[n], 1]
        if two >= 0:
            who[count] = two
            count += 1
    who = who[:count]
    for job in who:
        rule.taken[job] = True
    changed = np.empty(len(running) + count, dtype=np.int64)
    k = 0
    # a job alone that goes on alone only changes the type; then jobs that stop; then all others
    moved = stopped = 0
    for alone in (True, False):
        for n in range(len(chosen)):
            one, two = rows.members[chosen[n], 0], rows.members[chosen[n], 1]
            for job in (one, two):
                if not fresh[n] or job < 0 or jobs.on_type[job] < 0:
                    continue
                if alone == (two < 0 and jobs.partner[job] < 0):
                    changed[k] = job
                    k += 1
        if not alone:
            continue
        moved = k
        for job in running:
            if not rule.taken[job] and jobs.on_type[job] >= 0:
                changed[k] = job
                k += 1
        stopped = k
    for job in who:
        rule.taken[job] = False
    ended = changed[(0 if rule.moves else moved) : (k if rule.books else 0)]
    ends = close(jobs, ended, rule.solo, now)
    if rule.books:
        for job in changed[:k]:
            gone = max(0.0, now - jobs.since[job]) * jobs.rate[job]
            jobs.left[job] = max(0.0, jobs.left[job] - gone)
    for job in changed[moved:stopped]:
        if rule.books:
            jobs.running[job] = False
            jobs.preemptions[job] += 1
        jobs.on_type[job] = jobs.partner[job] = -1
    for n in range(len(chosen)):
        if not fresh[n]:
            continue
        a = chosen[n]
        j = columns[n]
        for member in range(2):
            job = rows.members[a, member]
            if job < 0:
                continue
            if rule.books:
                if jobs.on_type[job] < 0:
                    jobs.running[job] = True
                    jobs.hold[job] = now
                    jobs.held[job] = rule.widths[job]
                    jobs.first_start[job] = min(jobs.first_start[job], now)
                jobs.since[job] = now
                jobs.rate[job] = rows.speeds[a, member, j] / rule.reference[job] / rule.solo[job]
            jobs.on_type[job] = j
            jobs.partner[job] = rows.members[a, 1 - member]
    return who, ends


@njit(no_cpython_wrapper=True)
def _begin(
    rows: Rows, jobs: State, rule: RoundRules, choice: Choice, who: Ints, now: float
) -> Round:
    """Return the round of a choice, whose jobs are ``who``."""
    chosen, columns, fresh = choice
    steps = np.empty(len(who))
    ends = np.empty(len(who))
    at = len(chosen)
    for n in range(len(chosen)):
        a = chosen[n]
        j = columns[n]
        one = rows.members[a, 0]
        begin = now
        length = rule.round_s
        if rule.overhead_s > 0 and fresh[n] and jobs.first_start[one] < now:
            begin = now + rule.overhead_s
            length = rule.round_s - rule.overhead_s
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
            if rule.tries and done < rule.widths[job]:
                # a GPU of the gang gets no step; the last such round ends the job
                rule.lost[job] += 1
                done = jobs.left[job] if rule.lost[job] >= rule.tries else 0.0
            slot = n if member == 0 else at
            steps[slot] = done
        ends[n] = end
        if rows.members[a, 1] >= 0:
            ends[at] = end
            at += 1
    return Round(chosen, columns, who, steps, ends)


@njit()
def simulate_rounds(
    rows: Rows,
    jobs: State,
    rule: RoundRules,
    orders: Ints,
    running: Ints,
    now: float,
    gap: float,
    limit: float,
) -> tuple[Round, Played]:
    """Simulate rounds until a completion, until ``limit``, or until ``orders`` are used up.

    Each row of ``orders`` is the order in which a round fills the types; ``running`` are the jobs
    of the round before; those that have finished hold no type. The first round begins ``now``, the
    one before ended at ``gap``: an idle gap before a round counts to its first steps.
    """
    most = max(64, 2 * len(rows.members))
    began = np.empty((most, 3), np.int64)
    pairs = 0
    number = 0
    while True:
        choice = choose(rows, jobs.on_type, jobs.partner, rule, orders[number])
        chosen, columns, fresh = choice
        who, ended = hand_over(rows, jobs, rule, choice, running, now)
        last = _begin(rows, jobs, rule, choice, who, now)
        for n in range(len(chosen)):
            a = chosen[n]
            if fresh[n] and rows.members[a, 1] >= 0:
                began[pairs, 0] = rows.members[a, 0]
                began[pairs, 1] = rows.members[a, 1]
                began[pairs, 2] = columns[n]
                pairs += 1
        running = who
        number += 1
        until = last.ends.max() if len(chosen) else -np.inf
        event = not len(chosen) or until >= limit or number == len(orders)
        for n in range(len(last.jobs)):
            event = event or last.steps[n] >= jobs.left[last.jobs[n]] or last.steps[n] == 0
        if event or pairs + len(rows.members) > most:
            return last, Played(number, until, gap, fresh, began[:pairs], ended)
        book(rows, jobs, last, gap, until)
        gap = now = until
