"""Compiled loops of the round mechanism (Gavel, OSDI 2020, section 5, Algorithm 1).

In a round of about ``round_s`` seconds every chosen row of X holds GPUs of one type. A row m is a
job, or two jobs that share GPUs. For every row m and GPU type j `Rows` has

- X_mj, the share of time that the policy gave the row (`Rows.x`),
- t_mj, the time received since X was computed (s), at first ``prior_s`` (`Rows.received`),
- D_mj, the deficit (s), which is time owed under earlier X (`Rows.deficit`).

The priority is X_mj / f_mj, where f_mj = t_mj / sum_m t_mj. With ``prior_s`` = 0 it is X_mj / t_mj,
the paper's X_mj / rounds_received_mj. A round takes (m, j) in descending order of (priority, D, X).
It passes over rows with a chosen job and rows that do not fit the idle GPUs. When X is replaced,
D_mj grows by X_mj times the seconds that X was in force, less (t_mj - ``prior_s``).

The compiled loops check and trim X, carry deficits over, compute priorities and choose rows. They
write holds and progress into `repro.model.jobs.State`. A hold is an interval in which a job holds
GPUs. `simulate_rounds` simulates rounds of whole steps up to the next event.

The Python classes of `repro.engine.rounds.mechanism` keep the rows, decide when rounds begin and
when X may be computed, and sample the order of GPU types.

``members`` has the jobs of each row, shape (rows, 2), with -1 for no second job. Loops count rows
by i, GPU types by j and the chosen rows of a round by n.
"""

from typing import Any, NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints
from repro.model.jobs import State

#: Relative excess of the used GPUs of a type that counts as rounding and is not trimmed.
ROUNDING = 1e-8


class Rows(NamedTuple):
    """Rows of X: jobs and pairs of jobs, with their shares, deficits and time received."""

    members: Ints
    #: whether all members can run on a type, shape (rows, types); false once a member has finished
    runnable: Flags
    #: whether the policy gave the row a share, shape (rows,). False: the row was added for a job
    #: that arrived after X was computed
    allocated: Flags
    #: share of time X_mj, shape (rows, types)
    x: Floats
    #: time owed under earlier X (s), shape (rows, types)
    deficit: Floats
    #: time received since X was computed (s), prior included, shape (rows, types)
    received: Floats
    #: time that all rows received, plus the prior of the allocated rows (s), shape (types,)
    total_received: Floats
    #: steps per second of both members, shape (rows, 2, types); 0 where they cannot run
    throughputs: Floats


class RoundConstants(NamedTuple):
    """Constants of all rounds of a simulation: demands and speeds of jobs, GPUs, settings.

    The settings are those of `repro.engine.rounds.settings.RoundSettings`.
    """

    #: demand of each job (GPUs)
    demands: Ints
    #: seconds that a unit of work of each job takes alone
    solo: Floats
    #: steps per second of each job on the GPU type to which the durations in the trace refer
    reference_speed: Floats
    #: a flag per job, all false between calls
    scratch: Flags
    #: rounds that each job has lost, changed in place. A job loses a round in which it would make
    #: fewer steps than it has GPUs
    lost_rounds: Ints
    #: number of lost rounds at which a job is given up and ends; 0: no round is lost
    gang_tries: int
    #: the compiled loops write holds into the state; otherwise the engine does
    writes_holds: bool
    #: a hold ends where only the GPU type changes, because intervals are recorded
    splits_holds: bool
    #: GPUs of each type
    capacity: Ints
    round_s: float
    overhead_s: float
    whole_queue: bool
    #: GPUs stay idle instead of taking rows of priority 0
    idle_ok: bool
    #: the priority is X / time received; otherwise X / fraction of all time received
    ranks_by_time: bool
    drops_unallocated: bool
    renews_leases: bool


class Choice(NamedTuple):
    """Rows and GPU types of a round, in the order in which they were chosen."""

    rows: Ints
    columns: Ints
    #: whether the row starts: it was not in the previous round on this type, or leases are not
    #: renewed
    starts: Flags


class Round(NamedTuple):
    """A round of whole steps that has begun; its progress is not recorded yet.

    ``jobs``, ``steps`` and ``ends`` have the first members of all rows, then the second members.
    """

    rows: Ints
    columns: Ints
    jobs: Ints
    steps: Floats
    #: instant at which all members of the job's row have made their steps (s), shape (jobs,)
    ends: Floats


class SimulatedRounds(NamedTuple):
    """Summary of the rounds of one call of `simulate_rounds`."""

    #: number of rounds, the last included
    rounds: int
    #: end of the last round (s), -inf if it is empty
    last_end: float
    #: end of the round before the last round (s)
    previous_end: float
    #: whether each row of the last round starts, as in `Choice`
    starts: Flags
    #: pairs that began to share GPUs: both jobs and column of the GPU type, shape (pairs, 3)
    new_pairs: Ints
    #: holds that ended when the last round began, in the form of `close_holds`. Holds that ended at
    #: earlier rounds are discarded, so a caller that records intervals simulates one round per call
    ended_holds: Floats


@njit(allocates=True)
def trim(members: Any, x: Any, demands: Any, gpus: Any, tolerance: float) -> tuple[bool, Any]:
    """Whether X is feasible within a relative tolerance, and X trimmed to ``gpus``, (rows, types).

    X is feasible if X >= 0, sum_j X_mj <= 1 over all rows of a job, sum_m demand_m X_mj <= gpus_j,
    and the jobs of a pair have equal demands. ``demands`` has a value per job.
    """
    row_count, types = x.shape
    used = np.zeros(types)
    feasible = True
    lowest = len(demands)
    highest = -1
    for i in range(row_count):
        for job in members[i]:
            if job >= 0:
                lowest = min(lowest, job)
                highest = max(highest, job)
    job_time = np.zeros(max(0, highest - lowest + 1))
    for i in range(row_count):
        row_time = 0.0
        for j in range(types):
            feasible &= x[i, j] >= -tolerance
            row_time += x[i, j]
            used[j] += demands[members[i, 0]] * x[i, j]
        for job in members[i]:
            if job >= 0:
                job_time[job - lowest] += row_time
                feasible &= job_time[job - lowest] <= 1.0 + tolerance
                feasible &= demands[job] == demands[members[i, 0]]
    trimmed = np.empty((row_count, types))
    for j in range(types):
        feasible &= used[j] <= gpus[j] * (1.0 + tolerance)
        # a rounding error of sums is not trimmed: the last bit decides between equal priorities
        factor = gpus[j] / used[j] if used[j] > gpus[j] * (1.0 + ROUNDING) else 1.0
        for i in range(row_count):
            trimmed[i, j] = max(x[i, j], 0.0) * factor
    return feasible, trimmed


@njit(allocates=True)
def update_deficits(
    members: Any,
    x: Any,
    received: Any,
    deficit: Any,
    prior_s: float,
    elapsed_s: float,
    job_deficits: Any,
) -> Any:
    """Deficits at the end of an X that was in force for ``elapsed_s`` seconds.

    D_mj changes by X_mj elapsed_s - (t_mj - prior_s). Deficits of single jobs are written into
    ``job_deficits``, shape (jobs, types). The function returns the key of every pair, the deficits
    of the pairs, shape (pairs, types), and whether the keys ascend.
    """
    row_count, types = x.shape
    pair_keys = np.empty(row_count, dtype=np.int64)
    pair_deficits = np.empty((row_count, types))
    pairs = 0
    ascending = True
    for i in range(row_count):
        job = members[i, 0]
        partner = members[i, 1]
        for j in range(types):
            # in this order of operations: the last bit decides between equal priorities
            value = deficit[i, j] + (x[i, j] * elapsed_s - (received[i, j] - prior_s))
            if partner < 0:
                job_deficits[job, j] = value
            else:
                pair_deficits[pairs, j] = value
        if partner >= 0:
            pair_keys[pairs] = max(job, partner) * len(job_deficits) + min(job, partner)
            ascending &= pairs == 0 or pair_keys[pairs - 1] < pair_keys[pairs]
            pairs += 1
    return pair_keys[:pairs], pair_deficits[:pairs], ascending


@njit(allocates=True)
def initial_deficits(
    members: Any,
    job_deficits: Any,
    pair_keys: Any,
    pair_deficits: Any,
    was_allocated: Any,
    prior_s: float,
) -> Any:
    """Deficits of the rows of a new X, shape (rows, types), from those of `update_deficits`.

    The deficit of a pair is ``prior_s`` if one of its jobs was in no earlier X, and 0 if only the
    pair is new. ``was_allocated`` has a flag per job. The loop is fastest if pairs ascend by
    (larger job, smaller job).
    """
    types = job_deficits.shape[1]
    deficits = np.zeros((len(members), types))
    position = 0
    for i in range(len(members)):
        job = members[i, 0]
        partner = members[i, 1]
        if partner < 0:
            for j in range(types):
                deficits[i, j] = job_deficits[job, j]
            continue
        if not (was_allocated[job] and was_allocated[partner]):
            deficits[i, :] = prior_s
            continue
        key = max(job, partner) * len(job_deficits) + min(job, partner)
        if position > 0 and pair_keys[position - 1] >= key:
            position = np.searchsorted(pair_keys, key)
        while position < len(pair_keys) and pair_keys[position] < key:
            position += 1
        if position < len(pair_keys) and pair_keys[position] == key:
            for j in range(types):
                deficits[i, j] = pair_deficits[position, j]
    return deficits


@njit(allocates=True)
def priorities(x: Floats, time: Floats, total: Floats, ranks_by_time: bool) -> Floats:
    """Priorities, shape (rows, types); 0 where X is 0.

    With ``ranks_by_time`` the priority is X / time, infinite if the time is 0. Otherwise it is
    X / f with f = time / total, or 1e9 X if f is 0. ``time`` is the time or the number of rounds
    that a row received, shape (rows, types), and ``total`` its sum over all rows, shape (types,).
    """
    priority = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] <= 0.0:
                continue
            if ranks_by_time:
                priority[i, j] = x[i, j] / time[i, j] if time[i, j] > 0.0 else np.inf
            else:
                fraction = time[i, j] / total[j] if total[j] > 0.0 else 0.0
                priority[i, j] = x[i, j] / fraction if fraction > 0.0 else x[i, j] * 1e9
    return priority


@njit(no_cpython_wrapper=True)
def _precedes(entry: int, other: int, keys: Floats, position_of: Ints, row_of: Ints) -> bool:
    """Whether a queue entry comes before another: larger keys, then position of type, then row."""
    for k in range(3):
        if keys[entry, k] != keys[other, k]:
            return bool(keys[entry, k] > keys[other, k])
    if position_of[entry] != position_of[other]:
        return bool(position_of[entry] < position_of[other])
    return bool(row_of[entry] < row_of[other])


@njit(no_cpython_wrapper=True)
def _sink(heap: Ints, top: int, size: int, keys: Floats, position_of: Ints, row_of: Ints) -> None:
    """Move the entry at ``top`` down the heap until it precedes the entries below it."""
    entry = heap[top]
    while True:
        child = 2 * top + 1
        if child >= size:
            break
        if child + 1 < size and _precedes(heap[child + 1], heap[child], keys, position_of, row_of):
            child += 1
        if not _precedes(heap[child], entry, keys, position_of, row_of):
            break
        heap[top] = heap[child]
        top = child
    heap[top] = entry


@njit(no_cpython_wrapper=True)
def _count_jobs(members: Ints, scratch: Flags) -> int:
    """Count the jobs of all rows; ``scratch`` has a flag per job, false before and after."""
    count = 0
    for i in range(members.shape[0]):
        for job in members[i]:
            if job >= 0 and not scratch[job]:
                scratch[job] = True
                count += 1
    for i in range(members.shape[0]):
        for job in members[i]:
            if job >= 0:
                scratch[job] = False
    return count


@njit(allocates=True)
def choose_greedily(
    members: Ints,
    demands: Ints,
    runnable: Flags,
    priority: Floats,
    deficit: Floats,
    x: Floats,
    capacity: Ints,
    order: Ints,
    whole_queue: bool,
    idle_ok: bool,
    scratch: Flags,
) -> tuple[Ints, Ints]:
    """Rows and GPU types of a round, chosen greedily by (priority, deficit, X), each job once.

    Entries with equal keys are chosen in the order of types, then of rows.

    Parameters
    ----------
    members : ndarray, shape (rows, 2)
        Jobs of each row, -1 for no second job.
    demands : ndarray, shape (jobs,)
        Demand of each job (GPUs).
    runnable : ndarray of bool, shape (rows, types)
        Entries that may be chosen.
    priority, deficit, x : ndarray, shape (rows, types)
        Priorities, deficits (s) and shares.
    capacity : ndarray, shape (types,)
        GPUs of each type.
    order : ndarray, shape (types,)
        Order in which types are filled.
    whole_queue : bool
        One queue over all types; otherwise one queue per type, one after the other.
    idle_ok : bool
        GPUs stay idle instead of taking entries of priority 0.
    scratch : ndarray of bool, shape (jobs,)
        A flag per job, all false before and after.

    Returns
    -------
    rows, columns : ndarray
        Rows and their GPU types, in the order of choice.
    """
    row_count, types = x.shape
    idle = capacity.copy()
    rows = np.empty(row_count, dtype=np.int64)
    columns = np.empty(row_count, dtype=np.int64)
    max_entries = row_count * types if whole_queue else row_count
    heap = np.empty(max_entries, dtype=np.int64)
    keys = np.empty((max_entries, 3))
    row_of = np.empty(max_entries, dtype=np.int64)
    position_of = np.empty(max_entries, dtype=np.int64)
    # a queue is read only while a job waits
    waiting_jobs = _count_jobs(members, scratch)
    chosen = 0
    queues = 1 if whole_queue else types
    # entries of priority 0 follow all other entries in a second pass, which is seldom needed
    passes = 1 if idle_ok else 2
    for number in range(queues * passes):
        queue = number // passes
        takes_positive = number % passes == 0
        idle_in_queue = idle.sum() if whole_queue else idle[order[queue]]
        if idle_in_queue <= 0 or waiting_jobs <= 0:
            continue
        size = 0
        for type_in_queue in range(types if whole_queue else 1):
            position = type_in_queue if whole_queue else queue
            j = order[position]
            for i in range(row_count):
                if not runnable[i, j] or (priority[i, j] > 0.0) != takes_positive:
                    continue
                if scratch[members[i, 0]] or (members[i, 1] >= 0 and scratch[members[i, 1]]):
                    continue
                keys[size, 0] = priority[i, j]
                keys[size, 1] = deficit[i, j]
                keys[size, 2] = x[i, j]
                row_of[size] = i
                position_of[size] = position
                heap[size] = size
                size += 1
        for top in range(size // 2 - 1, -1, -1):
            _sink(heap, top, size, keys, position_of, row_of)
        while size > 0 and idle_in_queue > 0 and waiting_jobs > 0:
            entry = heap[0]
            size -= 1
            heap[0] = heap[size]
            _sink(heap, 0, size, keys, position_of, row_of)
            i = row_of[entry]
            j = order[position_of[entry]]
            job = members[i, 0]
            partner = members[i, 1]
            is_chosen = scratch[job] or (partner >= 0 and scratch[partner])
            if is_chosen or demands[job] > idle[j]:
                continue
            scratch[job] = True
            waiting_jobs -= 1
            if partner >= 0:
                scratch[partner] = True
                waiting_jobs -= 1
            idle[j] -= demands[job]
            idle_in_queue -= demands[job]
            rows[chosen] = i
            columns[chosen] = j
            chosen += 1
    for n in range(chosen):
        scratch[members[rows[n], 0]] = False
        if members[rows[n], 1] >= 0:
            scratch[members[rows[n], 1]] = False
    return rows[:chosen], columns[:chosen]


@njit(allocates=True)
def choose(
    rows: Rows, type_column: Ints, partner_of: Ints, constants: RoundConstants, order: Ints
) -> Choice:
    """Choose the rows of a round; ``type_column`` and ``partner_of`` are arrays of `State`."""
    priority = priorities(rows.x, rows.received, rows.total_received, constants.ranks_by_time)
    chosen, columns = choose_greedily(
        rows.members, constants.demands, rows.runnable, priority, rows.deficit, rows.x,
        constants.capacity, order, constants.whole_queue, constants.idle_ok, constants.scratch,
    )  # fmt: skip
    starts = np.empty(len(chosen), np.bool_)
    kept = 0
    for n in range(len(chosen)):
        i = chosen[n]
        j = columns[n]
        # a dropped row has taken GPUs in the choice; these stay idle
        if constants.drops_unallocated and not rows.allocated[i]:
            continue
        job = rows.members[i, 0]
        stays = type_column[job] == j and partner_of[job] == rows.members[i, 1]
        chosen[kept] = i
        columns[kept] = j
        starts[kept] = not constants.renews_leases or not stays
        kept += 1
    return Choice(chosen[:kept], columns[:kept], starts[:kept])


@njit()
def record_round(
    rows: Rows, state: State, last: Round, previous_end: float, round_end: float
) -> None:
    """Record the steps of a round that is over, and the time that its rows received.

    The time received counts from the end of the previous round: an idle gap counts as received.
    """
    for n in range(len(last.jobs)):
        state.work_left[last.jobs[n]] -= last.steps[n]
        state.progress_from[last.jobs[n]] = round_end
    for n in range(len(last.rows)):
        seconds = last.ends[n] - previous_end
        rows.received[last.rows[n], last.columns[n]] += seconds
        rows.total_received[last.columns[n]] += seconds


@njit(allocates=True)
def close_holds(state: State, jobs: Ints, solo: Floats, now: float) -> Floats:
    """Close the hold of each job at ``now``. The next hold of a job with GPUs begins there.

    The function returns the closed holds as a block of `repro.model.records.Intervals`, (8, jobs).
    """
    holds = np.empty((8, len(jobs)))
    for n in range(len(jobs)):
        job = jobs[n]
        partner = state.partner[job]
        seconds = now - state.held_since[job]
        holds[0, n] = job
        holds[1, n] = job if partner < 0 else min(job, partner)
        holds[2, n] = state.held_since[job]
        holds[3, n] = now
        holds[4, n] = state.held_gpus[job] / (1 if partner < 0 else 2)
        holds[5, n] = state.held_gpus[job]
        holds[6, n] = state.rate[job] * solo[job]
        holds[7, n] = state.type_column[job]
        state.earlier_held_s[job] += seconds
        state.earlier_service[job] += seconds * state.held_gpus[job]
        state.held_since[job] = now
    return holds


@njit(allocates=True)
def apply_choice(
    rows: Rows,
    state: State,
    constants: RoundConstants,
    choice: Choice,
    previous_jobs: Ints,
    now: float,
) -> tuple[Ints, Floats]:
    """Begin a round; return its jobs and the holds that end.

    The jobs are the first members of all rows, then the second members. ``previous_jobs`` are the
    jobs of the previous round. The holds have the form of `close_holds`. The function writes the
    GPU type and the partner of each job into the state. With ``writes_holds`` it also writes
    progress, rates and holds. Without it no hold ends.
    """
    chosen, columns, starts = choice
    jobs = np.empty(2 * len(chosen), dtype=np.int64)
    job_count = len(chosen)
    for n in range(len(chosen)):
        jobs[n] = rows.members[chosen[n], 0]
        partner = rows.members[chosen[n], 1]
        if partner >= 0:
            jobs[job_count] = partner
            job_count += 1
    jobs = jobs[:job_count]
    for job in jobs:
        constants.scratch[job] = True
    changed = np.empty(len(previous_jobs) + job_count, dtype=np.int64)
    changes = 0
    # `changed` lists jobs that held GPUs. Jobs that were alone and restart alone come first, up to
    # `moved_end`. Jobs that stop follow, up to `stopped_end`. Jobs that restart and have or had a
    # partner come last.
    moved_end = 0
    stopped_end = 0
    for stays_alone in (True, False):
        for n in range(len(chosen)):
            partner = rows.members[chosen[n], 1]
            for job in (rows.members[chosen[n], 0], partner):
                if not starts[n] or job < 0 or state.type_column[job] < 0:
                    continue
                if stays_alone == (partner < 0 and state.partner[job] < 0):
                    changed[changes] = job
                    changes += 1
        if not stays_alone:
            continue
        moved_end = changes
        for job in previous_jobs:
            if not constants.scratch[job] and state.type_column[job] >= 0:
                changed[changes] = job
                changes += 1
        stopped_end = changes
    for job in jobs:
        constants.scratch[job] = False
    # a move from type to type ends a hold only where intervals are recorded
    ended_from = 0 if constants.splits_holds else moved_end
    ended_to = changes if constants.writes_holds else 0
    ended_holds = close_holds(state, changed[ended_from:ended_to], constants.solo, now)
    if constants.writes_holds:
        for job in changed[:changes]:
            work_done = max(0.0, now - state.progress_from[job]) * state.rate[job]
            state.work_left[job] = max(0.0, state.work_left[job] - work_done)
    for job in changed[moved_end:stopped_end]:
        if constants.writes_holds:
            state.running[job] = False
            state.preemptions[job] += 1
        state.type_column[job] = -1
        state.partner[job] = -1
    for n in range(len(chosen)):
        if not starts[n]:
            continue
        i = chosen[n]
        j = columns[n]
        for member in range(2):
            job = rows.members[i, member]
            if job < 0:
                continue
            if constants.writes_holds:
                if state.type_column[job] < 0:
                    state.running[job] = True
                    state.held_since[job] = now
                    state.held_gpus[job] = constants.demands[job]
                    state.first_start[job] = min(state.first_start[job], now)
                state.progress_from[job] = now
                relative_speed = rows.throughputs[i, member, j] / constants.reference_speed[job]
                state.rate[job] = relative_speed / constants.solo[job]
            state.type_column[job] = j
            state.partner[job] = rows.members[i, 1 - member]
    return jobs, ended_holds


@njit(allocates=True, no_cpython_wrapper=True)
def _begin_round(
    rows: Rows, state: State, constants: RoundConstants, choice: Choice, jobs: Ints, now: float
) -> Round:
    """Round that begins now: whole steps of each job, and end of each row."""
    chosen, columns, starts = choice
    steps = np.empty(len(jobs))
    ends = np.empty(len(jobs))
    second_slot = len(chosen)
    for n in range(len(chosen)):
        i = chosen[n]
        j = columns[n]
        begin = now
        length = constants.round_s
        resumes = starts[n] and state.first_start[rows.members[i, 0]] < now
        if constants.overhead_s > 0 and resumes:
            begin = now + constants.overhead_s
            length = constants.round_s - constants.overhead_s
        end = now
        for member in range(2):
            job = rows.members[i, member]
            if job < 0:
                continue
            throughput = rows.throughputs[i, member, j]
            max_steps = np.floor(throughput * length)
            if max_steps <= 0:
                # if no whole step fits into a round, a fraction of a step counts
                max_steps = throughput * length
            made = min(max_steps, state.work_left[job])
            # the members of a pair hold their GPUs until the later one is done
            end = max(end, begin + made / throughput)
            if constants.gang_tries and made < constants.demands[job]:
                # With fewer steps than GPUs the round is lost. At the last try the job is given up:
                # it ends with this round, and its remaining work counts as done.
                constants.lost_rounds[job] += 1
                given_up = constants.lost_rounds[job] >= constants.gang_tries
                made = state.work_left[job] if given_up else 0.0
            slot = n if member == 0 else second_slot
            steps[slot] = made
        ends[n] = end
        if rows.members[i, 1] >= 0:
            ends[second_slot] = end
            second_slot += 1
    return Round(chosen, columns, jobs, steps, ends)


@njit(allocates=True)
def simulate_rounds(
    rows: Rows,
    state: State,
    constants: RoundConstants,
    orders: Ints,
    previous_jobs: Ints,
    now: float,
    previous_end: float,
    limit: float,
) -> tuple[Round, SimulatedRounds]:
    """Simulate rounds of whole steps until an event; return the last round and a summary.

    The event is a completion, a lost round, an empty round, a round that reaches ``limit`` (s), the
    end of ``orders``, or a full buffer of new pairs. The first round begins ``now``, each other
    round at the end of the previous round. The progress of the last round is not recorded.

    Parameters
    ----------
    orders : ndarray, shape (rounds, types)
        Order in which each round fills the types.
    previous_jobs : ndarray
        Jobs of the previous round. Finished jobs among them have type column -1 in the state.
    previous_end : float
        End of the previous round (s). The time received in the first round counts from here.
    """
    max_pairs = max(64, 2 * len(rows.members))
    new_pairs = np.empty((max_pairs, 3), np.int64)
    pairs = 0
    rounds = 0
    while True:
        choice = choose(rows, state.type_column, state.partner, constants, orders[rounds])
        chosen, columns, starts = choice
        jobs, ended_holds = apply_choice(rows, state, constants, choice, previous_jobs, now)
        last = _begin_round(rows, state, constants, choice, jobs, now)
        for n in range(len(chosen)):
            i = chosen[n]
            if starts[n] and rows.members[i, 1] >= 0:
                new_pairs[pairs, 0] = rows.members[i, 0]
                new_pairs[pairs, 1] = rows.members[i, 1]
                new_pairs[pairs, 2] = columns[n]
                pairs += 1
        previous_jobs = jobs
        rounds += 1
        last_end = last.ends.max() if len(chosen) else -np.inf
        event = not len(chosen) or last_end >= limit or rounds == len(orders)
        for n in range(len(last.jobs)):
            event = event or last.steps[n] >= state.work_left[last.jobs[n]] or last.steps[n] == 0
        if event or pairs + len(rows.members) > max_pairs:
            return last, SimulatedRounds(
                rounds, last_end, previous_end, starts, new_pairs[:pairs], ended_holds
            )
        record_round(rows, state, last, previous_end, last_end)
        previous_end = now = last_end
