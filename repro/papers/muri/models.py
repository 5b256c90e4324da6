"""What Muri's tables say of its models: stage shares, bottlenecks, throughput of a group."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from repro.perf.muri_models import muri_profiles
from repro.perf.stages import interleaving_time

#: Columns of the stage times of `muri_profiles`, by the name of the stage in a figure.
STAGES = {"data": "stage_data", "GPU": "stage_gpu", "network": "stage_network"}
#: Which of them the paper's four bottlenecks fall into.
STAGE_OF = {"storage": "data", "cpu": "data", "gpu": "GPU", "network": "network"}


def stage_shares(num_gpus: int) -> pd.DataFrame:
    """Return how long each stage of the models is, in percent of the iteration (Table 1)."""
    table = muri_profiles()
    at = table[table["num_gpus"] == num_gpus].set_index("model")
    parts = {name: 100 * at[column] / at["iteration_time"] for name, column in STAGES.items()}
    shares = pd.DataFrame(parts)
    return at[["label", "bottleneck"]].assign(
        **shares,
        sum=shares.sum(axis=1),
        labelled=at["bottleneck"].map(STAGE_OF),
        longest=shares.idxmax(axis=1),
    )


def bottleneck_margin(profiles: pd.DataFrame) -> pd.DataFrame:
    """Return the profiles with margin: the bottleneck's stage over the longest other stage."""
    times = profiles[list(STAGES.values())]
    bound = profiles["bottleneck"].map(STAGE_OF).map(STAGES)
    of_bound = np.asarray(times.columns) == bound.to_numpy()[:, None]
    return profiles.assign(
        margin=times.where(of_bound).max(axis=1) / times.mask(of_bound).max(axis=1)
    )


def jobs_off_profile(trace: pd.DataFrame) -> int:
    """Return how many jobs differ from the table of models, in any time by more than 1 ns."""
    table = muri_profiles().rename(columns={"stage_data": "stage_storage"})
    columns = ["iteration_time", "stage_storage", "stage_gpu", "stage_network"]
    ours = table.set_index(["model", "num_gpus"])[columns]
    keys = pd.MultiIndex.from_frame(trace[["model", "num_gpus"]])
    gaps = ours.reindex(keys).to_numpy() - trace[columns].to_numpy(float)
    # A model that is not in the table has no number at all.
    return int((~(abs(gaps) < 1e-9)).any(axis=1).sum())


def group_throughput(
    models: Sequence[str], num_gpus: int, alone_factor: float, group_factor: float
) -> pd.DataFrame:
    """Return the throughput of 2 to 4 models alone and together in one group (Table 2).

    Factors: measured time over the profile's iteration time, and over the period T.
    """
    table = muri_profiles()
    rows = table[table["num_gpus"] == num_gpus].set_index("model").loc[list(models)]
    times = [tuple(map(float, row)) for row in rows[list(STAGES.values())].to_numpy()]
    frames = []
    for ordering, (model, row) in itertools.product(("best", "worst"), rows.iterrows()):
        period = interleaving_time(times, "best" if ordering == "best" else "worst", merged=True)
        alone = 1 / (alone_factor * float(row["iteration_time"]))
        together = 1 / (group_factor * period)
        frames.append(
            {
                "model": model,
                "label": row["label"],
                "ordering": ordering,
                "period": period,
                "alone": alone,
                "together": together,
                "normalised": together / alone,
            }
        )
    return pd.DataFrame(frames)
