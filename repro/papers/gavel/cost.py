"""What preemption costs under Gavel (Table 4)."""

from repro.model.records import Result, durations


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
