"""Parameters of Liquid's model of run times, fitted anew to published times.

The refitted parameters show how far the stored ones are off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from repro.base.typing import Floats
from repro.perf.parameter_server import IterationModel

#: A parameter to fit: name of a trained model, field, largest factor. With "*" as the name, the
#: field is that of all trained models, or a bandwidth of the `IterationModel`.
Parameter = tuple[str, str, float]
#: Columns of a run that the model reads.
RUN = ["model", "tasks", "batch_size", "iterations"]
#: Fields of an `IterationModel` and of its trained models that `parameters` lists.
_LINKS = ("pair_mb_s", "node_mb_s", "local_mb_s")
_OF_MODEL = ("images_per_s", "exposed", "fixed_s")
#: First guess of every factor.
START = 1.2


def run_seconds(model: IterationModel, runs: pd.DataFrame) -> list[float]:
    """Run time of each run under a model (s)."""
    return [model.run_s(*row) for row in runs[RUN].itertuples(index=False)]


def refitted(
    model: IterationModel, free: Sequence[Parameter], runs: pd.DataFrame
) -> IterationModel:
    """Model whose free parameters fit the column ``seconds`` of runs best.

    Each parameter is multiplied by a factor. Least squares of the logarithms of the run times find
    the factors.
    """

    def errors(factors: Floats) -> Floats:
        seconds = run_seconds(_scaled(model, free, factors), runs)
        return np.asarray(np.log(seconds / runs["seconds"]))

    largest = [largest_factor for *_, largest_factor in free]
    factors = least_squares(errors, [START] * len(free), bounds=(0, largest)).x
    return _scaled(model, free, factors)


def parameters(models: Mapping[str, Mapping[str, IterationModel]]) -> pd.DataFrame:
    """Parameters of iteration models: a row per version (stored, refitted), GPU type and model.

    ``models`` are the iteration models by version and GPU type.
    """
    rows = []
    for version, by_gpu in models.items():
        for gpu, model in by_gpu.items():
            links = {field: getattr(model, field) for field in _LINKS}
            for name, trained in model.models.items():
                own = {field: getattr(trained, field) for field in _OF_MODEL}
                rows.append({"parameters": version, "gpu": gpu, "model": name, **own, **links})
    return pd.DataFrame(rows)


def _scaled(model: IterationModel, free: Sequence[Parameter], factors: Floats) -> IterationModel:
    """Model with each free parameter multiplied by its factor."""
    for (model_name, field, _), factor in zip(free, factors, strict=True):
        if hasattr(model, field):
            model = replace(model, **{field: getattr(model, field) * factor})
            continue
        scaled_models = {
            name: replace(trained, **{field: getattr(trained, field) * factor})
            for name, trained in model.models.items()
            if model_name in ("*", name)
        }
        model = replace(model, models={**model.models, **scaled_models})
    return model
