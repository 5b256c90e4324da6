"""`diagnose`: properties and problems of a trace on a cluster, and a trial of each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from repro.base.errors import ParamError
from repro.comparison.samples import checked_options
from repro.comparison.trials import Trial, findings_of, trials
from repro.engine import inputs
from repro.engine.many import named_policies
from repro.files.checks import Source
from repro.files.table import Parsed
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy, policies
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import load_throughputs
from repro.trace.doctor import demands, loads, times, values
from repro.trace.doctor.findings import LEVELS, Finding
from repro.trace.doctor.queue import Queue, queue_of
from repro.trace.load import Loaded, describe, load_with_rows

#: Code of a finding -> codes of the findings that it makes redundant.
_COVERED = {"unit-too-small": {"longer-than-a-year"}, "unit-of-submit-times": {"long-gap"}}


@dataclass(frozen=True)
class Diagnosis:
    """Facts, findings, queue and trials of a trace on a cluster."""

    #: as of `repro.trace.load.describe`, with ``loads`` by GPU type over time
    facts: dict[str, Any]
    #: from the worst to the mildest
    findings: list[Finding]
    #: None if all jobs arrive at once, or none fits
    queue: Queue | None
    #: by policy
    trials: dict[str, Trial]

    @property
    def has_errors(self) -> bool:
        """Whether a finding is an error."""
        return any(finding.level == "error" for finding in self.findings)

    def counts(self) -> dict[str, int]:
        """Number of findings by level."""
        levels = [finding.level for finding in self.findings]
        return {level: levels.count(level) for level in LEVELS}

    def to_dict(self) -> dict[str, Any]:
        """All parts for JSON."""
        return {
            "facts": self.facts,
            "queue": None if self.queue is None else self.queue.to_dict(),
            "findings": [finding.to_dict() for finding in self.findings],
            "counts": self.counts(),
            "policies": {label: trial.to_dict() for label, trial in self.trials.items()},
        }


def diagnose(
    trace: pd.DataFrame | str | Path,
    cluster: Cluster | str,
    policies: Sequence[str | Policy] | Mapping[str, str | Policy] | None = None,
    *,
    format: str | None = None,
    throughputs: ThroughputTable | str | Path | None = None,
    drop_bad_rows: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Diagnosis:
    """Examine a trace for a cluster before it is simulated.

    Rows of a file that break a rule of the schema are left out and reported. In a frame they raise
    TraceError.

    Parameters
    ----------
    trace : DataFrame, str or Path
        A frame, a file, or the name of a public trace.
    cluster : Cluster or str
        Cluster, or spec such as ``"8x8"``.
    policies : sequence or mapping of Policy or str, optional
        Policies to try; by default all that are registered. A mapping gives labels.
    format : str, optional
        Format of the file, as for `repro.load`.
    throughputs : ThroughputTable, str or Path, optional
        Throughputs by GPU type of the runs. By default those of the trace.
    drop_bad_rows : bool
        The caller knows of bad rows of the file: they are warnings instead of errors. This has no
        effect on a frame.
    options : mapping, optional
        Options of the format.

    Returns
    -------
    Diagnosis
        Facts, findings, queue under first in, first out, and a trial of each policy.

    Raises
    ------
    ParamError
        If an argument is not accepted.
    TraceError
        If the trace breaks its schema.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> diagnosis = diagnose(small_trace(), "1x2", ["srtf"])
    >>> [(finding.level, finding.code) for finding in diagnosis.findings][:1]
    [('error', 'never-fit')]
    """
    machines = Cluster.parse(cluster)
    table = _throughputs(throughputs, machines)
    chosen = _chosen(policies)
    reader_options = checked_options(options, ("path", "format", "drop_bad_rows"))
    loaded = _loaded(trace, format, reader_options)
    frame = loaded.frame
    facts = describe(frame, machines.num_gpus, machines.gpu_types)
    facts["loads"] = loads.loads_over_time(frame, machines)
    findings = [
        *times.bad_rows(loaded.bad_rows, loaded.fault, dropped_by_user=drop_bad_rows),
        *demands.check_demands(frame, machines),
        *times.check_log(loaded.parsed, machines.num_gpus),
        *times.check_order(loaded.parsed.frame),
        *times.check_repeats(frame),
        *values.check_units(frame),
        *values.check_extremes(frame),
        *demands.check_sizes(frame),
        *loads.check_loads(frame, machines),
    ]
    fitting = frame[demands.fits(frame, machines)]
    tried: dict[str, Trial] = {}
    if len(fitting):
        tried = trials(fitting, machines, chosen, table)
        source = str(trace) if isinstance(trace, str | Path) else "FILE"
        source += f" --format {format}" if format else ""
        findings += findings_of(
            tried,
            frame,
            are_named=policies is not None,
            dress=f"repro trace dress {source} --out dressed.csv samples models for the jobs; "
            "repro compare does so by itself",
            has_types=bool(machines.gpu_types),
        )
    findings += _on_file(facts)
    return Diagnosis(facts, _ordered(findings), queue_of(frame, machines.num_gpus), tried)


def _throughputs(
    throughputs: ThroughputTable | str | Path | None, cluster: Cluster
) -> ThroughputTable | None:
    """Throughput table that the caller passed."""
    if throughputs is None or isinstance(throughputs, ThroughputTable):
        return throughputs
    if not cluster.gpu_types:
        raise ParamError(
            f"throughputs: {cluster} names no GPU types; give a cluster such as 9x4:v100, or leave "
            "throughputs out"
        )
    return load_throughputs(throughputs)


def _chosen(
    listed: Sequence[str | Policy] | Mapping[str, str | Policy] | None,
) -> dict[str, Policy]:
    """Policies by label; without a list, all that are registered."""
    return named_policies(list(policies) if listed is None else listed, rules="paper")


def _loaded(
    trace: pd.DataFrame | str | Path, format: str | None, options: dict[str, Any]
) -> Loaded:
    """Trace with its rows; a frame is checked by the schema."""
    if isinstance(trace, str | Path):
        return load_with_rows(trace, format, drop_bad_rows=True, **options)
    if format is not None or options:
        raise ParamError("format and options: a frame has no reader; leave them out")
    frame = inputs.checked(trace)
    name = str(frame.attrs.get("name", "trace"))
    return Loaded(frame, Parsed(frame, Source(name)), "", {})


def _on_file(facts: Mapping[str, Any]) -> list[Finding]:
    """Findings on columns of the file that the format does not read, and notes of the reader."""
    findings = []
    if facts["unread"]:
        names = ", ".join(facts["unread"])
        text = f"the format does not read the columns {names} of the file"
        findings.append(Finding("note", "file-columns", text, len(facts["unread"])))
    findings += [Finding("note", "reader", note, 1) for note in facts["notes"]]
    return findings


def _ordered(findings: list[Finding]) -> list[Finding]:
    """Findings from the worst to the mildest, without the redundant findings of `_COVERED`."""
    codes = {finding.code for finding in findings}
    covered = {code for better in codes for code in _COVERED.get(better, ())}
    kept = [finding for finding in findings if finding.code not in covered]
    return sorted(kept, key=lambda finding: LEVELS.index(finding.level))
