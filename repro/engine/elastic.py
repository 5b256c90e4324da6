"""Compiled event loop of elastic policies: completions, leases, arrivals and rollouts.

A rollout simulates the jobs present to their ends, without further arrivals. It predicts the
completion of a job at its arrival (PCS, section 4).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from repro.base.assign import assign
from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints
from repro.engine.livelock import MAX_IDLE_DECISIONS
from repro.engine.run_errors import never_ends
from repro.model.elastic import (
    DEMANDED,
    HELD_GPU_S,
    HOLDERS,
    LEASE_ENDS,
    NOW,
    PRESENT,
    SAME_INSTANT,
    WAKE,
    DivisionRule,
    Elastic,
    ElasticJobs,
    ElasticState,
    arrive,
    count_event,
    depart,
    jobs_of,
    mean_jobs,
    ticks_of,
)
from repro.model.jobs import JobTable
from repro.model.records import Intervals
from repro.model.view import View

#: Entries of `DivisionRecord.tally`: number of jobs that held GPUs after the last event, and number
#: of closed intervals.
HOLDERS_BEFORE, CLOSED = range(2)


class DivisionRecord(NamedTuple):
    """Records of a simulation of an elastic policy. Instants are in ticks, as in `ElasticJobs`.

    Arrays have an entry per job unless their comment gives another shape.
    """

    end: Floats
    first_start: Floats
    #: mean number of jobs present, over the events between arrival and end (N of PCS, section 2)
    mean_jobs: Floats
    preemptions: Ints
    #: whether a rollout predicts the job, and its predicted JCT (s)
    wants_rollout: Flags
    predicted_jct: Floats
    #: open interval of the job: GPUs (0: no interval is open), speed and start
    gpus: Floats
    rate: Floats
    since: Floats
    #: jobs that held GPUs after the last event, in the first entries
    holders_before: Ints
    #: (2,): see `HOLDERS_BEFORE`
    tally: Ints
    #: (1,): GPU-seconds held
    held_gpu_s: Floats
    #: (5, intervals): job, start, end, GPUs and speed of as many closed intervals as fit
    spans: Floats

    @classmethod
    def empty(cls, wants_rollout: Flags, num_spans: int) -> "DivisionRecord":
        """Record before the first event, with space for ``num_spans`` intervals."""
        n = len(wants_rollout)
        return cls(
            end=np.full(n, math.nan),
            first_start=np.full(n, math.inf),
            mean_jobs=np.ones(n),
            preemptions=np.zeros(n, np.int64),
            wants_rollout=wants_rollout,
            predicted_jct=np.full(n, math.nan),
            gpus=np.zeros(n),
            rate=np.zeros(n),
            since=np.zeros(n),
            holders_before=np.zeros(n, np.int64),
            tally=np.zeros(2, np.int64),
            held_gpu_s=np.zeros(1),
            spans=np.zeros((5, num_spans)),
        )


def simulate_divided(
    table: JobTable,
    policy: Elastic,
    view: View,
    intervals: Intervals | None,
    *,
    ticks_per_second: float,
    wants_prediction: Flags,
) -> tuple[dict[str, Floats | Ints], float]:
    """Simulate until every job has finished.

    A test compares the records with those of the engine, event by event.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation; their state is written.
    policy : Elastic
        Policy with a compiled division rule.
    view : View
        View of the policy.
    intervals : Intervals or None
        Record of the intervals in which jobs hold GPUs; None: intervals are not recorded.
    ticks_per_second : float
        Ticks of the clock per second (`ElasticJobs.ticks_per_second`).
    wants_prediction : array of bool
        Jobs whose completion is predicted at their arrival.

    Returns
    -------
    columns : dict
        More columns of the job records: fair_jct (s), predicted_jct (s; NaN: not predicted). A
        policy with classes adds job_class.
    held_gpu_s : float
        GPU-seconds held by all jobs.

    Raises
    ------
    PolicyError
        If jobs wait for ever, in the simulation or in a rollout.
    """
    rule = policy.rule
    assert rule is not None, "the policy has a compiled rule"
    # intervals are recorded by job, so every job must then be a kind of its own
    jobs = jobs_of(
        policy,
        view,
        ticks_per_second=ticks_per_second,
        alone=intervals is not None,
        predicts=bool(wants_prediction.any()),
    )
    # Under a policy that foresees, later arrivals do not change a JCT. With exact sizes and
    # free resizing the simulated JCT is then the prediction.
    is_exact = not policy.size_error and bool((jobs.size_factor == 1.0).all())
    jct_is_prediction = policy.foresees and is_exact and not policy.resize_s
    no_rollouts = jct_is_prediction or policy.reserved_end_row is not None
    wants_rollout = np.zeros_like(wants_prediction) if no_rollouts else wants_prediction
    record, last_state = _run(policy, rule, jobs, wants_rollout, intervals is not None)
    if np.isnan(record.end).any():
        arrived = np.isnan(record.end) & (jobs.submit <= last_state.clock[NOW])
        table.active.update(dict.fromkeys(np.flatnonzero(arrived).tolist()))
        raise never_ends(policy.name, last_state.clock[NOW] / ticks_per_second, table, {})
    if intervals is not None:
        _append_spans(intervals, record.spans, jobs)
    jct = (record.end - jobs.submit) / ticks_per_second
    _write_state(table, record, jobs, by_kind=policy.divides_by_kind and intervals is None)
    fair_jct = jobs.work / np.minimum(jobs.gpus / record.mean_jobs, jobs.demand)
    predicted_jct = record.predicted_jct
    if jct_is_prediction:
        predicted_jct = np.where(wants_prediction, jct, math.nan)
    if policy.reserved_end_row is not None:
        reserved_end = last_state.memory_floats[policy.reserved_end_row, : len(jct)]
        reserved_jct = (reserved_end - jobs.submit) / ticks_per_second
        predicted_jct = np.where(wants_prediction, reserved_jct, math.nan)
    columns: dict[str, Floats | Ints] = {"fair_jct": fair_jct, "predicted_jct": predicted_jct}
    if policy.has_classes:
        columns["job_class"] = jobs.group
    return columns, float(record.held_gpu_s[0])


def _run(
    policy: Elastic,
    rule: DivisionRule,
    jobs: ElasticJobs,
    wants_rollout: Flags,
    keeps_intervals: bool,
) -> tuple[DivisionRecord, ElasticState]:
    """Simulate; return the records, with closed intervals if wanted, and the last state."""
    rule_settings = policy.settings(jobs)
    # `_begin_rollout` already multiplies the remaining work by the size factor. Rollouts must not
    # apply it again, so their factor is 1.
    rollout_jobs = jobs._replace(size_factor=np.ones(len(jobs.work)))

    def run_once(wants_rollout: Flags, num_spans: int) -> tuple[DivisionRecord, ElasticState]:
        state = ElasticState.of(jobs, rule.memory)
        # no job arrives in a rollout, which therefore only reads `at_arrival`
        rollout = ElasticState.of(jobs, rule.memory)._replace(at_arrival=state.at_arrival)
        record = DivisionRecord.empty(wants_rollout, num_spans)
        rule.run(jobs, rollout_jobs, rule_settings, state, rollout, record, keeps_intervals)
        return record, state

    num_spans = 0
    if keeps_intervals:
        # a first simulation counts the intervals
        counting, _ = run_once(np.zeros_like(wants_rollout), 0)
        num_spans = int(counting.tally[CLOSED])
    return run_once(wants_rollout, num_spans)


def _append_spans(intervals: Intervals, spans: Floats, jobs: ElasticJobs) -> None:
    """Append closed intervals to the records."""
    job, start, end, gpus, rate = spans
    start_s = start / jobs.ticks_per_second
    end_s = end / jobs.ticks_per_second
    relative_rate = rate / jobs.full_speed[job.astype(int)]
    no_type = np.full(len(job), -1.0)
    # rows of `Intervals.blocks`: job, first job of its group (here the job), start, end, GPUs that
    # are charged and used, relative rate, column of the GPU type
    columns = [job, job, start_s, end_s, gpus, gpus, relative_rate, no_type]
    intervals.blocks.append(np.array(columns))


def _write_state(
    table: JobTable, record: DivisionRecord, jobs: ElasticJobs, *, by_kind: bool
) -> None:
    """Write starts, ends and preemptions of a finished simulation into the job table."""
    state = table.state
    # a job of 0 s has no interval: it counts as started at its arrival
    first_start = np.where(np.isinf(record.first_start), jobs.submit, record.first_start)
    preemptions = record.preemptions
    if by_kind:
        # The loop records one job of each kind, and not always the same one. Every job of a kind
        # holds GPUs from its arrival to its end.
        first_start = jobs.submit
        preemptions = np.zeros_like(record.preemptions)
    state.first_start[:] = first_start / jobs.ticks_per_second
    state.end[:] = record.end / jobs.ticks_per_second
    state.work_left[:] = 0.0
    state.preemptions[:] = preemptions


def compiled_rule(
    admit: Callable[..., None],
    retire: Callable[..., None],
    share: Callable[..., None],
    *memory: type,
    by_arrival: bool = True,
    resize: Callable[..., None] | None = None,
) -> DivisionRule:
    """Compile the event loop around the functions of a division rule.

    The arguments are fields of `repro.model.elastic.DivisionRule`. The compiled loop becomes
    the field ``run`` of the rule. It keeps the simulation in ``state`` and each rollout in
    ``rollout``.
    """

    @njit(home=share.__module__)
    def run(jobs, rollout_jobs, rule_settings, state, rollout, record, keeps_intervals):  # type: ignore[no-untyped-def]
        # job that the present rollout predicts; -1: no rollout
        subject = -1
        next_job = 0
        num_jobs = len(jobs.work)
        # leases in a row in which no job progressed
        idle_leases = 0
        while True:
            # the rollout under way, or else the simulation
            present_state, present_jobs = (rollout, rollout_jobs) if subject >= 0 else (state, jobs)
            has_arrivals = subject < 0 and next_job < num_jobs
            next_submit = jobs.submit[next_job] if has_arrivals else math.inf
            done_job, end, second_end = _next_end(present_jobs, present_state)
            lease_end = present_state.clock[LEASE_ENDS]
            now = min(end, lease_end, next_submit)
            if now == math.inf:
                break
            _advance(present_jobs, present_state, now)
            # completions come before ends of leases, and these before arrivals
            is_completion = end <= now * _tie_factor(present_jobs)
            is_arrival = now < lease_end and not is_completion
            if is_arrival or is_completion or _has_progressed(present_state):
                idle_leases = 0
            else:
                idle_leases += 1
                if idle_leases > MAX_IDLE_DECISIONS and not has_arrivals:
                    break
            if is_arrival:
                arrive(state, jobs, next_job)
                admit(jobs, rule_settings, state, next_job)
                next_job += 1
            elif is_completion:
                has_ties = second_end <= now * _tie_factor(present_jobs)
                while done_job >= 0:
                    depart(present_state, present_jobs, done_job)
                    if done_job == subject:
                        break
                    retire(present_jobs, rule_settings, present_state, done_job)
                    if subject < 0:
                        record.end[done_job] = now
                        record.mean_jobs[done_job] = mean_jobs(state, done_job)
                    # jobs done at this instant complete before a division could take their GPUs
                    done_job = _also_done(present_jobs, present_state) if has_ties else -1
                    if done_job >= 0:
                        count_event(present_state)
                if subject >= 0 and done_job == subject:
                    jct_ticks = now - jobs.submit[subject]
                    record.predicted_jct[subject] = jct_ticks / jobs.ticks_per_second
                    subject = -1
                    continue
            share(present_jobs, rule_settings, present_state)
            lease_end = min(now + jobs.lease, present_state.clock[WAKE])
            has_jobs = present_state.tally[PRESENT] > 0
            present_state.clock[LEASE_ENDS] = lease_end if has_jobs else math.inf
            if subject < 0:
                _record_changes(state, record, keeps_intervals)
                if is_arrival and record.wants_rollout[next_job - 1]:
                    subject = next_job - 1
                    _begin_rollout(jobs, state, rollout, next_job)
        record.held_gpu_s[0] = state.clock[HELD_GPU_S]

    return DivisionRule(run, admit, retire, share, memory, by_arrival, resize)


@njit()
def _tie_factor(jobs: ElasticJobs) -> float:
    """Factor f: a completion at up to f * now counts as now. It is 1 if instants are rounded."""
    return SAME_INSTANT if jobs.ticks_per_second == 1.0 else 1.0


@njit(error_model="numpy")
def _next_end(jobs: ElasticJobs, state: ElasticState) -> tuple[int, float, float]:
    """Next job to complete (-1: none), its end (ticks), and the end of the job after it (ticks)."""
    first_job = -1
    first_end = math.inf
    second_end = math.inf
    now = state.clock[NOW]
    for job in state.holders[: state.tally[HOLDERS]]:
        begin = now
        seconds = state.work_left[job] / state.rate[job]
        if jobs.pause > 0.0:
            begin = max(now, state.progress_from[job])
        end = begin + ticks_of(jobs, seconds)
        if end < first_end:
            second_end = first_end
            first_job = job
            first_end = end
        else:
            second_end = min(second_end, end)
            if end == first_end and jobs.by_arrival and job < first_job:
                first_job = job
    return first_job, max(first_end, now), second_end


@njit(error_model="numpy")
def _also_done(jobs: ElasticJobs, state: ElasticState) -> int:
    """Another job that holds GPUs and is done at this instant (-1: none).

    Under rules ``pcs``, as in the artifact, a job is done only if its remaining work is exactly 0.
    Under other rules it is done if its end is at most `SAME_INSTANT` times now.
    """
    done = -1
    now = state.clock[NOW]
    for job in state.holders[: state.tally[HOLDERS]]:
        # a job that has just completed holds no GPUs
        if state.gpus[job] == 0.0:
            continue
        if jobs.ticks_per_second > 1.0:
            is_done = state.work_left[job] == 0.0
        else:
            pause = max(state.progress_from[job] - now, 0.0) if jobs.pause > 0.0 else 0.0
            is_done = now + pause + state.work_left[job] / state.rate[job] <= now * SAME_INSTANT
        if is_done and (done < 0 or (jobs.by_arrival and job < done)):
            done = job
    return done


@njit()
def _advance(jobs: ElasticJobs, state: ElasticState, now: float) -> None:
    """Let the jobs progress until an event, and count the event for `mean_jobs`."""
    clock = state.clock
    seconds = (now - state.clock[NOW]) / jobs.ticks_per_second
    if seconds > 0.0:
        for job in state.holders[: state.tally[HOLDERS]]:
            if jobs.pause == 0.0:
                state.work_left[job] -= state.rate[job] * seconds
            elif now > state.progress_from[job]:
                begin = max(clock[NOW], state.progress_from[job])
                state.work_left[job] -= state.rate[job] * ((now - begin) / jobs.ticks_per_second)
        # Jobs hold all GPUs that they demand, up to the cluster. A rule that leaves GPUs idle sets
        # DEMANDED to the GPUs held.
        clock[HELD_GPU_S] += min(clock[DEMANDED], jobs.gpus) * seconds
        clock[NOW] = now
    count_event(state)


@njit()
def _has_progressed(state: ElasticState) -> bool:
    """Whether a job that holds GPUs has progressed since it got them."""
    for job in state.holders[: state.tally[HOLDERS]]:
        if state.rate[job] > 0.0 and state.progress_from[job] < state.clock[NOW]:
            return True
    return False


@njit()
def _begin_rollout(
    jobs: ElasticJobs, state: ElasticState, rollout: ElasticState, arrived: int
) -> None:
    """Copy a state for a rollout; the remaining work of each job times its size factor."""
    for job in range(arrived):
        rollout.work_left[job] = state.work_left[job] * jobs.size_factor[job]
    assign(rollout.gpus[:arrived], state.gpus)
    assign(rollout.rate[:arrived], state.rate)
    assign(rollout.progress_from[:arrived], state.progress_from)
    assign(rollout.holders[: state.tally[HOLDERS]], state.holders)
    for row in range(len(state.memory_floats)):
        assign(rollout.memory_floats[row], state.memory_floats[row])
    for row in range(len(state.memory_ints)):
        assign(rollout.memory_ints[row], state.memory_ints[row])
    assign(rollout.clock, state.clock)
    assign(rollout.tally, state.tally)


@njit()
def _record_changes(state: ElasticState, record: DivisionRecord, keeps_intervals: bool) -> None:
    """Record changes of GPUs at an event; skip intervals of zero length."""
    now = state.clock[NOW]
    tally = record.tally
    for job in record.holders_before[: tally[HOLDERS_BEFORE]]:
        if state.gpus[job] == record.gpus[job]:
            continue
        if now > record.since[job]:
            record.first_start[job] = min(record.first_start[job], record.since[job])
            if keeps_intervals:
                if tally[CLOSED] < record.spans.shape[1]:
                    span = record.spans[:, tally[CLOSED]]
                    span[0] = job
                    span[1] = record.since[job]
                    span[2] = now
                    span[3] = record.gpus[job]
                    span[4] = record.rate[job]
                tally[CLOSED] += 1
        lost_all = state.gpus[job] == 0.0 and state.work_left[job] > 0.0
        if lost_all and record.first_start[job] < math.inf:
            record.preemptions[job] += 1
        record.gpus[job] = 0.0
    num_holders = state.tally[HOLDERS]
    for index in range(num_holders):
        job = state.holders[index]
        record.holders_before[index] = job
        if record.gpus[job] == 0.0:
            record.gpus[job] = state.gpus[job]
            record.rate[job] = state.rate[job]
            record.since[job] = now
    tally[HOLDERS_BEFORE] = num_holders
