"""Compare mean JCTs of policies with closed forms of queueing theory: `make validity`.

Simulates the queues of `CASES` at five loads, keeps the results in validity.csv next to this file
and writes the section "Validity" of quality.md. The formulas are those of tests/golden/queueing.py.
``python docs/validity.py --write`` simulates nothing and writes the section.
"""

from __future__ import annotations

import math
import os
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import marks
import numpy as np
import pandas as pd
from scipy.stats import t as student

from repro import simulate, simulate_many
from repro.base.errors import InputWarning
from repro.model.policy import make

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS / "validity.csv"
PAGE = DOCS / "quality.md"
MARK = "validity"
# the formulas lie among the tests
sys.path.insert(0, str(DOCS.parent / "tests" / "golden"))
import queueing as q  # noqa: E402

LOADS = (0.3, 0.5, 0.7, 0.85, 0.95)
#: Columns that identify a row.
KEY = ["queue", "durations", "policy", "settings", "gpus", "run", "quantity", "load"]
#: Jobs whose submission lies in this part of a trace count. Before it the queue is not yet in
#: equilibrium. After it jobs miss the competition of those that would arrive later.
KEPT = (0.3, 0.9)
CONFIDENCE = 0.95
#: Quantum of policies that decide at intervals, in mean durations.
QUANTUM = 0.05


class Size(NamedTuple):
    """Number of replications, and jobs of each by load."""

    replications: int
    jobs: Mapping[float, int]


COMPILED = Size(12, {0.3: 1_500, 0.5: 1_500, 0.7: 3_000, 0.85: 9_000, 0.95: 30_000})
BY_EVENT = Size(8, {0.3: 500, 0.5: 500, 0.7: 1_000, 0.85: 2_400, 0.95: 6_000})
SLOW = Size(8, {0.3: 300, 0.5: 300, 0.7: 600, 0.85: 1_200})
#: One server under FIFO has no control that would narrow the interval at the largest load.
FIFO_BY_EVENT = Size(8, {0.3: 500, 0.5: 500, 0.7: 1_000, 0.85: 2_400})
#: Jobs that are compared with the recursion of FIFO.
FIFO_JOBS = 2_000

#: Formula of the mean JCT of each queue, and the key of its source.
QUEUES = {
    "M/M/c FIFO": (
        "E[S] + C(c, ρ) E[S] / (c (1 − ρ)), with C of Erlang",
        "servers_waiting_time",
    ),
    "M/G/1 FIFO": ("E[S] + λ E[S²] / (2 (1 − ρ))", "waiting_time"),
    "M/G/1 PS": ("E[S] / (1 − ρ)", "processor_sharing"),
    "M/G/c PS": ("that of M/M/c FIFO, for any durations", "servers_processor_sharing"),
    "M/G/1 FB": (
        "E[T(S)], T(x) = λ E[min(S, x)²] / (2 (1 − ρₓ)²) + x / (1 − ρₓ), ρₓ = λ E[min(S, x)]",
        "foreground_background",
    ),
    "M/G/1 multilevel FIFO": (
        "E[T(S)], T(x) = (λ E[min(S, b)²] / (2 (1 − ρ_b)) + x) / (1 − ρₐ) for a < x ≤ b, "
        "with limits a and b of a queue",
        "multilevel_fifo",
    ),
    "M/G/1 SRPT": (
        "E[T(S)], T(x) = λ E[min(S, x)²] / (2 (1 − σ(x−)) (1 − σ(x))) + ∫₀ˣ dt / (1 − σ(t)), "
        "σ(x) = λ E[S; S ≤ x]",
        "shortest_remaining_time",
    ),
    "M/G/1 SJF": (
        "E[S] + E[W(S)], W(x) = λ E[S²] / (2 (1 − σ(x−)) (1 − σ(x)))",
        "shortest_job",
    ),
    "M/M/1 two classes": (
        "E[S_k] + λ E[S²] / (2 (1 − ρ₁ − … − ρ_(k−1)) (1 − ρ₁ − … − ρ_k)), without preemption",
        "priorities",
    ),
    "M/G/1 two classes, preemptive": (
        "E[S_k] / (1 − ρ₁ − … − ρ_(k−1)) + (λ₁ E[S₁²] + … + λ_k E[S_k²]) / "
        "(2 (1 − ρ₁ − … − ρ_(k−1)) (1 − ρ₁ − … − ρ_k))",
        "preemptive_priorities",
    ),
    "M/G/1 Gittins": (
        "P(s) T(s) + P(l) T(l), T(s) = s + λ (s² + P(l) r²) / (2 (1 − λ s)), "
        "T(l) = λ E[S²] / (2 (1 − ρ) (1 − λ s)) + (l − r) / (1 − λ s) + r, "
        "r = min(s / P(s), E[S])",
        "gittins_two_durations",
    ),
    "M/G/1 work-conserving": (
        "SRPT ≤ mean JCT ≤ (E[S] + λ E[S²] / (2 (1 − ρ))) / (1 − ρ)",
        "busy_period",
    ),
    "M/G/c FIFO": (
        "E[S²] / (2 E[S]) (1 / (c (1 − ρ)) − 1) ≤ mean JCT − E[S] ≤ "
        "λ (1 / λ² + Var[S] / c + (c − 1) E[S]² / c²) / (2 (1 − ρ))",
        "servers_bounds",
    ),
}
#: Queues whose jobs go in order of arrival, so that each end follows from a recursion.
FIFO_QUEUES = ("M/M/c FIFO", "M/G/1 FIFO", "M/G/c FIFO")
JCT = "JCT"
#: Quantities of one phase of the durations, and its number.
CLASSES = {"JCT, class 1": 0, "JCT, class 2": 1}
#: Reasons of an interval without the closed form. ``CHANCE``: one with new seeds has it.
CHANCE = "chance"
UNEXPLAINED = "unexplained"
RARE = "few jobs wait"
#: Number of waiting jobs below which replications are too different for an interval.
FEW = 1_000
COLUMNS = [
    *KEY,
    *("jobs", "low", "high", "simulated", "half_width", "fifo_gap"),
    *("repeated", "repeated_half_width", "reason"),
]

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Case:
    """Queue, policy that makes it, and closed form, at every load.

    ``quantities`` has a closed form of the load for each name of a quantity. A pair of numbers is
    a lower and an upper bound.
    """

    queue: str
    durations: str
    policy: str
    quantities: Mapping[str, Callable[[float], float | Bounds]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: further columns of the trace
    columns: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    servers: int = 1
    gang: int = 1
    cluster: str = ""
    placement: str | None = "count"
    run: str = "compiled"
    size: Size = COMPILED
    #: why the closed form is approximate for this policy; empty if it is exact
    approximate: str = ""
    rounds: Mapping[str, Any] | None = None

    @property
    def law(self) -> q.Law:
        """Distribution of the durations."""
        return q.LAWS[self.durations]

    @property
    def settings_text(self) -> str:
        """Settings of the policy, and of rounds."""
        texts = [f"{name}={_text(value)}" for name, value in self.settings.items()]
        texts += [f"{name}={value}" for name, value in (self.rounds or {}).items()]
        return " ".join(texts)

    @property
    def gpus(self) -> str:
        """GPUs of the cluster, and demand of a job if it is above 1."""
        number = str(self.servers * self.gang)
        return number if self.gang == 1 else f"{number}, gangs of {self.gang}"

    def trace(self, load: float, jobs: int, seed: int) -> pd.DataFrame:
        """Jobs of one replication."""
        frame = q.poisson_trace(
            self.law, load, jobs, servers=self.servers, gpus=self.gang, seed=seed
        )
        return frame if self.columns is None else self.columns(frame)

    def jcts(self, traces: Sequence[pd.DataFrame]) -> list[np.ndarray]:
        """JCT of each job of each trace."""
        cluster = self.cluster or f"1x{self.servers}"
        policy = make(self.policy, **self.settings)
        with warnings.catch_warnings():
            # policies whose baseline is the queue of the closed form say so
            warnings.simplefilter("ignore", InputWarning)
            if self.run == "batch":
                runs = simulate_many(list(traces), cluster, policy, keep_jct=True, workers=1)
                return list(runs["jct"])
            processes = [_no_process] if self.run == "by event" else []
            return [
                simulate(
                    trace,
                    cluster,
                    policy,
                    placement=self.placement,
                    rounds=self.rounds,
                    keep_intervals=False,
                    processes=processes,
                )
                .jobs["jct"]
                .to_numpy()
                for trace in traces
            ]


def _no_process(engine: Any) -> Iterator[Any]:
    """Process that does nothing. A run with a process goes through SimPy, event by event."""
    yield engine.env.timeout(0)


def _text(value: Any) -> str:
    return ",".join(f"{number:g}" for number in np.atleast_1d(value))


def _one(formula: Callable[..., float], law: str, *arguments: Any) -> dict[str, Any]:
    """Closed form of the mean JCT."""
    return {JCT: lambda load: formula(q.LAWS[law], load, *arguments)}


def _classes(formula: Callable[..., float], law: str) -> dict[str, Any]:
    """Closed forms of the mean JCTs of the two phases."""
    return {
        name: lambda load, number=number: formula(q.LAWS[law], load, number)
        for name, number in CLASSES.items()
    }


def _bounds(
    lower: Callable[..., float], upper: Callable[..., float], law: str, *arguments: Any
) -> dict[str, Any]:
    """Bounds of the mean JCT."""

    def pair(load: float) -> Bounds:
        return lower(q.LAWS[law], load, *arguments), upper(q.LAWS[law], load, *arguments)

    return {JCT: pair}


def _deadlines(trace: pd.DataFrame) -> pd.DataFrame:
    """Give class 1 its submission as deadline, and class 2 none."""
    return trace.assign(slo=np.where(trace["phase"] == 0, 1e-9, np.nan))


def _class_as_size(trace: pd.DataFrame) -> pd.DataFrame:
    """Predict duration 1 for class 1, and 2 for class 2."""
    return trace.assign(predicted_duration=1.0 + trace["phase"])


def _cases() -> Iterator[Case]:
    """All cases, in the order of the tables."""
    laws = tuple(q.LAWS)
    by_event = partial(Case, run="by event", size=BY_EVENT)
    slow = partial(Case, run="by event", size=SLOW)
    for servers in (4, 16):
        form = _one(q.servers_fifo, "exponential", servers)
        yield by_event("M/M/c FIFO", "exponential", "yarn-cs", form, servers=servers)
    form = _one(q.servers_fifo, "exponential", 16)
    yield by_event("M/M/c FIFO", "exponential", "best-effort", form, servers=16)
    form = _one(q.servers_fifo, "exponential", 4)
    yield by_event(
        "M/M/c FIFO",
        "exponential",
        "yarn-cs",
        form,
        servers=4,
        gang=4,
        cluster="4x4",
        placement="yarn",
    )
    for servers in (4, 16, 64):
        form = _one(q.servers_fifo, "exponential", servers)
        yield Case("M/M/c FIFO", "exponential", "fifo-elastic", form, servers=servers)
    for law in laws:
        yield by_event("M/G/1 FIFO", law, "yarn-cs", _one(q.fifo, law), size=FIFO_BY_EVENT)
    for law in laws:
        yield Case("M/G/1 FIFO", law, "fifo-elastic", _one(q.fifo, law))
    for law in laws:
        yield Case("M/G/1 PS", law, "max-min", _one(q.processor_sharing, law))
    form = _one(q.processor_sharing, "hyperexponential")
    yield slow("M/G/1 PS", "hyperexponential", "max-min", form)
    yield slow("M/G/1 PS", "hyperexponential", "gavel-las", form, rounds={"ideal": "fluid"})
    slice_s = {"slice_s": QUANTUM}
    yield slow("M/G/1 PS", "hyperexponential", "gandiva", form, slice_s, approximate="time slices")
    for law in ("exponential", "hyperexponential", "deterministic"):
        form = _one(q.servers_processor_sharing, law, 4)
        yield Case("M/G/c PS", law, "max-min", form, servers=4)
    for law in laws:
        form = _one(q.foreground_background, law)
        yield Case("M/G/1 FB", law, "las-2d", form, {"quantum": QUANTUM}, approximate="quantum")
    form = _one(q.foreground_background, "deterministic")
    for quantum in (4 * QUANTUM, QUANTUM / 4):
        settings = {"quantum": quantum}
        yield Case("M/G/1 FB", "deterministic", "las-2d", form, settings, approximate="quantum")
    form = _one(q.foreground_background, "hyperexponential")
    settings = {"quantum": QUANTUM}
    yield slow("M/G/1 FB", "hyperexponential", "las-2d", form, settings, approximate="quantum")
    for law in laws:
        form = _one(q.multilevel_fifo, law, (0.7,))
        yield Case("M/G/1 multilevel FIFO", law, "tiresias-l", form, {"thresholds": (0.7,)})
    limits = (0.3, 1.0, 3.0)
    for case in (Case, slow):
        form = _one(q.multilevel_fifo, "hyperexponential", limits)
        settings = {"thresholds": limits}
        yield case("M/G/1 multilevel FIFO", "hyperexponential", "tiresias-l", form, settings)
    for law in laws:
        yield Case("M/G/1 SRPT", law, "srtf", _one(q.shortest_remaining_time, law))
    form = _one(q.shortest_remaining_time, "hyperexponential")
    yield Case("M/G/1 SRPT", "hyperexponential", "srtf", form, run="batch", placement=None)
    yield by_event("M/G/1 SRPT", "hyperexponential", "srtf", form)
    for policy in ("srsf-elastic", "afs"):
        yield Case("M/G/1 SRPT", "hyperexponential", policy, form)
    for law in laws:
        yield by_event("M/G/1 SJF", law, "sjf", _one(q.shortest_job, law))
    form = _classes(q.priorities, "hyperexponential")
    yield by_event("M/M/1 two classes", "hyperexponential", "sjf", form, columns=_class_as_size)
    form = _classes(q.preemptive_priorities, "hyperexponential")
    queue = "M/G/1 two classes, preemptive"
    yield by_event(queue, "hyperexponential", "edf", form, columns=_deadlines)
    form = _classes(q.preemptive_priorities, "two durations")
    settings = {"thresholds": (1.0,), "weights": (1.0, 1e-9)}
    yield Case(queue, "two durations", "pcs", form, settings)
    form = _one(q.gittins_two_durations, "two durations")
    history = {"history": (0.45, 0.45, 0.45, 0.45, 3.2)}
    for quantum in (4 * QUANTUM, QUANTUM):
        settings = {**history, "quantum": quantum}
        yield slow(
            "M/G/1 Gittins",
            "two durations",
            "gittins-2d",
            form,
            settings,
            approximate="quantum",
        )
    for law in ("hyperexponential", "two durations"):
        form = _bounds(q.shortest_remaining_time, q.busy_period, law)
        yield Case("M/G/1 work-conserving", law, "themis", form)
        settings = {"thresholds": (1.0,), "weights": (1.0, 1.0)}
        yield Case("M/G/1 work-conserving", law, "pcs", form, settings)
    for law in ("hyperexponential", "deterministic", "two durations"):
        form = _bounds(q.servers_lower_bound, q.servers_upper_bound, law, 4)
        yield Case("M/G/c FIFO", law, "fifo-elastic", form, servers=4)


CASES = tuple(_cases())


class Estimate(NamedTuple):
    """Mean with the half width of its interval."""

    mean: float
    half_width: float

    def misses(self, expected: float | Bounds) -> bool:
        """Whether the interval lacks the closed form, or lies outside the bounds."""
        low, high = _pair(expected)
        rounding = 1e-9 * high
        return (
            self.mean + self.half_width < low - rounding
            or self.mean - self.half_width > high + rounding
        )


def _pair(expected: float | Bounds) -> Bounds:
    """Lower and upper bound; of a closed form twice the same."""
    return expected if isinstance(expected, tuple) else (expected, expected)


def estimate(values: np.ndarray, controls: np.ndarray) -> Estimate:
    """Mean of independent replications, by a regression on controls.

    Controls, (replications, controls), are other means of the same replications minus their
    expected values. Lavenberg and Welch, A perspective on the use of control variables (1981).
    """
    regressors = np.column_stack([np.ones(len(values)), controls])
    inverse = np.linalg.pinv(regressors.T @ regressors, rcond=1e-12)
    coefficients = inverse @ regressors.T @ values
    residuals = values - regressors @ coefficients
    freedom = len(values) - np.linalg.matrix_rank(regressors)
    error = math.sqrt(residuals @ residuals / freedom * inverse[0, 0])
    return Estimate(
        float(coefficients[0]), float(student.ppf((1 + CONFIDENCE) / 2, freedom) * error)
    )


def simulated(case: Case, load: float, size: Size, first_seed: int) -> dict[str, Estimate]:
    """Estimate of each quantity; the seeds of the replications follow each other."""
    jobs = size.jobs[load]
    seeds = range(first_seed, first_seed + size.replications)
    traces = [case.trace(load, jobs, seed) for seed in seeds]
    jcts = case.jcts(traces)
    kept = slice(int(KEPT[0] * jobs), int(KEPT[1] * jobs))
    durations = np.array([trace["duration"].to_numpy()[kept].mean() for trace in traces])
    durations -= case.law.mean
    gaps = np.array([np.diff(trace["submit_time"].to_numpy()[kept]).mean() for trace in traces])
    gaps -= case.law.mean / (load * case.servers)
    single = np.array([_single_server(trace, case.servers)[kept].mean() for trace in traces])
    estimates = {}
    for name in case.quantities:
        number = CLASSES.get(name)
        values = []
        for trace, jct in zip(traces, jcts, strict=True):
            phases = trace["phase"].to_numpy()[kept]
            of_class = np.ones(len(phases), bool) if number is None else phases == number
            # divided by the number of jobs found, the mean of a class would be biased: a
            # replication with more long jobs has a longer queue, too
            share = 1.0 if number is None else case.law.p[number]
            values.append(jct[kept][of_class].sum() / (share * len(phases)))
        # a control that is the result itself would leave nothing to estimate
        is_single = np.allclose(values, single)
        known = q.fifo(case.law, load) / case.servers
        controls = np.column_stack([durations, gaps if is_single else single - known])
        estimates[name] = estimate(np.array(values), controls)
    return estimates


def _single_server(trace: pd.DataFrame, servers: int) -> np.ndarray:
    """JCT of each job under FIFO on one server that is ``servers`` times as fast."""
    durations = trace["duration"].to_numpy() / servers
    submits = trace["submit_time"].to_numpy()
    # recursion of Lindley: a wait is the height of a random walk above its minimum
    steps = durations[:-1] - np.diff(submits)
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    return walk - np.minimum.accumulate(walk) + durations


def fifo_gap(case: Case, load: float, jobs: int) -> float:
    """Largest relative difference of a JCT from the recursion of Kiefer and Wolfowitz."""
    trace = case.trace(load, jobs, seed=1)
    submits = trace["submit_time"].to_numpy()
    ends = q.fifo_ends(submits, trace["duration"].to_numpy(), case.servers)
    expected = ends - submits
    return float(np.max(np.abs(case.jcts([trace])[0] - expected) / expected))


def rows(case: Case, load: float) -> list[dict[str, Any]]:
    """Rows of one case at one load, one for each quantity."""
    size = case.size
    estimates = simulated(case, load, size, first_seed=1)
    expected = {name: formula(load) for name, formula in case.quantities.items()}
    gap = fifo_gap(case, load, FIFO_JOBS) if case.queue in FIFO_QUEUES else math.nan
    again: dict[str, Estimate] = {}
    if any(found.misses(expected[name]) for name, found in estimates.items()):
        twice = Size(2 * size.replications, size.jobs)
        again = simulated(case, load, twice, first_seed=1 + size.replications)
    made = []
    for name, found in estimates.items():
        low, high = _pair(expected[name])
        row = {
            "queue": case.queue,
            "durations": case.durations,
            "policy": case.policy,
            "settings": case.settings_text,
            "gpus": case.gpus,
            "run": case.run,
            "quantity": name,
            "load": load,
            "jobs": size.replications * size.jobs[load],
            "low": low,
            "high": high,
            "simulated": found.mean,
            "half_width": found.half_width,
            "fifo_gap": gap,
        }
        if found.misses(expected[name]):
            row["repeated"], row["repeated_half_width"] = again[name]
            row["reason"] = CHANCE
            if again[name].misses(expected[name]):
                row["reason"] = case.approximate or _doubt(case, load)
        made.append(row)
    return made


def _doubt(case: Case, load: float) -> str:
    """Reason why an interval is too narrow, if it is known."""
    waiting = q.erlang_c(case.servers, load) * case.size.jobs[load] * case.size.replications
    return RARE if waiting < FEW else UNEXPLAINED


def timed_rows(case: Case, load: float) -> tuple[list[dict[str, Any]], float]:
    """Rows of one case at one load, and CPU time (s)."""
    started = time.process_time()
    made = rows(case, load)
    return made, time.process_time() - started


def results(workers: int) -> tuple[pd.DataFrame, float]:
    """Rows of all cases in processes, and CPU time (s)."""
    calls = [(case, load) for case in CASES for load in case.size.jobs]
    # long runs first
    order = sorted(range(len(calls)), key=lambda number: -calls[number][1])
    parallel = joblib.Parallel(n_jobs=workers)
    outcomes = parallel(joblib.delayed(timed_rows)(*calls[number]) for number in order)
    by_call = dict(zip(order, outcomes, strict=True))
    made = [row for number in range(len(calls)) for row in by_call[number][0]]
    return pd.DataFrame(made, columns=COLUMNS), sum(cpu_s for _, cpu_s in outcomes)


def stored() -> pd.DataFrame:
    """Committed rows."""
    texts = dict.fromkeys(["settings", "reason", "gpus"], str)
    frame = pd.read_csv(RESULTS, dtype=texts)
    return frame.fillna({"settings": "", "reason": ""})


def percent(error: float, half_width: float) -> str:
    """Relative error with the half width of its interval, in per cent without the sign."""
    digits = 1 if half_width >= 0.001 else 2
    return f"{100 * error:+.{digits}f} ± {100 * half_width:.{digits}f}".replace("-", "−")


def section(frame: pd.DataFrame) -> str:
    """Text of the section."""
    is_bound = frame["low"] != frame["high"]
    exact = frame[~is_bound]
    missed = exact[exact["reason"] != ""]
    by_chance = (missed["reason"] == CHANCE).sum()
    gaps = frame["fifo_gap"].dropna()
    texts = [
        f"- The table has {len(frame):,} rows of {frame['jobs'].sum():,} jobs together. "
        f"{len(exact):,} rows have a closed form, and {is_bound.sum()} have bounds.",
        f"- {len(exact) - len(missed):,} of {len(exact):,} intervals contain the closed form.",
        f"- {by_chance} intervals contain it with new seeds and twice the jobs. About "
        f"{0.05 * len(exact):.0f} of {len(exact):,} intervals of 95 % are expected to miss by "
        "chance.",
        f"- {len(missed) - by_chance} intervals do not contain it, for the reasons in the table of "
        "these intervals.",
        f"- {(frame[is_bound]['reason'] == '').sum()} of {is_bound.sum()} rows with bounds have an "
        "interval that overlaps the range between the bounds.",
        f"- Under FIFO each JCT of {len(gaps)} traces was compared with the recursion of Kiefer "
        f"and Wolfowitz (1955). The largest relative difference is {gaps.max():.0e}.",
    ]
    lines = [
        *(textwrap.fill(text, 120, subsequent_indent="  ") for text in texts),
        "",
        textwrap.fill(
            "Relative error of the mean JCT (%) with its interval, by load. A **bold** interval "
            "does not contain zero. The column *holds at* has the loads at which the interval "
            "contains the closed form, if need be with new seeds (reason `chance`).",
            120,
        ),
        "",
        *_error_table(exact),
        "",
        "Errors whose interval does not contain zero (%), and the errors with new seeds and twice "
        "the jobs:",
        "",
        *_missed_table(missed),
        "",
        "Mean JCT between its bounds, in units of the mean duration, by load:",
        "",
        *_bounds_table(frame[is_bound]),
        "",
        "Formulas:",
        "",
        *_formulas(),
    ]
    return "\n".join(lines)


def _formulas() -> list[str]:
    """Table of queues with formula and source."""
    lines = ["| queue | mean JCT | source |", "|---|---|---|"]
    for queue, (formula, source) in QUEUES.items():
        lines.append(f"| {queue} | {formula} | {q.SOURCES[source]} |")
    return lines


def _label(row: Any) -> list[str]:
    """Cells that name a row."""
    policy = f"`{row.policy}`" + (f", `{row.settings}`" if row.settings else "")
    queue = row.queue if row.quantity == JCT else f"{row.queue}, {row.quantity.partition(', ')[2]}"
    return [queue, row.durations, policy, row.gpus, row.run]


def _by_load(frame: pd.DataFrame) -> Iterator[tuple[list[str], dict[float, Any]]]:
    """Cells that name a row, and its results by load."""
    names = [name for name in KEY if name != "load"]
    for _, group in frame.groupby(names, sort=False):
        found = {row.load: row for row in group.itertuples()}
        yield _label(next(iter(found.values()))), found


def _head(*last: str) -> list[str]:
    names = ["queue", "durations", "policy", "GPUs", "run", *(f"{load:g}" for load in LOADS), *last]
    return [
        f"| {' | '.join(names)} |",
        "|---|---|---|---|---|" + "---:|" * len(LOADS) + "---|" * len(last),
    ]


def _error_table(frame: pd.DataFrame) -> list[str]:
    lines = _head("holds at")
    for cells, by_load in _by_load(frame):
        holds = []
        for load in LOADS:
            row = by_load.get(load)
            if row is None:
                cells.append("–")
                continue
            text = percent(row.simulated / row.low - 1, row.half_width / row.low)
            cells.append(f"**{text}**" if row.reason else text)
            if row.reason in ("", CHANCE):
                holds.append(load)
        text = "all" if len(holds) == len(by_load) else ", ".join(f"{load:g}" for load in holds)
        lines.append(f"| {' | '.join([*cells, text or 'none'])} |")
    return lines


def _missed_table(frame: pd.DataFrame) -> list[str]:
    lines = [
        "| queue | durations | policy | GPUs | run | load | error | with new seeds | reason |",
        "|---|---|---|---|---|---:|---:|---:|---|",
    ]
    for row in frame.itertuples():
        cells = [*_label(row), f"{row.load:g}"]
        cells.append(percent(row.simulated / row.low - 1, row.half_width / row.low))
        cells.append(percent(row.repeated / row.low - 1, row.repeated_half_width / row.low))
        lines.append(f"| {' | '.join([*cells, row.reason])} |")
    return lines


def _bounds_table(frame: pd.DataFrame) -> list[str]:
    lines = _head()
    for cells, by_load in _by_load(frame):
        for load in LOADS:
            row = by_load[load]
            text = f"{row.low:.2f} ≤ {row.simulated:.2f} ± {row.half_width:.2f} ≤ {row.high:.2f}"
            cells.append(f"**{text}**" if row.reason else text)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Simulate all cases unless told to write only, then write the section."""
    if "--write" not in sys.argv[1:]:
        frame, cpu_s = results(int(os.environ.get("JOBS", "2")))
        frame.to_csv(RESULTS, index=False, float_format="%.10g", lineterminator="\n")
        print(f"{RESULTS.name} written, {cpu_s:.0f} s of CPU time")
    marks.write(PAGE, MARK, section(stored()))


if __name__ == "__main__":
    main()
