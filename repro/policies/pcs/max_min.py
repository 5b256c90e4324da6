"""Equal shares of GPUs, fractions allowed (PCS, section 5.1); on one GPU processor sharing."""

from collections.abc import Iterable
from dataclasses import dataclass

from repro.core.elastic import Elastic
from repro.core.policy import register
from repro.core.view import View


@register("max-min")
@dataclass(frozen=True)
class MaxMin(Elastic):
    """Everyone gets the same number of GPUs, or what it asks for if that is less (PCS, 5.1)."""

    def grants(self, view: View, total: int) -> Iterable[tuple[int, float]]:
        """Fill up from the smallest demand: each takes at most an equal part of what is left."""
        jobs = sorted(view.jobs, key=view.gpus)
        left = float(total)
        for number, job in enumerate(jobs):
            gpus = min(float(view.gpus(job)), left / (len(jobs) - number))
            yield job, gpus
            left -= gpus
