"""Failures of nodes at random times, as a process next to the scheduler."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from repro.base.errors import ParamError
from repro.model.settings import Above, AtLeast, check_settings

#: Names of the settings in ``--failures``, and the fields of `Failures`.
SETTINGS = {"mtbf": "mtbf_s", "repair": "repair_s", "checkpoint": "checkpoint_s"}


@dataclass(frozen=True)
class Failures:
    """Failures of single nodes at random times.

    Every node fails after exponentially distributed times of mean ``mtbf_s``, each node by itself.
    The jobs on a node that fails lose the work since their last checkpoint. They keep their GPUs
    unless the policy stops them, and progress again after a restart of ``repair_s``. If a job still
    loads or restarts when its node fails, the new restart begins at the end of the earlier one. A
    job that the policy stops during a restart does not complete it when it resumes. The node stays
    available. Elastic policies are refused, and so are predictions, starts that jobs pay
    in every interval (rules ``muri``), rounds of whole steps (rules ``gavel``) and ideal execution.

    Parameters
    ----------
    mtbf_s : float
        Mean time between failures of one node (s).
    repair_s : float
        Time of the restart of a job after a failure of its node (s).
    checkpoint_s : float
        Time between checkpoints (s), counted from the instant at which a job begins to progress
        after a start or restart, or from a later change of its rate.

    Examples
    --------
    >>> Failures.parse("mtbf=86400,repair=600")
    Failures(mtbf_s=86400.0, repair_s=600.0, checkpoint_s=3600.0)
    """

    mtbf_s: Annotated[float, Above(0, "seconds", finite=True)]
    repair_s: Annotated[float, AtLeast(0, "seconds", finite=True)] = 600.0
    checkpoint_s: Annotated[float, Above(0, "seconds", finite=True)] = 3600.0

    def __post_init__(self) -> None:
        check_settings("failures:", self)

    @classmethod
    def parse(cls, text: str) -> "Failures":
        """Failures from a text such as ``mtbf=86400,repair=600,checkpoint=3600``.

        Raises
        ------
        ParamError
            If a setting is unknown, missing, or no number in its range.
        """
        values: dict[str, float] = {}
        for word in text.split(","):
            name, _, number = word.partition("=")
            field = SETTINGS.get(name.strip())
            try:
                value = float(number)
            except ValueError:
                field = None
            if field is None or field in values:
                raise ParamError(
                    f"failures {word!r:.60}: give mtbf=SECONDS, and optionally repair=SECONDS and "
                    f"checkpoint=SECONDS, joined by commas"
                )
            values[field] = value
        if "mtbf_s" not in values:
            raise ParamError(
                f"failures {text!r:.60}: give mtbf=SECONDS, the mean time between failures of a "
                f"node"
            )
        return cls(**values)

    def process(self, engine: Any, seed: int) -> Generator[Any, Any, None]:
        """SimPy process that lets nodes of an `Engine` fail until the simulation ends."""
        num_nodes = engine.holdings.gang_nodes.num_nodes
        rng = np.random.default_rng([seed, num_nodes, 0xFA11])
        while True:
            # time to the next failure of any node; which node fails is random
            yield engine.env.timeout(rng.exponential(self.mtbf_s / num_nodes))
            node = int(rng.integers(num_nodes))
            engine.fail(node, self.checkpoint_s, self.repair_s)
