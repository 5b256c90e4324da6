"""Muri's models: stage times, bottlenecks, periods of a group (Tables 1 to 3)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from repro.perf.muri_models import muri_profiles
from repro.perf.stages import StageOrder, interleaving_time

#: Stage in a figure -> column of `muri_profiles`.
STAGES = {"data": "stage_data", "GPU": "stage_gpu", "network": "stage_network"}
#: Bottleneck in the paper -> stage.
STAGE_OF = {"storage": "data", "cpu": "data", "gpu": "GPU", "network": "network"}


def stage_times(num_gpus: int) -> pd.DataFrame:
    """Duration of each stage and of an iteration by model, s.

    ``labelled`` is the stage of the published bottleneck.
    """
    table = muri_profiles()
    models = table[table["num_gpus"] == num_gpus].set_index("model")
    stages = {name: models[column] for name, column in STAGES.items()}
    return models[["label", "bottleneck", "iteration_time"]].assign(
        **stages, labelled=models["bottleneck"].map(STAGE_OF)
    )


def with_bottleneck_times(profiles: pd.DataFrame) -> pd.DataFrame:
    """Profiles with the time of the bottleneck's stage and of the longest other stage, s.

    The columns are bottleneck_s and other_s.
    """
    times = profiles[list(STAGES.values())]
    column = profiles["bottleneck"].map(STAGE_OF).map(STAGES)
    is_bottleneck = np.asarray(times.columns) == column.to_numpy()[:, None]
    return profiles.assign(
        bottleneck_s=times.where(is_bottleneck).max(axis=1),
        other_s=times.mask(is_bottleneck).max(axis=1),
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


def group_periods(models: Sequence[str], num_gpus: int) -> pd.DataFrame:
    """Iteration time alone and period T in one group (s), for the best and the worst order.

    One row per order of the stages and model. A group has 2 to 4 models.
    """
    times = stage_times(num_gpus).loc[list(models)]
    stages = [tuple(map(float, row)) for row in times[list(STAGES)].to_numpy()]
    orderings: tuple[StageOrder, ...] = ("best", "worst")
    frames = [
        times[["label", "iteration_time"]].assign(
            ordering=ordering, period=interleaving_time(stages, ordering, merged=True)
        )
        for ordering in orderings
    ]
    return pd.concat(frames).reset_index()
