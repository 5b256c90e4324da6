"""Bases of policies with a heterogeneity-agnostic form: the same formula with equal GPU types."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from repro.base.typing import Floats
from repro.model.typed_shares import TypedShares
from repro.model.view import View


@dataclass(frozen=True)
class AwareOrAgnostic(TypedShares):
    """A share policy that can ignore the GPU types, in its formula and in rounds.

    Subclasses turn the two class attributes into parameters or fix them.
    """

    # Without annotations neither attribute is a parameter of this class.
    #: False: all GPU types count as equally fast, and rounds do not tell them apart
    heterogeneity_aware = True
    #: GPU type whose speed counts for all types if the policy is not aware of types; empty: every
    #: speed above 0 counts as 1
    reference = ""

    @property
    def tells_types(self) -> bool:
        """Whether the policy tells GPU types apart."""
        return self.heterogeneity_aware

    def speeds(self, view: View) -> Callable[[int], Floats]:
        """Throughputs (steps/s) on all GPU types as a function of the job; equal if agnostic.

        The fastest type of the job replaces a reference type that the cluster lacks, or on which
        the job cannot run.
        """
        true_speeds = super().speeds(view)
        gpu_types = list(view.gpu_types)
        if self.heterogeneity_aware:
            return true_speeds

        def equal_speeds(job: int) -> Floats:
            speeds = true_speeds(job)
            if not self.reference:
                return (speeds > 0).astype(float)
            has_reference = self.reference in gpu_types
            speed = speeds[gpu_types.index(self.reference)] if has_reference else 0.0
            return np.full(len(speeds), speed if speed > 0 else speeds.max())

        return equal_speeds


@dataclass(frozen=True)
class Agnostic(AwareOrAgnostic):
    """A share policy in whose formula the speed on one GPU type counts for all types.

    Parameters
    ----------
    reference : str
        GPU type whose speed counts for all types. The job's fastest type replaces a reference type
        that the cluster lacks, or on which the job cannot run.
    """

    heterogeneity_aware = False
    reference: str = "v100"
