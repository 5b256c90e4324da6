"""Selection by nodes: at every event, consolidated first fit on the empty cluster, in key order."""

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

    def _scan(self) -> tuple[list[int], list[int]]:
        """List the stops and starts of first fit in list order; a gang without nodes is skipped."""
        before = self._chosen
        chosen = dict.fromkeys(self.nodes.scan(self._order, self.table.gpus.__getitem__))
        self._chosen = chosen
        starts = [job for job in chosen if job not in self._holders]
        # stops are recorded in the order of the last event
        stops = [job for job in before if job in self._holders and job not in chosen]
        return stops, starts
