"""Placement ILP of Tiresias, appendix D: workers and parameter servers to nodes."""

# Minimise max_i T_i with T_i = t_i + w_i (M - S_i) + S_i (W - w_i). Node i has g_i idle GPUs,
# traffic t_i of other jobs, and w_i <= g_i of the W workers. Each parameter server is on one node
# (p_ji = 1: server j is on node i). M is the size of the model, S_i the size of the servers on node
# i. The products w_i p_ji are replaced by z_ji with z <= w, z <= W p and z >= w - W (1 - p), which
# is exact for binary p.
#
# Ties: nodes are ordered by idle GPUs (most first), traffic (least first) and index. Among equal
# optima the result has the most workers on the first node, then on the second, and so on. Then each
# server, largest first, is on the earliest node possible. The result depends on the instance only.
# A permutation of nodes or servers permutes the result, except among equal nodes or equal servers.

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from repro.base.errors import ParamError, PolicyError
from repro.base.typing import Floats, Ints

#: Limits that keep the time of a solve short.
MAX_NODES = MAX_WORKERS = MAX_SERVERS = 8
#: Traffic that differs by less than this part of the model size is equal.
TIE = 1e-6
#: Number of nodes or servers whose ties one solve breaks. Each is a digit of the objective. The
#: solver's tolerance allows no more digits.
BLOCK = 4
#: Number of instances whose optimum is kept. Policies that preempt place the same gangs on the same
#: idle GPUs again and again.
REMEMBERED = 4096


@dataclass(frozen=True)
class IlpPlacement:
    """Workers on each node, node of each server, and largest traffic (MB per iteration)."""

    workers: tuple[int, ...]
    servers: tuple[int, ...]
    max_traffic: float


def node_traffic(
    workers: Sequence[int],
    servers: Sequence[int],
    ps_sizes_mb: Sequence[float],
    traffic: Sequence[float],
) -> list[float]:
    """T_i of every node (MB per iteration); ``traffic`` is t_i, the traffic of the other jobs."""
    model_mb = sum(ps_sizes_mb)
    total = sum(workers)
    server_mb = [0.0] * len(workers)
    for node, size in zip(servers, ps_sizes_mb, strict=True):
        server_mb[node] += size
    return [
        other_jobs + count * (model_mb - size) + size * (total - count)
        for other_jobs, count, size in zip(traffic, workers, server_mb, strict=True)
    ]


def solve(
    model_mb: float,
    workers: int,
    ps_sizes_mb: Sequence[float],
    idle_gpus: Sequence[int],
    traffic: Sequence[float],
) -> IlpPlacement:
    """Place the one-GPU workers of a job so that the busiest node has the least traffic.

    The sizes of the servers (MB) add up to the size of the model. ``idle_gpus`` and ``traffic`` (MB
    per iteration) have a value per node. ParamError for an instance that is too large or
    inconsistent. PolicyError if there are fewer idle GPUs than workers, or if the solver fails.
    """
    _check(model_mb, workers, ps_sizes_mb, idle_gpus, traffic)
    nodes = sorted(range(len(idle_gpus)), key=lambda i: (-idle_gpus[i], traffic[i], i))
    order = sorted(range(len(ps_sizes_mb)), key=lambda j: (-ps_sizes_mb[j], j))
    counts, positions = _canonical_optimum(
        workers,
        tuple(ps_sizes_mb[j] / model_mb for j in order),
        tuple(float(idle_gpus[i]) for i in nodes),
        tuple(traffic[i] / model_mb for i in nodes),
    )
    by_node = [0] * len(nodes)
    by_server = [0] * len(order)
    for node, count in zip(nodes, counts, strict=True):
        by_node[node] = count
    for server, position in zip(order, positions, strict=True):
        by_server[server] = nodes[position]
    max_traffic = max(node_traffic(by_node, by_server, ps_sizes_mb, traffic))
    return IlpPlacement(tuple(by_node), tuple(by_server), max_traffic)


@lru_cache(maxsize=REMEMBERED)
def _canonical_optimum(
    workers: int,
    sizes: tuple[float, ...],
    idle_gpus: tuple[float, ...],
    traffic: tuple[float, ...],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Workers per node and node per server. Sizes and traffic are in units of the model size."""
    programme = _Programme(workers, np.array(sizes), np.array(idle_gpus), np.array(traffic))
    counts, positions = programme.canonical_optimum()
    return tuple(counts.tolist()), tuple(positions.tolist())


def program_size(nodes: int, servers: int) -> tuple[int, int]:
    """Variables (w, p, z and T) and rows of the linearised programme."""
    variables = nodes + 2 * nodes * servers + 1
    rows = 1 + servers * (1 + 3 * nodes) + nodes
    return variables, rows


def _check(
    model_mb: float,
    workers: int,
    ps_sizes_mb: Sequence[float],
    idle_gpus: Sequence[int],
    traffic: Sequence[float],
) -> None:
    """Raise for an instance that is too large or inconsistent."""
    for name, number, limit in (
        ("nodes", len(idle_gpus), MAX_NODES),
        ("workers", workers, MAX_WORKERS),
        ("parameter servers", len(ps_sizes_mb), MAX_SERVERS),
    ):
        if not 1 <= number <= limit:
            raise ParamError(f"placement ILP: {number} {name}; it takes 1 to {limit}")
    if not model_mb > 0 or min(ps_sizes_mb) < 0:
        raise ParamError("placement ILP: the model must exceed 0 MB, its servers must be >= 0 MB")
    if not abs(sum(ps_sizes_mb) - model_mb) <= 1e-6 * model_mb:
        raise ParamError(
            f"placement ILP: parameter servers hold {sum(ps_sizes_mb):g} MB of a model of "
            f"{model_mb:g} MB; the two must be equal"
        )
    if len(traffic) != len(idle_gpus) or min(*idle_gpus, *traffic) < 0:
        raise ParamError(
            f"placement ILP: {len(idle_gpus)} nodes but {len(traffic)} traffic values; both "
            "lists need one value >= 0 per node"
        )
    if sum(idle_gpus) < workers:
        raise PolicyError(f"placement ILP: {workers} workers but {sum(idle_gpus)} idle GPUs")


class _Programme:
    """The linearised programme of n nodes and k servers, in units of the model size.

    The columns are w_i, p_ji, z_ji and T.
    """

    def __init__(self, workers: int, sizes: Floats, idle_gpus: Floats, traffic: Floats) -> None:
        self.workers = workers
        self.sizes = sizes
        self.traffic = traffic
        n = len(idle_gpus)
        k = len(sizes)
        self.n = n
        self.k = k
        columns, row_count = program_size(n, k)
        self._p = n + np.arange(n * k).reshape(k, n)
        z = self._p + n * k
        node = np.arange(n)
        matrix = np.zeros((row_count, columns))
        row_low = np.full(row_count, -np.inf)
        row_high = np.zeros(row_count)
        matrix[0, :n] = 1.0
        row_low[0] = workers
        row_high[0] = workers
        for j in range(k):
            server_row = 1 + j * (1 + 3 * n)
            # Each server is on one node.
            matrix[server_row, self._p[j]] = 1.0
            row_low[server_row] = 1.0
            row_high[server_row] = 1.0
            # Rows of each node: z <= w (below), z <= W p (within), z >= w - W (1 - p) (above).
            below = server_row + 1 + 3 * node
            within = below + 1
            above = below + 2
            for rows in (below, within, above):
                matrix[rows, z[j]] = 1.0
            for rows in (below, above):
                matrix[rows, node] = -1.0
            for rows in (within, above):
                matrix[rows, self._p[j]] = -float(workers)
            row_low[above] = -float(workers)
            row_high[above] = np.inf
        load = matrix[-n:]
        load[node, node] = 1.0
        load[:, -1] = -1.0
        row_high[-n:] = -traffic
        for j in range(k):
            load[node, self._p[j]] = sizes[j] * float(workers)
            load[node, z[j]] = -2.0 * sizes[j]
        self._rows = (matrix, row_low, row_high)
        self._integral = np.zeros(columns)
        self._integral[: n + n * k] = 1
        self._low = np.zeros(columns)
        self._high = np.full(columns, np.inf)
        self._high[:n] = np.minimum(idle_gpus, workers)
        self._high[self._p] = 1.0

    def canonical_optimum(self) -> tuple[Ints, Ints]:
        """Workers per node and node per server of the optimum that the tie-break selects."""
        goal = np.zeros(len(self._low))
        goal[-1] = 1.0
        counts, nodes = self._minimise(goal)
        size = np.bincount(nodes, weights=self.sizes, minlength=self.n)
        node_loads = self.traffic + counts * (1 - size) + size * (self.workers - counts)
        self._high[-1] = float(node_loads.max()) + TIE
        for begin in range(0, self.n, BLOCK):
            block = np.arange(begin, min(begin + BLOCK, self.n))
            goal[:] = 0.0
            goal[block] = -((self.workers + 1.0) ** np.arange(len(block))[::-1])
            counts, nodes = self._minimise(goal)
            self._low[block] = counts[block]
            self._high[block] = counts[block]
        for begin in range(0, self.k, BLOCK):
            block = np.arange(begin, min(begin + BLOCK, self.k))
            goal[:] = 0.0
            digits = float(self.n) ** np.arange(len(block))[::-1]
            goal[self._p[block]] = np.outer(digits, np.arange(self.n))
            counts, nodes = self._minimise(goal)
            fixed = nodes[block, None] == np.arange(self.n)
            self._low[self._p[block]] = fixed
            self._high[self._p[block]] = fixed
        return counts, nodes

    def _minimise(self, goal: Floats) -> tuple[Ints, Ints]:
        """Workers per node and node per server of the least ``goal``."""
        # This import takes longer than most simulations under another placement rule.
        from scipy.optimize import Bounds, milp

        # Presolving may print a debugging line to standard output. With --json, only JSON may go
        # there. Without presolving HiGHS fails on a few instances; these are solved with it.
        for presolve in (False, True):
            answer = milp(
                goal,
                constraints=self._rows,
                integrality=self._integral,
                bounds=Bounds(self._low, self._high),
                options={"mip_rel_gap": 0.0, "presolve": presolve},
            )
            if answer.x is not None:
                break
        if answer.x is None:
            raise PolicyError(f"placement ILP: the solver failed: {answer.message}")
        counts = np.rint(answer.x[: self.n]).astype(np.int64)
        servers = answer.x[self.n : self.n + self.n * self.k].reshape(self.k, self.n)
        return counts, servers.argmax(axis=1)
