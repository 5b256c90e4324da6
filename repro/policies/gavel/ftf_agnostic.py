"""Finish-time fairness (Themis) that takes all GPU types for equal: Gavel's baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from repro.core.policy import register
from repro.core.view import View
from repro.policies.gavel._job_types import JobSpeeds
from repro.policies.gavel.ftf import GavelFtf


@register("ftf-agnostic")
@dataclass(frozen=True)
class FtfAgnostic(GavelFtf):
    """Minimise the largest finish-time ratio with the speeds of one GPU type for all.

    Parameters
    ----------
    reference : str
        GPU type whose speeds count for all types; the job's fastest where the cluster has none.

    References
    ----------
    Gavel, OSDI 2020, section 4.2.

    Examples
    --------
    >>> FtfAgnostic().reference
    'v100'
    """

    reference: str = "v100"

    tells_types: ClassVar[bool] = False

    def _speeds(self, view: View) -> JobSpeeds:
        return JobSpeeds(view, self.name, reference=self.reference)
