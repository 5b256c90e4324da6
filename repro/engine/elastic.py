"""The compiled clock of divisible GPUs: completions, leases, arrivals one by one, and playouts."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from repro.base.assign import assign
from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints
from repro.model.elastic import (
    ASKED,
    HELD,
    HOLDERS,
    LEASE_ENDS,
    NOW,
    PRESENT,
    SAME_INSTANT,
    WAKE,
    DivisionRule,
    Elastic,
    ElasticState,
    Jobs,
    arrive,
    count_event,
    depart,
    in_parts,
    jobs_of,
    mean_jobs,
)
from repro.model.jobs import JobTable
from repro.model.records import Intervals
from repro.model.view import View

BEFORE, SPANS = range(2)


class Book(NamedTuple):
    """What a run leaves behind, one entry per job; instants as in `Jobs`."""

    end: Floats
    first_start: Floats
    #: mean number of jobs present over the events of the job's life
    mean_jobs: Floats
    preemptions: Ints
    #: whether a prediction is wanted, and the predicted JCT (s)
    wanted: Flags
    predicted: Floats
    #: GPUs and speed of the open interval of a job, and its beginning
    held: Floats
    rate: Floats
    since: Floats
    #: those who held GPUs after the last event; how many they and the closed intervals are
    before: Ints
    tally: Ints
    held_s: Floats
    #: closed intervals, as many as fit: job, start, end, GPUs, speed
    spans: Floats


def simulate_divided(
    table: JobTable,
    policy: Elastic,
    view: View,
    intervals: Intervals | None,
    *,
    grid: float,
    wanted: Flags,
) -> tuple[dict[str, Floats], float]:
    """Simulate until every job has finished; return more columns of records, and GPU-seconds held.

    What the engine would do event by event, held against it by a test. ``intervals`` None: they are
    not recorded. Instants are multiples of 1/``grid`` seconds if that is above 1. Jobs ``wanted``
    are predicted at their arrival.
    """
    rule = policy.rule
    assert rule is not None, "only policies with a compiled rule come here"
    jobs = jobs_of(policy, view, grid=grid, alone=intervals is not None)
    how = policy.settings(jobs)
    n = len(jobs.work)
    # in a playout the sizes that the scheduler believes in are true
    believed = jobs._replace(error=np.ones(n))
    known = policy.foresees and not policy.size_error and not policy.resize_s
    playouts = np.zeros(n, np.bool_) if known or policy.promised is not None else wanted

    def once(wanted: Flags, room: int) -> tuple[Book, ElasticState]:
        s, copy = (ElasticState.of(jobs, rule.memory) for _ in range(2))
        none = np.full(n, math.nan)
        zero = np.zeros((3, n))
        counts = np.zeros((2, n), np.int64)
        book = Book(
            end=none, first_start=np.full(n, math.inf), mean_jobs=np.ones(n),
            preemptions=counts[0], wanted=wanted, predicted=none.copy(), held=zero[0],
            rate=zero[1], since=zero[2], before=counts[1], tally=np.zeros(2, np.int64),
            held_s=np.zeros(1), spans=np.zeros((5, room)),
        )  # fmt: skip
        rule.run(jobs, believed, how, s, copy._replace(seen=s.seen), book, intervals is not None)
        return book, s

    room = 0
    if intervals is not None:
        # a first run tells how many intervals there are
        room = int(once(np.zeros(n, np.bool_), 0)[0].tally[SPANS])
    book, last = once(playouts, room)
    if intervals is not None:
        job, start, end, held, rate = book.spans
        alone = rate / jobs.fastest[job.astype(int)]
        none = np.full(room, -1.0)
        start, end = start / grid, end / grid
        intervals.blocks.append(np.array([job, job, start, end, held, held, alone, none]))
    state = table.state
    jct = (book.end - jobs.submit) / grid
    # one of a kind that nobody followed has run since it came
    began = np.where(np.isinf(book.first_start), jobs.submit, book.first_start)
    state.first_start[:] = began / grid
    state.end[:] = book.end / grid
    state.left[:] = 0.0
    state.preemptions[:] = book.preemptions
    fair = jobs.work / np.minimum(jobs.gpus / book.mean_jobs, jobs.asked)
    predicted = np.where(wanted, jct, math.nan) if known else book.predicted
    if policy.promised is not None:
        ends = last.real[policy.promised, :n]
        predicted = np.where(wanted, (ends - jobs.submit) / grid, math.nan)
    columns = {"fair_jct": fair, "predicted_jct": predicted}
    if policy.classed:
        columns["job_class"] = jobs.group
    return columns, float(book.held_s[0])


def ruled(
    admit: Callable[..., None],
    retire: Callable[..., None],
    share: Callable[..., None],
    *memory: type,
    by_arrival: bool = True,
) -> DivisionRule:
    """Return a rule with the clock compiled around it; see `repro.model.elastic.DivisionRule`.

    The clock simulates all jobs of ``jobs`` from state ``s``, and plays out, in the state ``copy``,
    what comes of the jobs whose prediction is wanted, as if nothing more arrived; ``records``:
    intervals are to be recorded.
    """

    @njit(home=share.__module__)
    def run(jobs, believed, how, s, copy, book, records):  # type: ignore[no-untyped-def]
        # the job that a playout is made for, and the next one to arrive
        subject = -1
        coming = 0
        number = len(jobs.work)
        while True:
            now_s, now_jobs = (copy, believed) if subject >= 0 else (s, jobs)
            until = jobs.submit[coming] if subject < 0 and coming < number else math.inf
            first, end, second = _next_end(now_jobs, now_s)
            lease = now_s.clock[LEASE_ENDS]
            now = min(end, lease, until)
            if now == math.inf:
                break
            _advance(now_jobs, now_s, now)
            # completions come before ends of leases, and these before arrivals
            completes = end <= now * _instant(now_jobs)
            arrival = now < lease and not completes
            if arrival:
                arrive(s, jobs, coming)
                admit(jobs, how, s, coming)
                coming += 1
            elif completes:
                together = second <= now * _instant(now_jobs)
                while first >= 0:
                    depart(now_s, now_jobs, first)
                    if first == subject:
                        break
                    retire(now_jobs, how, now_s, first)
                    if subject < 0:
                        book.end[first] = now
                        book.mean_jobs[first] = mean_jobs(s, first)
                    # sharing first could take the GPUs of a job that has nothing left
                    first = _also_done(now_jobs, now_s) if together else -1
                    if first >= 0:
                        count_event(now_s)
                if 0 <= subject == first:
                    book.predicted[subject] = (now - jobs.submit[subject]) / jobs.per_second
                    subject = -1
                    continue
            share(now_jobs, how, now_s)
            ends = min(now + jobs.lease, now_s.clock[WAKE])
            now_s.clock[LEASE_ENDS] = ends if now_s.tally[PRESENT] > 0 else math.inf
            if subject < 0:
                _note(s, book, records)
                if arrival and book.wanted[coming - 1]:
                    subject = coming - 1
                    _copy(jobs, s, copy, coming)
        book.held_s[0] = s.clock[HELD]

    return DivisionRule(run, admit, retire, share, memory, by_arrival)


@njit()
def _instant(jobs: Jobs) -> float:
    """Largest ratio of a completion time to now at which the job counts as complete.

    It is 1 where time is counted in whole microseconds.
    """
    return SAME_INSTANT if jobs.per_second == 1.0 else 1.0


@njit(error_model="numpy")
def _next_end(jobs: Jobs, s: ElasticState) -> tuple[int, float, float]:
    """Next job to complete (-1: none), its end, and the end of the job after it.

    Both ends are in parts of a second.
    """
    first = -1
    earliest = math.inf
    second = math.inf
    now = s.clock[NOW]
    for job in s.holders[: s.tally[HOLDERS]]:
        begin = now
        seconds = s.left[job] / s.rate[job]
        if jobs.pause > 0.0:
            begin = max(now, s.begins[job])
        end = begin + in_parts(jobs, seconds)
        if end < earliest:
            second = earliest
            first = job
            earliest = end
        else:
            second = min(second, end)
            if end == earliest and jobs.by_arrival and job < first:
                first = job
    return first, max(earliest, now), second


@njit(error_model="numpy")
def _also_done(jobs: Jobs, s: ElasticState) -> int:
    """Another job that holds GPUs and is done at this instant (-1: none).

    Under rules ``pcs``, as in the artifact, a job is done only if its remaining work is exactly 0.
    Under other rules it is done if its end is at most `SAME_INSTANT` times now.
    """
    done = -1
    now = s.clock[NOW]
    for job in s.holders[: s.tally[HOLDERS]]:
        # a job that has just completed holds none
        if s.gpus[job] == 0.0:
            continue
        if jobs.per_second > 1.0:
            is_done = s.left[job] == 0.0
        else:
            waits = max(s.begins[job] - now, 0.0) if jobs.pause > 0.0 else 0.0
            is_done = now + waits + s.left[job] / s.rate[job] <= now * SAME_INSTANT
        if is_done and (done < 0 or (jobs.by_arrival and job < done)):
            done = job
    return done


@njit()
def _advance(jobs: Jobs, s: ElasticState, now: float) -> None:
    """Let time pass until an event, which everyone present sees."""
    clock = s.clock
    seconds = (now - s.clock[NOW]) / jobs.per_second
    if seconds > 0.0:
        for job in s.holders[: s.tally[HOLDERS]]:
            if jobs.pause == 0.0:
                s.left[job] -= s.rate[job] * seconds
            elif now > s.begins[job]:
                begin = max(clock[NOW], s.begins[job])
                s.left[job] -= s.rate[job] * ((now - begin) / jobs.per_second)
        clock[HELD] += min(clock[ASKED], jobs.gpus) * seconds
        clock[NOW] = now
    count_event(s)


@njit()
def _copy(jobs: Jobs, s: ElasticState, copy: ElasticState, arrived: int) -> None:
    """Copy a state for a playout, in which jobs are as large as the scheduler believes."""
    for job in range(arrived):
        copy.left[job] = s.left[job] * jobs.error[job]
    assign(copy.gpus[:arrived], s.gpus)
    assign(copy.rate[:arrived], s.rate)
    assign(copy.begins[:arrived], s.begins)
    assign(copy.holders[: s.tally[HOLDERS]], s.holders)
    assign(copy.real.ravel(), s.real.ravel())
    assign(copy.whole.ravel(), s.whole.ravel())
    assign(copy.clock, s.clock)
    assign(copy.tally, s.tally)


@njit()
def _note(s: ElasticState, book: Book, records: bool) -> None:
    """Book who lost, changed or got GPUs at an event; what lasted no time is left out."""
    now = s.clock[NOW]
    tally = book.tally
    for job in book.before[: tally[BEFORE]]:
        if s.gpus[job] == book.held[job]:
            continue
        if now > book.since[job]:
            book.first_start[job] = min(book.first_start[job], book.since[job])
            if records:
                if tally[SPANS] < book.spans.shape[1]:
                    span = book.spans[:, tally[SPANS]]
                    span[0] = job
                    span[1] = book.since[job]
                    span[2] = now
                    span[3] = book.held[job]
                    span[4] = book.rate[job]
                tally[SPANS] += 1
        if s.gpus[job] == 0.0 and s.left[job] > 0.0 and book.first_start[job] < math.inf:
            book.preemptions[job] += 1
        book.held[job] = 0.0
    held = s.tally[HOLDERS]
    for place in range(held):
        job = book.before[place] = s.holders[place]
        if book.held[job] == 0.0:
            book.held[job] = s.gpus[job]
            book.rate[job] = s.rate[job]
            book.since[job] = now
    tally[BEFORE] = held
