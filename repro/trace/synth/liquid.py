"""Liquid's batch of eight jobs, once or repeated, submitted at once or with gaps."""

import numpy as np
import pandas as pd

from repro.perf.parameter_server import named
from repro.trace.synth import generators

#: Model, batch size, batches in the order of the artifact's launcher (seed 2020). Section 7.4 has
#: the same counts: four ResNet-50, two Inception V3 and two VGG-16.
BATCH = (
    ("inception3", 12, 250),
    ("resnet50", 28, 850),
    ("resnet50", 4, 950),
    ("vgg16", 32, 1000),
    ("resnet50", 4, 850),
    ("inception3", 4, 1000),
    ("resnet50", 16, 750),
    ("vgg16", 20, 750),
)
#: Warm-up iterations of a job, before the iterations that the job counts.
WARM_UP = 10


@generators.register("liquid-batch-jobs")
def liquid_batch_jobs(
    rng: np.random.Generator, jobs: int = 8, gap_s: float = 0.0, times: str = "t4"
) -> pd.DataFrame:
    """Generate the batch of Liquid's Fig 19, each job with a parameter server and two workers.

    The list repeats after its eighth job. Jobs arrive at once, or with exponential gaps of mean
    ``gap_s``. A duration is the run time with all containers on one node, under the model ``times``
    of `repro.perf.parameter_server`.
    """
    frame = pd.DataFrame(
        [BATCH[job % len(BATCH)] for job in range(jobs)],
        columns=["model", "batch_size", "iterations"],
    )
    frame["iterations"] = frame["iterations"].astype(float) + WARM_UP
    time_model = named(times)
    durations = [
        time_model.run_s(model, (0, 0, 0), batch, iterations)
        for model, batch, iterations in frame.itertuples(index=False, name=None)
    ]
    gaps = rng.exponential(gap_s, len(frame)) if gap_s else np.zeros(len(frame))
    submit = np.cumsum(gaps) - gaps[0]
    job = {"job_id": np.arange(len(frame)), "submit_time": submit, "duration": durations}
    return pd.DataFrame(job | {"num_gpus": 3}).join(frame).assign(num_ps=1)
