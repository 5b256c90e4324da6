"""Terms of a comparison in words: knowledge, costs, placement, dressing, samples, intervals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from repro.base.units import DAY_S, HOUR_S
from repro.comparison.intervals import LEVEL, RESAMPLES
from repro.comparison.samples import Sample, Windows
from repro.model.cluster.spec import Cluster
from repro.model.jobs import prediction_factors_of
from repro.model.policy import Policy
from repro.perf.throughput_files import throughputs_of
from repro.trace import predictions
from repro.trace.schema import STAGES

_OVERHEADS = {
    "none": "none",
    "tiresias": "measured by Tiresias (NSDI'19, Figure 4)",
    "h100": "measured on one H100",
}
SPEEDS = "throughputs by GPU type"
#: Inputs beyond durations that tell a policy about a job -> words.
_PROFILES = {
    **dict.fromkeys(STAGES, "stage times"),
    "throughput": SPEEDS,
    "slo": "deadlines",
}
RHO = (
    "finish-time fairness rho: JCT over the JCT in an isolated share, where each of the N jobs in "
    "the system holds min(its demand, GPUs / N) GPUs; mean and largest over the jobs"
)
CPU = (
    "CPU s/job: process time of the simulation over its jobs, without compilation; loops that are "
    "not compiled yet run as Python code, which costs more"
)


TRUE_DURATIONS = "true durations"


def durations_of(trace: pd.DataFrame) -> str:
    """Durations that policies read on a trace, in words.

    >>> durations_of(pd.DataFrame({"duration": [8.0], "predicted_duration": [4.0]}))
    'durations as predicted by the trace'
    """
    if prediction_factors_of(trace) is None:
        return TRUE_DURATIONS
    return predictions.words(trace.attrs.get(predictions.ERROR))


def knowledge(policy: Policy, durations: str = TRUE_DURATIONS) -> str:
    """What a policy knows about jobs, by its ``needs``.

    ``durations`` is the text of `durations_of` for the trace.

    >>> from repro.model.policy import make
    >>> knowledge(make("srtf")), knowledge(make("tiresias-l"))
    ('true durations', 'none')
    """
    facts = []
    if "duration" in policy.needs and policy.reads_sizes:
        error = getattr(policy, "size_error", 0)
        if error and durations != TRUE_DURATIONS:
            durations += f" and by the policy with an error of {error}"
        elif error:
            durations = f"durations with an error of {error}"
        facts.append(durations)
    if hasattr(policy, "history"):
        facts.append("distribution of past job sizes")
    facts += dict.fromkeys(words for need, words in _PROFILES.items() if need in policy.needs)
    noise = getattr(policy, "noise", 0)
    if noise and "stage times" in facts:
        facts[facts.index("stage times")] = f"stage times with noise of {noise:g}"
    return ", ".join(facts) or "none"


def placement(policy: Policy, rule: str) -> str:
    """Placement ``rule`` of a run in words, with the first fit of policies that have one.

    >>> from repro.model.policy import make
    >>> placement(make("srtf"), "Count()"), placement(make("muri-s"), "Count()")
    ('Count()', 'Count() (a gang starts only if first fit finds nodes for it)')
    """
    condition = " (a gang starts only if first fit finds nodes for it)"
    return f"{rule}{condition}" if policy.first_fit else rule


def lacking(
    policies: Mapping[str, Policy], trace: pd.DataFrame, cluster: Cluster, *, has_speeds: bool
) -> dict[str, str]:
    """Inputs that a policy reads and the trace lacks, in words, by label of the policy.

    All of them are inputs that follow from the models of the jobs.
    """
    # a column without values counts as absent
    filled = {name for name in trace if trace[name].notna().any()}
    lacks_stages = filled.isdisjoint(STAGES)
    lacks_speeds = bool(cluster.gpu_types) and not has_speeds and throughputs_of(trace) is None
    missing: dict[str, str] = {}
    for label, policy in policies.items():
        words = []
        if lacks_stages and policy.needs & set(STAGES):
            words.append("stage times")
        if lacks_speeds and "throughput" in policy.needs:
            words.append(SPEEDS)
        if "iteration_time" in policy.needs and "iteration_time" not in filled:
            words.append("iteration times")
        if words:
            missing[label] = ", ".join(words)
    return missing


def remedy(lacking: Mapping[str, str], filled: Collection[str]) -> str:
    """Remedy for inputs that policies lack on a trace with values in the columns ``filled``.

    >>> remedy({"gavel-las": SPEEDS}, ["model"])
    '--throughputs (throughputs=) gives throughputs of its models'
    """
    if "model" in filled and set(lacking.values()) == {SPEEDS}:
        return "--throughputs (throughputs=) gives throughputs of its models"
    return "repro.dress(replace=True) replaces these columns"


def grouped(texts: Mapping[str, str]) -> str:
    """Labels by text: ``true durations: srtf, srsf; none: las-2d``."""
    labels: dict[str, list[str]] = {}
    for label, text in texts.items():
        labels.setdefault(text, []).append(label)
    return "; ".join(f"{text}: {', '.join(names)}" for text, names in labels.items())


def note_on_overhead(overhead: Any) -> str:
    """Line on the cost of preemptions."""
    words = _OVERHEADS.get(overhead) if isinstance(overhead, str) else None
    if words is None:
        is_number = isinstance(overhead, int | float)
        words = f"{overhead:g} s per resumption" if is_number else str(overhead)
    return f"preemption cost, all policies: {words}"


def note_on_throughputs(name: str | None, reference: str | None) -> str:
    """Line on the throughput table of the runs; empty without a table.

    >>> note_on_throughputs("gavel-throughputs", "v100")
    'throughputs: gavel-throughputs; durations are those on v100'
    """
    return "" if name is None else f"throughputs: {name}; durations are those on {reference}"


def notes_on_samples(
    samples: Sequence[Sample], kind: str, windows: Windows | None, *, overlap: bool, empty: int
) -> list[str]:
    """Lines on the samples, their jobs and loads; ``empty`` counts windows that were left out."""
    num_jobs = sorted(len(sample.trace) for sample in samples)
    count = len({sample.label for sample in samples})
    jobs = f"{num_jobs[0]:,}" if num_jobs[0] == num_jobs[-1] else _range(num_jobs, ",")
    lines = [f"samples: {count} {kind if count == 1 else kind + 's'}, {jobs} jobs each"]
    if windows is not None:
        length = "" if windows.jobs else f" of {_length(windows.length_s)}"
        lines[0] = (
            f"samples: {count} {kind if count == 1 else kind + 's'}{length} "
            f"spread evenly over the trace, {jobs} jobs each; each starts on an empty cluster and "
            "ends with its last job"
        )
        if overlap:
            lines.append(
                "windows overlap, so they are not independent samples and the intervals are too "
                "narrow"
            )
        if empty:
            lines.append(
                f"windows left out, without jobs or with a single instant of submission: {empty}"
            )
    if any(sample.load == sample.load for sample in samples):
        factors = sorted(sample.stretch for sample in samples)
        lines.append(
            "loads: GPU-seconds of all jobs over GPUs times the span of the submissions; submit "
            f"times are multiplied by {_range(factors, '.3g')}"
        )
    return lines


def note_on_intervals(num_samples: int, kind: str, reference: str) -> str:
    """Line on the intervals, or on their absence."""
    if num_samples < 2:
        return "one sample: no intervals; more seeds or windows give some"
    return (
        f"{LEVEL:.0%} intervals of means over {num_samples} {kind}s, percentile bootstrap with "
        f"{RESAMPLES:,} resamples; differences to {reference} are paired: same jobs"
    )


def notes_of_runs(notes: Mapping[str, Iterable[str]]) -> list[str]:
    """Notes of runs, with the policies that have them.

    ``notes`` has the notes of all runs of each policy.
    """
    labels: dict[str, list[str]] = {}
    for label, lines in notes.items():
        for line in dict.fromkeys(lines):
            labels.setdefault(line, []).append(label)
    return [f"{', '.join(names)}: {line}" for line, names in labels.items()]


def _length(seconds: float) -> str:
    """Length of a window in words."""
    return f"{seconds / DAY_S:g} d" if seconds >= DAY_S else f"{seconds / HOUR_S:g} h"


def _range(ordered: Sequence[float], form: str) -> str:
    """First and last of ascending numbers, or one number if they are equal in text."""
    first, last = format(ordered[0], form), format(ordered[-1], form)
    return first if first == last else f"{first} to {last}"
