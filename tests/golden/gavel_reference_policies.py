"""Policies of Gavel's public simulator that need no solver, written anew with dictionaries.

Each is called with the ids of the jobs present, in order of arrival, and all jobs; it answers
{id: {type: share of time}} with every id, and imports nothing of the package.
"""

from __future__ import annotations

import random

import numpy as np
from gavel_reference import Reference
from scipy.optimize import linear_sum_assignment


def isolated(gpus):
    """Every job owns an equal part of each GPU type, in gangs, for at most all of its time."""

    def policy(active, jobs):
        x = {}
        for job in active:
            part = {t: gpus[t] / len(active) / jobs[job].gang for t in sorted(gpus)}
            whole = max(1.0, sum(part.values()))
            x[job] = {t: share / whole for t, share in part.items()}
        return x

    return policy


def fifo(gpus):
    """Everybody anew: each on its fastest type with room, until one finds no room at all."""

    def policy(active, jobs):
        free = dict(gpus)
        x = {job: {} for job in active}
        for job in active:
            room = [t for t in sorted(free) if free[t] >= jobs[job].gang]
            if not room:
                break
            best = max(room, key=lambda t, j=job: jobs[j].speed[t])
            if jobs[job].speed[best] > 0:
                x[job] = {best: 1.0}
                free[best] -= jobs[job].gang
        return x

    return policy


def fifo_agnostic(gpus, seed):
    """Types stay to the end; the last type of a list, from which a drawn one leaves when used up.

    A job that has ended hands its type to the head of the queue if that can run there and fits
    beside the older jobs; otherwise the head stays at the head.
    """
    drawn = random.Random(seed)
    held = {}

    def policy(active, jobs):
        free = dict(gpus)
        queue = [job for job in active if job not in held]

        def place(job, kind):
            held[job] = kind
            free[kind] -= jobs[job].gang

        for job in sorted(held):
            kind = held[job]
            if job in active:
                free[kind] -= jobs[job].gang
                continue
            del held[job]
            if queue and jobs[queue[0]].gang <= free[kind] and jobs[queue[0]].speed[kind] > 0:
                place(queue.pop(0), kind)
        listed = [t for t in sorted(free) if free[t] > 0]
        while queue and listed:
            job = queue.pop(0)
            room = [t for t in listed if free[t] >= jobs[job].gang]
            if not room:
                break
            leaving = room[drawn.randrange(len(room))]
            kind = listed[-1]
            if jobs[job].speed[kind] > 0:
                place(job, kind)
                if free[kind] == 0:
                    listed.remove(leaving)
        return {job: {held[job]: 1.0} if job in held else {} for job in active}

    return policy


def allox(gpus, clock):
    """Waiting jobs matched to the places, from the end, of the queues of free GPUs; heads start.

    ``clock`` tells the time; what a job has waited is added to all its costs, which moves no
    optimum but decides between equal ones.
    """
    held = {}

    def policy(active, jobs):
        waiting = [job for job in active if job not in held]
        taken = [held[job] for job in active if job in held]
        free = [t for t in sorted(gpus) for _ in range(gpus[t] - taken.count(t))]
        if waiting and free:
            rows = []
            for job in waiting:
                left = jobs[job].steps - jobs[job].done
                once = np.array([left / jobs[job].speed[t] for t in free])
                places = [k * once for k in range(1, len(waiting) + 1)]
                rows.append(np.concatenate(places) + (clock() - jobs[job].arrival))
            heads = {}
            for row, column in zip(*linear_sum_assignment(np.array(rows)), strict=True):
                k, gpu = divmod(int(column), len(free))
                heads[gpu] = max(heads.get(gpu, (-1, -1)), (k, int(row)))
            held.update({waiting[row]: free[gpu] for gpu, (_, row) in heads.items()})
        return {job: {held[job]: 1.0} if job in held else {} for job in active}

    return policy


def run(policy, jobs, gpus, seed=0):
    """Ends of all jobs under a policy by name, (jobs,), s."""
    reference = Reference(jobs, gpus, None, seed=seed)
    reference.policy = {
        "isolated": lambda: isolated(gpus),
        "gavel-fifo": lambda: fifo(gpus),
        "fifo-agnostic": lambda: fifo_agnostic(gpus, seed),
        "allox": lambda: allox(gpus, lambda: reference.now),
    }[policy]()
    # only policies that do not tell types apart fill them in an order drawn anew
    reference.shuffled = policy in ("isolated", "fifo-agnostic")
    reference.idle = policy in ("gavel-fifo", "fifo-agnostic")
    return reference.run()
