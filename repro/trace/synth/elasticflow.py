"""ElasticFlow-like traces: the marginal distributions of ten clusters, none of their rows."""

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.files.tables import measured
from repro.trace.synth import generators, marginals

#: Numbers of the clusters.
CLUSTERS = range(1, 11)


@generators.register("elasticflow-like")
def elasticflow_like(
    rng: np.random.Generator, cluster: int = 4, jobs: int | None = None
) -> pd.DataFrame:
    """Generate a trace like one of the ten Microsoft clusters of the ElasticFlow traces.

    Jobs per GPU count, and total duration per GPU count, are those of the public trace. Gaps and
    durations follow its quantiles, in random order.

    Options: ``cluster`` is 1 to 10. ``jobs`` is the number of jobs, by default that of the public
    trace. Another number keeps the proportions and the arrival rate.

    Measured tables ``traces/elasticflow_*.csv``.
    """
    if cluster not in CLUSTERS:
        raise ParamError(f"cluster={cluster!r}: give 1 to {len(CLUSTERS)}")
    durations = measured("elasticflow_durations").query("trace == @cluster")
    gaps = measured("elasticflow_gaps").query("trace == @cluster").iloc[0]
    num_gpus, duration, submit = marginals.sample(rng, durations, gaps, jobs)
    return pd.DataFrame(
        {
            "job_id": np.arange(len(submit)),
            "submit_time": submit,
            "duration": duration,
            "num_gpus": num_gpus,
        }
    )
