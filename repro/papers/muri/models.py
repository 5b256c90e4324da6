"""Muri's models: stage shares, bottlenecks, throughput of a group (Tables 1 to 3)."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from repro.perf.muri_models import muri_profiles
from repro.perf.stages import StageOrder, interleaving_time

#: Stage in a figure -> column of `muri_profiles`.
STAGES = {"data": "stage_data", "GPU": "stage_gpu", "network": "stage_network"}
#: Bottleneck in the paper -> stage.
STAGE_OF = {"storage": "data", "cpu": "data", "gpu": "GPU", "network": "network"}


def stage_shares(num_gpus: int) -> pd.DataFrame:
    """Duration of each stage by model, % of the iteration (Table 1).

    Further columns: label, the paper's bottleneck as printed and as a stage (``labelled``), the sum
    of the durations, and the longest stage.
    """
    table = muri_profiles()
    models = table[table["num_gpus"] == num_gpus].set_index("model")
    shares = pd.DataFrame(
        {name: 100 * models[column] / models["iteration_time"] for name, column in STAGES.items()}
    )
    return models[["label", "bottleneck"]].assign(
        **shares,
        sum=shares.sum(axis=1),
        labelled=models["bottleneck"].map(STAGE_OF),
        longest=shares.idxmax(axis=1),
    )


def bottleneck_margin(profiles: pd.DataFrame) -> pd.DataFrame:
    """Profiles with margin: time of the bottleneck stage over the longest other stage."""
    times = profiles[list(STAGES.values())]
    column = profiles["bottleneck"].map(STAGE_OF).map(STAGES)
    is_bottleneck = np.asarray(times.columns) == column.to_numpy()[:, None]
    return profiles.assign(
        margin=times.where(is_bottleneck).max(axis=1) / times.mask(is_bottleneck).max(axis=1)
    )


def jobs_off_profile(trace: pd.DataFrame) -> int:
    """Count of jobs with a time that differs from the table of models by more than 1 ns."""
    table = muri_profiles().rename(columns={"stage_data": "stage_storage"})
    columns = ["iteration_time", "stage_storage", "stage_gpu", "stage_network"]
    profiles = table.set_index(["model", "num_gpus"])[columns]
    keys = pd.MultiIndex.from_frame(trace[["model", "num_gpus"]])
    gaps = profiles.reindex(keys).to_numpy() - trace[columns].to_numpy(float)
    # NaN, a model that is not in the table, counts as different
    return int((~(abs(gaps) < 1e-9)).any(axis=1).sum())


def group_throughput(
    models: Sequence[str], num_gpus: int, alone_factor: float, group_factor: float
) -> pd.DataFrame:
    """Throughput (iterations/s) of 2 to 4 models, alone and in one group (Table 2).

    ``alone_factor`` is measured time over the profile's iteration time, ``group_factor`` measured
    time over the period T.
    """
    table = muri_profiles()
    rows = table[table["num_gpus"] == num_gpus].set_index("model").loc[list(models)]
    times = [tuple(map(float, row)) for row in rows[list(STAGES.values())].to_numpy()]
    orderings: tuple[StageOrder, ...] = ("best", "worst")
    records = []
    for ordering, (model, row) in itertools.product(orderings, rows.iterrows()):
        period = interleaving_time(times, ordering, merged=True)
        alone = 1 / (alone_factor * float(row["iteration_time"]))
        together = 1 / (group_factor * period)
        records.append(
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
    return pd.DataFrame(records)
