"""Predicted JCTs by rollouts: what a job would take if no further job arrived.

The prediction of job j is its JCT in a run of the same policy in which the jobs after j never
arrive (PCS, section 4). Until j arrives the two runs are equal. Each such run is simulated from the
first arrival on. Jobs submitted together arrive in the order of the trace.

If the trace has predicted durations, the decisions in these runs read them. The jobs still run for
their true durations. The error of a predicted JCT therefore does not contain the errors of the
predicted durations. Division rules predict inside the run, with predicted durations
(`repro.engine.elastic`).

A prediction does not depend on when the run stops. Jobs that have not arrived by then have none.

If no job arrives between the arrival of j and its end, the JCT of the run is the prediction. An
arrival at the end of j counts as an arrival before the end: with ``ideal=artifact`` a job that
completes between two arrivals ends at the later arrival.
"""

from collections.abc import Callable

import numpy as np

from repro.base.typing import Flags, Floats
from repro.engine.compiled_runs import simulate_compiled
from repro.engine.loop import Engine
from repro.engine.setup import Setup


def predicted_jcts(
    setup: Setup, wants_prediction: Flags, setup_of: Callable[[int, object], Setup]
) -> Floats:
    """Predicted JCT of each job (s), (jobs,); NaN where none is wanted.

    Parameters
    ----------
    setup : Setup
        The finished run.
    wants_prediction : array of bool
        Jobs to predict, in order of submission.
    setup_of : callable
        Function of a number of jobs and a job id: setup of the run in which only the first jobs
        arrive, and which ends with this job.
    """
    table = setup.table
    submit = np.array(table.submit)
    end = np.array(table.state.end)
    predicted = np.full(table.count, np.nan)
    # compiled loops of elastic policies do not count arrivals, but they never end early
    num_arrived = table.arrived if setup.settings.ends_early else table.count
    for job in np.flatnonzero(wants_prediction[:num_arrived]).tolist():
        next_submit = submit[job + 1] if job + 1 < table.count else np.inf
        if end[job] < next_submit:
            predicted[job] = end[job] - submit[job]
            continue
        rollout = setup_of(job + 1, table.ids[job])
        if simulate_compiled(rollout) is None:
            Engine(rollout).run()
        predicted[job] = rollout.table.end[job] - submit[job]
    return predicted
