"""Heterogeneity-blind variants: the same formula, with all GPU types taken for equally fast."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from repro.base.typing import Floats
from repro.model.typed_shares import TypedShares
from repro.model.view import View


@dataclass(frozen=True)
class MayBeBlind(TypedShares):
    """A share policy whose formula may be shown equal speeds, which rounds then take as told.

    Subclasses turn the two values into parameters or fix them.
    """

    # not annotated, so that neither is a parameter here
    #: False: all GPU types count as equally fast, and rounds do not tell them apart
    heterogeneity_aware = True
    #: GPU type whose speed then counts for all, the job's fastest where the cluster has none of it;
    #: empty: every speed counts as 1
    reference = ""

    @property
    def tells_types(self) -> bool:
        """Whether the policy tells GPU types apart."""
        return self.heterogeneity_aware

    def speeds(self, view: View) -> Callable[[int], Floats]:
        """Return the speeds of a job, all equal if the policy is blind."""
        true = super().speeds(view)
        types = list(view.gpu_types)
        if self.heterogeneity_aware:
            return true

        def equal(job: int) -> Floats:
            speeds = true(job)
            if not self.reference:
                return (speeds > 0).astype(float)
            known = speeds[types.index(self.reference)] if self.reference in types else 0.0
            return np.full(len(speeds), known if known > 0 else speeds.max())

        return equal


@dataclass(frozen=True)
class Blind(MayBeBlind):
    """A blind share policy that shows its formula the speeds of one GPU type for all.

    Parameters
    ----------
    reference : str
        GPU type whose speeds count for all types; the job's fastest where the cluster has none.
    """

    heterogeneity_aware = False
    reference: str = "v100"
