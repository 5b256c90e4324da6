"""``repro measure sequence``: two jobs in a row, with four ways to launch the second."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from repro.measure.job_types import JobType
from repro.measure.session import Session
from repro.measure.worker import Worker, WorkerError

#: Ways to launch the second job: when the first is gone, when a poll sees that it is gone, as soon
#: as the first trains, or at once on the shared GPU.
SCENARIOS = ("event", "poll5", "ahead", "share")
_POLL_S = 5.0
#: Seconds of training of each job.
_TRAIN_S = 6.0
_TINY_POLL_S = 0.2
_TINY_ITERATIONS = 2
_SAMPLE_S = 0.05


def measure(session: Session) -> int:
    """Append rows to ``sequence.csv`` and ``sequence_gpu.csv``; number of new scenarios."""
    table = session.table("sequence.csv")
    samples_table = session.table("sequence_gpu.csv")
    runs = [(job, scenario) for job in session.jobs for scenario in SCENARIOS]
    todo = [(job, scenario) for job, scenario in runs if not table.has(scenario, job.name, 0)]
    added = 0
    for done, (job, scenario) in enumerate(todo):
        if not session.begins(f"two of {job.name}, {scenario}", done, len(todo)):
            break
        earlier = [int(row["iters"]) for row in table.rows if row["model"] == job.name]
        try:
            iterations = earlier[0] if earlier else _iterations(session, job)
            with session.samples(_SAMPLE_S, with_pcie=True) as samples:
                rows = _scenario(session, job, scenario, iterations)
        except WorkerError as error:
            session.report(f"two of {job.name}, {scenario}: left out, {error}")
            continue
        samples_table.extend(
            {name: f"{value:.3f}" if name == "t" else value for name, value in sample.items()}
            for sample in samples.samples
        )
        table.extend(rows)
        added += 1
    return added


def _iterations(session: Session, job: JobType) -> int:
    """Iterations that take a job about `_TRAIN_S` seconds while it has the GPU to itself."""
    if session.tiny:
        return _TINY_ITERATIONS
    with Worker(session.configuration(job)) as worker:
        rate: float = worker.ask("rate", seconds=_TRAIN_S / 4)["rate"]
    return max(1, round(rate * _TRAIN_S))


def _scenario(
    session: Session, job: JobType, scenario: str, iterations: int
) -> list[dict[str, Any]]:
    """Rows of the two jobs; times are seconds after the start of the first."""
    clock = _Clock()
    checkpoint = session.inputs / "sequence.checkpoint"
    workers = [Worker(session.configuration(job)) for _ in range(2)]
    times: list[dict[str, float]] = [{}, {}]
    with ExitStack() as stack:
        first, second = workers

        def launch(number: int) -> None:
            times[number]["spawn_at"] = clock.now()
            workers[number].start()
            stack.callback(workers[number].stop)

        def ready(number: int) -> None:
            workers[number].wait_until_ready()
            times[number]["ready_at"] = workers[number].launch["ready_at"] - clock.begin

        def finish(number: int) -> None:
            run = workers[number].answer()
            times[number]["train_start_at"] = run["begin"] - clock.begin
            times[number]["train_end_at"] = run["end"] - clock.begin
            workers[number].ask("save", path=checkpoint.with_suffix(f".{number}"))
            times[number]["saved_at"] = clock.now()
            workers[number].stop()
            times[number]["gone_at"] = clock.now()

        launch(0)
        if scenario == "share":
            launch(1)
            ready(0)
            ready(1)
            first.send("run", iterations=iterations)
            second.send("run", iterations=iterations)
            finish(0)
        else:
            ready(0)
            first.send("run", iterations=iterations)
            if scenario == "ahead":
                launch(1)
            finish(0)
            if scenario == "poll5":
                poll_s = _TINY_POLL_S if session.tiny else _POLL_S
                time.sleep(poll_s - clock.now() % poll_s)
            if scenario != "ahead":
                launch(1)
            ready(1)
            second.send("run", iterations=iterations)
        finish(1)
        makespan_s = clock.now()
    for number in range(2):
        checkpoint.with_suffix(f".{number}").unlink(missing_ok=True)
    return [
        {
            "scenario": scenario,
            "model": job.name,
            "job": number,
            "iters": iterations,
            "t0_unix": f"{clock.begin_unix:.3f}",
            "makespan_s": makespan_s,
            **job_times,
        }
        for number, job_times in enumerate(times)
    ]


class _Clock:
    """Seconds since its creation, and the time of its creation (s since 1970)."""

    def __init__(self) -> None:
        self.begin = time.monotonic()
        self.begin_unix = time.time()

    def now(self) -> float:
        """Seconds since the creation."""
        return time.monotonic() - self.begin
