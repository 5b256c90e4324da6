"""Traces: read from files (`load`), generated (`synth`), dressed with models (`dress`).

`predict_durations` adds predictions.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = ["dress", "predict_durations"]
