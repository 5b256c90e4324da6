"""A requirement estimator that learns from each job as it ends, without training anew."""

from collections.abc import Mapping, Sequence
from typing import Any


class OnlineForest:
    """An adaptive random forest per label that is updated with one row at a time (river).

    Liquid's artifact trains anew after every third job. Text features stay text. Gomes et al.,
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
        # takes a second to import, and nothing else needs it
        from river.forest import ARFRegressor

        # a few rows are all there is: look for splits often, over all features, as the artifact
        # does; leaves hold means, since features may be text
        self._models = {
            label: ARFRegressor(
                trees, max_features=None, grace_period=5, leaf_prediction="mean", seed=seed
            )
            for label in labels
        }

    def predict(self, features: Mapping[str, Any]) -> dict[str, float]:
        """Return an estimate of each label; 0 before the first row."""
        row = dict(features)
        return {label: float(one.predict_one(row)) for label, one in self._models.items()}

    def learn(self, features: Mapping[str, Any], labels: Mapping[str, float]) -> None:
        """Update with what one job used."""
        for label, model in self._models.items():
            model.learn_one(dict(features), labels[label])
