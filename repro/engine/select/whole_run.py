"""A whole run of an order whose keys are known in numbers: all its events in compiled loops."""

from collections.abc import Iterable

import numpy as np

from repro.engine.holdings import RunSettings
from repro.engine.select import queues
from repro.engine.select.queues import Clock, Pace
from repro.model.jobs import JobTable
from repro.model.policy import Steady
from repro.model.records import Intervals

#: Holds of GPUs that are recorded in one call at most, or GPUs of the cluster if more.
_AT_ONCE = 100_000


def play(
    table: JobTable,
    steady: Steady,
    num_gpus: int,
    quantum: float,
    intervals: Intervals,
    settings: RunSettings,
    awaited: Iterable[int] | None,
) -> None:
    """Simulate until the jobs ``awaited`` (None: all) have finished, or until the stop time.

    What the engine would do event by event, held against it by a test. See `queues.Pace`.
    """
    n = table.count
    gpus = np.array(table.gpus, dtype=np.int64)
    widths, width = np.unique(gpus, return_inverse=True)
    drift = steady.per_service * gpus - np.full(n, steady.per_second)
    lanes, lane = np.unique(drift, return_inverse=True)
    flags = np.full(n, awaited is None)
    flags[list(awaited or ())] = True
    pace = Pace(
        width=width,
        lane=lane + len(widths),
        per_second=np.full(n, steady.per_second),
        per_service=np.full(n, steady.per_service),
        drift=drift,
        submit=np.array(table.submit),
        solo=np.array(table.solo),
        limits=np.array(steady.limits, dtype=float),
        awaited=flags,
        near=1.0 + settings.rules.tie_rel,
        quantum=quantum,
        stop=settings.stop_time,
    )
    q = queues.empty(gpus, 2 if steady.limits else 1, len(widths), len(lanes))
    ends, dues = (queues.empty(gpus, 1, 1, 0) for _ in range(2))
    spans = np.empty((3, 2 * max(_AT_ONCE, num_gpus)))
    clock = Clock(0.0, 0, int(flags.sum()), num_gpus, 0)
    over = False
    while not over:
        clock, over, count = queues.play(q, ends, dues, table.state, pace, clock, spans)
        if settings.keep_intervals:
            job, start, end = spans[:, :count]
            held = gpus[job.astype(int)]
            none = np.full(count, -1)
            intervals.blocks.append(np.array([job, job, start, end, held, held, -none, none]))
