"""`SharePolicy`: the base of policies that return `Shares`, and what rounds ask of it."""

from dataclasses import dataclass
from typing import NamedTuple

from repro.model.policy import Policy


class ShareTraits(NamedTuple):
    """What the round mechanism asks of a policy that returns `Shares`."""

    #: tells GPU types apart; otherwise rounds fill the types in a random order
    tells_types: bool = True
    #: any two jobs of one gang size may share GPUs
    pairs_up: bool = False
    #: GPUs idle rather than serve a job without a share
    idle_ok: bool = False


@dataclass(frozen=True)
class SharePolicy(Policy):
    """A policy whose decisions are `Shares`; a subclass sets the traits that differ.

    A trait is an attribute of the class, or a property that depends on parameters.

    Examples
    --------
    >>> class OneType(SharePolicy):
    ...     tells_types = False
    >>> share_traits(OneType())
    ShareTraits(tells_types=False, pairs_up=False, idle_ok=False)
    """

    @property
    def tells_types(self) -> bool:
        """Whether the policy tells GPU types apart."""
        return True

    @property
    def pairs_up(self) -> bool:
        """Whether any two jobs of one gang size may share GPUs."""
        return False

    @property
    def idle_ok(self) -> bool:
        """Whether GPUs idle rather than serve a job without a share."""
        return False


def share_traits(policy: Policy) -> ShareTraits:
    """Traits of a policy that returns shares; the usual ones where it names none."""
    usual = ShareTraits()._asdict()
    return ShareTraits(**{name: bool(getattr(policy, name, usual[name])) for name in usual})
