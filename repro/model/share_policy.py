"""`SharePolicy`: base of policies that return `Shares`, and its traits for the rounds."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from repro.model.policy import Policy


class ShareTraits(NamedTuple):
    """Traits of a policy that returns `Shares`, for the round mechanism."""

    #: the policy distinguishes GPU types; otherwise rounds fill the types in a random order
    tells_types: bool = True
    #: any two jobs of equal demand may share GPUs
    pairs_up: bool = False
    #: leftover GPUs stay idle; otherwise jobs without a share get these GPUs
    idle_ok: bool = False


@dataclass(frozen=True)
class SharePolicy(Policy):
    """A policy whose decisions are `Shares`; a subclass overrides the traits that differ.

    A trait is an attribute of the class, or a property that depends on parameters.

    Examples
    --------
    >>> class OneType(SharePolicy):
    ...     tells_types = False
    >>> share_traits(OneType())
    ShareTraits(tells_types=False, pairs_up=False, idle_ok=False)
    """

    #: false: the shares do not depend on the speeds of jobs on the GPU types
    weighs_types: ClassVar[bool] = True

    @property
    def tells_types(self) -> bool:
        """Whether the policy distinguishes GPU types."""
        return True

    @property
    def pairs_up(self) -> bool:
        """Whether any two jobs of equal demand may share GPUs."""
        return False

    @property
    def idle_ok(self) -> bool:
        """Whether leftover GPUs stay idle; otherwise jobs without a share get these GPUs."""
        return False


def share_traits(policy: Policy) -> ShareTraits:
    """Traits of a policy that returns shares, with the defaults of `ShareTraits`."""
    defaults = ShareTraits()._asdict()
    traits = {name: bool(getattr(policy, name, default)) for name, default in defaults.items()}
    return ShareTraits(**traits)
