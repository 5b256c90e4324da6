"""The placement ILP of Tiresias, appendix D: workers and parameter servers onto nodes."""

# Minimise max_i T_i with T_i = t_i + w_i (M - S_i) + S_i (W - w_i) over integer w_i <= g_i with sum
# W and one node per parameter server; S_i is what the servers on node i hold. The products w_i p_ji
# are replaced by z_ji with z <= w, z <= W p and z >= w - W (1 - p), exact for binary p.
#
# Of all optima the first in this order: most workers on the best node, then on the next and so on,
# nodes ordered by idle GPUs (most first), traffic (least first), index; then servers, largest
# first, on the best nodes. So the answer depends on nothing but the instance, and permuting nodes
# or servers permutes it.

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from repro.base.errors import ParamError, PolicyError
from repro.base.typing import Floats, Ints

MAX_NODES = MAX_WORKERS = MAX_SERVERS = 8
# Optima whose traffic differs by less than this share of the model size count as ties.
TIE = 1e-6
# Digits of the lexicographic tie-break decided by one solve; more would drown in tolerances.
BLOCK = 4


@dataclass(frozen=True)
class IlpPlacement:
    """Workers on each node, node of each server, largest traffic of a node (MB per iteration)."""

    workers: tuple[int, ...]
    servers: tuple[int, ...]
    max_traffic: float


def node_traffic(
    workers: Sequence[int],
    servers: Sequence[int],
    ps_sizes_mb: Sequence[float],
    traffic: Sequence[float],
) -> list[float]:
    """Return T_i of every node, MB per iteration, from its ``traffic`` t_i before."""
    model_mb = sum(ps_sizes_mb)
    total = sum(workers)
    held = [0.0] * len(workers)
    for node, size in zip(servers, ps_sizes_mb, strict=True):
        held[node] += size
    return [
        before + count * (model_mb - size) + size * (total - count)
        for before, count, size in zip(traffic, workers, held, strict=True)
    ]


def solve(
    model_mb: float,
    workers: int,
    ps_sizes_mb: Sequence[float],
    free_gpus: Sequence[int],
    traffic: Sequence[float],
) -> IlpPlacement:
    """Place one job of so many one-GPU workers so that the busiest node has the least traffic.

    Sizes of the servers (MB) add up to that of the model; each node has idle GPUs and the traffic
    so far. ParamError beyond the size limits, PolicyError if fewer GPUs are idle than workers.
    """
    _check(model_mb, workers, ps_sizes_mb, free_gpus, traffic)
    nodes = sorted(range(len(free_gpus)), key=lambda i: (-free_gpus[i], traffic[i], i))
    order = sorted(range(len(ps_sizes_mb)), key=lambda j: (-ps_sizes_mb[j], j))
    program = _Program(
        workers,
        np.array([ps_sizes_mb[j] for j in order]) / model_mb,
        np.array([free_gpus[i] for i in nodes], dtype=float),
        np.array([traffic[i] for i in nodes]) / model_mb,
    )
    counts, places = program.canonical_optimum()
    by_node = [0] * len(nodes)
    by_server = [0] * len(order)
    for node, count in zip(nodes, counts.tolist(), strict=True):
        by_node[node] = count
    for server, place in zip(order, places.tolist(), strict=True):
        by_server[server] = nodes[place]
    most = max(node_traffic(by_node, by_server, ps_sizes_mb, traffic))
    return IlpPlacement(tuple(by_node), tuple(by_server), most)


def program_size(nodes: int, servers: int) -> tuple[int, int]:
    """Return how many variables (w, p, z and T) and rows the linearised program has."""
    return nodes + 2 * nodes * servers + 1, 1 + servers * (1 + 3 * nodes) + nodes


def _check(
    model_mb: float,
    workers: int,
    ps_sizes_mb: Sequence[float],
    free_gpus: Sequence[int],
    traffic: Sequence[float],
) -> None:
    """Refuse what is too large or inconsistent."""
    for what, found, limit in (
        ("nodes", len(free_gpus), MAX_NODES),
        ("workers", workers, MAX_WORKERS),
        ("parameter servers", len(ps_sizes_mb), MAX_SERVERS),
    ):
        if not 1 <= found <= limit:
            raise ParamError(f"placement ILP: {found} {what}; 1 to {limit} are solvable in time")
    if not model_mb > 0 or min(ps_sizes_mb) < 0:
        raise ParamError("placement ILP: the model must exceed 0 MB, its parts must be >= 0 MB")
    if not abs(sum(ps_sizes_mb) - model_mb) <= 1e-6 * model_mb:
        raise ParamError(
            f"placement ILP: parameter servers hold {sum(ps_sizes_mb):g} MB of a model of "
            f"{model_mb:g} MB; the two must be equal"
        )
    if len(traffic) != len(free_gpus) or min(*free_gpus, *traffic) < 0:
        raise ParamError(
            f"placement ILP: {len(free_gpus)} nodes but {len(traffic)} traffic values; both "
            "lists need one value >= 0 per node"
        )
    if sum(free_gpus) < workers:
        raise PolicyError(f"placement ILP: {workers} workers but {sum(free_gpus)} idle GPUs")


class _Program:
    """The linearised program in units of the model size; columns w_i, p_ji, z_ji, T."""

    def __init__(self, workers: int, sizes: Floats, free: Floats, traffic: Floats) -> None:
        self.workers = workers
        self.sizes = sizes
        self.traffic = traffic
        self.n, self.k = n, k = len(free), len(sizes)
        columns, count = program_size(n, k)
        self._p = n + np.arange(n * k).reshape(k, n)
        z = self._p + n * k
        node = np.arange(n)
        matrix = np.zeros((count, columns))
        low = np.full(count, -np.inf)
        high = np.zeros(count)
        matrix[0, :n] = 1.0
        low[0] = workers
        high[0] = workers
        for j in range(k):
            first = 1 + j * (1 + 3 * n)
            matrix[first, self._p[j]] = low[first] = high[first] = 1.0
            # of each node z <= w, z <= W p, z >= w - W (1 - p)
            below, within, above = (first + 1 + 3 * node + row for row in range(3))
            matrix[below, z[j]] = matrix[within, z[j]] = matrix[above, z[j]] = 1.0
            matrix[below, node] = matrix[above, node] = -1.0
            matrix[within, self._p[j]] = matrix[above, self._p[j]] = -float(workers)
            low[above] = -float(workers)
            high[above] = np.inf
        load = matrix[-n:]
        load[node, node] = 1.0
        load[:, -1] = -1.0
        high[-n:] = -traffic
        for j in range(k):
            load[node, self._p[j]] = sizes[j] * float(workers)
            load[node, z[j]] = -2.0 * sizes[j]
        self._rows = (matrix, low, high)
        self._integral = np.zeros(columns)
        self._integral[: n + n * k] = 1
        self._low, self._high = np.zeros(columns), np.full(columns, np.inf)
        self._high[:n] = np.minimum(free, workers)
        self._high[self._p] = 1.0

    def canonical_optimum(self) -> tuple[Ints, Ints]:
        """Return workers per node and node per server of the first optimum in canonical order."""
        goal = np.zeros(len(self._low))
        goal[-1] = 1.0
        counts, places = self._minimise(goal)
        held = np.bincount(places, weights=self.sizes, minlength=self.n)
        best = self.traffic + counts * (1 - held) + held * (self.workers - counts)
        self._high[-1] = float(best.max()) + TIE
        for first in range(0, self.n, BLOCK):
            block = np.arange(first, min(first + BLOCK, self.n))
            goal[:] = 0.0
            goal[block] = -((self.workers + 1.0) ** np.arange(len(block))[::-1])
            counts, places = self._minimise(goal)
            self._low[block] = self._high[block] = counts[block]
        for first in range(0, self.k, BLOCK):
            block = np.arange(first, min(first + BLOCK, self.k))
            goal[:] = 0.0
            digits = float(self.n) ** np.arange(len(block))[::-1]
            goal[self._p[block]] = np.outer(digits, np.arange(self.n))
            counts, places = self._minimise(goal)
            fixed = places[block, None] == np.arange(self.n)
            self._low[self._p[block]] = self._high[self._p[block]] = fixed
        return counts, places

    def _minimise(self, goal: Floats) -> tuple[Ints, Ints]:
        """Return workers per node and node per server of the least ``goal``."""
        # Importing scipy.optimize takes longer than most simulations that place by another rule.
        from scipy.optimize import Bounds, milp

        # HiGHS may print a debugging line while it presolves, on a standard output that --json must
        # own; without presolving it gives up on a few instances, which are then solved with it.
        for presolve in (False, True):
            found = milp(
                goal,
                constraints=self._rows,
                integrality=self._integral,
                bounds=Bounds(self._low, self._high),
                options={"mip_rel_gap": 0.0, "presolve": presolve},
            )
            if found.x is not None:
                break
        if found.x is None:
            raise PolicyError(f"placement ILP: no result from the solver: {found.message}")
        counts = np.rint(found.x[: self.n]).astype(np.int64)
        servers = found.x[self.n : self.n + self.n * self.k].reshape(self.k, self.n)
        return counts, servers.argmax(axis=1)
