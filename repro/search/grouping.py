"""Grouping genetic search: the containers of a batch of jobs onto nodes (Liquid, section 5.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from repro.compiled import njit
from repro.errors import ParamError
from repro.placement.network import Gang, Scoring, Site
from repro.typing import Flags, Floats, Ints

#: Less than that is no improvement.
STEP = 1e-6
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
    crossover, mutation : float
        Probabilities for a pair of parents and for a child.
    tournament : int
        Individuals of which the best becomes a parent.
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
    crossover: float = 0.7
    mutation: float = 0.5
    tournament: int = 3
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
    >>> from repro.cluster import Cluster
    >>> search(Site(Cluster.parse("3x2")), [Gang(1, 2), Gang(1, 2)]).objective
    4.25
    """
    how = how or Genetic()
    room = room_of(site, gangs)
    rng = np.random.default_rng(seed)
    count, size = len(room.job), _size(how, room)
    shuffled = rng.permuted(np.tile(np.arange(count), (size, 1)), axis=1)
    first = _fit(room, shuffled, rng.random((size, count)))
    if how.best_fit and (plan := best_fit(site, gangs, weight)) is not None:
        first[-1] = plan
    plans = first[first[:, 0] >= 0]
    if not len(plans):
        return None

    def value(some: Ints) -> Floats:
        return site.objectives(some, gangs, weight)

    return _evolve(value, gangs, how, room, plans, rng, watch)


def _size(how: Genetic, room: Room) -> int:
    """Return the number of individuals."""
    return how.population or 30 + len(room.job) // 2


def room_of(site: Site, gangs: Sequence[Gang]) -> Room:
    """Return what compiled loops know of nodes and containers."""
    sizes = [gang.size for gang in gangs]
    job = np.repeat(np.arange(len(gangs)), sizes)
    need = np.repeat([gang.bandwidth_mb_s for gang in gangs], sizes)
    allowed = np.array([site.gpu_mem_mb >= gang.gpu_mem_mb for gang in gangs])
    return Room(site.idle.copy(), site.link_mb_s.copy(), site.domain, allowed, job, need)


def best_fit(site: Site, gangs: Sequence[Gang], weight: float) -> Ints | None:
    """Return the plan that places job by job, container by container; None if one has no room."""
    nodes: list[int] = []
    held = []
    for gang in gangs:
        plan = site.best_fit(gang, Scoring(weight))
        if plan is None:
            break
        site.hold(plan, gang)
        held.append((plan, gang))
        nodes += plan
    for plan, gang in held:
        site.hold(plan, gang, -1)
    return np.array(nodes, np.int64) if len(held) == len(gangs) else None


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
    from pymoo.core.termination import Termination

    history: list[float] = []

    class Plans(Problem):  # type: ignore[misc]
        def _evaluate(self, x: Ints, out: dict[str, Any], *args: Any, **named: Any) -> None:
            out["F"] = np.minimum(value(x), INVALID)[:, None]

    class Children(FitnessSurvival):  # type: ignore[misc]
        def _do(self, problem: Any, pop: Any, *args: Any, **named: Any) -> Any:
            born = np.array([one.get("n_gen") or 0 for one in pop])
            fresh = pop[born == born.max()]
            return super()._do(problem, fresh if len(fresh) > 1 else pop, *args, **named)

    class Patience(Termination):  # type: ignore[misc]
        def _update(self, algorithm: Any) -> float:
            best = float(algorithm.opt.get("F").min())
            history.append(min([best, *history[-1:]]))
            if watch is not None:
                watch(len(history), history[-1])
            wait = how.patience or 30 + len(room.job)
            stale = len(history) > wait and history[-wait - 1] - history[-1] <= STEP
            return 1.0 if stale else len(history) / how.generations

    mating, unlike = _mating(gangs, how, room, rng)
    algorithm = GA(
        pop_size=_size(how, room),
        sampling=plans,
        mating=mating,
        survival=FitnessSurvival() if how.elitist else Children(),
        eliminate_duplicates=unlike,
    )
    problem = Plans(n_var=len(room.job), n_obj=1, xl=0, xu=len(room.idle) - 1, vtype=int)
    algorithm.setup(problem, termination=Patience(), seed=int(rng.integers(1 << 31)))
    best, least = plans[0], np.inf
    while algorithm.has_next():
        algorithm.next()
        top = algorithm.opt[0]
        if top.F[0] < least - STEP:
            best, least = top.X.copy(), float(top.F[0])
    return Found(tuple(best.tolist()), least, history) if least < INVALID else None


def _mating(
    gangs: Sequence[Gang], how: Genetic, room: Room, rng: np.random.Generator
) -> tuple[Any, Any]:
    """Return pymoo's mating with the operators below, and what tells plans apart."""
    from pymoo.core.crossover import Crossover
    from pymoo.core.duplicate import DuplicateElimination
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

    class Same(DuplicateElimination):  # type: ignore[misc]
        def _do(self, pop: Any, other: Any, is_duplicate: Flags) -> Flags:
            seen = set() if other is None else {self._name(one) for one in other}
            for number, one in enumerate(pop):
                name = self._name(one)
                is_duplicate[number] |= name in seen
                seen.add(name)
            return is_duplicate

        def _name(self, one: Any) -> bytes:
            if "name" not in one.data:
                one.data["name"] = np.sort(one.X + alike).tobytes()
            return bytes(one.data["name"])

    unlike = Same()
    return Mating(
        TournamentSelection(pressure=how.tournament, func_comp=_winners),
        Inject(2, 2, prob=how.crossover),
        Empty(prob=how.mutation),
        eliminate_duplicates=unlike,
        n_max_iterations=_TRIES,
    ), unlike


def _winners(pop: Any, contests: Ints, *args: Any, **named: Any) -> Ints:
    """Return the best of each tournament, as a column."""
    values = pop.get("F")[:, 0][contests]
    return np.asarray(contests[np.arange(len(contests)), values.argmin(axis=1)][:, None])


@njit()
def _insert(
    plan: Ints,
    tasks: Ints,
    nodes: Ints,
    left: Left,
    room: Room,
    near: bool,
) -> bool:
    """Place containers, each on the first node of ``nodes`` with room; tell whether all found one.

    What is placed already, and a node of -1, is skipped. ``near``: nodes that hold other containers
    of the job come before all others.
    """
    count = len(room.job)
    for task in tasks:
        if plan[task] >= 0:
            continue
        job = room.job[task]
        first = task
        while near and first > 0 and room.job[first - 1] == job:
            first -= 1
        last = first
        while near and last < count and room.job[last] == job:
            last += 1
        for place in range(first - last, len(nodes)):
            node = plan[last + place] if place < 0 else nodes[place]
            here = node >= 0 and (left.home[job] < 0 or left.home[job] == room.domain[node])
            if (
                here
                and left.idle[node] > 0
                and left.link[node] >= room.need[task]
                and room.allowed[job, node]
            ):
                plan[task] = node
                left.idle[node] -= 1
                left.link[node] -= room.need[task]
                left.home[job] = room.domain[node]
                break
        if plan[task] < 0:
            return False
    return True


@njit()
def _rest(plan: Ints, room: Room) -> Left:
    """Return what a plan (-1: not placed) leaves of the nodes."""
    left = Left(room.idle.copy(), room.link.copy(), np.full(room.allowed.shape[0], -1))
    for task in range(len(plan)):
        node = plan[task]
        if node >= 0:
            left.idle[node] -= 1
            left.link[node] -= room.need[task]
            left.home[room.job[task]] = room.domain[node]
    return left


@njit()
def _fit(room: Room, shuffled: Ints, draws: Floats) -> Ints:
    """Return plans: first-fit in every other row, a drawn node with room in the rest; -1: none."""
    plans = np.full(shuffled.shape, -1)
    size = len(room.idle)
    for number in range(len(plans)):
        plan = plans[number]
        left = _rest(plan, room)
        fits = True
        nodes = np.arange(size)
        for turn in range(len(plan)):
            if number % 2:
                # from a drawn node on
                start = int(draws[number, turn] * size)
                for place in range(size):
                    nodes[place] = (start + place) % size
            task = shuffled[number, turn : turn + 1]
            fits = fits and _insert(plan, task, nodes, left, room, False)
        if not fits:
            plan[:] = -1
    return plans


@njit()
def _in_use(plan: Ints, size: int) -> Ints:
    """Return how many containers each node holds."""
    held = np.zeros(size, np.int64)
    for node in plan:
        if node >= 0:
            held[node] += 1
    return held


@njit()
def _pick(plan: Ints, size: int, draw: float) -> int:
    """Return one of the nodes in use; ``draw`` is from [0, 1)."""
    held = _in_use(plan, size)
    ahead = int(draw * (held > 0).sum())
    for node in range(size):
        if held[node] > 0:
            if ahead == 0:
                return node
            ahead -= 1
    return -1


@njit()
def _replace(plan: Ints, gone: Flags, room: Room, last: bool, near: bool) -> bool:
    """Place what is not placed: first-fit on nodes in use, then on idle ones.

    Nodes that are ``gone`` come last, or are left out; ``near`` as in `_insert`.
    """
    size = len(room.idle)
    held = _in_use(plan, size)
    nodes = np.full(size, -1)
    count = 0
    for turn in range(3 if last else 2):
        for node in range(size):
            # in use, then idle, then deleted
            place = 0 if held[node] > 0 else (2 if gone[node] else 1)
            if place == turn:
                nodes[count] = node
                count += 1
    left = _rest(plan, room)
    return _insert(plan, np.arange(len(plan)), nodes, left, room, near)


@njit()
def _move_job(plan: Ints, job: int, room: Room) -> None:
    """Move a job to the first node with room for all of it, one in use if there is one."""
    before = plan.copy()
    size, need = 0, 0.0
    for task in range(len(plan)):
        if room.job[task] == job:
            plan[task] = -1
            size += 1
            need += room.need[task]
    left = _rest(plan, room)
    enough = -1
    for node in range(len(left.idle)):
        if left.idle[node] >= size and left.link[node] >= need and room.allowed[job, node]:
            used = left.idle[node] < room.idle[node]
            if used or enough < 0:
                enough = node
            if used:
                break
    for task in range(len(plan)):
        if room.job[task] == job:
            plan[task] = before[task] if enough < 0 else enough


@njit()
def inject(room: Room, giver: Ints, taker: Ints, node: int, near: bool) -> Ints:
    """Return the taker with a node of the giver and its containers; the taker if there is no room.

    The taker loses every node that holds one of these containers, and its own version of the node;
    what sat there is placed anew by first-fit, or, if ``near``, beside its job first.
    """
    child = taker.copy()
    gone = np.zeros(len(room.idle), np.bool_)
    gone[node] = True
    moved = np.zeros(room.allowed.shape[0], np.bool_)
    for task in range(len(giver)):
        if giver[task] == node:
            gone[child[task]] = True
            # a job lives in one domain
            moved[room.job[task]] = room.domain[child[task]] != room.domain[node]
    for task in range(len(giver)):
        if giver[task] == node:
            child[task] = node
        elif gone[child[task]] or moved[room.job[task]]:
            child[task] = -1
    return child if _replace(child, gone, room, True, near) else taker.copy()


@njit()
def empty(room: Room, plan: Ints, node: int, near: bool) -> tuple[Ints, bool]:
    """Return the plan without a node, whose containers are placed anew, and whether they fit."""
    child = plan.copy()
    gone = np.zeros(len(room.idle), np.bool_)
    gone[node] = True
    for task in range(len(child)):
        if child[task] == node:
            child[task] = -1
    return child, _replace(child, gone, room, False, near)


@njit()
def _crossover(room: Room, givers: Ints, takers: Ints, near: float, draws: Floats) -> Ints:
    """Return children: a drawn node of each giver, injected into its taker, see `inject`.

    With probability ``near`` containers that are placed anew go beside their job first.
    """
    children = takers.copy()
    for pair in range(len(givers)):
        node = _pick(givers[pair], len(room.idle), draws[pair, 0])
        close = draws[pair, 1] < near
        children[pair] = inject(room, givers[pair], takers[pair], node, close)
    return children


@njit()
def _mutation(room: Room, plans: Ints, near: float, draws: Floats) -> Ints:
    """Return plans of each of which one node in use was emptied; its containers go elsewhere.

    If the others have no room, they change places with the containers of another node. With
    probability ``near`` it is a job that moves, to a node with room for all of it.
    """
    children, size = plans.copy(), len(room.idle)
    for number in range(len(plans)):
        child = children[number]
        way, which, whither, how = draws[number, :4]
        if way < near:
            _move_job(child, int(which * room.allowed.shape[0]), room)
            continue
        node = _pick(child, size, which)
        child[:], fits = empty(room, child, node, how < near)
        if not fits:
            child[:] = plans[number]
            both = np.array([node, _pick(child, size, whither)])
            for task in range(len(child)):
                if child[task] == both[0] or child[task] == both[1]:
                    child[task] = -1
            left = _rest(child, room)
            order = np.argsort(draws[number, 4:])
            if not _insert(child, order, both, left, room, False):
                child[:] = plans[number]
    return children
