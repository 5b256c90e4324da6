"""What Muri's tables say of its models: stage shares, bottlenecks, throughput of a group."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pandas as pd

from repro.perf.muri_models import muri_profiles
from repro.perf.three_stage import three_stage_time

#: Columns of the stage times of `muri_profiles`, by the name of the stage in a figure.
STAGES = {"data": "stage_data", "GPU": "stage_gpu", "network": "stage_network"}
#: Which of them the paper's four bottlenecks fall into.
STAGE_OF = {"storage": "data", "cpu": "data", "gpu": "GPU", "network": "network"}


def stage_shares(num_gpus: int) -> pd.DataFrame:
    """Return how long each stage of the eight models is, as a share of the iteration time.

    Parameters
    ----------
    num_gpus : int
        One of the measured GPU counts.

    Returns
    -------
    DataFrame
        By model: label, bottleneck, data, GPU, network and sum (percent), labelled (the stage
        the paper's bottleneck falls into), longest.

    References
    ----------
    Muri, SIGCOMM 2022, Table 1.

    Examples
    --------
    >>> round(stage_shares(16).loc["gpt2", "sum"])
    113
    """
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
    """Return by how much the stage of a model's bottleneck is longer than its other stages.

    Parameters
    ----------
    profiles : DataFrame
        `repro.perf.muri_models.muri_profiles`, or some rows of it.

    Returns
    -------
    DataFrame
        The rows with ``margin``: above 1 the model is bound by what Table 3 says.

    References
    ----------
    Muri, SIGCOMM 2022, Table 3.

    Examples
    --------
    >>> table = bottleneck_margin(muri_profiles().query("model == 'vgg16'"))
    >>> (table["margin"] > 1).tolist()
    [False, False, False, False, True, True]
    """
    bound = profiles["bottleneck"].map(STAGE_OF)
    margins = []
    for (_, row), stage in zip(profiles.iterrows(), bound, strict=True):
        others = [row[column] for name, column in STAGES.items() if name != stage]
        margins.append(float(row[STAGES[stage]]) / max(others))
    return profiles.assign(margin=margins)


def jobs_off_profile(trace: pd.DataFrame) -> int:
    """Return how many jobs of a trace have other times than the table of models.

    Parameters
    ----------
    trace : DataFrame
        With model, num_gpus, iteration_time and the stage times (s), storage and CPU in one.

    Returns
    -------
    int
        Jobs with a difference of more than a nanosecond in any of the four.

    Examples
    --------
    >>> job = {"model": ["a2c"], "num_gpus": [1], "iteration_time": [0.517]}
    >>> stages = {"stage_storage": [0.514], "stage_gpu": [0.014], "stage_network": [0.0]}
    >>> jobs_off_profile(pd.DataFrame(job | stages))
    0
    """
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
    """Return the throughput of models alone and together in one group.

    Parameters
    ----------
    models : sequence of str
        Members, 2 to 4.
    num_gpus : int
        GPUs every member uses, and the group as a whole.
    alone_factor, group_factor : float
        Measured time over the profile's iteration time, and over T.

    Returns
    -------
    DataFrame
        One row per model and ordering (best, worst): label, period (s, without the factor),
        alone, together (iterations/s), normalised (together / alone).

    References
    ----------
    Muri, SIGCOMM 2022, Table 2.

    Examples
    --------
    >>> pair = group_throughput(["bert", "vgg16"], 1, 1.0, 1.0)
    >>> pair["period"].tolist()
    [0.228, 0.228, 0.345, 0.345]
    """
    table = muri_profiles()
    rows = table[table["num_gpus"] == num_gpus].set_index("model").loc[list(models)]
    times = [tuple(map(float, row)) for row in rows[list(STAGES.values())].to_numpy()]
    frames = []
    for ordering, (model, row) in itertools.product(("best", "worst"), rows.iterrows()):
        period = three_stage_time(times, "best" if ordering == "best" else "worst")
        alone = 1 / (alone_factor * float(row["iteration_time"]))
        together = 1 / (group_factor * period)
        frames.append(
            {
                "model": model, "label": row["label"], "ordering": ordering, "period": period,
                "alone": alone, "together": together, "normalised": together / alone,
            }
        )  # fmt: skip
    return pd.DataFrame(frames)
