"""Five papers on scheduling deep-learning jobs on GPU clusters, reproduced end to end."""

import lazy_loader

from repro.base import moved
from repro.base.release import VERSION as __version__

moved.install()
__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [
    "Cluster",
    "Comparison",
    "Elastic",
    "Grouped",
    "Order",
    "Policy",
    "Preferences",
    "Result",
    "Run",
    "RunSet",
    "Shares",
    "TypedShares",
    "View",
    "__version__",
    "check_policy",
    "compare",
    "dress",
    "figure",
    "load",
    "make",
    "policies",
    "predict_durations",
    "register",
    "simulate",
    "simulate_many",
]
