"""What preemption costs under Gavel's rounds, with and without renewing the lease."""

from __future__ import annotations

import pandas as pd

from repro.core.records import Result, durations


def lost_time(result: Result) -> float:
    """Return the part of the time jobs hold GPUs in which they load or save instead of training.

    Parameters
    ----------
    result : Result
        Records of a run with a preemption overhead.

    References
    ----------
    Gavel, OSDI 2020, section 5 and Table 4.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> result = simulate(small_trace(), "1x4:v100,1x4:k80", "las-agnostic")
    >>> lost_time(result)
    0.0
    """
    held = float(durations(result).sum())
    return float(result.meta["overhead_s"]) / held if held > 0 else 0.0


def at_every_round(result: Result, overhead_s: float, round_s: float) -> float:
    """Return the part lost if each round but the first of each job began with the overhead.

    Parameters
    ----------
    result : Result
        Records.
    overhead_s, round_s : float
        Overhead and length of a round (s).

    Examples
    --------
    >>> from repro import simulate
    >>> job = {"job_id": [0], "submit_time": [0.0], "duration": [1000.0], "num_gpus": [1]}
    >>> at_every_round(simulate(pd.DataFrame(job), "1xv100", "las-agnostic"), 10.0, 360.0)
    0.02
    """
    spans = result.intervals
    first = (spans["start"] // round_s).astype(int)
    # the last instant of an interval belongs to the round it ends
    last = ((spans["end"] - 1e-9) // round_s).astype(int)
    rounds = int((last - first + 1).sum())
    return overhead_s * (rounds - len(result.jobs)) / float(durations(result).sum())


def overhead_row(result: Result, overhead_s: float, lease: str) -> dict[str, object]:
    """Return one row of the table of overheads.

    Parameters
    ----------
    result : Result
        Records.
    overhead_s : float
        Overhead of a resumption (s).
    lease : str
        Whether leases were renewed, in words.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> result = simulate(small_trace(), "1x4:v100,1x4:k80", "las-agnostic")
    >>> list(overhead_row(result, 0.0, "renewed"))
    ['lease', 'overhead_s', 'lost_percent', 'avg_jct_h', 'resumptions']
    """
    jobs: pd.DataFrame = result.jobs
    return {
        "lease": lease,
        "overhead_s": overhead_s,
        "lost_percent": 100 * lost_time(result),
        "avg_jct_h": float(jobs["jct"].mean()) / 3600,
        "resumptions": float(result.meta["overhead_s"]) / overhead_s if overhead_s else 0.0,
    }
