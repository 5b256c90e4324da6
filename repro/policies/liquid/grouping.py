"""Grouping genetic search: the containers of a batch of jobs onto nodes (Liquid, section 5.3)."""

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from repro.base.assign import assign
from repro.base.compiled import njit
from repro.base.errors import ParamError
from repro.base.typing import Flags, Floats, Ints
from repro.placement.network import Gang, Scoring, Site

#: Less than that is no improvement.
STEP = 1e-6
#: Probabilities of the operators; individuals of which the best becomes a parent.
_CROSSOVER = 0.7
_MUTATION = 0.5
_TOURNAMENT = 3
#: Rounds of mating after which a generation takes what new children it has.
_TRIES = 3
#: Objective of a plan across domains; arithmetic on infinity would warn.
INVALID = 1e9


@dataclass(frozen=True)
class Genetic:
    """Settings of the search; what the paper leaves open has the public scheduler's values.

    Parameters
    ----------
    generations : int
        At most so many.
    population, patience : int, optional
        Individuals, 30 + containers // 2; generations without improvement, 30 + containers.
    near : float
        Probability with which containers that are placed anew go beside their job first, before
        first-fit; the paper has first-fit alone, 0.
    elitist : bool
        Parents compete with their children; False: the children replace them.
    best_fit : bool
        The best-fit plan is among the first individuals.

    Notes
    -----
    Liquid, TPDS 2022, section 5.3; PasaLab/Liquid allocator.go and ga.go.
    """

    generations: int = 200
    population: int | None = None
    patience: int | None = None
    near: float = 0.5
    elitist: bool = True
    best_fit: bool = True

    def __post_init__(self) -> None:
        for name, least in (("generations", 1), ("population", 2), ("patience", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ParamError(f"{name} is {value}; give a whole number of {least} or more")


class Found(NamedTuple):
    """A plan, its objective, and the best objective after each generation."""

    plan: tuple[int, ...]
    objective: float
    history: list[float]


class Room(NamedTuple):
    """What compiled loops know: of nodes idle GPUs, MB/s and domain; of containers job and MB/s.

    ``allowed``: whether a container of a job (row) may go to a node at all.
    """

    idle: Ints
    link: Floats
    domain: Ints
    allowed: Flags
    job: Ints
    need: Floats


class Left(NamedTuple):
    """What a plan leaves: idle GPUs and MB/s of nodes, the domain of each job (-1: none yet)."""

    idle: Ints
    link: Floats
    home: Ints


def search(
    site: Site,
    gangs: Sequence[Gang],
    weight: float = 0.5,
    how: Genetic | None = None,
    *,
    seed: int = 0,
    watch: Callable[[int, float], None] | None = None,
) -> Found | None:
    """Return the plan of least sum of scores plus nodes used that a genetic search finds.

    Parameters
    ----------
    site : Site
        What is left of the nodes.
    gangs : sequence of Gang
        Jobs in order; each counts the GPUs of those before it as used.
    weight : float
        lambda of the score.
    how : Genetic, optional
        Settings.
    seed : int
        Of all draws; the same seed gives the same plan.
    watch : callable, optional
        Told the number of each generation and the best objective so far.

    Returns
    -------
    Found or None
        Nodes job by job, parameter servers first. None: no plan was found that fits.

    Notes
    -----
    Liquid, TPDS 2022, Eqs 7 and 8: initial plans by first-fit and random-fit, tournaments,
    crossover that injects a node, mutation that empties one.

    Examples
    --------
    >>> from repro.model.cluster import Cluster
    >>> search(Site(Cluster.parse("3x2")), [Gang(1, 2), Gang(1, 2)]).objective
    4.25
    """
    how = how or Genetic()
    room = room_of(site, gangs)
    rng = np.random.default_rng(seed)
    count = len(room.job)
    size = how.population or 30 + count // 2
    how = replace(how, population=size)
    shuffled = rng.permuted(np.tile(np.arange(count), (size, 1)), axis=1)
    first = _fit(room, shuffled, rng.random((size, count)))
    if how.best_fit and (plan := best_fit(site, gangs, weight)) is not None:
        first[-1] = plan
    plans = first[first[:, 0] >= 0]
    if not len(plans):
        return None

    value = functools.partial(site.objectives, gangs=gangs, weight=weight)
    return _evolve(value, gangs, how, room, plans, rng, watch)


def room_of(site: Site, gangs: Sequence[Gang]) -> Room:
    """Return what compiled loops know of nodes and containers."""
    sizes = [gang.size for gang in gangs]
    job = np.repeat(np.arange(len(gangs)), sizes)
    need = np.repeat([gang.bandwidth_mb_s for gang in gangs], sizes)
    allowed = np.array([site.gpu_mem_mb >= gang.gpu_mem_mb for gang in gangs])
    return Room(site.idle.copy(), site.link_mb_s.copy(), site.domain, allowed, job, need)


def best_fit(site: Site, gangs: Sequence[Gang], weight: float) -> Ints | None:
    """Return the plan that places job by job, container by container; None if one has no room."""
    left = copy.deepcopy(site)
    nodes = list[int]()
    for gang in gangs:
        plan = left.best_fit(gang, Scoring(weight))
        if plan is None:
            return None
        left.hold(plan, gang)
        nodes += plan
    return np.array(nodes, np.int64)


def _evolve(
    value: Callable[[Ints], Floats],
    gangs: Sequence[Gang],
    how: Genetic,
    room: Room,
    plans: Ints,
    rng: np.random.Generator,
    watch: Callable[[int, float], None] | None,
) -> Found | None:
    """Run pymoo's genetic algorithm with the operators of the paper."""
    # pymoo takes half a second to import
    from pymoo.algorithms.soo.nonconvex.ga import GA, FitnessSurvival
    from pymoo.core.problem import Problem
    from pymoo.core.termination import NoTermination

    class Plans(Problem):  # type: ignore[misc]
        def _evaluate(self, x: Ints, out: dict[str, Any], *args: Any, **named: Any) -> None:
            out["F"] = np.minimum(value(x), INVALID)[:, None]

    class Children(FitnessSurvival):  # type: ignore[misc]
        def _do(self, problem: Any, pop: Any, *args: Any, **named: Any) -> Any:
            born = np.array([one.get("n_gen") or 0 for one in pop])
            fresh = pop[born == born.max()]
            return super()._do(problem, fresh if len(fresh) > 1 else pop, *args, **named)

    mating, unlike = _mating(gangs, how, room, rng)
    algorithm = GA(
        pop_size=how.population,
        sampling=plans,
        mating=mating,
        survival=FitnessSurvival() if how.elitist else Children(),
        eliminate_duplicates=unlike,
    )
    problem = Plans(n_var=len(room.job), n_obj=1, xl=0, xu=len(room.idle) - 1, vtype=int)
    algorithm.setup(problem, termination=NoTermination(), seed=int(rng.integers(1 << 31)))
    best = plans[0]
    least = np.inf
    history = list[float]()
    wait = how.patience or 30 + len(room.job)
    for number in range(1, how.generations + 1):
        algorithm.next()
        top = algorithm.opt[0]
        found = float(algorithm.opt[0].F[0])
        if found < least - STEP:
            best = top.X.copy()
            least = found
        history.append(min([found, *history[-1:]]))
        if watch is not None:
            watch(number, history[-1])
        if number > wait and history[-wait - 1] - history[-1] <= STEP:
            break
    return Found(tuple(best.tolist()), least, history) if least < INVALID else None


def _mating(
    gangs: Sequence[Gang], how: Genetic, room: Room, rng: np.random.Generator
) -> tuple[Any, Any]:
    """Return pymoo's mating with the operators below, and what tells plans apart."""
    from pymoo.core.crossover import Crossover
    from pymoo.core.duplicate import HashDuplicateElimination
    from pymoo.core.mating import Mating
    from pymoo.core.mutation import Mutation
    from pymoo.operators.selection.tournament import TournamentSelection

    count = len(room.job)
    # containers of one role of a job are alike
    role = np.concatenate([[0] * gang.num_ps + [1] * gang.num_workers for gang in gangs])
    alike = (2 * room.job + role) * len(room.idle)

    class Inject(Crossover):  # type: ignore[misc]
        def _do(self, problem: Any, x: Ints, *args: Any, **named: Any) -> Ints:
            draws = rng.random((2, x.shape[1], 2))
            return np.array([_crossover(room, x[a], x[1 - a], how.near, draws[a]) for a in (0, 1)])

    class Empty(Mutation):  # type: ignore[misc]
        def _do(self, problem: Any, x: Ints, *args: Any, **named: Any) -> Ints:
            return _mutation(room, x, how.near, rng.random((len(x), 4 + count)))

    def name(one: Any) -> bytes:
        if isinstance(one, bytes):
            # pymoo asks for the name of a name, too
            return one
        if "name" not in one.data:
            one.data["name"] = np.sort(one.X + alike).tobytes()
        return bytes(one.data["name"])

    unlike = HashDuplicateElimination(name)
    return Mating(
        TournamentSelection(pressure=_TOURNAMENT, func_comp=_winners),
        Inject(2, 2, prob=_CROSSOVER),
        Empty(prob=_MUTATION),
        eliminate_duplicates=unlike,
        n_max_iterations=_TRIES,
    ), unlike


def _winners(pop: Any, contests: Ints, *args: Any, **named: Any) -> Ints:
    """Return the best of each tournament, as a column."""
    values = pop.get("F")[:, 0][contests]
    return np.asarray(contests[np.arange(len(contests)), values.argmin(axis=1)][:, None])


@njit()
def _insert(plan: Ints, tasks: Ints, nodes: Ints, left: Left, room: Room, near: bool) -> bool:
    """Place containers, each on the first node of ``nodes`` with room; tell whether all found one.

    What is placed already is skipped. ``near``: nodes that hold other containers of the job come
    before all others.
    """
    for task in tasks:
        if plan[task] >= 0:
            continue
        job = room.job[task]
        beside = plan[room.job == job] if near else plan[:0]
        for place in range(len(beside) + len(nodes)):
            node = beside[place] if place < len(beside) else nodes[place - len(beside)]
            here = node >= 0 and (left.home[job] < 0 or left.home[job] == room.domain[node])
            if (
                here
                and left.idle[node] > 0
                and left.link[node] >= room.need[task]
                and room.allowed[job, node]
            ):
                plan[task] = node
                _take(node, task, left, room)
                break
        if plan[task] < 0:
            return False
    return True


@njit()
def _take(node: Any, task: Any, left: Left, room: Room) -> None:
    """Take what a container holds from what is left of its node."""
    left.idle[node] -= 1
    left.link[node] -= room.need[task]
    left.home[room.job[task]] = room.domain[node]


@njit()
def _rest(plan: Ints, room: Room) -> Left:
    """Return what a plan (-1: not placed) leaves of the nodes."""
    left = Left(room.idle.copy(), room.link.copy(), np.full(room.allowed.shape[0], -1))
    for task in np.flatnonzero(plan >= 0):
        _take(plan[task], task, left, room)
    return left


@njit()
def _fit(room: Room, shuffled: Ints, draws: Floats) -> Ints:
    """Return plans: first-fit in every other row, a drawn node with room in the rest; -1: none."""
    plans = np.full(shuffled.shape, -1)
    nodes = np.arange(len(room.idle))
    for number in range(len(plans)):
        plan = plans[number]
        left = _rest(plan, room)
        fits = True
        for turn in range(len(plan)):
            # first-fit, or from a drawn node on
            start = int(draws[number, turn] * len(nodes)) if number % 2 else 0
            task = shuffled[number, turn : turn + 1]
            fits = fits and _insert(plan, task, np.roll(nodes, -start), left, room, False)
        if not fits:
            plan[:] = -1
    return plans


@njit()
def _pick(plan: Ints, draw: float) -> int:
    """Return one of the nodes in use; ``draw`` is from [0, 1)."""
    used = np.flatnonzero(np.bincount(plan))
    return int(used[int(draw * len(used))])


@njit()
def _replace(plan: Ints, gone: Flags, room: Room, last: bool, near: bool) -> bool:
    """Place what is not placed: first-fit on nodes in use, then on idle ones.

    Nodes that are ``gone`` come last, or are left out; ``near`` as in `_insert`.
    """
    turn = np.where(gone, 2, 1)
    turn[plan[plan >= 0]] = 0
    nodes = np.concatenate((np.flatnonzero(turn == 0), np.flatnonzero(turn == 1)))
    if last:
        nodes = np.concatenate((nodes, np.flatnonzero(turn == 2)))
    return _insert(plan, np.arange(len(plan)), nodes, _rest(plan, room), room, near)


@njit()
def _move_job(plan: Ints, job: int, room: Room) -> None:
    """Move a job to the first node with room for all of it, one in use if there is one."""
    others = np.where(room.job == job, -1, plan)
    left = _rest(others, room)
    need = room.need[room.job == job]
    fits = (left.idle >= len(need)) & (left.link >= need.sum()) & room.allowed[job]
    for nodes in (np.flatnonzero(fits & (left.idle < room.idle)), np.flatnonzero(fits)):
        if len(nodes):
            plan[room.job == job] = nodes[0]
            break


@njit()
def inject(room: Room, giver: Ints, taker: Ints, node: int, near: bool) -> Ints:
    """Return the taker with a node of the giver and its containers; the taker if there is no room.

    The taker loses every node that holds one of these containers, and its own version of the node;
    what sat there is placed anew by first-fit, or, if ``near``, beside its job first.
    """
    gone = np.zeros(len(room.idle), np.bool_)
    gone[node] = True
    moved = np.zeros(room.allowed.shape[0], np.bool_)
    for task in np.flatnonzero(giver == node):
        gone[taker[task]] = True
        # a job lives in one domain
        moved[room.job[task]] = room.domain[taker[task]] != room.domain[node]
    child = np.where(giver == node, node, np.where(gone[taker] | moved[room.job], -1, taker))
    return child if _replace(child, gone, room, True, near) else taker.copy()


@njit()
def without_node(room: Room, plan: Ints, node: int, near: bool) -> tuple[Ints, bool]:
    """Return the plan without a node, whose containers are placed anew, and whether they fit."""
    child = np.where(plan == node, -1, plan)
    return child, _replace(child, np.arange(len(room.idle)) == node, room, False, near)


@njit()
def _crossover(room: Room, givers: Ints, takers: Ints, near: float, draws: Floats) -> Ints:
    """Return children: a drawn node of each giver, injected into its taker, see `inject`.

    With probability ``near`` containers that are placed anew go beside their job first.
    """
    children = takers.copy()
    for pair in range(len(givers)):
        node = _pick(givers[pair], draws[pair, 0])
        close = draws[pair, 1] < near
        assign(children[pair], inject(room, givers[pair], takers[pair], node, close))
    return children


@njit()
def _mutation(room: Room, plans: Ints, near: float, draws: Floats) -> Ints:
    """Return plans of each of which one node in use was emptied; its containers go elsewhere.

    If the others have no room, they change places with the containers of another node. With
    probability ``near`` it is a job that moves, to a node with room for all of it.
    """
    children = plans.copy()
    for number in range(len(plans)):
        plan = plans[number]
        child = children[number]
        way, which, whither, how = draws[number, :4]
        if way < near:
            _move_job(child, int(which * room.allowed.shape[0]), room)
            continue
        node = _pick(plan, which)
        without, fits = without_node(room, plan, node, how < near)
        assign(child, without)
        if not fits:
            both = np.array([node, _pick(plan, whither)])
            assign(child, np.where((plan == both[0]) | (plan == both[1]), -1, plan))
            order = np.argsort(draws[number, 4:])
            if not _insert(child, order, both, _rest(child, room), room, False):
                assign(child, plan)
    return children
