"""Requirement estimator that is updated with each job as it ends."""

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from repro.base.errors import ParamError
from repro.base.extras import needed_for
from repro.files.checks import shown


class OnlineForest:
    """An adaptive random forest per label, updated with one row at a time (river).

    Liquid's artifact retrains after every third job. Features may be text. Gomes et al.,
    Adaptive random forests for data stream regression, ESANN 2018.

    Examples
    --------
    >>> forest = OnlineForest(["gpu_mem_mb"], seed=1)
    >>> for batch in range(1, 30):
    ...     forest.learn({"batch_size": batch}, {"gpu_mem_mb": 100.0 * batch})
    >>> 0 < forest.predict({"batch_size": 20})["gpu_mem_mb"] < 3000
    True
    """

    def __init__(self, labels: Sequence[str], trees: int = 10, seed: int = 0) -> None:
        # takes a second to import
        with needed_for("an online forest"):
            from river.forest import ARFRegressor

        # there are few rows, so splits are sought often and over all features, as in the artifact;
        # leaves hold means because features may be text
        self._models = {
            label: ARFRegressor(
                trees, max_features=None, grace_period=5, leaf_prediction="mean", seed=seed
            )
            for label in labels
        }

    def predict(self, features: Mapping[str, Any]) -> dict[str, float]:
        """Estimate each label; 0 before the first row."""
        row = dict(features)
        return {label: float(model.predict_one(row)) for label, model in self._models.items()}

    def learn(self, features: Mapping[str, Any], labels: Mapping[str, float]) -> None:
        """Update with the measured labels of one job.

        Raises
        ------
        ParamError
            If a label is missing, or is no finite number. Then no label is learned.
        """
        for label in self._models:
            value = labels.get(label)
            if not isinstance(value, Real) or not math.isfinite(value):
                what = repr(value) if label in labels else "missing"
                raise ParamError(f"label {label!r} is {shown(what)}; give a finite number")
        for label, model in self._models.items():
            model.learn_one(dict(features), labels[label])
