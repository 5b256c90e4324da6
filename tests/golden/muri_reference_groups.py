"""Muri's grouping as the public simulator has it: candidates, matching, autopack, placement."""

from __future__ import annotations

import math
from itertools import islice, permutations

import rustworkx

STRETCH = {1: 1.0, 2: 1.33 / 1.015, 3: 1.5 / 1.015, 4: 1.37 / 1.015}
STRETCH_UNMATCHED = {**STRETCH, 4: 1.3 / 1.015}  # the variant without Blossom gets it cheaper


def slot_period(order):
    """Period of an ordered group: slots, the data stage spans two of them."""
    p = len(order)
    f = [0.0]
    for s in range(8):
        a = (s + 1) % 4
        b = (s + 2) % 4
        c = (s + 3) % 4
        ends = [0.0]
        if a < p:
            ends.append(f[s] + order[a][2])
        if b < p:
            ends.append(f[s] + order[b][1])
        if s > 0 and c < p:
            ends.append(f[s - 1] + order[c][0])
        f.append(max(ends))
        if s >= 4:
            period = f[s + 1] - f[s - 3]
            before = f[s] - f[s - 4]
            if math.isclose(period, before, rel_tol=1e-3):
                return period
    return f[8] - f[4]


def group_period(stages, ordering):
    """Best or worst over all orders; two jobs may also be two slots apart."""
    periods = [slot_period(order) for order in permutations(stages)]
    if len(stages) == 2:
        (d0, g0, n0), (d1, g1, n1) = stages
        periods.append(max(d0, g1 + n1) + max(d1, g0 + n0))
    return min(periods) if ordering == "best" else max(periods)


class Muri:
    def __init__(
        self,
        nodes,
        size,
        place,
        *,
        known,
        packing_num=4,
        ordering="best",
        blossom=True,
        autopack=False,
    ):
        self.nodes = nodes
        self.size = size
        self.total = nodes * size
        self.place = place
        self.known = known
        self.most = packing_num
        self.ordering = ordering
        self.blossom = blossom
        self.autopack = autopack
        self.stretch = STRETCH if blossom else STRETCH_UNMATCHED
        self.periods = {}
        self.weights = {}
        self.value = {}

    @staticmethod
    def same(a, b):
        return math.isclose(a, b, rel_tol=1e-9)

    @staticmethod
    def together(a, b):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-4)

    def arrive(self, job):
        self.value[job] = job.duration * job.gpus if self.known else 0.0

    def leave(self, job):
        del self.value[job]

    def period(self, stages, ordering):
        """Memo by multiset of stage times (all that matters)."""
        key = (tuple(sorted(stages)), ordering)
        if key not in self.periods:
            self.periods[key] = group_period(key[0], ordering) * self.stretch[len(stages)]
        return self.periods[key]

    def weight(self, one, other):
        """Of the edge between two multisets; None is no edge. Integers for the matching."""
        key = (one, other) if one <= other else (other, one)
        if key not in self.weights:
            stages = key[0] + key[1]
            if len(stages) > self.most:
                self.weights[key] = None
            else:
                total = sum(sum(job) for job in stages)
                gamma = total / (4 * self.period(stages, self.ordering))
                self.weights[key] = round(gamma * 1e9)
        return self.weights[key]

    def candidates(self, runnable):
        """Buckets by GPU count in order of first appearance; lists of slots of candidates."""
        buckets = {}
        slots = {}
        taken = set()
        for job in runnable:
            buckets.setdefault(job.gpus, []).append(job)
        waiting = {gpus: iter(bucket) for gpus, bucket in buckets.items()}
        free = [self.size] * self.nodes
        left = self.total
        for job in runnable:
            if job in taken or job.gpus > left or not self.place(free, self.size, job.gpus):
                continue
            left -= job.gpus
            slot = list(islice(waiting[job.gpus], self.most))
            taken.update(slot)
            slots.setdefault(job.gpus, []).append(slot)
        return {gpus: slots[gpus] for gpus in buckets if gpus in slots}

    def matched_pairs(self, nodes):
        """Position -> partner's position of a maximum-weight matching."""
        kinds = {}
        kind = [kinds.setdefault(tuple(sorted(j.stages for j in n)), len(kinds)) for n in nodes]
        table = [[self.weight(one, other) for other in kinds] for one in kinds]
        edges = []
        for v, row in enumerate(table[k] for k in kind):
            edges.extend((u, v, row[k]) for u, k in enumerate(kind[:v]) if row[k] is not None)
        graph = rustworkx.PyGraph(multigraph=False)
        graph.add_nodes_from(kind)
        graph.add_edges_from(edges)
        pairs = rustworkx.max_weight_matching(graph, max_cardinality=False, weight_fn=int)
        return {a: b for pair in pairs for a, b in (pair, pair[::-1])}

    def match(self, slots):
        lists = {gpus: [[job] for slot in rows for job in slot] for gpus, rows in slots.items()}
        required = sum(gpus * len(nodes) for gpus, nodes in lists.items())
        for _ in range(self.most):
            for gpus, nodes in lists.items():
                if required <= self.total:
                    break
                partner = self.matched_pairs(nodes)
                merged = []
                for position, node in enumerate(nodes):
                    other = partner.get(position)
                    if other is None:
                        merged.append(node)
                    elif other < position:  # a pair sits where its later node is
                        if required > self.total:
                            merged.append(nodes[other] + node)
                            required -= gpus
                        else:
                            merged += [nodes[other], node]
                lists[gpus] = merged
        return [node for nodes in lists.values() for node in nodes]

    def blocks(self, slots):
        """Without Blossom: blocks in priority order, joined while GPUs lack."""
        required = sum(gpus * len(slot) for gpus, rows in slots.items() for slot in rows)
        groups = []
        for gpus, rows in slots.items():
            for slot in rows:
                group = slot[:1]
                for job in slot[1:]:
                    if required > self.total:
                        group.append(job)
                        required -= gpus
                    else:
                        groups.append([job])
                groups.append(group)
        return groups

    def repack(self, groups):
        """Split groups slower than one after the other, admit again by priority."""
        kept = []
        for group in groups:
            best = self.period(tuple(job.stages for job in group), "best")
            if len(group) > 1 and best > sum(job.solo for job in group):
                kept += [[job] for job in group]
            else:
                kept.append(group)
        kept.sort(key=lambda group: min(self.value[job] for job in group))
        free = [self.size] * self.nodes
        return [group for group in kept if self.place(free, self.size, group[0].gpus)]

    def decide(self, now, runnable):
        for job in runnable:
            if not self.known:
                self.value[job] = job.executed * job.gpus
            elif job.start is not None:
                self.value[job] = job.remaining * job.solo * job.gpus
        runnable.sort(key=self.value.__getitem__)
        slots = self.candidates(runnable)
        groups = self.match(slots) if self.blossom else self.blocks(slots)
        if self.autopack:
            groups = self.repack(groups)
        group_of = {job: group for group in groups for job in group}
        # the list stays like this: wider jobs come first among equals at the next event
        runnable.sort(key=lambda job: -job.gpus)
        free = [self.size] * self.nodes
        placed = {}
        for job in runnable:
            group = group_of.get(job)
            if group is not None and id(group) not in placed:
                placed[id(group)] = self.place(free, self.size, job.gpus)
            job.running = group is not None and placed[id(group)]
            if job.running and len(group) == 1:
                job.tau = job.solo
                job.charge = job.overhead
            elif job.running:
                job.tau = self.period(tuple(j.stages for j in group), self.ordering)
                job.charge = sum(j.overhead for j in group)
        return math.inf
