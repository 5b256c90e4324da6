"""Five papers on scheduling deep-learning jobs on GPU clusters, reproduced end to end."""

import lazy_loader

from repro.base.release import VERSION as __version__

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = ["Cluster", "Preferences", "Result", "__version__", "figure", "load", "make", "simulate"]
