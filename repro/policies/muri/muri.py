"""Muri-S and Muri-L: groups of jobs that interleave on resources (Muri, SIGCOMM 2022).

There are k = 4 resources: storage, CPU, GPU and network. Job i needs resource j for t_i^j seconds
per iteration. A group has p jobs, 1 <= p <= k, each with an offset of its own. All its jobs
complete one iteration per period T (section 4.1, Eq 3):

    T = sum_{j=0}^{k-1} max_{i=0}^{p-1} t_i^{(i+j) mod k}

The interleaving efficiency of a group is the mean busy share of the resources (Eq 4):

    gamma = 1 - (1/k) sum_j (T - sum_i t_i^j) / T = (sum_i sum_j t_i^j) / (k T)

Jobs with smaller priorities come first. g is the demand of a job (GPUs):

    Muri-S (SRSF):   remaining time x g
    Muri-L (2D-LAS): time on GPUs x g

Algorithm 1 (section 4.2):

1. The candidates are the first n jobs by priority. n is the number of jobs with which groups of k
   jobs fill the cluster.
2. In log2(k) rounds, groups of equal g are matched (Blossom). The matching has the largest sum of
   gamma. Matched pairs merge while the groups need more GPUs than there are.

Every decision repeats both steps. A decision is due at every event, or every ``interval`` seconds.

A group starts only if first fit finds nodes for it: one node, or whole nodes of one switch and part
of one more. The groups of a decision take nodes one after the other. This holds under
every placement. The placement then chooses the nodes of the groups that start.

Ties: under rules ``paper``, equal priority goes to the earlier job. Pairs merge in ascending order
of their waste (1 - gamma) g, and equal waste goes to the smaller g. Under rules ``muri``, equal
priority goes to the larger g, and jobs that arrived just now come last. Pairs merge in list order.
Among matchings of equal weight, the solver has a fixed choice where kinds of jobs are matched. If
up to 32 groups are matched one by one (rules ``muri``), it takes the first optimum that it finds.
"""

import itertools
import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np

from repro.base.typing import Floats, Ints
from repro.model.decision import Run, RunSet
from repro.model.grouped import Group, Grouped
from repro.model.policy import register
from repro.model.rules import Completions
from repro.model.settings import Above, AtLeast, Between
from repro.model.view import View
from repro.perf.stages import NUM_RESOURCES, STAGE_COLUMNS, Interleaving, StageOrder, stage_columns
from repro.placement.first_fit import FirstFit, unplaceable
from repro.policies.muri._grouping import (
    Candidates,
    Entry,
    GroupsByKind,
    GroupsByList,
    Profiles,
)

#: Measured period divided by T for groups of 2, 3 and 4 jobs, in the public simulator. A job alone
#: takes 1.015 times its iteration time there. Groups without Blossom have another factor for 4
#: jobs.
MEASURED = (1.33 / 1.015, 1.5 / 1.015, 1.37 / 1.015)
MEASURED_BLOCKS = (1.33 / 1.015, 1.5 / 1.015, 1.3 / 1.015)

#: Groups of one width that hold GPUs, in the order of placement, and the `Run` of each group. The
#: keys are groups with ascending members.
Placed = tuple[list[Group], dict[Group, Run]]
NO_RUNS: Placed = ([], {})
#: Row of the job of an `Entry`.
_job_of = operator.itemgetter(2)


@dataclass(frozen=True)
class Muri(Grouped):
    """Base of Muri-S and Muri-L: groups of jobs that interleave on the resources (Algorithm 1).

    The rule set gives the defaults of ``measured_factors`` and of all parameters after it.

    Parameters
    ----------
    max_group : int
        Largest number of jobs in a group, 2 to 4.
    ordering : {"best", "worst"}
        Ordering of the members: the one of the shortest or of the longest period.
    blossom : bool
        Match jobs by efficiency. False: group neighbours in the order of priority.
    autopack : bool
        Split a group that is slower than its members one after the other. Then admit all groups
        again by priority.
    noise : float
        Largest relative error of the stage times that the scheduler sees, 0 to 1. They are the true
        times multiplied by factors from [1 - noise, 1 + noise], a factor for each job and stage.
    noise_seed : int
        Seed of the factors of ``noise``.
    interval : float, optional
        Seconds between decisions (360 on the paper's testbed); None: at every event.
    collapse : bool
        Where stage times repeat, match kinds of jobs: count the pairs of every two kinds. False:
        always match job by job. The weight of the matching is the same, but the search is slow.
    measured_factors : bool, optional
        Multiply the periods of groups by the measured factors of the public simulator.
    halving_rounds : bool, optional
        Match in log2(``max_group``) rounds, rounded up. False: in ``max_group`` rounds.
    best_first : bool, optional
        While GPUs are missing, the pairs of least waste merge first. False: the first pairs of the
        list. Only with ``blossom``.
    wide_first : bool, optional
        Among equal priorities the wider job comes first, and jobs that arrived just now come last.
        False: the earlier job comes first.
    tie_window_s : float, optional
        Completions at most this long from an arrival (s) are one event with it.

    Reference: Muri, SIGCOMM 2022, sections 4.1 and 4.2, Algorithm 1.
    """

    max_group: Annotated[int, Between(2, NUM_RESOURCES, "jobs")] = 4
    ordering: StageOrder = "best"
    blossom: bool = True
    autopack: bool = False
    noise: Annotated[float, Between(0, 1)] = 0.0
    noise_seed: Annotated[int, AtLeast(0)] = 0
    interval: Annotated[float, Above(0, "seconds")] | None = None
    collapse: bool = field(default=True, repr=False)
    measured_factors: bool | None = None
    halving_rounds: bool | None = None
    best_first: bool | None = None
    wide_first: bool | None = None
    tie_window_s: Annotated[float, AtLeast(0, "seconds")] | None = None

    first_fit = True
    #: whether priorities depend on the time on GPUs
    ranks_by_run_time: ClassVar = False
    needs = frozenset(
        {"stage_storage", "stage_cpu", "stage_gpu", "stage_network", "iteration_time"}
    )
    requires = (("stage_storage",), ("stage_gpu",), ("stage_network",))
    time_fields = ("interval", "tie_window_s")
    rule_values: ClassVar = {
        "paper": {
            "measured_factors": False,
            "halving_rounds": True,
            "best_first": True,
            "wide_first": False,
            "tie_window_s": 0.0,
        },
        "muri": {
            "measured_factors": True,
            "halving_rounds": False,
            "best_first": False,
            "wide_first": True,
            "tie_window_s": 1e-4,
        },
    }

    def completions(self) -> Completions:
        """Completions close to an arrival are one event with it."""
        return Completions(tie_s=self.tie_window_s or 0.0)

    def performance(self) -> Interleaving:
        """Rates of interleaved groups, with or without the measured factors."""
        factors: tuple[float, ...] = ()
        if self.measured_factors:
            factors = MEASURED if self.blossom else MEASURED_BLOCKS
        return Interleaving(None, self.ordering, factors)

    def never_runs(self, view: View) -> Callable[[int], str]:
        """Reason why first fit finds no nodes for a job on the empty cluster."""
        reason_of = unplaceable(view.cluster)
        return lambda job: reason_of(view.gpus(job))

    def session(self, view: View) -> Callable[[View], RunSet]:
        """Decision function of one simulation."""
        # Merging by waste can treat all jobs of a kind alike. Merging in list order needs each
        # group by itself.
        if self.best_first and self.blossom:
            return _SessionByKind(self, view)
        return _SessionByList(self, view)

    @abstractmethod
    def first_priority(self, view: View, job: int) -> float:
        """Priority of a job that never ran, smaller first."""

    @abstractmethod
    def priorities(
        self, view: View, jobs: Ints, widths: Ints, run_seconds: Floats | None
    ) -> Floats:
        """Priorities of jobs, smaller first, (jobs,).

        ``run_seconds`` has the time of each job on GPUs (s); None: the times of the view.
        """


@register("muri-l")
@dataclass(frozen=True)
class MuriL(Muri):
    """Multi-resource interleaving, durations unknown: priority is time on GPUs times demand."""

    families = ("las",)

    ranks_by_run_time: ClassVar = True

    def first_priority(self, view: View, job: int) -> float:
        """Attained service of a job that never ran: 0 GPU-seconds."""
        return 0.0

    def priorities(
        self, view: View, jobs: Ints, widths: Ints, run_seconds: Floats | None
    ) -> Floats:
        """Attained service of each job (GPU-seconds)."""
        if run_seconds is None:
            run_seconds = view.run_seconds_of(jobs)
        return run_seconds * widths


@register("muri-s")
@dataclass(frozen=True)
class MuriS(Muri):
    """Multi-resource interleaving, durations known: priority is remaining time times demand."""

    needs = Muri.needs | {"duration"}

    def first_priority(self, view: View, job: int) -> float:
        """Service of the job by its duration in the trace (GPU-seconds)."""
        return view.trace_duration(job) * view.gpus(job)

    def priorities(
        self, view: View, jobs: Ints, widths: Ints, run_seconds: Floats | None
    ) -> Floats:
        """Remaining service of each job (GPU-seconds)."""
        return view.remaining_of(jobs) * widths


class _Session:
    """State of one simulation of a Muri policy: profiles, waiting jobs, nodes for groups."""

    def __init__(self, policy: Muri, view: View) -> None:
        self.policy = policy
        columns = stage_columns(list(filter(view.has_column, STAGE_COLUMNS)), view.source)
        stages = np.column_stack([view.column(name) for name in columns])
        if policy.noise:
            rng = np.random.default_rng([policy.noise_seed, len(stages)])
            stages = stages * rng.uniform(1 - policy.noise, 1 + policy.noise, stages.shape)
        max_group = policy.max_group
        jobs = range(len(stages))
        self.profiles = Profiles(
            [tuple(row) for row in stages.tolist()],
            three_stages=len(columns) < NUM_RESOURCES,
            perf=policy.performance(),
            max_group=max_group,
        )
        self.rounds = math.ceil(math.log2(max_group)) if policy.halving_rounds else max_group
        #: iteration time of each job alone (s)
        self.solo = [view.iteration_s(job) for job in jobs]
        self.widths = [view.gpus(job) for job in jobs]
        #: priority of each job until it first runs
        self.first_priority = [policy.first_priority(view, job) for job in jobs]
        self.nodes = FirstFit(view.cluster, set(self.widths))
        self.candidates = Candidates(self.widths, view.cluster, max_group, bool(policy.wide_first))

    def add_waiting(self, jobs: Sequence[int]) -> None:
        """Add jobs that arrived just now to the waiting jobs."""
        self.candidates.add(jobs, [self.first_priority[job] for job in jobs])

    def rerank(
        self, view: View, jobs: Ints, run_seconds: Floats | None = None
    ) -> dict[int, list[Entry]]:
        """Update the ranks of jobs that hold GPUs, and list their entries by width, best first."""
        widths = self.candidates.widths[jobs]
        priorities = self.policy.priorities(view, jobs, widths, run_seconds)
        return self.candidates.rerank(jobs, priorities)

    def fitting(self, groups: Sequence[Group], width: int, jobs: Sequence[int]) -> list[Group]:
        """List the groups of a width that fit the idle nodes, by their best member.

        ``jobs`` are the members, best first.
        """
        rank = {job: position for position, job in enumerate(jobs)}
        ordered = sorted(groups, key=lambda group: min(rank[job] for job in group))
        demands = itertools.repeat(width, len(ordered))
        num_fitting = len(list(itertools.takewhile(self.nodes.take, demands)))
        return ordered[:num_fitting]

    def repacked(
        self, groups: Mapping[int, Sequence[Group]], entries: Mapping[int, list[Entry]]
    ) -> dict[int, list[Group]]:
        """Apply ``autopack``: split slow groups, then admit all groups by their best member."""
        priority_of = {job: priority for bucket in entries.values() for priority, _, job in bucket}
        packed: list[tuple[float, int, Group]] = []
        for width, bucket_groups in groups.items():
            for group in bucket_groups:
                for part in self._split_if_slow(group):
                    packed.append((min(priority_of[job] for job in part), width, part))
        admitted: dict[int, list[Group]] = {}
        self.nodes.clear()
        for _, width, group in sorted(packed, key=operator.itemgetter(0)):
            if self.nodes.take(width):
                admitted.setdefault(width, []).append(group)
        return admitted

    def _split_if_slow(self, group: Group) -> list[Group]:
        """Split a group whose members need less time one after the other."""
        one_after_other = sum(self.solo[job] for job in group)
        if len(group) > 1 and self.profiles.best_period(group) <= one_after_other:
            return [group]
        return [(job,) for job in group]


class _SessionByKind(_Session):
    """Muri as the paper describes it: the pairs of least waste merge first.

    While all jobs fit the cluster, a decision costs time in proportion to the jobs that arrived and
    left. All jobs are ranked only when some have to wait.
    """

    def __init__(self, policy: Muri, view: View) -> None:
        super().__init__(policy, view)
        gpus = view.cluster.num_gpus
        self.groups = GroupsByKind(
            self.profiles, self.widths, self.rounds, gpus, collapse=policy.collapse
        )

    def __call__(self, view: View) -> RunSet:
        """Choose candidates, arrange them in groups, and decide on the changes."""
        self.groups.remove(view.finished)
        if self.policy.autopack:
            return self._decide_packed(view)
        stopped: list[int] = []
        if self.candidates.waiting or not self._all_fit(view.fresh):
            stopped = self._select(view)
        else:
            self.groups.add(view.fresh)
        formed = self.groups.arrange()
        by_width = self.groups.groups
        demand = sum(width * sum(map(len, kinds.values())) for width, kinds in by_width.items())
        if not self.nodes.surely_fits(by_width, demand):
            stopped += self._drop_without_nodes(view)
            # some of the new groups may be among the dropped ones
            formed = [(width, group) for width, group in formed if group[0] in self.groups.group_of]
        stop = [job for job in stopped if view.is_running(job)]
        return RunSet([Run(group, width) for width, group in formed], stop=stop, keep=True)

    def _decide_packed(self, view: View) -> RunSet:
        """Decide on all groups again. Jobs of split groups may be grouped again."""
        self._select(view)
        self.groups.arrange()
        groups = {width: self.groups.of_width(width) for width in self.groups.groups}
        packed = self.repacked(groups, self._ranked_members(view))
        runs = [Run(group, width) for width, admitted in packed.items() for group in admitted]
        return RunSet(runs, "exact")

    def _ranked_members(self, view: View) -> dict[int, list[Entry]]:
        """Entries of all jobs that are candidates, by width, best first."""
        return self.rerank(view, np.array(self.groups.jobs(), np.int64))

    def _all_fit(self, fresh: Sequence[int]) -> bool:
        """Whether all jobs fit the cluster in the largest groups."""
        job_counts = self.groups.job_counts()
        for job in fresh:
            width = self.widths[job]
            job_counts[width] = job_counts.get(width, 0) + 1
        size = self.policy.max_group
        demand = sum(math.ceil(count / size) * width for width, count in job_counts.items())
        return self.nodes.surely_fits(job_counts, demand)

    def _select(self, view: View) -> list[int]:
        """Choose the candidates among all jobs, and list the jobs that lose their GPUs."""
        self.add_waiting(view.fresh)
        running = self._ranked_members(view)
        chosen = self.candidates.choose(running, view.fresh)
        candidates = [job for bucket in chosen.values() for job in sorted(map(_job_of, bucket))]
        # The order of the widths decides the order in which jobs stop.
        priority_of = {
            job: priority
            for width in dict.fromkeys([*chosen, *running])
            for priority, _, job in running.get(width, ())
        }
        new = [job for job in candidates if job not in priority_of]
        candidate_set = set(candidates)
        stopped = {
            job: priority for job, priority in priority_of.items() if job not in candidate_set
        }
        self._return_to_waiting(stopped)
        self.candidates.remove(new)
        self.groups.add(new)
        return list(stopped)

    def _return_to_waiting(self, priority_of: Mapping[int, float]) -> None:
        """Move jobs from their groups to the waiting jobs. ``priority_of`` maps job to priority."""
        self.groups.remove(priority_of)
        self.candidates.add(priority_of, priority_of.values())

    def _drop_without_nodes(self, view: View) -> list[int]:
        """Dissolve the groups without nodes, and list their jobs, which wait from now on."""
        entries = self._ranked_members(view)
        self.nodes.clear()
        dropped: dict[int, float] = {}
        for width in sorted(self.groups.groups, reverse=True):
            bucket = entries.get(width, [])
            groups = self.groups.of_width(width)
            fitting = set(self.fitting(groups, width, list(map(_job_of, bucket))))
            without_nodes = {job for group in groups if group not in fitting for job in group}
            dropped |= {job: priority for priority, _, job in bucket if job in without_nodes}
        self._return_to_waiting(dropped)
        return list(dropped)


class _SessionByList(_Session):
    """Muri as in the public simulator: every event ranks, groups and places all jobs."""

    def __init__(self, policy: Muri, view: View) -> None:
        super().__init__(policy, view)
        self.groups = GroupsByList(
            self.profiles, policy.max_group, self.rounds, collapse=policy.collapse
        )
        #: time of the last event (s)
        self.last_event = 0.0
        #: time of each job on GPUs until the last event (s)
        self.run_seconds = np.zeros(len(self.solo))
        #: width -> groups that hold GPUs
        self.placed: dict[int, Placed] = {}
        #: jobs that hold GPUs
        self.holders: set[int] = set()

    def __call__(self, view: View) -> RunSet:
        """Rank all jobs, choose candidates, group and place them, and decide on the changes."""
        self.holders.difference_update(view.finished)
        running = self._ranked_holders(view)
        self.add_waiting(view.fresh)
        entries = self.candidates.choose(running, view.fresh)
        buckets = {width: [*map(_job_of, bucket)] for width, bucket in entries.items()}
        arrange = self.groups.match if self.policy.blossom else self.groups.blocks
        groups = arrange(buckets, view.cluster.num_gpus)
        if self.policy.autopack:
            groups = self.repacked(groups, entries)
        old_placed = self.placed
        self.placed = self._place(groups, buckets)
        start, stop = self._changes(old_placed)
        self._update_waiting(start, stop, running)
        widest_first = (buckets[width] for width in sorted(buckets, reverse=True))
        order = [*filter(self.holders.__contains__, itertools.chain.from_iterable(widest_first))]
        return RunSet(start, stop=stop, keep=True, order=order)

    def _ranked_holders(self, view: View) -> dict[int, list[Entry]]:
        """Entries of the jobs that hold GPUs, by width, best first."""
        rows = np.fromiter(self.holders, np.int64, len(self.holders))
        if not self.policy.ranks_by_run_time:
            return self.rerank(view, rows)
        # The public simulator adds from left to right, and equal sums have to stay equal.
        run_seconds = self.run_seconds[rows] + view.now - self.last_event
        self.run_seconds[rows] = run_seconds
        self.last_event = view.now
        return self.rerank(view, rows, run_seconds)

    def _place(
        self, groups: Mapping[int, list[Group]], buckets: Mapping[int, list[int]]
    ) -> dict[int, Placed]:
        """Choose the groups that fit the nodes, the widest first."""
        demand = sum(width * len(bucket_groups) for width, bucket_groups in groups.items())
        all_fit = self.nodes.surely_fits(groups, demand)
        self.nodes.clear()
        placed: dict[int, Placed] = {}
        for width in sorted(groups, reverse=True):
            fitting = groups[width]
            if not all_fit:
                fitting = self.fitting(fitting, width, buckets[width])
            old_groups, old_runs = self.placed.get(width, NO_RUNS)
            placed[width] = old_groups, old_runs
            if fitting != old_groups:
                sorted_groups = map(_ascending, fitting)
                runs = {group: old_runs.get(group) or Run(group, width) for group in sorted_groups}
                placed[width] = fitting, runs
        return placed

    def _changes(self, old_placed: Mapping[int, Placed]) -> tuple[list[Run], list[int]]:
        """List the groups that start, and the members of the groups that end."""
        start: list[Run] = []
        stop: list[int] = []
        for width in sorted(old_placed.keys() | self.placed.keys(), reverse=True):
            _, old_runs = old_placed.get(width, NO_RUNS)
            _, runs = self.placed.get(width, NO_RUNS)
            if runs is old_runs:
                continue
            ended = itertools.filterfalse(runs.__contains__, old_runs)
            stop += [job for group in ended for job in group if job in self.holders]
            start += [runs[group] for group in itertools.filterfalse(old_runs.__contains__, runs)]
        return start, stop

    def _update_waiting(
        self, start: Iterable[Run], stop: Iterable[int], running: Mapping[int, list[Entry]]
    ) -> None:
        """Move jobs between those that wait and those that hold GPUs."""
        starting = {job for run in start for job in run.jobs}
        if stopped := set(stop) - starting:
            ranked = itertools.chain.from_iterable(running.values())
            priority_of = {job: priority for priority, _, job in ranked if job in stopped}
            self.candidates.add(priority_of, priority_of.values())
        self.candidates.remove(starting - self.holders)
        self.holders -= stopped
        self.holders |= starting


@lru_cache(maxsize=1 << 10)
def _ascending(group: Group) -> Group:
    """Members of a group, ascending."""
    return tuple(sorted(group))
