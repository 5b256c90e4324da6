"""Cost of preemption under Gavel (Table 4)."""

from repro.model.records import Result, durations


def at_every_round(result: Result, overhead_s: float, round_s: float) -> float:
    """Fraction of time lost if every round of a job but its first cost ``overhead_s``."""
    spans = result.intervals
    first = (spans["start"] // round_s).astype(int)
    # an interval that ends at a round's boundary does not reach into the next round
    last = ((spans["end"] - 1e-9) // round_s).astype(int)
    rounds = int((last - first + 1).sum())
    return overhead_s * (rounds - len(result.jobs)) / float(durations(result).sum())
