"""Grouping genetic algorithm: nodes for the containers of a batch of jobs (Liquid, section 5.3).

A chromosome is a plan for all jobs of the batch. A gene is a container. A genome, the unit of the
operators, is a node with its containers. The search minimises (Eqs 7 and 8, sign reversed)

    sum_i Score_{k_i} + NumNU

with k_i the plan of job i, and NumNU the number of nodes in use. A plan has to fit the nodes, with
each job in one domain. `repro.policies.liquid.liquid` has the score.

- Initial plans: first-fit and random-fit of the containers in random order, half each.
- Selection: the best of a tournament.
- Crossover: inject a node of one parent into the other (`inject`).
- Mutation: empty a node and insert its containers elsewhere (`without_node`).

Ties: first-fit takes the lowest node. A tournament takes the first of equal plans. A later plan
replaces the best one only if it is better by more than 1e-6.
"""

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from repro.base.assign import assign
from repro.base.compiled import njit
from repro.base.errors import ParamError
from repro.base.extras import needed_for
from repro.base.typing import Flags, Floats, Ints
from repro.placement.network import Gang, NodeResources, Scoring

#: Smallest change of the objective that counts as an improvement.
MIN_IMPROVEMENT = 1e-6
#: Probabilities of the operators.
_CROSSOVER = 0.7
_MUTATION = 0.5
#: Individuals of a tournament. The best becomes a parent.
_TOURNAMENT = 3
#: Largest number of rounds of mating in a generation. After the last round, a generation may have
#: fewer children than the population.
_MATING_ROUNDS = 3
#: Objective of a plan across domains. Infinity would make arithmetic warn.
INVALID = 1e9
#: Index of a container or a domain that is not assigned.
_NONE = -1


@dataclass(frozen=True)
class GeneticSettings:
    """Settings of the search, by default those of the public scheduler where the paper has none.

    Parameters
    ----------
    generations : int
        Largest number of generations.
    population : int, optional
        Number of individuals; default: 30 + containers // 2.
    patience : int, optional
        Generations without improvement that end the search; default: 30 + containers.
    near : float
        Probability, in a crossover or mutation, that inserted containers first try the nodes of
        their job, then first-fit. Also the probability that a mutation moves a whole job to one
        node. 0: first-fit alone, as in the paper.
    elitist : bool
        Whether parents compete with their children. False: the children replace them.
    best_fit : bool
        Whether the first individuals include the best-fit plan.

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


class Solution(NamedTuple):
    """Best plan of a search."""

    plan: tuple[int, ...]  #: node of each container
    objective: float
    history: list[float]  #: best objective after each generation


class Instance(NamedTuple):
    """Nodes and containers of a batch, as arrays for compiled loops."""

    idle: Ints  #: idle GPUs, (nodes,)
    idle_bandwidth: Floats  #: MB/s, (nodes,)
    domain: Ints  #: domain of each node, (nodes,)
    allowed: Flags  #: whether a node has the GPU memory for a job, (jobs, nodes)
    job: Ints  #: job of each container, (containers,)
    need: Floats  #: bandwidth (MB/s) of each container, (containers,)


class Remaining(NamedTuple):
    """Resources that a plan leaves idle, and the domains of its jobs."""

    idle: Ints  #: idle GPUs, (nodes,)
    idle_bandwidth: Floats  #: MB/s, (nodes,)
    domain_of_job: Ints  #: domain, (jobs,); -1: no container is placed


def search(
    site: NodeResources,
    gangs: Sequence[Gang],
    weight: float = 0.5,
    settings: GeneticSettings | None = None,
    *,
    seed: int = 0,
    watch: Callable[[int, float], None] | None = None,
) -> Solution | None:
    """Search for the plan with the least sum of scores plus number of nodes in use.

    Parameters
    ----------
    site : NodeResources
        Nodes with their idle resources.
    gangs : sequence of Gang
        Jobs in order; each counts the GPUs of the jobs before it as used.
    weight : float
        lambda of the score.
    settings : GeneticSettings, optional
        Settings of the search.
    seed : int
        Seed of the random generator. The same seed gives the same plan.
    watch : callable, optional
        Called with the number of each generation and the best objective so far.

    Returns
    -------
    Solution or None
        Nodes job by job, parameter servers first. None: no plan fits.

    Notes
    -----
    Liquid, TPDS 2022, section 5.3, Eqs 7 and 8.

    Examples
    --------
    >>> from repro.model.cluster import Cluster
    >>> search(NodeResources(Cluster.parse("3x2")), [Gang(1, 2), Gang(1, 2)]).objective
    4.25
    """
    settings = settings or GeneticSettings()
    instance = instance_of(site, gangs)
    rng = np.random.default_rng(seed)
    num_containers = len(instance.job)
    population = settings.population or 30 + num_containers // 2
    settings = replace(settings, population=population)
    orders = rng.permuted(np.tile(np.arange(num_containers), (population, 1)), axis=1)
    plans = _initial_plans(instance, orders, rng.random((population, num_containers)))
    if settings.best_fit and (plan := best_fit(site, gangs, weight)) is not None:
        plans[-1] = plan
    plans = plans[plans[:, 0] >= 0]
    if not len(plans):
        return None
    objectives = functools.partial(site.objectives, gangs=gangs, weight=weight)
    return _evolve(objectives, gangs, settings, instance, plans, rng, watch)


def instance_of(site: NodeResources, gangs: Sequence[Gang]) -> Instance:
    """Nodes of a site and containers of a batch, as arrays."""
    sizes = [gang.size for gang in gangs]
    job = np.repeat(np.arange(len(gangs)), sizes)
    need = np.repeat([gang.bandwidth_mb_s for gang in gangs], sizes)
    allowed = np.array([site.gpu_mem_mb >= gang.gpu_mem_mb for gang in gangs])
    return Instance(site.idle.copy(), site.link_mb_s.copy(), site.domain, allowed, job, need)


def best_fit(site: NodeResources, gangs: Sequence[Gang], weight: float) -> Ints | None:
    """Plan of a batch by best-fit, job by job (Algorithm 1). None if a container fits no node."""
    remaining_site = copy.deepcopy(site)
    nodes: list[int] = []
    for gang in gangs:
        plan = remaining_site.best_fit(gang, Scoring(weight))
        if plan is None:
            return None
        remaining_site.allocate(plan, gang)
        nodes += plan
    return np.array(nodes, np.int64)


def _evolve(
    objectives: Callable[[Ints], Floats],
    gangs: Sequence[Gang],
    settings: GeneticSettings,
    instance: Instance,
    plans: Ints,
    rng: np.random.Generator,
    watch: Callable[[int, float], None] | None,
) -> Solution | None:
    """Run the genetic algorithm of pymoo from initial plans, shape (plans, containers)."""
    # Imported here, as pymoo takes half a second to import.
    with needed_for("the genetic algorithm of liquid-batch", otherwise="use policy liquid"):
        from pymoo.algorithms.soo.nonconvex.ga import GA, FitnessSurvival
        from pymoo.core.problem import Problem
        from pymoo.core.termination import NoTermination

    class Plans(Problem):  # type: ignore[misc]
        def _evaluate(self, x: Ints, out: dict[str, Any], *args: Any, **named: Any) -> None:
            out["F"] = np.minimum(objectives(x), INVALID)[:, None]

    # The individuals of the newest generation survive, even if their parents are better.
    class Children(FitnessSurvival):  # type: ignore[misc]
        def _do(self, problem: Any, pop: Any, *args: Any, **named: Any) -> Any:
            generation = np.array([individual.get("n_gen") or 0 for individual in pop])
            newest = pop[generation == generation.max()]
            return super()._do(problem, newest if len(newest) > 1 else pop, *args, **named)

    mating, duplicates = _mating(gangs, settings, instance, rng)
    algorithm = GA(
        pop_size=settings.population,
        sampling=plans,
        mating=mating,
        survival=FitnessSurvival() if settings.elitist else Children(),
        eliminate_duplicates=duplicates,
    )
    last_node = len(instance.idle) - 1
    problem = Plans(n_var=len(instance.job), n_obj=1, xl=0, xu=last_node, vtype=int)
    algorithm.setup(problem, termination=NoTermination(), seed=int(rng.integers(1 << 31)))
    best_plan = plans[0]
    least_objective = np.inf
    history: list[float] = []
    patience = settings.patience or 30 + len(instance.job)
    for generation in range(1, settings.generations + 1):
        algorithm.next()
        best = algorithm.opt[0]
        objective = float(best.F[0])
        if objective < least_objective - MIN_IMPROVEMENT:
            best_plan = best.X.copy()
            least_objective = objective
        history.append(min([objective, *history[-1:]]))
        if watch is not None:
            watch(generation, history[-1])
        if generation > patience and history[-patience - 1] - history[-1] <= MIN_IMPROVEMENT:
            break
    if least_objective >= INVALID:
        return None
    return Solution(tuple(best_plan.tolist()), least_objective, history)


def _mating(
    gangs: Sequence[Gang], settings: GeneticSettings, instance: Instance, rng: np.random.Generator
) -> tuple[Any, Any]:
    """Mating of pymoo with the operators below, and its elimination of duplicates."""
    from pymoo.core.crossover import Crossover
    from pymoo.core.duplicate import HashDuplicateElimination
    from pymoo.core.mating import Mating
    from pymoo.core.mutation import Mutation
    from pymoo.operators.selection.tournament import TournamentSelection

    num_containers = len(instance.job)
    # Containers of one role of a job are interchangeable.
    role = np.concatenate([[0] * gang.num_ps + [1] * gang.num_workers for gang in gangs])
    offset_of_role = (2 * instance.job + role) * len(instance.idle)

    class Inject(Crossover):  # type: ignore[misc]
        def _do(self, problem: Any, x: Ints, *args: Any, **named: Any) -> Ints:
            uniform = rng.random((2, x.shape[1], 2))
            children = [
                _crossover(instance, x[giver], x[1 - giver], settings.near, uniform[giver])
                for giver in (0, 1)
            ]
            return np.array(children)

    class Empty(Mutation):  # type: ignore[misc]
        def _do(self, problem: Any, x: Ints, *args: Any, **named: Any) -> Ints:
            return _mutation(instance, x, settings.near, rng.random((len(x), 4 + num_containers)))

    def key(individual: Any) -> bytes:
        if isinstance(individual, bytes):
            # pymoo also asks for the key of a key.
            return individual
        if "key" not in individual.data:
            individual.data["key"] = np.sort(individual.X + offset_of_role).tobytes()
        return bytes(individual.data["key"])

    duplicates = HashDuplicateElimination(key)
    return Mating(
        TournamentSelection(pressure=_TOURNAMENT, func_comp=_winners),
        Inject(2, 2, prob=_CROSSOVER),
        Empty(prob=_MUTATION),
        eliminate_duplicates=duplicates,
        n_max_iterations=_MATING_ROUNDS,
    ), duplicates


def _winners(pop: Any, contests: Ints, *args: Any, **named: Any) -> Ints:
    """Best individual of each tournament, (tournaments, 1)."""
    objectives = pop.get("F")[:, 0][contests]
    return np.asarray(contests[np.arange(len(contests)), objectives.argmin(axis=1)][:, None])


@njit(allocates=True)
def _insert(
    plan: Ints,
    containers_to_place: Ints,
    nodes: Ints,
    remaining: Remaining,
    instance: Instance,
    near: bool,
) -> bool:
    """Place each container on the first of ``nodes`` that it fits. True if all fit.

    Containers that have a node are skipped. With ``near``, nodes with other containers of the job
    come first.
    """
    for container in containers_to_place:
        if plan[container] >= 0:
            continue
        job = instance.job[container]
        near_nodes = plan[instance.job == job] if near else plan[:0]
        num_near = len(near_nodes)
        for position in range(num_near + len(nodes)):
            node = near_nodes[position] if position < num_near else nodes[position - num_near]
            # near_nodes has -1 for containers without a node
            in_domain = node >= 0 and (
                remaining.domain_of_job[job] < 0
                or remaining.domain_of_job[job] == instance.domain[node]
            )
            if (
                in_domain
                and remaining.idle[node] > 0
                and remaining.idle_bandwidth[node] >= instance.need[container]
                and instance.allowed[job, node]
            ):
                plan[container] = node
                _take(node, container, remaining, instance)
                break
        if plan[container] < 0:
            return False
    return True


@njit()
def _take(node: Any, container: Any, remaining: Remaining, instance: Instance) -> None:
    """Subtract the needs of a container from the remaining resources of a node."""
    remaining.idle[node] -= 1
    remaining.idle_bandwidth[node] -= instance.need[container]
    remaining.domain_of_job[instance.job[container]] = instance.domain[node]


@njit(allocates=True)
def _remaining(plan: Ints, instance: Instance) -> Remaining:
    """Resources that a plan leaves idle. A container with -1 in the plan is not placed."""
    domain_of_job = np.full(instance.allowed.shape[0], _NONE)
    remaining = Remaining(instance.idle.copy(), instance.idle_bandwidth.copy(), domain_of_job)
    for container in np.flatnonzero(plan >= 0):
        _take(plan[container], container, remaining, instance)
    return remaining


@njit(allocates=True)
def _initial_plans(instance: Instance, orders: Ints, uniform: Floats) -> Ints:
    """Plans by first-fit (even rows) and random-fit (odd rows). A row of -1 is no plan.

    A container of random-fit takes the first node that it fits from a random node on.
    """
    plans = np.full(orders.shape, _NONE)
    nodes = np.arange(len(instance.idle))
    for row in range(len(plans)):
        plan = plans[row]
        remaining = _remaining(plan, instance)
        fits = True
        for position in range(len(plan)):
            first = int(uniform[row, position] * len(nodes)) if row % 2 else 0
            container = orders[row, position : position + 1]
            rotated = np.roll(nodes, -first)
            fits = fits and _insert(plan, container, rotated, remaining, instance, False)
        if not fits:
            plan[:] = _NONE
    return plans


@njit(allocates=True)
def _sample_node(plan: Ints, uniform: float) -> int:
    """Random node among those in use; ``uniform`` is from [0, 1)."""
    used = np.flatnonzero(np.bincount(plan))
    return int(used[int(uniform * len(used))])


@njit(allocates=True)
def _reinsert(
    plan: Ints, removed: Flags, instance: Instance, use_removed: bool, near: bool
) -> bool:
    """Place all containers without a node by first-fit: on nodes in use, then on idle nodes.

    True if all fit. Nodes that are ``removed`` come last (``use_removed``), or not at all. ``near``
    is as in `_insert`.
    """
    node_rank = np.where(removed, 2, 1)
    node_rank[plan[plan >= 0]] = 0
    nodes = np.concatenate((np.flatnonzero(node_rank == 0), np.flatnonzero(node_rank == 1)))
    if use_removed:
        nodes = np.concatenate((nodes, np.flatnonzero(node_rank == 2)))
    remaining = _remaining(plan, instance)
    return _insert(plan, np.arange(len(plan)), nodes, remaining, instance, near)


@njit(allocates=True, exact=False)
def _move_job(plan: Ints, job: int, instance: Instance) -> None:
    """Move a job to the first node that fits all its containers; nodes in use come first."""
    without_job = np.where(instance.job == job, _NONE, plan)
    remaining = _remaining(without_job, instance)
    need = instance.need[instance.job == job]
    fits = (
        (remaining.idle >= len(need))
        & (remaining.idle_bandwidth >= need.sum())
        & instance.allowed[job]
    )
    in_use = remaining.idle < instance.idle
    for nodes in (np.flatnonzero(fits & in_use), np.flatnonzero(fits)):
        if len(nodes):
            plan[instance.job == job] = nodes[0]
            break


@njit(allocates=True)
def inject(instance: Instance, giver: Ints, taker: Ints, node: int, near: bool) -> Ints:
    """Copy of ``taker`` in which ``node`` gets the containers that it has in ``giver``.

    First ``node`` and every node that these containers leave are emptied. A job that changes its
    domain leaves all its nodes. The other containers without a node are then inserted by first-fit.
    With ``near`` they try the nodes of their job first. If some do not fit, the copy is unchanged.
    """
    removed = np.zeros(len(instance.idle), np.bool_)
    removed[node] = True
    changes_domain = np.zeros(instance.allowed.shape[0], np.bool_)
    for container in np.flatnonzero(giver == node):
        removed[taker[container]] = True
        # All containers of a job are in one domain.
        old_domain = instance.domain[taker[container]]
        changes_domain[instance.job[container]] = old_domain != instance.domain[node]
    kept = np.where(removed[taker] | changes_domain[instance.job], _NONE, taker)
    child = np.where(giver == node, node, kept)
    return child if _reinsert(child, removed, instance, True, near) else taker.copy()


@njit(allocates=True)
def without_node(instance: Instance, plan: Ints, node: int, near: bool) -> tuple[Ints, bool]:
    """Child of a plan with the containers of a node inserted elsewhere; True if they fit."""
    child = np.where(plan == node, _NONE, plan)
    removed = np.arange(len(instance.idle)) == node
    return child, _reinsert(child, removed, instance, False, near)


@njit(allocates=True)
def _crossover(
    instance: Instance, givers: Ints, takers: Ints, near: float, uniform: Floats
) -> Ints:
    """Children of pairs of plans: a random node of each giver, injected into its taker.

    ``near`` is the probability that containers try the nodes of their job first.
    """
    children = takers.copy()
    for pair in range(len(givers)):
        node = _sample_node(givers[pair], uniform[pair, 0])
        near_first = uniform[pair, 1] < near
        assign(children[pair], inject(instance, givers[pair], takers[pair], node, near_first))
    return children


@njit(allocates=True, exact=False)
def _mutation(instance: Instance, plans: Ints, near: float, uniform: Floats) -> Ints:
    """Children of plans, each with one node in use emptied into the other nodes.

    If its containers do not fit there, they swap nodes with the containers of another node. With
    probability ``near`` a job moves instead, to a node that fits all its containers. A row of
    ``uniform`` decides the operator, the node or job, the other node, and whether to try the nodes
    of the job. Its remaining entries give the order of insertion.
    """
    children = plans.copy()
    for row in range(len(plans)):
        plan = plans[row]
        child = children[row]
        operator, target, second_node, near_sample = uniform[row, :4]
        if operator < near:
            _move_job(child, int(target * instance.allowed.shape[0]), instance)
            continue
        node = _sample_node(plan, target)
        emptied, fits = without_node(instance, plan, node, near_sample < near)
        assign(child, emptied)
        if not fits:
            swapped = np.array([node, _sample_node(plan, second_node)])
            on_swapped = (plan == swapped[0]) | (plan == swapped[1])
            assign(child, np.where(on_swapped, _NONE, plan))
            order = np.argsort(uniform[row, 4:])
            remaining = _remaining(child, instance)
            if not _insert(child, order, swapped, remaining, instance, False):
                assign(child, plan)
    return children
