"""FIFO without throughputs: the paper's and the public simulator's assignment of types."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.perf.throughput_files import load_throughputs
from repro.policies.gavel.fifo_agnostic import FifoAgnostic
from repro.trace.synth.gavel import PUBLIC, gavel_single, gavel_static


@pytest.fixture
def table(mirror, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    return load_throughputs(PUBLIC)


def test_average_jct_of_the_public_simulator(table):
    trace = gavel_single(0, jobs=400, rate=1.0)
    run = simulate(trace, "4xk80,4xp100,4xv100", "fifo-agnostic", rules="gavel", perf=table)
    jct = run.jobs.sort_values("job_id")["jct"]
    assert jct.iloc[20:60].mean() == pytest.approx(89402.529, abs=1e-3)


def test_makespan_of_the_public_simulator_with_gangs(table):
    trace = gavel_static(0, jobs=40)
    run = simulate(trace, "8xk80,8xp100,8xv100", "fifo-agnostic", rules="gavel", perf=table)
    assert run.summary()["makespan"] == pytest.approx(807029.008, abs=1e-3)


def jobs(gpus, durations):
    count = len(gpus)
    return pd.DataFrame(
        {
            "job_id": range(count),
            "submit_time": [0.0] * count,
            "duration": durations,
            "num_gpus": gpus,
        }
    )


def starts(trace, **options):
    run = simulate(trace, "2x2:k80,2x2:v100", "fifo-agnostic", **options)
    return run.jobs.sort_values("job_id")["start_time"].tolist()


def test_a_gang_that_does_not_fit_blocks_the_jobs_behind_it():
    start_times = starts(jobs([3, 3, 4, 1], [360.0] * 4))
    assert start_times[:2] == [0.0, 0.0]
    assert start_times[2] > 0
    assert start_times[3] > 0


def test_a_job_stays_on_its_gpu_type():
    trace = jobs([1] * 8, [3600.0] * 8)
    run = simulate(trace, "2x2:k80,2x2:v100", "fifo-agnostic", seed=3)
    assert run.jobs["preemptions"].sum() == 0
    assert run.summary()["makespan"] == pytest.approx(3600.0)


def test_random_types_depend_on_seed_and_stream_alone(table):
    trace = gavel_single(0, jobs=60, rate=1.0)

    def average(seed, stream=0):
        policy = make("fifo-agnostic", stream=stream)
        run = simulate(trace, "2xk80,2xp100,2xv100", policy, seed=seed, perf=table)
        return run.summary()["avg_jct"]

    assert average(1) == average(1)
    assert average(1) != average(2)
    assert average(1) != average(1, stream=1)


class Window:
    """The part of a view that the policy reads; ``cannot`` names jobs that K80s cannot run."""

    seed = 0

    def __init__(self, widths, counts, cannot=()):
        self.widths = widths
        self.cannot = cannot
        self.gpu_types = ("k80", "v100")[-len(counts) :]
        self.gpu_counts = np.array(counts, dtype=float)
        self.jobs = list(range(len(widths)))
        self.kind_codes = np.array([2 * self.gpus(job) + (job in cannot) for job in self.jobs])

    def gpus(self, job):
        return self.widths[job]

    def kind(self, job):
        return job in self.cannot, self.widths[job]

    def speeds(self, job):
        speeds = np.ones(len(self.gpu_counts))
        speeds[0] = 0.0 if job in self.cannot else 1.0
        return speeds


def test_a_gang_does_not_get_a_type_on_which_it_cannot_run():
    jobs = Window([1, 1, 1], (2, 1), cannot=[1])
    # as in the public simulator it waits, and the jobs behind it pass
    last = FifoAgnostic("last").session(jobs)(jobs).fractions.tolist()
    assert last == [[0, 1], [0, 0], [1, 0]]
    jobs = Window([1, 1, 1], (2, 0), cannot=[0])
    drawn = FifoAgnostic("drawn").session(jobs)(jobs).fractions.tolist()
    assert drawn == [[0, 0], [0, 0], [0, 0]]


def test_the_type_of_a_finished_job_does_not_go_to_a_gang_that_cannot_run_there():
    jobs = Window([1, 1, 1, 1], (1, 1), cannot=[2])
    decide = FifoAgnostic("last").session(jobs)
    assert decide(jobs).fractions.tolist() == [[0, 1], [1, 0], [0, 0], [0, 0]]
    jobs.jobs = [0, 2, 3]
    assert decide(jobs).fractions.tolist() == [[0, 1], [0, 0], [1, 0]]


def test_the_type_of_a_finished_job_goes_to_a_wider_gang():
    jobs = Window([1, 3, 2], (4,))
    decide = FifoAgnostic("last").session(jobs)
    assert decide(jobs).fractions.ravel().tolist() == [1, 1, 0]
    jobs.jobs = [1, 2]
    # GPUs of jobs younger than the finished job are not counted yet: five of four GPUs are used
    decision = decide(jobs)
    assert decision.fractions.ravel().tolist() == [1, 1]
    assert decision.overcommitted


def ends_of_gangs_that_do_not_fit_together(ideal):
    durations = [360.0, 3600.0, 3600.0]
    trace = jobs([1, 3, 2], durations).assign(iterations=durations)
    rounds = {"ideal": ideal, "min_realloc_interval_s": 0.0}
    run = simulate(trace, "1x4:v100", "fifo-agnostic", rules="gavel", rounds=rounds)
    return run.jobs.sort_values("job_id")["end_time"].tolist()


def test_gangs_that_do_not_fit_together_take_turns():
    # from the second round on, gangs of three and of two GPUs have all their time on four GPUs
    assert ends_of_gangs_that_do_not_fit_together(None) == [360.0, 6480.0, 7200.0]


def test_in_ideal_execution_gangs_that_do_not_fit_together_are_slower():
    speed = 4 / 5
    ends = [360.0, 360 + 3240 / speed, 360 + 3240 / speed + 360]
    assert ends_of_gangs_that_do_not_fit_together("fluid") == pytest.approx(ends)


def test_a_head_that_does_not_fit_stays_at_the_head():
    jobs = Window([2, 2, 3, 1], (4,))
    decide = FifoAgnostic("last").session(jobs)
    assert decide(jobs).fractions.ravel().tolist() == [1, 1, 0, 0]
    jobs.jobs = [0, 2, 3]
    # two of four GPUs are free: too few for the head, which blocks the job behind it
    assert decide(jobs).fractions.ravel().tolist() == [1, 0, 0]
    jobs.jobs = [2, 3]
    assert decide(jobs).fractions.ravel().tolist() == [1, 1]


def test_the_head_is_offered_the_types_of_all_finished_jobs():
    jobs = Window([1, 3, 2, 3], (3, 1))
    decide = FifoAgnostic("last").session(jobs)
    assert decide(jobs).fractions.tolist()[0] == [0, 1]
    before = decide(jobs).fractions.tolist()
    jobs.jobs = [2, 3]
    after = decide(jobs).fractions.tolist()
    # the head does not fit the one GPU of job 0, and takes the three of job 1
    assert before[1] == [1, 0]
    assert after[0] == [1, 0]


def test_a_job_gets_no_type_with_too_few_gpus_for_its_gang():
    trace = jobs([4, 1], [360.0, 360.0])
    policy = make("fifo-agnostic", assign="last")
    run = simulate(trace, "1x4:k80,1x2:v100", policy, stop_time=3600.0)
    assert run.jobs["end_time"].tolist() == [360.0, 360.0]
    assert run.intervals.set_index("job_id")["gpu_type"].to_dict() == {0: "k80", 1: "v100"}
