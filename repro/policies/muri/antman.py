"""AntMan: guaranteed jobs own GPUs, opportunistic ones use what time those leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from repro.core.decision import Decision
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.perf.sharing import Sharing
from repro.policies.muri._antman import Ownership


@register("antman")
@dataclass(frozen=True)
class AntMan(Policy):
    """Guaranteed jobs own their GPUs, opportunistic ones share them; nobody is preempted.

    Trace column ``priority``: 0 guaranteed, 1 opportunistic; without it all jobs are guaranteed.
    Guaranteed jobs go first, then opportunistic ones, each in order of arrival; whoever can start
    does. A guaranteed job goes to the first node with enough GPUs that no other guaranteed job
    owns; if there is none, it takes the most any node has and waits for the rest of that node. A
    job wider than a node collects whole nodes. An opportunistic job takes the least used GPUs of
    the cluster, at most one such job per GPU; its speed follows `repro.perf.sharing.Sharing`.

    Parameters
    ----------
    residue : bool, optional
        Add and subtract assumed utilisations as the public simulator does, whose rounding errors
        decide between GPUs equally used (mean JCT up to 2 % apart on its traces); False (rules
        ``paper``): such ties go to the lowest GPU. Nothing else differs between the rules.

    References
    ----------
    Xiao et al., OSDI 2020; Muri, SIGCOMM 2022, public simulator (its AntMan baseline).

    Examples
    --------
    >>> AntMan().under("muri").residue
    True
    """

    residue: bool | None = None

    needs: ClassVar[frozenset[str]] = frozenset({"priority"})
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"residue": False},
        "muri": {"residue": True},
    }

    def performance(self) -> Sharing:
        """Return the speed of opportunistic jobs beside guaranteed ones."""
        return Sharing()

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the GPUs of one run."""
        return Ownership(view, residue=bool(self.residue))
