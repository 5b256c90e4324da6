"""The unit of cost: CPU seconds of a bare event loop, so that figures travel between machines.

An M/M/64 queue at load 0.9 with 100,000 jobs, one heap of completions, one deque of waiting jobs,
nothing else. Costs of the simulator are quoted in multiples of it, measured in the same run.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from heapq import heappop, heappush
from random import Random

JOBS = 100_000
SERVERS = 64
LOAD = 0.9


def bare_queue(jobs: int = JOBS, servers: int = SERVERS, load: float = LOAD) -> float:
    """Return the mean response time of M/M/servers (service rate 1), event by event."""
    draw = Random(1).expovariate
    submits = []
    clock = 0.0
    for _ in range(jobs):
        clock += draw(load * servers)
        submits.append(clock)
    line: deque[int] = deque()
    ends: list[tuple[float, int]] = []
    idle = servers
    arrived = 0
    response = 0.0
    while arrived < jobs or ends:
        if arrived < jobs and (not ends or submits[arrived] <= ends[0][0]):
            if idle:
                idle -= 1
                heappush(ends, (submits[arrived] + draw(1.0), arrived))
            else:
                line.append(arrived)
            arrived += 1
        else:
            clock, job = heappop(ends)
            response += clock - submits[job]
            if line:
                heappush(ends, (clock + draw(1.0), line.popleft()))
            else:
                idle += 1
    return response / jobs


def cpu_of(task, *args, **options):
    """Return the CPU seconds of one call and its result."""
    start = time.process_time()
    result = task(*args, **options)
    return time.process_time() - start, result


def unit(runs: int = 5) -> float:
    """Return the CPU seconds of one `bare_queue`, the median of several."""
    return statistics.median(cpu_of(bare_queue)[0] for _ in range(runs))


if __name__ == "__main__":
    print(f"U = {unit():.4f} CPU s (mean response {bare_queue():.4f})")
