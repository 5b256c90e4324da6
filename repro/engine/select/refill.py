"""Selection by nodes: at every event the empty cluster is refilled by first fit, best key first."""

from repro.engine.select.resort import Resort
from repro.model.cluster.spec import Cluster
from repro.model.jobs import JobTable
from repro.model.policy import Ordering
from repro.placement.first_fit import FirstFit


class Refill(Resort):
    """One list of unfinished jobs, sorted by (key, row); a gang needs nodes, not only idle GPUs."""

    def __init__(self, table: JobTable, ordering: Ordering, cluster: Cluster) -> None:
        super().__init__(table, ordering, cluster, always_sorts=True)
        self.nodes = FirstFit(cluster, set(table.gpus))
        #: jobs chosen at the last event, best first
        self._chosen: dict[int, None] = {}

    def _scan(self) -> tuple[list[int], list[int]]:
        """Give every job in order the first place for its gang, or skip it; (starts, stops)."""
        before = self._chosen
        chosen = dict.fromkeys(self.nodes.scan(self._order, self.table.gpus.__getitem__))
        self._chosen = chosen
        starts = [job for job in chosen if job not in self._held]
        # in the order of the last event: a stop's place in it is its place in the records
        stops = [job for job in before if job in self._held and job not in chosen]
        return starts, stops
