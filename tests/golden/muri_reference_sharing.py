"""AntMan as the public Muri simulator has it: guests on the GPUs of guaranteed jobs."""

from __future__ import annotations

import math

# assumed utilisation
GUEST = 0.9
HOST = 0.1


def visits(guest, host):
    """Iterations of the host needed to fit one iteration of the guest beside it."""
    t0, t1, t2 = guest
    c0, c1, c2 = host
    m = math.floor(t0 / (c1 + c2))
    x = t0 % (c1 + c2)
    if x > 0:
        m += 1
        t1 -= min(t1, c2, c1 + c2 - x)
    m += math.floor(t1 / (c0 + c2))
    y = t1 % (c0 + c2)
    if y > 0:
        m += 1
        if y < c0:
            t2 -= min(t2, c0 + c1 - y)
    m += math.floor(t2 / (c0 + c1))
    if t2 % (c0 + c1) > c0:
        m += 1
    return m


class AntMan:
    """Every started job runs to its end; GPUs are numbered over the whole cluster."""

    @staticmethod
    def same(a, b):
        return math.isclose(a, b, rel_tol=1e-9)

    @staticmethod
    def together(a, b):
        return a == b

    def __init__(self, nodes, size):
        self.size = size
        self.total = nodes * size
        self.nodes = [range(n * size, (n + 1) * size) for n in range(nodes)]
        self.host = [None] * self.total
        self.load = [0.0] * self.total
        self.held = {}  # job -> its GPUs
        self.node_of = {}  # waiting guaranteed job -> its node

    def arrive(self, job):
        self.held[job] = []

    def leave(self, job):
        for gpu in self.held.pop(job):
            if job.priority:
                self.load[gpu] -= GUEST
            else:
                self.load[gpu] -= HOST
                self.host[gpu] = None

    def hold(self, job, gpus):
        for gpu in gpus:
            self.host[gpu] = job
            self.load[gpu] += HOST - 0.01
            self.held[job].append(gpu)

    def unhosted(self, node):
        return [gpu for gpu in self.nodes[node] if self.host[gpu] is None]

    def start_guest(self, job):
        idle = [gpu for gpu in range(self.total) if self.load[gpu] < 0.8]
        if len(idle) < job.gpus:
            return
        self.held[job] = sorted(idle, key=lambda gpu: self.load[gpu])[: job.gpus]
        for gpu in self.held[job]:
            self.load[gpu] += GUEST
        job.running = True

    def start_host(self, job):
        if job.gpus > self.size:
            for node in range(len(self.nodes)):
                missing = job.gpus - len(self.held[job])
                if missing and len(self.unhosted(node)) == self.size:
                    self.hold(job, self.unhosted(node)[:missing])
        elif job in self.node_of:
            missing = job.gpus - len(self.held[job])
            self.hold(job, self.unhosted(self.node_of[job])[:missing])
        else:
            sizes = [len(self.unhosted(node)) for node in range(len(self.nodes))]
            fits = [node for node, count in enumerate(sizes) if count >= job.gpus]
            node = fits[0] if fits else sizes.index(max(sizes))
            if sizes[node]:
                self.node_of[job] = node
                self.hold(job, self.unhosted(node)[: job.gpus])
        if len(self.held[job]) == job.gpus:
            job.running = True
            for gpu in self.held[job]:
                self.load[gpu] += 0.01

    def decide(self, now, runnable):
        runnable.sort(key=lambda job: (job.priority, job.submit, job.number))
        for job in runnable:
            if not job.running:
                (self.start_guest if job.priority else self.start_host)(job)
        for job in runnable:
            if job.running and job.priority:
                hosts = {self.host[gpu] for gpu in self.held[job]} - {None}
                slow = [visits(job.stages, h.stages) * h.solo for h in hosts if h.running]
                job.tau = max([job.solo, *slow])
        return math.inf
