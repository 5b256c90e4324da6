"""The placement ILP of Tiresias, appendix D: workers and parameter servers onto nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from repro.errors import ParamError, PolicyError
from repro.typing import Floats, Ints

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
    """Return T_i = t_i + w_i (M - S_i) + S_i (W - w_i) of every node, MB per iteration.

    w_i are its workers, S_i what its servers hold, and t_i its traffic before.

    Examples
    --------
    >>> node_traffic([2, 0], [1], [100.0], [0.0, 0.0])
    [200.0, 200.0]
    >>> node_traffic([2, 0], [0], [100.0], [0.0, 0.0])
    [0.0, 0.0]
    """
    model_mb, total = sum(ps_sizes_mb), sum(workers)
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
    """Place one job so that the busiest node has the least traffic.

    Minimises max_i T_i (see `node_traffic`) over integer w_i <= g_i with sum W and one node per
    parameter server. The products w_i p_ji are replaced by z_ji with z <= w, z <= W p and
    z >= w - W (1 - p), which is exact for binary p.

    Of all optima the first in this order: most workers on the best node, then on the next and so
    on, nodes ordered by idle GPUs (most first), existing traffic (least first), index; then
    servers, largest first, on the best nodes. So the answer depends on nothing but the instance,
    and permuting nodes or servers permutes it.

    Parameters
    ----------
    model_mb : float
        Model size M, MB.
    workers : int
        Workers W, one GPU each; 1 to 8.
    ps_sizes_mb : sequence of float
        Size of each parameter server, MB, 1 to 8 of them; must sum up to ``model_mb``.
    free_gpus, traffic : sequence
        Idle GPUs g_i of each of 1 to 8 nodes, and its traffic t_i so far (MB per iteration).

    Raises
    ------
    ParamError
        If the instance is beyond the size limits or inconsistent.
    PolicyError
        If fewer GPUs are idle than there are workers.

    References
    ----------
    Tiresias (NSDI'19), section 3.3 and appendix D.

    Examples
    --------
    >>> solve(100.0, 2, [60.0, 40.0], [1, 2, 1], [0.0, 0.0, 0.0])
    IlpPlacement(workers=(0, 2, 0), servers=(1, 1), max_traffic=0.0)
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
    by_node, by_server = [0] * len(nodes), [0] * len(order)
    for rank, count in enumerate(counts):
        by_node[nodes[rank]] = count
    for rank, place in enumerate(places):
        by_server[order[rank]] = nodes[place]
    return IlpPlacement(
        tuple(by_node),
        tuple(by_server),
        max(node_traffic(by_node, by_server, ps_sizes_mb, traffic)),
    )


def program_size(nodes: int, servers: int) -> tuple[int, int]:
    """Return how many variables (w, p, z and T) and rows the linearised program has.

    Both are of order nodes times servers, whatever the number of workers.

    Examples
    --------
    >>> program_size(2, 2)
    (11, 17)
    """
    even = np.full(servers, 1 / servers)
    return _Program(1, even, np.ones(nodes), np.zeros(nodes)).size()


def _check(
    model_mb: float,
    workers: int,
    ps_sizes_mb: Sequence[float],
    free_gpus: Sequence[int],
    traffic: Sequence[float],
) -> None:
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
        self.workers, self.sizes, self.free, self.traffic = workers, sizes, free, traffic
        n, k = len(free), len(sizes)
        self.n, self.k, self.columns = n, k, n + 2 * n * k + 1
        rows: list[tuple[dict[int, float], float, float]] = [
            (dict.fromkeys(range(n), 1.0), workers, workers)
        ]
        w = float(workers)
        for j in range(k):
            rows.append(({self._p(j, i): 1.0 for i in range(n)}, 1.0, 1.0))
            for i in range(n):
                z, p = self._z(j, i), self._p(j, i)
                rows.append(({z: 1.0, i: -1.0}, -np.inf, 0.0))
                rows.append(({z: 1.0, p: -w}, -np.inf, 0.0))
                rows.append(({z: 1.0, i: -1.0, p: -w}, -w, np.inf))
        for i in range(n):
            load = {i: 1.0, self.columns - 1: -1.0}
            for j in range(k):
                load[self._p(j, i)] = sizes[j] * w
                load[self._z(j, i)] = -2.0 * sizes[j]
            rows.append((load, -np.inf, -float(traffic[i])))
        matrix = np.zeros((len(rows), self.columns))
        for row, (entries, _, _) in enumerate(rows):
            for column, value in entries.items():
                matrix[row, column] = value
        self._rows = (matrix, [low for _, low, _ in rows], [high for *_, high in rows])
        self._integral = np.zeros(self.columns)
        self._integral[: n + n * k] = 1
        self._low = np.zeros(self.columns)
        self._high = np.full(self.columns, np.inf)
        self._high[:n] = np.minimum(free, workers)
        self._high[n : n + n * k] = 1.0

    def size(self) -> tuple[int, int]:
        """Return the numbers of variables and of constraints."""
        matrix = self._rows[0]
        return matrix.shape[1], matrix.shape[0]

    def _p(self, server: int, node: int) -> int:
        return self.n + server * self.n + node

    def _z(self, server: int, node: int) -> int:
        return self.n + (self.k + server) * self.n + node

    def canonical_optimum(self) -> tuple[list[int], list[int]]:
        """Return workers per node and node per server of the first optimum in canonical order."""
        goal = np.zeros(self.columns)
        goal[-1] = 1.0
        counts, places = self._minimise(goal)
        held = np.bincount(places, weights=self.sizes, minlength=self.n)
        best = self.traffic + counts * (1 - held) + held * (self.workers - counts)
        self._high[-1] = float(best.max()) + TIE
        for first in range(0, self.n, BLOCK):
            block = range(first, min(first + BLOCK, self.n))
            goal = np.zeros(self.columns)
            goal[list(block)] = [-float((self.workers + 1) ** e) for e in range(len(block))][::-1]
            counts, places = self._minimise(goal)
            for i in block:
                self._low[i] = self._high[i] = counts[i]
        for first in range(0, self.k, BLOCK):
            block = range(first, min(first + BLOCK, self.k))
            goal = np.zeros(self.columns)
            for digit, j in enumerate(reversed(block)):
                for i in range(self.n):
                    goal[self._p(j, i)] = float(i * self.n**digit)
            counts, places = self._minimise(goal)
            for j in block:
                for i in range(self.n):
                    self._low[self._p(j, i)] = self._high[self._p(j, i)] = float(places[j] == i)
        return counts.tolist(), places.tolist()

    def _minimise(self, goal: Floats) -> tuple[Ints, Ints]:
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
