"""Nodes of the gangs that hold GPUs."""

from collections.abc import Mapping

from repro.base.errors import PolicyError
from repro.model.cluster.spec import Cluster
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes
from repro.placement.base import Placer, are_idle, wrong_nodes


class GangNodes:
    """Nodes of every gang that holds GPUs, chosen by the placement rule.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    cluster : Cluster
        Cluster of the simulation.
    policy : str
        Name of the policy, for messages.
    placer : Placer
        Placement rule on the whole cluster.
    placer_by_type : mapping of str to Placer
        Placement rule on the nodes of each GPU type, for policies that name GPU types.
    counts_only : bool
        GPUs of a type are interchangeable and starts cost nothing, so no gang needs nodes.
    """

    def __init__(
        self,
        table: JobTable,
        cluster: Cluster,
        policy: str,
        placer: Placer,
        placer_by_type: Mapping[str | None, Placer],
        *,
        counts_only: bool,
    ) -> None:
        self.placer = placer
        self.counts_only = counts_only
        #: whether the placement rule was used in the simulation
        self.placement_used = False
        self._table = table
        self._cluster = cluster
        self._policy = policy
        self._placer_by_type = placer_by_type
        for some_placer in (placer, *placer_by_type.values()):
            some_placer.name_jobs(table.ids)
        self._nodes: dict[int, Nodes] = {}
        #: idle GPUs of every node
        self._idle = [node.gpus for node in cluster.nodes]

    @property
    def num_nodes(self) -> int:
        """Nodes of the cluster."""
        return self._cluster.num_nodes

    def of(self, leader: int) -> Nodes:
        """(Node, number of GPUs on it) of the gang of a leader, by ascending node."""
        return self._nodes.get(leader, ())

    def of_start(self, run: Run) -> Nodes:
        """Nodes of a gang that starts, chosen now unless `place` has chosen them before.

        They are empty for a gang without own GPUs or with a fraction of a GPU, and if
        ``counts_only``.
        """
        charged = run.charged
        if self.counts_only or not charged or charged != int(charged):
            return ()
        self.placement_used = True
        leader = run.jobs[0]
        # a rule that only counts GPUs chooses no nodes, and checks of the decision count the GPUs
        if leader not in self._nodes and (self.placer.tracks_nodes or run.tasks):
            self.place(run)
        return self._nodes.get(leader, ())

    def place(self, run: Run) -> None:
        """Occupy the nodes of a gang: those of its tasks, or the choice of the placement rule."""
        placer = self._placer_by_type.get(run.gpu_type, self.placer)
        leader = run.jobs[0]
        self.placement_used = True
        if not run.tasks:
            model = self._table.models[leader] if placer.reads_model else None
            nodes = placer.take(leader, int(run.charged), model)
            self._occupy(run, nodes)
            return
        if len(run.tasks) != run.gpus:
            raise PolicyError(
                f"policy {self._policy!r} names nodes for {len(run.tasks)} tasks of job "
                f"{self._table.ids[leader]!r}, but gives it {run.gpus:g} GPUs; name a node per GPU"
            )
        self._occupy(run, placer.claim(leader, run.tasks))

    def _occupy(self, run: Run, nodes: Nodes) -> None:
        """Check the nodes that a placement has chosen for a gang, and mark their GPUs as held."""
        leader = run.jobs[0]
        if self.placer.tracks_nodes:
            gpus = int(run.charged)
            if not are_idle(nodes, gpus, self._idle):
                job_name = f"job {self._table.ids[leader]!r}"
                raise wrong_nodes(self.placer, job_name, gpus, nodes)
            for node, count in nodes:
                self._idle[node] -= count
        self._nodes[leader] = nodes

    def give_back(self, run: Run) -> None:
        """Free the nodes of a gang that has ended or stopped."""
        leader = run.jobs[0]
        if leader in self._nodes:
            nodes = self._nodes.pop(leader)
            if self.placer.tracks_nodes:
                for node, count in nodes:
                    self._idle[node] += count
            self._placer_by_type.get(run.gpu_type, self.placer).give_back(leader)

    def idle(self) -> list[int] | None:
        """Idle GPUs of every node; None if the placement rule only counts GPUs."""
        if not self.placer.tracks_nodes:
            return None
        return self._idle.copy()
