"""Series of a Gavel figure, from its parameter file to simulated jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import pandas as pd

from repro.base.errors import ParamError, refuse_unknown
from repro.base.units import HOUR_S
from repro.figures.sweep import Case, MeasuredJobs
from repro.model.policy import make
from repro.solve import ecos

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

#: Inputs of a figure that a part of it may replace.
_OWN_INPUTS = ("jobs", "rates", "seeds")
#: Series, x, seed.
Label = tuple[str, float, int]
_TIMES = {"submit_time": "submit_h", "end_time": "end_h", "jct": "jct_h", "duration": "duration_h"}


@dataclass(frozen=True)
class Series:
    """Settings of a series that override the figure's.

    ``to`` is its last rate (jobs/h) on the clusters of the parameter file.
    """

    policy: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    rules: str | None = None
    rounds: Mapping[str, Any] = field(default_factory=dict)
    cluster: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    horizon_h: float = MeasuredJobs.horizon_h
    rates: Sequence[float] | None = None
    seeds: Sequence[int] | None = None
    to: float = math.inf

    @classmethod
    def read(cls, label: str, settings: Mapping[str, Any]) -> Series:
        """Series of a parameter file; unknown keys are refused."""
        names = [field.name for field in fields(cls)]
        refuse_unknown(f"series {label!r}: unknown", settings, names)
        return cls(**settings)


def cases(fig: FigureRun, part: str = "", **changes: Any) -> dict[Label, Case]:
    """All simulations of a figure's series, the longest (largest x) first.

    ``changes`` replace inputs of the figure in a ``part`` of it, such as a panel. If a variation
    changes one of these inputs, a note says that the part keeps its own.

    With the input ``jobs`` (numbers of jobs), all jobs are submitted at time 0. ``rates`` are jobs
    per hour on the paper's cluster, which is ``scale`` times larger than ours. ``measured`` are
    the indices of the first and the last job whose records are kept. `Series.to` applies
    only if the figure's input ``cluster`` is that of the profile or of the paper.
    """
    inputs = {**fig.inputs, **changes}
    series = {label: Series.read(label, values) for label, values in inputs["series"].items()}
    settings = settings_for_available_solver(
        fig, {label: item.settings for label, item in series.items()}
    )
    is_static = "jobs" in inputs
    x_name = "jobs" if is_static else "rates"
    if part:
        _note_own_inputs(fig, part, changes)
    own_clusters = [of_file.get("cluster") for of_file in (fig.file_inputs, fig.paper_inputs)]
    ends_at_last_rate = fig.inputs.get("cluster") in own_clusters
    simulations: dict[Label, Case] = {}
    for label, item in series.items():
        _note_own_inputs(fig, f"series {label}", {x_name: item.rates, "seeds": item.seeds})
        if item.seeds:
            _check_own_seeds(label, item.seeds, inputs["seeds"])
        rules = item.rules or inputs["rules"]
        policy = make(item.policy or label, rules, **settings[label])
        cluster = item.cluster or inputs["cluster"]
        run_settings = {
            "perf": inputs["throughputs"],
            "rounds": {**inputs["rounds"], **item.rounds},
        }
        first, last = (0, None) if is_static else map(int, inputs["measured"])
        measure = MeasuredJobs(first, last, item.horizon_h)
        xs = inputs[x_name]
        for x in xs if item.rates is None else item.rates:
            load = x / inputs["scale"]
            options = {**inputs["options"], **item.options}
            options |= {"jobs": round(load)} if is_static else {"rate": load}
            for number in inputs["seeds"] if item.seeds is None else item.seeds:
                seed = fig.seed + int(number)
                case = Case(
                    inputs["trace"], cluster, policy, rules, seed, options, run_settings, measure
                )
                if not ends_at_last_rate or x <= item.to + 1e-9:
                    simulations[label, float(x), seed] = case
    if not simulations:
        raise ParamError(f"no series has simulations at {list(xs)}; each ends at its `to`")
    return dict(sorted(simulations.items(), key=lambda entry: -entry[0][1]))


def _note_own_inputs(fig: FigureRun, part: str, own: Mapping[str, Any]) -> None:
    """Note the inputs that a variation changes, but not in a part, which has its own."""
    names = [
        name
        for name in _OWN_INPUTS
        if name in fig.variation and own.get(name) not in (None, fig.inputs[name])
    ]
    if names:
        fig.note(f"{part} keeps its own {' and '.join(names)}")


def _check_own_seeds(series: str, own: Sequence[int], seeds: Sequence[int]) -> None:
    """Refuse ``seeds`` that lack a seed of a series which is compared with others by seed."""
    if missing := [seed for seed in own if seed not in seeds]:
        raise ParamError(
            f"seeds: {list(seeds)} lacks {missing[0]}, the seed on which series {series!r} runs, "
            "with which others are compared; add it (-p seed N adds N to every seed)"
        )


def v100_fraction_cases(fig: FigureRun) -> dict[str, dict[Label, Case]]:
    """Simulations on clusters with different fractions of V100s, by key ``jct`` or ``makespan``.

    A role is ``agnostic`` or ``aware`` of throughputs. ``jct`` has series ``V100s: <fraction>
    <role>`` over job rates. ``makespan`` has series ``all <role>`` over fractions of V100s.
    """
    jct_inputs = dict(fig.inputs.jct)
    makespan_inputs = dict(fig.inputs.makespan)
    simulations: dict[str, dict[Label, Case]] = {"jct": {}, "makespan": {}}
    for fraction, rates in jct_inputs["rates"].items():
        series = {
            f"V100s: {fraction} {role}": {
                **jct_inputs[role],
                "cluster": fig.inputs.clusters[fraction],
            }
            for role in ("agnostic", "aware")
        }
        simulations["jct"] |= cases(fig, **{**jct_inputs, "series": series, "rates": rates})
    series = {f"all {role}": makespan_inputs[role] for role in ("agnostic", "aware")}
    for fraction, cluster in fig.inputs.clusters.items():
        changes = {"cluster": cluster, "series": series, "jobs": [makespan_inputs["jobs"]]}
        runs = cases(fig, **{**makespan_inputs, **changes})
        for (label, _, seed), case in runs.items():
            simulations["makespan"][label, float(fraction), seed] = case
    return simulations


def jobs(fig: FigureRun, cases: Mapping[Label, Case]) -> pd.DataFrame:
    """Measured jobs of simulations, times in hours; jct_h is NaN for a job that never ended."""
    results = fig.sweep(cases, fig.inputs.workers)
    frames = [
        result.jobs.assign(series=series, x=x, seed=seed)
        for (series, x, seed), result in results.items()
    ]
    table: pd.DataFrame = pd.concat(frames, ignore_index=True).rename(columns=_TIMES)
    hours = list(_TIMES.values())
    table[hours] = table[hours] / HOUR_S
    order = ["series", "x", "seed", "job_id", *hours]
    return table.reindex(columns=[*order, *table.columns.difference(order, sort=False)])


def end_of_last_round(ends_h: pd.Series[float], unfinished: int, round_h: float) -> float:
    """End (h) of the round in which all jobs but ``unfinished`` have ended.

    The first round starts at 0, and every round takes ``round_h``. The last round is over as soon
    as all jobs have ended.
    """
    last = float(ends_h.nlargest(unfinished + 1).iloc[-1])
    # rounding errors may put a job that ends with a round just after the end of the round
    rounds = math.ceil(last / round_h - 1e-9)
    return min(float(ends_h.max()), rounds * round_h)


def draws(fig: FigureRun) -> pd.DataFrame:
    """Jobs (see `jobs`) of seed 0 under several random streams of a policy, a series each.

    The input ``draws`` has the policy (``of``), the rates and the number of streams.
    """
    policy, rates, streams = (fig.inputs.draws[name] for name in ("of", "rates", "streams"))
    series = {
        f"{policy}, stream {n}": {"policy": policy, "settings": {"stream": n}}
        for n in range(streams)
    }
    return jobs(fig, cases(fig, "the range of draws", series=series, rates=rates, seeds=[0]))


def settings_for_available_solver(
    fig: FigureRun, settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Policy settings of each series.

    If ECOS is not installed, the solver ``centre`` replaces it, and the figure gets a note.
    """
    with_ecos = [label for label, values in settings.items() if "ecos" in values.values()]
    if not with_ecos or ecos.is_installed():
        return {label: dict(values) for label, values in settings.items()}
    fig.note(
        f"ECOS is not installed; computed with the solver centre instead: {', '.join(with_ecos)}"
    )
    return {
        label: {name: "centre" if value == "ecos" else value for name, value in values.items()}
        for label, values in settings.items()
    }


def nearest_rate(jobs: pd.DataFrame, rate: float) -> float:
    """Simulated job rate (jobs/h) nearest to ``rate``; of two, the lower one."""
    rates = jobs["x"].unique()
    return float(min(rates, key=lambda simulated: (abs(simulated - rate), simulated)))


def reference_jct_h(jobs: pd.DataFrame, reference: str) -> pd.Series[float]:
    """JCT (h) of each job in the series ``reference`` at the same x and seed.

    It is NaN if the reference has no such job, or the job never ended there.
    The usual reference is ``isolated``: every job has 1/n of the cluster alone (section 4.2).
    """
    keys = ["x", "seed", "job_id"]
    base = jobs[jobs["series"] == reference].set_index(keys)["jct_h"]
    return jobs[keys].join(base, on=keys)["jct_h"]


def finished(jobs: pd.DataFrame, value: str = "jct_h") -> pd.DataFrame:
    """Jobs of each series and x at which every measured job has a value.

    A job that never ended has no JCT, so its simulation has no mean.
    """
    missing = jobs[value].isna().groupby([jobs["series"], jobs["x"]]).transform("sum")
    return jobs[missing.eq(0)]


def unfinished(jobs: pd.DataFrame) -> pd.DataFrame:
    """Number of measured jobs of all seeds that never ended: series, x, jobs."""
    count = jobs["jct_h"].isna().groupby([jobs["series"], jobs["x"]], sort=False).sum()
    return count[count > 0].rename("jobs").reset_index()


def by_role(runs: pd.DataFrame, value: str) -> pd.DataFrame:
    """Mean of a value by series, x and seed; columns are the roles ``agnostic`` and ``aware``."""
    role = runs["series"].str.extract(r"^(.*?)\s*(agnostic|aware)$")
    runs = runs.assign(series=role[0], role=role[1])
    return runs.pivot_table(index=["series", "x", "seed"], columns="role", values=value)
