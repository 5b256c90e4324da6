"""Records of a finished simulation."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from repro.base.typing import Flags, Floats, Ints
from repro.engine.setup import Setup
from repro.model.records import Result, collect


class AddedRecords(NamedTuple):
    """Records of a simulation in one compiled call, beyond the job table and the intervals."""

    #: more columns of the job records; their rows are in order of submission
    columns: Mapping[str, Floats | Ints | Flags] = {}
    #: GPU-seconds held by all jobs; None: they follow from the intervals
    held_gpu_s: float | None = None


def close_intervals(setup: Setup) -> None:
    """Record the intervals that are open at the end of a simulation that ended early.

    They end at the last completion that the simulation waited for. If it did not come to that, they
    end at the stop time.
    """
    table = setup.table
    state = table.state
    awaited = slice(None) if setup.awaited is None else list(setup.awaited)
    last_end = state.end[awaited].max(initial=0.0)
    now = setup.settings.stop_time if np.isnan(last_end) else float(last_end)
    open_jobs = np.flatnonzero(state.running & (state.held_since < now))
    if not len(open_jobs):
        return
    gangs = setup.holdings.runs
    for job in open_jobs.tolist():
        if job in gangs:
            setup.holdings.record(gangs[job], job, now)
    # compiled loops write holds without gangs
    without_gang = np.array([job for job in open_jobs if job not in gangs], dtype=np.int64)
    if len(without_gang):
        from repro.engine.rounds.kernel import close_holds

        solo = np.array(table.solo)
        block = close_holds(state, without_gang, solo, now)
        setup.holdings.intervals.blocks.append(block)


def records_of(setup: Setup, added: AddedRecords, **meta: Any) -> Result:
    """Collect the records of a finished simulation; ``meta`` has more entries of `Result.meta`."""
    table = setup.table
    holdings = setup.holdings
    run_meta = {
        "policy": setup.policy.name,
        "settings": repr(setup.policy),
        "trace": table.frame.attrs.get("name", "trace"),
        "cluster": str(setup.cluster),
        "placement": repr(setup.settings.placement),
        "num_gpus": setup.cluster.num_gpus,
        "overhead_s": holdings.overhead_s,
        "held_s": added.held_gpu_s,
    }
    columns = dict(added.columns)
    rounds = setup.driver.rounds
    if rounds is not None and rounds.settings.gang_tries:
        columns["given_up"] = rounds.constants.lost_rounds >= rounds.settings.gang_tries
    return collect(table, holdings.intervals, run_meta | meta, columns)
