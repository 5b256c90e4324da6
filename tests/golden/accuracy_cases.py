"""Cases of `accuracy_cases.csv`: a run of the package and what it is compared with (no tests).

A row stands for every one of its seeds on every one of its clusters. It is compared with the
package's own answer by the simulator's solver (``solver``: the settings of column
``reference_settings``), with a re-implementation in this folder (``reference``), or with what the
unmodified public simulator printed (``original``: the numbers of the row).
"""

from __future__ import annotations

import csv
import tempfile
from dataclasses import dataclass
from pathlib import Path

import gavel_reference_policies
import muri_cases
import muri_reference
import numpy as np
import reference_simulator
import tiresias_cases
from gavel_reference import Job

from repro import load, make, simulate
from repro.cli.settings import parse_settings
from repro.files import public
from repro.papers.pcs import artifact
from repro.perf.throughput_files import PUBLIC, is_stand_in, load_throughputs
from repro.trace import synth

TABLE = Path(__file__).with_name("accuracy_cases.csv")
COLUMNS = (
    "paper",
    "policy",
    "settings",
    "compared_with",
    "reference_settings",
    "workload",
    "seeds",
    "clusters",
    "avg_jct",
    "makespan",
    "source",
)
GPU_TYPES = ("v100", "p100", "k80")
#: Muri's traces that consecutive or sampled jobs are taken from
MURI_TRACES = ("trace1", "trace2", "trace3", "trace4", "trace3-pr", "trace4-pr")


@dataclass(frozen=True)
class Case:
    """One run; ``printed`` holds average JCT and makespan of the original, as text, "" if not."""

    paper: str
    policy: str
    settings: str
    compared_with: str
    reference_settings: str
    workload: str
    seed: int
    cluster: str
    printed: tuple[str, str]


@dataclass(frozen=True)
class Outcome:
    """Relative differences from what a case is compared with; nan where nothing is known.

    ``job_gap`` is the largest of a job's completion, over its JCT.
    """

    jobs: int
    avg_jct: float
    avg_gap: float
    makespan_gap: float
    job_gap: float


def read(path=TABLE):
    """All cases of a table, in its order."""
    with path.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    return [
        Case(
            row["paper"],
            row["policy"],
            row["settings"],
            row["compared_with"],
            row["reference_settings"],
            row["workload"],
            seed,
            cluster,
            (row["avg_jct"], row["makespan"]),
        )
        for row in rows
        for cluster in row["clusters"].split()
        for seed in seeds_of(row["seeds"])
    ]


def seeds_of(text):
    """Whole numbers of ``1-4`` or ``7``."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def missing(case):
    """Say what a case lacks on this machine; "" if it can run."""
    if case.compared_with == "solver" and not installed("ecos"):
        return "the package ecos (extra ecos)"
    if case.paper == "gavel" and is_stand_in(PUBLIC):
        return f"the public file {PUBLIC}"
    name = case.workload.split()[0]
    files = [f"muri-{trace}" for trace in MURI_TRACES] if case.paper == "muri" else []
    files += [f"pcs-{case.workload.split()[1]}"] if name.startswith("pcs-philly") else []
    return next((f"the public file {file}" for file in files if not had(file)), "")


def installed(package):
    """Tell whether a package can be imported."""
    try:
        __import__(package)
    except ImportError:
        return False
    return True


def had(file):
    """Tell whether a public file can be had."""
    try:
        return bool(public.fetch(file))
    except Exception:
        return False


def run(case):
    """What a case comes to."""
    return PAPERS[case.paper](case)


def options_of(text):
    """Name of a workload and its options."""
    name, *pairs = text.split()
    return name, parse_settings(pairs)


def compared(submit, here, there):
    """Outcome of two lists of completions."""
    submit, here, there = (np.asarray(values, float) for values in (submit, here, there))
    jct = (there - submit).mean()
    return Outcome(
        len(here),
        (here - submit).mean(),
        (here - submit).mean() / jct - 1.0,
        here.max() / there.max() - 1.0,
        (np.abs(here - there) / np.maximum(there - submit, 1e-300)).max(),
    )


def against_print(jobs, printed):
    """Outcome of a run whose original is known by printed averages; equal digits are no gap."""
    values = (jobs["jct"].mean(), jobs["end_time"].max())
    gaps = []
    for value, text in zip(values, printed, strict=True):
        if not text:
            gaps.append(np.nan)
            continue
        digits = len(text.partition(".")[2])
        same = abs(value - float(text)) <= 0.501 * 10.0**-digits
        gaps.append(0.0 if same else value / float(text) - 1.0)
    return Outcome(len(jobs), values[0], *gaps, np.nan)


# Gavel ---------------------------------------------------------------------------------------


def gavel(case):
    """A trace of Gavel's generators on GPUs of three types."""
    name, options = options_of(case.workload)
    window = [options.pop(key, None) for key in ("first", "last")]
    rounds = {key: options.pop(key) for key in ("round_s", "ideal") if key in options}
    together = options.pop("together", 0)
    counts = dict(zip(GPU_TYPES, map(int, case.cluster.split(":")), strict=True))
    if case.compared_with == "reference":
        # it works out the shares after the last arrival as the simulator does for a file
        rounds["idle_reset"] = True
    frame = synth.make(name, case.seed, **options)
    # gangs that fit on every type: the simulator gives wider ones shares of types they never run on
    frame = frame[frame["num_gpus"] <= min(counts.values())]
    # both start with the first job: the simulator takes an X computed at 0 for one never computed
    frame["submit_time"] -= frame["submit_time"].min()
    if together:
        frame["submit_time"] = frame["submit_time"] // together * together
    until = None if window[0] is None else range(window[0], window[1] + 1)

    def runs(settings):
        return simulate(
            frame,
            ",".join(f"{n}x{gpu_type}" for gpu_type, n in counts.items()),
            make(case.policy, "gavel", **parse_settings(settings.split())),
            rules="gavel",
            perf=load_throughputs(),
            seed=case.seed,
            rounds=rounds or None,
            until=until,
            keep_intervals=False,
        ).jobs

    here = runs(case.settings)
    if case.compared_with == "original":
        return against_print(
            here if until is None else here[here["job_id"].isin(until)], case.printed
        )
    if case.compared_with == "solver":
        there = runs(case.reference_settings)["end_time"]
    else:
        rows = load_throughputs().rows
        jobs = [
            Job(row.submit_time, row.iterations, row.num_gpus, rows[row.model, row.num_gpus])
            for row in frame.itertuples()
        ]
        there = gavel_reference_policies.run(
            case.policy, jobs, dict(sorted(counts.items())), case.seed
        )
    return compared(here["submit_time"], here["end_time"], there)


# Muri ----------------------------------------------------------------------------------------


def muri(case):
    """Some jobs of a public trace against `muri_reference`; ``muri-queued``: all come at once."""
    rng = np.random.default_rng(case.seed)
    rows = muri_reference.read_rows(public.fetch(f"muri-{rng.choice(MURI_TRACES)}"))
    rows = muri_cases.some_of(rows, rng)
    if case.workload == "muri-queued":
        rows = [row | {"submit_time": 0} for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        both = muri_cases.Both(rows, *map(int, case.cluster.split("x")), Path(folder))
        here, there = both.ends(case.policy, **parse_settings(case.settings.split()))
        return compared(both.frame["submit_time"], here[:, 1], there[:, 1])


# Tiresias ------------------------------------------------------------------------------------


def tiresias(case):
    """Bursts of jobs in whole seconds against `reference_simulator`."""
    _, options = options_of(case.workload)
    rows = tiresias_cases.rows_of(case.seed, options["jobs"])
    nodes, size = map(int, case.cluster.split("x"))
    rows = [(min(width, nodes * size), *times) for width, *times in rows]
    settings = parse_settings(case.settings.split())
    placement = settings.pop("placement", None)
    own = dict(settings)
    if case.policy == "tiresias-g":
        own["history"] = tuple(tiresias_cases.HISTORY)
    chosen = make(case.policy, "tiresias", **own)
    here = simulate(
        tiresias_cases.trace_of(rows), case.cluster, chosen, placement=placement, rules="tiresias"
    ).jobs
    there = tiresias_ends(case.policy, rows, nodes, size, placement, settings)
    return compared(here["submit_time"], here["end_time"], there)


def tiresias_ends(policy, rows, nodes, size, placement, settings):
    """Completions by the re-implementation."""
    fifo = {"yarn-cs": "fifo", "best-effort": "fjf"}
    known = {"sf": "sjf", "srtf": "shortest", "srsf": "shortest-gpu"}
    gpus = nodes * size
    if policy in fifo:
        jobs = reference_simulator.non_preemptive(rows, nodes, size, fifo[policy], placement)
    elif policy in known:
        jobs = reference_simulator.known_durations(rows, gpus, known[policy])
    else:
        limits = settings.get("thresholds", (3250, 7200))
        limits = limits if isinstance(limits, tuple) else (limits,)
        table = None
        if policy == "tiresias-g":
            table = reference_simulator.GittinsTable(tiresias_cases.HISTORY, limits[0])
        jobs = reference_simulator.discretised(
            rows, gpus, limits, knob=settings.get("promote_knob", 0), gittins=table
        )
    return [job.end for job in jobs]


# PCS -----------------------------------------------------------------------------------------


def pcs(case):
    """Runs whose average JCT the authors' result files have, nothing predicted."""
    name, *words = case.workload.split()
    if name == "pcs-workload":
        frame = synth.make(name, case.seed, **parse_settings(words))
        chosen = artifact.policy(case.policy, "gavel", **parse_settings(case.settings.split()))
    else:
        cluster, *rest = words
        frame = load(f"pcs-{cluster}", "pcs").head(parse_settings(rest).get("jobs", 10**9))
        if name == "pcs-philly-front":
            row = artifact.front(cluster).iloc[case.seed]
            chosen = artifact.solution(row)
            case = Case(**{**vars(case), "printed": (repr(float(row["avg_jct_s"])), "")})
        else:
            chosen = artifact.policy(case.policy, cluster)
    jobs = simulate(frame, case.cluster, chosen, rules="pcs", predict=0).jobs
    return against_print(jobs, case.printed)


PAPERS = {"gavel": gavel, "muri": muri, "tiresias": tiresias, "pcs": pcs}
