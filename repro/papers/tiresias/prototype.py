"""The scheduler of Tiresias' testbed as a model: one master, periodic decisions, paid preemptions.

Events follow Pseudocode 2. The master decides once a period and not at every event. A preempted job
keeps its GPUs while it writes a checkpoint (Figure 4, by model), and a resumed job holds them for
`Prototype.resume_s` before it trains. The whole gang stops and starts.

Three parameters are not published. Each follows from one number of Tiresias-L: the resume time from
the seconds lost (13,724 s in 221 preemptions, section 5.2.4), the period from the number of
preemptions (221), and the work of the unpublished jobs from the makespan (27,400 s, section 5.2.2).
All numbers of the other policies, and the completion times of Tiresias-L, are predictions.

Tiresias, NSDI 2019, sections 3.2.3 and 5.2.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from repro.base.errors import InputWarning
from repro.engine.simulate import simulate
from repro.figures import data
from repro.model.policy import make
from repro.model.records import Result, makespan
from repro.placement.tiresias_models import checkpoint_overhead

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

#: Rule set of the prototype's runs in tables and points.
NAME = "prototype"
#: Policy whose numbers the prototype is fitted on.
FITTED_POLICY = "tiresias-l"
#: Fields of `Prototype` that are fitted.
PARAMETERS = ("period", "resume_s", "work")
#: The published numbers that the prototype is fitted on.
FITTED_ON = "Tiresias-L: 221 preemptions, 13,724 s lost, makespan 27,400 s"

#: Periods tried by `fit` are multiples of this (s).
_PERIOD_STEP_S = 5.0
#: Longest period tried (s).
_LONGEST_S = 150.0
#: Relative distance at which `fit` accepts a makespan.
_CLOSE = 0.002
#: `fit` tries at most this number of values of `Prototype.work` for each period, in this range.
_MAX_TRIES = 6
_LEAST_WORK = 0.5
_LARGEST_WORK = 1.5


@dataclass(frozen=True)
class Prototype:
    """Parameters of the testbed's scheduler.

    Parameters
    ----------
    period : float
        Seconds between two decisions of the master.
    resume_s : float
        Seconds for which a resumed job holds its GPUs before it trains.
    work : float
        Factor on the training times of the generator ``testbed``.
    rules : str
        Event rules.
    """

    period: float
    resume_s: float
    work: float
    rules: str = "paper"

    def traces(self, fig: FigureRun) -> dict[Any, pd.DataFrame]:
        """Workloads by label; a user's jobs and other traces keep their durations."""
        name = fig.inputs.trace
        if name != "testbed" or data.is_own(name):
            return fig.traces()
        return {seed: fig.trace(name, seed, work=self.work) for seed in fig.inputs.seeds}

    def run_all(self, fig: FigureRun) -> dict[tuple[str, str, Any], Result]:
        """Every policy of the figure on every workload, by (`NAME`, policy, label)."""
        results = fig.run_all(
            self.traces(fig),
            rules=[self.rules],
            interval=self.period,
            overhead=checkpoint_overhead(self.resume_s),
        )
        return {(NAME, policy, label): result for (_, policy, label), result in results.items()}


class Measured(NamedTuple):
    """Published numbers of Tiresias-L on the testbed."""

    preemptions: float
    overhead: float
    makespan: float


class _Trial(NamedTuple):
    """A prototype with the mean preemptions and the mean makespan (s) of its simulations."""

    prototype: Prototype
    preemptions: float
    makespan: float

    def distance(self, goal: float) -> float:
        """Relative distance of the makespan from ``goal`` (s)."""
        return abs(self.makespan / goal - 1)


def resume_time(measured: Measured) -> float:
    """Seconds to resume a job: the mean cost of a preemption less the mean pause of Figure 4."""
    # not the mean of `CheckpointOverhead.pause`, which has some models under two names
    mean_pause_s = checkpoint_overhead().default_pause
    return measured.overhead / measured.preemptions - mean_pause_s


def fit(
    measured: Measured,
    seeds: Sequence[int],
    cluster: str,
    settings: dict[str, Any],
    start: Prototype,
) -> Prototype:
    """Fit the prototype to three numbers of Tiresias-L.

    The fitted numbers of a prototype are means over the generated workloads. For each period the
    work is the factor that gives the makespan. Among the multiples of 5 s the period is the one
    whose number of preemptions is nearest. Preemptions fall as the period grows, which the
    bisection relies on.

    Parameters
    ----------
    measured : Measured
        Published numbers.
    seeds : sequence of int
        Seeds of the workloads.
    cluster : str
        Cluster spec.
    settings : dict
        Settings of Tiresias-L.
    start : Prototype
        Rules, and the work at which the search begins.

    Returns
    -------
    Prototype
        The fitted prototype.

    Warns
    -----
    InputWarning
        If no work that was tried gives the makespan. The fitted prototype has the nearest one.
    """
    first_guess = replace(start, resume_s=resume_time(measured))
    tried: dict[int, _Trial] = {}

    def preemptions(step: int) -> float:
        """Mean preemptions with a period of so many steps, under the work that fits it."""
        if step not in tried:
            nearest = min(tried, key=lambda other: abs(other - step), default=None)
            work = first_guess.work if nearest is None else tried[nearest].prototype.work
            guess = replace(first_guess, period=step * _PERIOD_STEP_S, work=work)
            tried[step] = _with_makespan(guess, measured.makespan, seeds, cluster, settings)
        return tried[step].preemptions

    low = 1
    high = round(_LONGEST_S / _PERIOD_STEP_S)
    while high - low > 1:
        middle = (low + high) // 2
        if preemptions(middle) > measured.preemptions:
            low = middle
        else:
            high = middle
    best = min((low, high), key=lambda step: abs(preemptions(step) - measured.preemptions))
    fitted = tried[best]
    if fitted.distance(measured.makespan) > _CLOSE:
        warnings.warn(
            f"work {fitted.prototype.work:.3f} is the nearest found for a period of "
            f"{fitted.prototype.period:g} s: it gives a makespan of {fitted.makespan:g} s, not "
            f"{measured.makespan:g} s",
            InputWarning,
            stacklevel=2,
        )
    return fitted.prototype


def _with_makespan(
    guess: Prototype, goal: float, seeds: Sequence[int], cluster: str, settings: dict[str, Any]
) -> _Trial:
    """Trial whose work gives the mean makespan ``goal`` (s), or the nearest trial."""
    trials: list[_Trial] = []
    while len(trials) < _MAX_TRIES:
        preemptions, span = _mean_results(guess, seeds, cluster, settings)
        trials.append(_Trial(guess, preemptions, span))
        if trials[-1].distance(goal) <= _CLOSE:
            break
        work = guess.work * goal / span
        if len(trials) > 1 and span != trials[-2].makespan:
            before = trials[-2]
            slope = (guess.work - before.prototype.work) / (span - before.makespan)
            work = guess.work + (goal - span) * slope
        guess = replace(guess, work=float(np.clip(work, _LEAST_WORK, _LARGEST_WORK)))
    return min(trials, key=lambda trial: trial.distance(goal))


def _mean_results(
    prototype: Prototype, seeds: Sequence[int], cluster: str, settings: dict[str, Any]
) -> tuple[float, float]:
    """Mean preemptions and mean makespan (s) of Tiresias-L over generated workloads."""
    policy = make(FITTED_POLICY, prototype.rules, **settings)
    overhead = checkpoint_overhead(prototype.resume_s)
    results = []
    for seed in seeds:
        jobs, _ = data.open_trace("testbed", seed, work=prototype.work)
        result = simulate(
            jobs,
            cluster,
            policy,
            rules=prototype.rules,
            interval=prototype.period,
            overhead=overhead,
            keep_intervals=False,
        )
        results.append((result.jobs["preemptions"].sum(), makespan(result)))
    preemptions, span = np.mean(results, axis=0)
    return float(preemptions), float(span)
