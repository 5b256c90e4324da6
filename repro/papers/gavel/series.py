"""The series of a Gavel figure, as its parameter file names them: simulated job by job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import pandas as pd

from repro.base.errors import refuse_unknown
from repro.figures.sweep import Case, MeasuredJobs
from repro.model.policy import make
from repro.solve import ecos

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

HOUR_S = 3600.0
#: Series, place in the chart, seed.
Label = tuple[str, float, int]
_TIMES = {"submit_time": "submit_h", "end_time": "end_h", "jct": "jct_h", "duration": "duration_h"}


@dataclass(frozen=True)
class Series:
    """What a series may set where it differs from the figure; ``to`` is the last rate."""

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
    def read(cls, label: str, given: Mapping[str, Any]) -> Series:
        """Return a series of a parameter file."""
        refuse_unknown(f"series {label!r}: unknown", given, [one.name for one in fields(cls)])
        return cls(**given)


def cases(fig: FigureRun, **changes: Any) -> dict[Label, Case]:
    """Return the simulations of a figure's series, those at the highest places, the longest, first.

    With ``jobs`` all are there at time 0; ``rates`` are jobs per hour on the paper's cluster,
    ``scale`` times larger than ours; ``measured`` are the first and last job that count.
    """
    inputs = {**fig.inputs, **changes}
    series = {label: Series.read(label, given) for label, given in inputs["series"].items()}
    settings = solvable(fig, {label: one.settings for label, one in series.items()})
    is_static = "jobs" in inputs
    found: dict[Label, Case] = {}
    for label, one in series.items():
        rules = one.rules or inputs["rules"]
        policy = make(one.policy or label, rules, **settings[label])
        cluster = one.cluster or inputs["cluster"]
        how = {"perf": inputs["throughputs"], "rounds": {**inputs["rounds"], **one.rounds}}
        first, last = (0, None) if is_static else map(int, inputs["measured"])
        measure = MeasuredJobs(first, last, one.horizon_h)
        places = inputs["jobs" if is_static else "rates"]
        for place in places if one.rates is None else one.rates:
            load = place / inputs["scale"]
            options = {**inputs["options"], **one.options}
            options |= {"jobs": round(load)} if is_static else {"rate": load}
            for each in inputs["seeds"] if one.seeds is None else one.seeds:
                seed = fig.seed + int(each)
                case = Case(inputs["trace"], cluster, policy, rules, seed, options, how, measure)
                if place <= one.to + 1e-9:
                    found[label, float(place), seed] = case
    return dict(sorted(found.items(), key=lambda item: -item[0][1]))


def part_cases(fig: FigureRun) -> dict[str, dict[Label, Case]]:
    """Return ``V100s: <part> <role>`` over job rates, and ``all <role>`` over parts of V100s.

    ``<number> jobs <role>`` is the same as ``all`` with the jobs and parts of ``beside``.
    """
    jct = dict(fig.inputs.jct)
    static = dict(fig.inputs.makespan)
    found: dict[str, dict[Label, Case]] = {"jct": {}, "makespan": {}}
    for part, rates in jct["rates"].items():
        series = {
            f"V100s: {part} {role}": {**jct[role], "cluster": fig.inputs.clusters[part]}
            for role in ("agnostic", "aware")
        }
        found["jct"] |= cases(fig, **{**jct, "series": series, "rates": rates})
    beside = fig.inputs.beside
    counts = {"all": static["jobs"], f"{beside['jobs']} jobs": beside["jobs"]}
    for name, parts in zip(counts, (fig.inputs.clusters, beside["parts"]), strict=True):
        series = {f"{name} {role}": static[role] for role in ("agnostic", "aware")}
        for part in parts:
            changes = {"cluster": fig.inputs.clusters[part], "series": series}
            runs = cases(fig, **{**static, **changes, "jobs": [counts[name]]})
            for (label, _, seed), case in runs.items():
                found["makespan"][label, float(part), seed] = case
    return found


def jobs(fig: FigureRun, cases: Mapping[Label, Case]) -> pd.DataFrame:
    """Return all measured jobs of simulations, times in hours; a job without end has no jct_h."""
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


def draws(fig: FigureRun) -> pd.DataFrame:
    """Return x, series and jct_h of seed 0 for draws from other streams of one policy.

    ``draws`` of the parameter file: its name (``of``), rates, and how many streams.
    """
    of, rates, streams = (fig.inputs.draws[name] for name in ("of", "rates", "streams"))
    how = {"policy": of, "rates": rates, "seeds": [0]}
    series = {f"{of}, stream {n}": {**how, "settings": {"stream": n}} for n in range(streams)}
    runs = jobs(fig, cases(fig, series=series))
    return runs.groupby(["x", "series"], sort=False)["jct_h"].mean().reset_index()


def solvable(
    fig: FigureRun, settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return each series' settings, and note it if ``centre`` stands in for Gavel's own solver."""
    theirs = [label for label, given in settings.items() if "ecos" in given.values()]
    if not theirs or ecos.is_installed():
        return {label: dict(given) for label, given in settings.items()}
    fig.note(f"without the solver ECOS, by the centre of the optima: {'; '.join(theirs)}")
    return {
        label: {name: "centre" if value == "ecos" else value for name, value in given.items()}
        for label, given in settings.items()
    }


def over(jobs: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return the jobs with ftf, JCT over that in a series where each is alone (section 4.2)."""
    where = ["x", "seed", "job_id"]
    base = jobs.loc[jobs["series"] == reference, [*where, "jct_h"]].set_index(where)["jct_h"]
    under = base.reindex(pd.MultiIndex.from_frame(jobs[where])).to_numpy()
    return jobs.assign(ftf=jobs["jct_h"] / under)


def makespans(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return series, x, seed and makespan_h: when the last job of each run ended."""
    runs = jobs.groupby(["series", "x", "seed"], sort=False)
    return runs["end_h"].max().reset_index(name="makespan_h")


def unfinished(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return series, x and how many measured jobs of all seeds wait there without end."""
    count = jobs["jct_h"].isna().groupby([jobs["series"], jobs["x"]], sort=False).sum()
    return count[count > 0].rename("jobs").reset_index()


def quotients(runs: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return series, x, seed and quotient: the mean of agnostic over that of aware policies."""
    role = runs["series"].str.extract(r"^(.*?)\s*(agnostic|aware)$")
    runs = runs.assign(series=role[0], role=role[1])
    mean = runs.pivot_table(index=["series", "x", "seed"], columns="role", values=value)
    return (mean["agnostic"] / mean["aware"]).rename("quotient").reset_index()
