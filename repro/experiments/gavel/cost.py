"""What runs cost under Gavel: money and missed deadlines (Fig A7), time of preemption (Table 4)."""

from collections.abc import Mapping

import pandas as pd

from repro.core.records import Result, durations
from repro.experiments.gavel.series import HOUR_S
from repro.perf.prices import usd_per_hour
from repro.plot import look


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


def compare(
    results: Mapping[str, Result], trace: pd.DataFrame, reference: str, market: str
) -> pd.DataFrame:
    """Return each policy's cost (USD), saving (a factor), part of the jobs missed, and jct_h."""
    table = pd.DataFrame({"policy": list(results), "label": [look(name).label for name in results]})
    table["cost"] = [spent_usd(result, market) for result in results.values()]
    table["saving"] = spent_usd(results[reference], market) / table["cost"]
    table["missed"] = [missed(result, trace) for result in results.values()]
    table["jct_h"] = [result.jobs["jct"].mean() / HOUR_S for result in results.values()]
    return table


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


def overhead_row(result: Result, overhead_s: float, lease: str) -> dict[str, object]:
    """Return one row of the table of overheads; ``lease``: whether it is renewed, in words."""
    return {
        "lease": lease,
        "overhead_s": overhead_s,
        "lost_percent": 100 * lost_time(result),
        "avg_jct_h": float(result.jobs["jct"].mean()) / HOUR_S,
        "resumptions": float(result.meta["overhead_s"]) / overhead_s if overhead_s else 0.0,
    }
