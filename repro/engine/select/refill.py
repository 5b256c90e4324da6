"""Selection by nodes: every event fills the cluster anew by consolidated first fit, by key."""

from repro.engine.select import kept_list
from repro.engine.select.resort import Resort
from repro.model.cluster.spec import Cluster
from repro.model.jobs import JobTable
from repro.model.policy import Ordering
from repro.placement.first_fit import FirstFit


class Refill(Resort):
    """Selection of the gangs that find nodes with enough idle GPUs.

    Unfinished jobs are in one list, sorted by key, then by row number.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    ordering : Ordering
        Keys of the jobs.
    cluster : Cluster
        Cluster of the simulation.
    """

    def __init__(self, table: JobTable, ordering: Ordering, cluster: Cluster) -> None:
        super().__init__(table, ordering, cluster, always_sorts=True)
        self.nodes = FirstFit(cluster, set(table.gpus))
        #: jobs chosen at the last event, best first
        self._chosen: dict[int, None] = {}

    def _choose(self, sorts: bool) -> tuple[list[int], list[int]]:
        """Choose the stops and starts of first fit; a gang without nodes is skipped."""
        self._length = kept_list.sort(self._list, self._length)
        ranked: list[int] = self._list.entries[: self._length].tolist()
        before = self._chosen
        chosen = dict.fromkeys(self.nodes.scan(ranked, self.table.gpus.__getitem__))
        self._chosen = chosen
        holds = self._holds
        starts = [job for job in chosen if not holds[job]]
        # stops are recorded in the order of the last event
        stops = [job for job in before if holds[job] and job not in chosen]
        for job in stops:
            holds[job] = False
        for job in starts:
            holds[job] = True
        return stops, starts
