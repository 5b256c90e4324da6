"""Searches for a Pareto front in a box: SPEA2, NSGA-II, a Gaussian process, random points."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, rankdata

from repro.base.errors import ParamError
from repro.base.extras import needed_for
from repro.base.typing import Flags, Floats

#: Points (rows) to objectives (rows), all minimised; infinite for an impossible point. The second
#: argument is a front or None. For a point that the front dominates, the function may return lower
#: bounds in place of the exact objectives.
Evaluate = Callable[[Floats, Floats | None], Floats]
#: Yields points and is sent their objectives.
Proposals = Generator[Floats, Floats, None]

#: Candidates of the Gaussian process, and points it proposes per generation.
_CANDIDATES = 400
_PROPOSED = 10
#: Share of the candidates near points of the front.
_NEAR_SHARE = 0.5
#: A candidate near the front is a point of the front plus a normal step in each variable. Standard
#: deviation of the step, as a fraction of the box.
_NEAR_SD = 0.05
#: Distribution index eta of crossover and mutation.
_ETA = 20.0


@dataclass(frozen=True)
class Method:
    """Search algorithm and its budget.

    Parameters
    ----------
    name : {"spea2", "nsga2", "gaussian-process", "random"}
        Two evolutionary algorithms, Thompson sampling from a model of the objectives, and points
        sampled evenly from the box.
    budget : int
        Number of evaluations.
    population, offspring : int
        Number of points of the first and of each later generation. The best of each generation
        survive, as many as in the first. The Gaussian process uses ``population`` only.

    Raises
    ------
    ParamError
        If the algorithm is unknown, a number of points is below 2, or the budget is too small.

    Examples
    --------
    >>> Method("nsga2", budget=10).population
    Traceback (most recent call last):
    repro.base.errors.ParamError: budget is 10; give at least the population, which is 70
    """

    name: str = "spea2"
    budget: int = 370
    population: int = 70
    offspring: int = 100

    def __post_init__(self) -> None:
        if self.name not in _METHODS:
            raise ParamError(f"no search {self.name!r}; accepted: {', '.join(_METHODS)}")
        for field in ("population", "offspring"):
            if getattr(self, field) < 2:
                raise ParamError(f"{field} is {getattr(self, field)}; give 2 or more")
        if self.budget < self.population:
            raise ParamError(
                f"budget is {self.budget}; give at least the population, which is {self.population}"
            )

    @classmethod
    def of(cls, method: "Method | str | None") -> "Method":
        """``method`` itself, or the method of a name with the default budget; None: the default."""
        if isinstance(method, Method):
            return method
        if method is None:
            return cls()
        if not isinstance(method, str):
            raise ParamError(
                f"a search method is {method!r:.60}; give a Method or its name: "
                f"{', '.join(_METHODS)}"
            )
        return cls(method)

    @property
    def learns(self) -> bool:
        """Whether later points depend on the objectives of earlier ones."""
        return self.name != "random"


class Searched(NamedTuple):
    """Evaluated points in order, and their objectives."""

    points: Floats
    values: Floats


def search_front(
    evaluate: Evaluate,
    low: Floats,
    high: Floats,
    method: Method | str | None = None,
    *,
    seed: int = 0,
    watch: Callable[[Searched], None] | None = None,
) -> Searched:
    """Search a box for nondominated points.

    Parameters
    ----------
    evaluate : callable
        Function from points, shape (number, variables), and the front so far to objectives; see
        `Evaluate`. The front is None where the search needs exact objectives.
    low, high : array, shape (variables,)
        The box.
    method : Method or str, optional
        Search algorithm and its budget, or the name of the algorithm.
    seed : int
        Seed of all random numbers; the same seed and objectives give the same points.
    watch : callable, optional
        Called with all points so far after each generation.

    Returns
    -------
    Searched
        All evaluated points, (budget, variables), and their objectives, (budget, objectives), in
        order; `nondominated` finds the front.

    Raises
    ------
    ParamError
        If no algorithm has the name.
    ExtraMissingError
        If the package of the algorithm (pymoo, scikit-learn) is not installed.

    References
    ----------
    PCS, arXiv 2401.10354, section 3.4 (SPEA2).

    Examples
    --------
    >>> def both(points, front):
    ...     return np.column_stack([points[:, 0], 1 - points[:, 0] + points[:, 1]])
    >>> searched = search_front(both, np.zeros(2), np.ones(2), Method(budget=470))
    >>> bool(searched.points[nondominated(searched.values), 1].max() < 0.1)
    True
    """
    method = Method.of(method)
    low = np.asarray(low, float)
    high = np.asarray(high, float)
    proposals = _METHODS[method.name](low, high, method, np.random.default_rng(seed))
    batch = next(proposals)
    evaluated = Searched(np.empty((0, len(low))), np.empty((0, 0)))
    while True:
        batch = batch[: method.budget - len(evaluated.points)]
        is_last = len(evaluated.points) + len(batch) == method.budget
        # lower bounds suffice if no later point depends on the objectives of this batch
        bounds_suffice = bool(len(evaluated.points)) and (is_last or not method.learns)
        front = evaluated.values[nondominated(evaluated.values)] if bounds_suffice else None
        values = np.asarray(evaluate(batch, front), float)
        earlier = evaluated.values.reshape(-1, values.shape[1])
        evaluated = Searched(np.vstack([evaluated.points, batch]), np.vstack([earlier, values]))
        if watch is not None:
            watch(evaluated)
        if is_last:
            return evaluated
        batch = proposals.send(values)


def nondominated(values: Floats) -> Flags:
    """Mask of the nondominated rows (the front); of equal rows only the first.

    Parameters
    ----------
    values : array, shape (points, objectives)
        Smaller is better; rows with an infinite value are never on the front.

    Returns
    -------
    array of bool, shape (points,)
        True for the rows of the front.

    Examples
    --------
    >>> nondominated(np.array([[1, 2], [2, 1], [2, 2], [1, 2], [0, np.inf]])).tolist()
    [True, True, False, False, False]
    """
    values = np.asarray(values, float)
    first = np.zeros(len(values), bool)
    first[np.unique(values, axis=0, return_index=True)[1]] = True
    chosen = np.flatnonzero(first & np.isfinite(values).all(axis=1))
    kept = values[chosen]
    dominated = [bool(((kept <= row).all(axis=1) & (kept < row).any(axis=1)).any()) for row in kept]
    front = np.zeros(len(values), bool)
    front[chosen[~np.array(dominated, bool)]] = True
    return front


def hypervolume(values: Floats, reference: Floats) -> float:
    """Hypervolume of the rows up to a reference point.

    Parameters
    ----------
    values : array, shape (points, objectives)
        Smaller is better; a row must be better than the reference in every objective to count.
    reference : array, shape (objectives,)
        Reference point.

    Returns
    -------
    float
        Volume that the rows dominate, in the product of the units of the objectives.

    Raises
    ------
    ExtraMissingError
        If pymoo is not installed.

    Examples
    --------
    >>> hypervolume(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 2.0]))
    3.0
    """
    with needed_for("the hypervolume of a front"):
        from pymoo.indicators.hv import HV

    values = np.asarray(values, float)
    inside = values[(values < reference).all(axis=1)]
    return float(HV(ref_point=np.asarray(reference, float))(inside)) if len(inside) else 0.0


def _random_points(
    low: Floats, high: Floats, method: Method, rng: np.random.Generator
) -> Proposals:
    """Propose points sampled evenly."""
    number = method.population
    while True:
        yield rng.uniform(low, high, (number, len(low)))
        number = method.offspring


def _evolution(low: Floats, high: Floats, method: Method, rng: np.random.Generator) -> Proposals:
    """Propose generations of pymoo's SPEA2 or NSGA-II."""
    # pymoo takes half a second to import
    with needed_for(f"a search by {method.name}", otherwise="search by the method random"):
        from pymoo.algorithms.moo.nsga2 import NSGA2
        from pymoo.algorithms.moo.nsga3 import HyperplaneNormalization
        from pymoo.algorithms.moo.spea2 import SPEA2, SPEA2Survival
        from pymoo.core.problem import Problem
        from pymoo.core.termination import NoTermination
        from pymoo.operators.crossover.sbx import SBX
        from pymoo.operators.mutation.pm import PM

    points = rng.uniform(low, high, (method.population, len(low)))
    values = yield points

    class Normalization(HyperplaneNormalization):  # type: ignore[misc]
        """Normalisation of objectives, also of one that is equal for all points."""

        nadir_point: Floats

        def update(self, values: Floats) -> None:
            super().update(values)
            # without a width, the distances of all points would be NaN
            has_width = self.nadir_point > self.ideal_point
            self.nadir_point = np.where(has_width, self.nadir_point, self.ideal_point + 1.0)

    # the default survival of SPEA2 remembers the scale of earlier searches
    survival = SPEA2Survival(normalize=True)
    survival.norm = Normalization(values.shape[1])
    survival_option = {"survival": survival} if method.name == "spea2" else {}
    algorithm = {"spea2": SPEA2, "nsga2": NSGA2}[method.name](
        pop_size=method.population,
        n_offsprings=method.offspring,
        sampling=points,
        crossover=SBX(prob=1.0, eta=_ETA),
        mutation=PM(prob=1.0, prob_var=1.0 / len(low), eta=_ETA),
        **survival_option,
    )
    problem = Problem(n_var=len(low), n_obj=values.shape[1], n_ieq_constr=1, xl=low, xu=high)
    algorithm.setup(problem, termination=NoTermination(), seed=int(rng.integers(1 << 31)))
    proposed = algorithm.ask()
    while True:
        possible = np.asarray(np.isfinite(values).all(axis=1))
        proposed.set("F", np.where(possible[:, None], values, 0.0))
        proposed.set("G", np.where(possible, -1.0, 1.0)[:, None])
        for individual in proposed:
            individual.evaluated.update(["F", "G"])
        algorithm.tell(infills=proposed)
        proposed = algorithm.ask()
        values = yield proposed.get("X")


def _gaussian_process(
    low: Floats, high: Floats, method: Method, rng: np.random.Generator
) -> Proposals:
    """Propose the best points of functions sampled from a Gaussian process of each objective.

    The process learns normal scores of ranks, so that neither unit nor outliers matter. Each
    proposal minimises a different random weighting of the objectives.
    """
    with needed_for(f"a search by {method.name}", otherwise="search by the method random"):
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import Matern, WhiteKernel
        from threadpoolctl import threadpool_limits

    points = rng.uniform(size=(method.population, len(low)))
    values = yield low + points * (high - low)
    kernel = Matern(np.ones(len(low)), (0.05, 20.0), nu=2.5) + WhiteKernel(0.01, (1e-4, 1.0))
    while True:
        parents = points[nondominated(values)]
        if len(parents):
            parents = parents[rng.integers(len(parents), size=int(_NEAR_SHARE * _CANDIDATES))]
        candidates = np.vstack(
            [
                np.clip(parents + rng.normal(0.0, _NEAR_SD, parents.shape), 0.0, 1.0),
                rng.uniform(size=(_CANDIDATES - len(parents), len(low))),
            ]
        )
        samples = []
        for column in values.T:
            score = norm.ppf((rankdata(column) - 0.5) / len(column))
            model = GaussianProcessRegressor(kernel, random_state=int(rng.integers(1 << 31)))
            # several threads would sum in another order and change the whole search
            with threadpool_limits(1):
                model.fit(points, score)
                sample_seed = int(rng.integers(1 << 31))
                samples.append(model.sample_y(candidates, _PROPOSED, random_state=sample_seed))
        weights = rng.dirichlet(np.ones(len(samples)), _PROPOSED)
        weighted = [sample * weight for sample, weight in zip(samples, weights.T, strict=True)]
        # a proposal minimises the largest of its weighted objectives
        chosen = candidates[np.unique(np.max(weighted, axis=0).argmin(axis=0))]
        new_values = yield low + chosen * (high - low)
        points = np.vstack([points, chosen])
        values = np.vstack([values, new_values])


_METHODS: dict[str, Any] = {
    "spea2": _evolution,
    "nsga2": _evolution,
    "gaussian-process": _gaussian_process,
    "random": _random_points,
}
