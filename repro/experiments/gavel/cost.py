"""What runs cost under Gavel: money and missed deadlines (Fig A7), time of preemption (Table 4)."""

import pandas as pd

from repro.core.records import Result, durations
from repro.experiments.gavel.series import HOUR_S
from repro.perf.prices import usd_per_hour


def spent_usd(result: Result, market: str) -> float:
    """Return the price of all GPU time that jobs held (USD); section 4.2, ``scheduler.py``."""
    spans = result.intervals
    types = sorted(spans["gpu_type"].unique())
    price = dict(zip(types, usd_per_hour(types, market), strict=True))
    hours = (spans["end"] - spans["start"]) / HOUR_S * spans["gpus"]
    return float((hours * spans["gpu_type"].map(price)).sum())


def missed(result: Result, trace: pd.DataFrame) -> float:
    """Return the part of the jobs that ended ``slo`` durations after submission, or later."""
    jct = result.jobs.set_index("job_id")["jct"].reindex(trace["job_id"]).to_numpy()
    return float((jct > trace["slo"] * trace["duration"]).mean())


def lost_time(result: Result) -> float:
    """Return the part of the time jobs hold GPUs in which they load or save instead of training."""
    held = float(durations(result).sum())
    return float(result.meta["overhead_s"]) / held if held > 0 else 0.0


def at_every_round(result: Result, overhead_s: float, round_s: float) -> float:
    """Return the part lost if each round but the first of each job began with the overhead."""
    spans = result.intervals
    first = (spans["start"] // round_s).astype(int)
    # the last instant of an interval belongs to the round it ends
    last = ((spans["end"] - 1e-9) // round_s).astype(int)
    rounds = int((last - first + 1).sum())
    return overhead_s * (rounds - len(result.jobs)) / float(durations(result).sum())
