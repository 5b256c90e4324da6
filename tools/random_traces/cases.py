"""Random cases: jobs, a cluster, a policy with settings, and options of the run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from repro.engine.elastic import Elastic
from repro.figures.data import stream
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy, make, policies
from repro.model.rules import RULES
from repro.model.share_policy import SharePolicy
from repro.perf.overhead import CheckpointOverhead
from repro.perf.throughput import ThroughputTable
from repro.placement import base as placement_base
from repro.trace.schema import STAGES
from tools.random_traces import settings as random_settings

#: Models of the jobs. The tables of start overheads and of throughputs have them.
MODELS = ("vgg16", "resnet18", "gpt2")
GPU_TYPES = ("v100", "p100", "k80")
#: Multiples of this time (s) are exact when they are added, doubled and shifted.
DYADIC_S = 2.0**-12
MAX_JOBS = 25
#: Policies that let two jobs share GPUs.
PAIRS = ("gandiva-ss", "gavel-fifo-ss", "gavel-las-ss", "gavel-makespan-ss")
PLACEMENTS = ("count", "yarn", "random", "skew", "liquid", "ilp")
#: An integer programme takes 100 times as long as another placement.
_PLACEMENT_SHARES = (0.19, 0.19, 0.19, 0.19, 0.19, 0.05)


@dataclass(frozen=True)
class Case:
    """A policy on random jobs.

    Parameters
    ----------
    policy, rules : str
        Registered name, and rule set.
    seed, index : int
        Together with policy and rule set they decide the case.
    trace : DataFrame
        Jobs.
    cluster : str
        Spec of the cluster.
    unit_s : float
        Typical duration of a job (s); times in settings and options are of this order.
    settings : dict
        Parameters of the policy.
    options : dict
        Further arguments of `repro.simulate`.
    is_dyadic : bool
        Whether submission times and durations are multiples of `DYADIC_S`.
    """

    policy: str
    rules: str
    seed: int
    index: int
    trace: pd.DataFrame
    cluster: str
    unit_s: float
    settings: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    is_dyadic: bool = False

    def made(self) -> Policy:
        """Policy with its settings."""
        return make(self.policy, self.rules, **self.settings)

    def of_rows(self, rows: list[int]) -> Case:
        """The same case with some of its jobs."""
        return replace(self, trace=self.trace.iloc[rows].reset_index(drop=True))


def pairs() -> list[tuple[str, str]]:
    """Every registered policy of the package with every rule set under which it runs."""
    own = [name for name in policies if policies[name].__module__.startswith("repro.")]
    return [(name, rules) for name in sorted(own) for rules in RULES if runs_under(name, rules)]


def runs_under(policy: str, rules: str) -> bool:
    """Whether a policy runs under a rule set: rules with ticks need a compiled division rule."""
    cls = policies[policy]
    return RULES[rules].ticks_per_second == 1 or (issubclass(cls, Elastic) and cls.rule is not None)


def draw(policy: str, rules: str, seed: int, index: int, attempt: int = 0) -> Case:
    """Random case of a policy under a rule set.

    Parameters
    ----------
    policy, rules : str
        Registered name, and rule set.
    seed, index : int
        Seed of all cases, and number of the case.
    attempt : int
        Number of earlier draws of this case that were refused.

    Examples
    --------
    >>> draw("srtf", "paper", 0, 3).trace.equals(draw("srtf", "paper", 0, 3).trace)
    True
    """
    rng = stream("random traces", policy, rules, seed, index, attempt)
    cls = policies[policy]
    is_dyadic = bool(rng.random() < 0.6)
    unit_s = _unit_s(rng, rules, is_dyadic=is_dyadic)
    cluster = _cluster(rng, types_apply=rules != "pcs")
    settings = random_settings.draw(rng, policy, rules, unit_s)
    options = _options(rng, cls, rules, unit_s, cluster)
    parsed = Cluster.parse(cluster)
    widths = _widths(rng, cls, parsed, options.get("placement"))
    table = _throughputs(rng, list(parsed.gpu_types), widths, unit_s)
    trace = _trace(rng, widths, unit_s, table, is_dyadic=is_dyadic)
    if policy == "edf" or rng.random() < 0.2:
        trace["slo"] = rng.choice([0.5, 1.5, 3.0, 20.0], len(trace))
    if table is not None:
        options["perf"] = table
        if rng.random() < 0.1:
            options["types"] = "wished"
            trace["gpu_type"] = _wishes(rng, trace, parsed)
    return Case(policy, rules, seed, index, trace, cluster, unit_s, settings, options, is_dyadic)


def _unit_s(rng: np.random.Generator, rules: str, *, is_dyadic: bool) -> float:
    """Typical duration of a job (s)."""
    # Rules tiresias cut times to whole seconds; under rules muri a start takes up to a minute.
    low = {"tiresias": 4.0, "muri": 9.0}.get(rules, 0.0)
    exponent = rng.uniform(low, 13.0)
    return float(2.0 ** (round(exponent) if is_dyadic else exponent))


def _cluster(rng: np.random.Generator, *, types_apply: bool) -> str:
    """Spec of a small cluster, of equal GPUs or of two or three GPU types."""
    gpus = int(rng.choice([1, 2, 4, 8]))
    if not types_apply or rng.random() < 0.6:
        switches = "2x" if rng.random() < 0.15 else ""
        return f"{switches}{rng.integers(1, 5)}x{gpus}"
    names = rng.permutation(GPU_TYPES)[: rng.integers(2, 4)]
    return ",".join(f"{rng.integers(1, 4)}x{gpus}:{name}" for name in names)


def _widths(
    rng: np.random.Generator, cls: type[Policy], cluster: Cluster, placement: str | None
) -> list[int]:
    """Demands (GPUs) from which those of the jobs are sampled."""
    largest = max(cluster.gpu_types.values(), default=cluster.num_gpus)
    if cls.name == "allox":
        # defined for jobs of one GPU
        return [1]
    rule = placement_base.make(placement or cls.placement)
    placer = rule.bind(cluster, np.random.default_rng(0))
    possible = [width for width in range(1, largest + 1) if placer.possible(width)]
    if rng.random() < 0.6:
        possible = [width for width in possible if width.bit_count() == 1] or possible
    if cls.elastic and rng.random() < 0.2:
        possible.append(2 * largest)
    sort = rng.choice(["all", "narrow", "wide"])
    if sort == "narrow":
        return possible[: max(1, len(possible) // 2)]
    return possible[len(possible) // 2 :] if sort == "wide" else possible


def _times(rng: np.random.Generator, count: int, unit_s: float) -> Any:
    """Submission times (s): bursts, ties, gaps, or a stream."""
    sort = rng.choice(["burst", "ties", "groups", "stream", "gaps"])
    if sort == "burst":
        times = np.zeros(count)
    elif sort == "ties":
        times = rng.integers(0, 4, count) * unit_s
    elif sort == "groups":
        times = np.repeat(np.cumsum(rng.exponential(2 * unit_s, count)), 3)[:count]
    elif sort == "stream":
        times = np.cumsum(rng.exponential(unit_s * rng.choice([0.1, 0.5, 2.0]), count))
    else:
        times = np.arange(count) * 20 * unit_s
    return np.sort(times) + (rng.integers(0, 50) * unit_s if rng.random() < 0.3 else 0.0)


def _durations(rng: np.random.Generator, count: int, unit_s: float) -> Any:
    """Durations (s): equal, of two sizes, or spread; some tiny or huge."""
    sort = rng.choice(["equal", "two", "spread"])
    if sort == "equal":
        durations = np.full(count, unit_s)
    elif sort == "two":
        durations = rng.choice([unit_s, 4 * unit_s], count)
    else:
        durations = unit_s * rng.lognormal(0.0, 1.2, count)
    if rng.random() < 0.3:
        durations = durations * rng.choice([1e-3, 1.0, 30.0], count, p=[0.2, 0.7, 0.1])
    return durations


def _trace(
    rng: np.random.Generator,
    widths: list[int],
    unit_s: float,
    table: ThroughputTable | None,
    *,
    is_dyadic: bool,
) -> pd.DataFrame:
    """Jobs with the columns that policies and rule sets read.

    Durations are whole iterations, because some rule sets count iterations and others seconds.
    """
    count = int(min(MAX_JOBS, 2 + rng.exponential(6.0)))
    submit = _times(rng, count, unit_s)
    if is_dyadic:
        submit = np.round(submit / DYADIC_S) * DYADIC_S
    gpus = rng.choice(widths, count)
    models = rng.choice(MODELS, count)
    stages = rng.choice([0.0, 0.5, 1.0, 2.0, 4.0], (count, len(STAGES)))
    stages[stages.sum(axis=1) == 0, 0] = 1.0
    # a round and a decision of the run are long against an iteration
    iteration_s = stages.sum(axis=1) * unit_s / 1024
    if table is not None:
        keys = zip(models, gpus, strict=True)
        iteration_s = np.array([1 / table.rows[key][table.reference] for key in keys])
    iterations = np.maximum(1.0, np.round(_durations(rng, count, unit_s) / iteration_s))
    stages *= (iteration_s / stages.sum(axis=1))[:, None]
    trace = pd.DataFrame(
        {
            "job_id": rng.permutation(10 * count)[:count],
            "submit_time": submit,
            "duration": iterations * iteration_s,
            "num_gpus": gpus.astype(np.int64),
            "user": rng.choice(["ada", "ben", "cy"], count),
            "vc": rng.choice(["east", "west"], count),
            "model": models,
            "priority": rng.integers(0, 2, count),
            "num_cpus": gpus * rng.choice([1.0, 3.0, 4.0], count),
            "memory_mib": gpus * rng.choice([1024.0, 4096.0], count),
            "iteration_time": iteration_s,
            "iterations": iterations,
            **dict(zip(STAGES, stages.T, strict=True)),
        }
    )
    if rng.random() < 0.3:
        trace["priority_weight"] = rng.choice([0.5, 1.0, 4.0], count)
    if rng.random() < 0.15:
        factors = rng.choice([0.25, 1.0, 2.0], count)
        trace["predicted_duration"] = trace["duration"] * factors
    return trace


def _throughputs(
    rng: np.random.Generator, types: list[str], widths: list[int], unit_s: float
) -> ThroughputTable | None:
    """Throughputs of every model and gang on every GPU type (steps/s); None without types."""
    if not types:
        return None
    kinds = [(model, gpus) for model in MODELS for gpus in sorted(set(widths))]
    is_equal = rng.random() < 0.2
    rows: dict[tuple[str, int], dict[str, float]] = {}
    for model, gpus in kinds:
        exponents = np.zeros(len(types)) if is_equal else rng.integers(-2, 3, len(types))
        # powers of two, so that times of steps are exact
        speeds = 2.0 ** (exponents + gpus.bit_length()) * 256 / unit_s
        rows[model, gpus] = dict(zip(types, speeds.tolist(), strict=True))
    shared = {}
    for model, gpus in kinds:
        for other in MODELS[MODELS.index(model) :]:
            # two jobs without memory for each other have the speed 0
            share = float(rng.choice([0.0, 0.4, 0.6, 0.9]))
            shared[model, other, gpus] = {
                name: (share * rows[model, gpus][name], share * rows[other, gpus][name])
                for name in types
            }
    return ThroughputTable(rows, types[0], shared)


def _wishes(rng: np.random.Generator, trace: pd.DataFrame, cluster: Cluster) -> list[str | None]:
    """GPU type that each job asks for, one with enough GPUs; None: no wish."""
    wishes = []
    for gpus in trace["num_gpus"]:
        wide = [name for name, count in cluster.gpu_types.items() if count >= gpus]
        wishes.append(str(rng.choice(wide)) if wide and rng.random() < 0.7 else None)
    return wishes


def _options(
    rng: np.random.Generator, cls: type[Policy], rules: str, unit_s: float, cluster: str
) -> dict[str, Any]:
    """Options of the run; each has its default in most cases."""
    options: dict[str, Any] = {"seed": int(rng.integers(0, 1000)), "keep_intervals": True}
    has_rounds = issubclass(cls, SharePolicy)
    if has_rounds:
        options["rounds"] = random_settings.draw_rounds(rng, rules, unit_s)
        if cls.name in PAIRS:
            # ideal execution refuses two jobs on the same GPUs
            options["rounds"].pop("ideal", None)
    if rules == "pcs":
        return options
    sort = rng.choice(
        ["none", "interval", "overhead", "placement", "slowdown", "failures", "predict"],
        p=[0.46, 0.1, 0.1, 0.12, 0.06, 0.08, 0.08],
    )
    if sort == "interval" and not has_rounds:
        options["interval"] = unit_s * float(2.0 ** rng.uniform(0, 2))
    elif sort == "overhead" and rules != "muri":
        resume_s = unit_s * float(2.0 ** rng.uniform(-9, -6))
        pause_s = resume_s if rng.random() < 0.5 else 0.0
        options["overhead"] = CheckpointOverhead({}, resume_s, pause_s)
    elif sort == "placement" and not cls.elastic and cls.placement != "wished":
        options["placement"] = str(rng.choice(PLACEMENTS, p=_PLACEMENT_SHARES))
    elif sort == "slowdown" and not cls.elastic and cls.placement != "wished":
        options["slowdown"] = float(rng.choice([1.0, 1.25, 2.0]))
    elif sort == "failures" and not cls.elastic:
        nodes = Cluster.parse(cluster).num_nodes
        mtbf_s = 200 * unit_s * nodes
        options["failures"] = f"mtbf={mtbf_s!r},repair={unit_s / 64!r},checkpoint={unit_s!r}"
    elif sort == "predict":
        options["predict"] = int(rng.integers(0, 3))
    return options
