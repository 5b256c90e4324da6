"""Trials: what each policy refuses, ignores and lacks on a trace, found out by the engine itself.

A trial simulates the first hour of a few jobs, one of each kind. Every check before the first event
sees a job of each kind.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from repro.base.errors import ReproError, TraceError
from repro.comparison import terms
from repro.engine.ignored import TYPES_ALIKE, wishes_hint
from repro.engine.simulate import simulate
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy
from repro.perf.throughput import ThroughputTable
from repro.trace.doctor.findings import Finding, Level

#: Largest number of jobs that run in a trial.
_MAX_RUNNING = 24
#: Largest number of jobs, one of each kind, that the engine checks before the first event.
_MAX_KINDS = 500
#: Length of a trial (s), and the arrival of jobs that do not run in it.
_LENGTH_S = 3600.0
_LATER_S = 1e6
#: Jobs of a kind have equal values in these columns. In each other column all or none have a value.
_KIND_COLUMNS = ("num_gpus", "model", "gpu_type")
#: Columns that do not tell kinds of jobs apart.
_IGNORED_COLUMNS = ("job_id", "submit_time", "duration")
#: Start of the note on the start of the clock, which says nothing about a policy.
_CLOCK_NOTE = "the clock starts"
#: Policies are always named if they are at most this many.
_FEW = 8


@dataclass(frozen=True)
class Trial:
    """What a policy does with a trace and a cluster."""

    #: reason of a refusal, empty if it runs
    refuses: str
    #: columns of the trace that it does not read
    ignores: tuple[str, ...]
    #: columns from models that it reads and the trace lacks, in words
    lacks: str
    #: notes on its run, such as a policy that decides like its baseline
    notes: tuple[str, ...]
    #: whether all GPU types count as equally fast
    types_alike: bool

    def to_dict(self) -> dict[str, Any]:
        """Fields for JSON."""
        return asdict(self) | {"ignores": list(self.ignores), "notes": list(self.notes)}


def trials(
    frame: pd.DataFrame,
    cluster: Cluster,
    policies: Mapping[str, Policy],
    throughputs: ThroughputTable | None = None,
) -> dict[str, Trial]:
    """Trial of each policy, by label.

    Parameters
    ----------
    frame : DataFrame
        A trace whose jobs fit the cluster.
    cluster : Cluster
        Cluster of the runs.
    policies : mapping of str to Policy
        Policies by label.
    throughputs : ThroughputTable, optional
        Throughputs by GPU type, as ``--throughputs``.
    """
    sample = kinds_of_jobs(frame)
    has_speeds = throughputs is not None
    lacking = terms.lacking(policies, frame, cluster, has_speeds=has_speeds)
    return {
        label: _trial(sample, cluster, policy, throughputs, lacking.get(label, ""))
        for label, policy in policies.items()
    }


def kinds_of_jobs(frame: pd.DataFrame) -> pd.DataFrame:
    """First job of each kind, at most `_MAX_KINDS` jobs.

    The first `_MAX_RUNNING` of these jobs arrive at 0, the others after the trial.
    """
    marks = pd.DataFrame(
        {
            str(name): frame[name] if name in _KIND_COLUMNS else frame[name].isna()
            for name in frame
            if name not in _IGNORED_COLUMNS
        }
    )
    sample = frame[~marks.duplicated().to_numpy(bool)].head(_MAX_KINDS).reset_index(drop=True)
    later = sample.index >= _MAX_RUNNING
    return sample.assign(submit_time=[_LATER_S if is_later else 0.0 for is_later in later])


def _trial(
    sample: pd.DataFrame,
    cluster: Cluster,
    policy: Policy,
    throughputs: ThroughputTable | None,
    lacks: str,
) -> Trial:
    """Trial of one policy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = simulate(sample, cluster, policy, perf=throughputs, stop_time=_LENGTH_S)
        except ReproError as error:
            reason = _without_name(" ".join(str(error.args[0]).split()), sample, policy)
            # A missing column explains only an error of the trace.
            missing = lacks if isinstance(error, TraceError) else ""
            return Trial(reason, (), missing, (), types_alike=False)
    ignored = result.meta["ignored"]
    of_trace = set(map(str, sample.attrs.get("notes", ())))
    notes = [
        _without_name(note, sample, policy)
        for note in result.meta["notes"]
        if note not in of_trace and not note.startswith(_CLOCK_NOTE)
    ]
    return Trial(
        "",
        tuple(ignored.get("columns", ())),
        lacks,
        tuple(notes),
        types_alike=TYPES_ALIKE in ignored.get("options", ()),
    )


def _without_name(text: str, sample: pd.DataFrame, policy: Policy) -> str:
    """Text without the names of trace and policy, so that equal reasons are equal texts."""
    name = str(sample.attrs.get("name", "trace"))
    text = text.removeprefix(f"{name}: ").removeprefix("the trace: ")
    return re.sub(rf"^(?:policy )?'?{re.escape(policy.name)}'?:? ", "", text)


def findings_of(
    results: Mapping[str, Trial],
    frame: pd.DataFrame,
    *,
    are_named: bool,
    dress: str,
    has_types: bool,
) -> list[Finding]:
    """Findings on refusals, columns, models and notes, grouped by what they say.

    Parameters
    ----------
    results : mapping of str to Trial
        Trials by policy.
    frame : DataFrame
        The trace.
    are_named : bool
        Whether the user named the policies. A refusal is then an error, else a note.
    dress : str
        Command that samples models for the jobs.
    has_types : bool
        Whether the cluster names GPU types.
    """
    ran = {label: trial for label, trial in results.items() if not trial.refuses}
    findings = []
    refusals = _grouped((trial.refuses, label) for label, trial in results.items() if trial.refuses)
    for reason, labels in refusals.items():
        all_lack = all(results[label].lacks for label in labels)
        findings.append(
            _policy_finding(
                "error" if are_named or not ran else "note",
                "refused",
                f"{_named(labels, results)} cannot run: {reason}",
                labels,
                dress if all_lack else "",
            )
        )
    lacks = _grouped((trial.lacks, label) for label, trial in ran.items() if trial.lacks)
    for words, labels in lacks.items():
        text = f"{_named(labels, results)} would read {words}, which the trace lacks"
        level: Level = "warning" if are_named else "note"
        findings.append(_policy_finding(level, "lacks", text, labels, dress))
    if alike := [label for label, trial in ran.items() if trial.types_alike]:
        text = f"all GPU types count as equally fast for {_named(alike, results)}"
        advice = "give throughputs by GPU type (--throughputs)"
        findings.append(_policy_finding("note", "types-alike", text, alike, advice))
    notes = _grouped((note, label) for label, trial in ran.items() for note in trial.notes)
    for note, labels in notes.items():
        text = f"{_named(labels, results)}: {note}"
        findings.append(_policy_finding("note", "policy-note", text, labels))
    return findings + _columns(ran, frame, has_types=has_types)


def _columns(ran: Mapping[str, Trial], frame: pd.DataFrame, *, has_types: bool) -> list[Finding]:
    """Findings on columns that no policy, or few policies, read."""
    findings = []
    readers = {
        str(name): [label for label, trial in ran.items() if name not in trial.ignores]
        for name in frame
    }
    unread = [name for name, labels in readers.items() if not labels]
    if unread and ran:
        advice = wishes_hint(has_types=has_types) if "gpu_type" in unread else ""
        text = f"none of {len(ran)} policies reads the columns {', '.join(unread)}"
        if len(ran) == 1:
            text = f"{next(iter(ran))} does not read the columns {', '.join(unread)}"
        findings.append(Finding("note", "columns-unread", text, len(unread), (), advice))
    columns_by_readers = _grouped(
        (", ".join(labels), name)
        for name, labels in readers.items()
        if 0 < len(labels) <= _FEW and len(labels) < len(ran)
    )
    for reader_names, names in columns_by_readers.items():
        noun = "column" if len(names) == 1 else "columns"
        verb = "read" if ", " in reader_names else "reads"
        text = f"{reader_names} alone {verb} {noun} {', '.join(names)}"
        findings.append(Finding("note", "columns-read-by-few", text, len(names)))
    return findings


def _policy_finding(
    level: Level, code: str, text: str, labels: list[str], advice: str = ""
) -> Finding:
    """Finding on policies."""
    return Finding(level, code, text, len(labels), (), advice)


def _named(labels: list[str], results: Mapping[str, Trial]) -> str:
    """Names of policies; of many policies their number and the names of the others."""
    if len(labels) <= _FEW or len(labels) < len(results) / 2:
        return ", ".join(labels)
    others = [label for label in results if label not in labels]
    if not others:
        return f"all {len(labels)} policies"
    return f"{len(labels)} of {len(results)} policies (all but {', '.join(others)})"


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Items by text, from pairs of text and item."""
    by_text: dict[str, list[str]] = {}
    for text, item in pairs:
        by_text.setdefault(text, []).append(item)
    return by_text
