"""Whole-number values of pairs of kinds: the weight first, then a bonus that settles ties."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from repro.matching.jobs import RESOLUTION
from repro.typing import Flags, Floats, Ints

#: Products of the values stay below 2**63.
_VALUE_BITS = 58
#: Bonuses shorter than this would often be equal.
_BONUS_BITS = 8
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@lru_cache(maxsize=4096)
def _hash64(a: int, b: int) -> int:
    """Return 64 well-mixed bits of a pair of kinds (the finaliser of splitmix64)."""
    z = ((a << 32 | b) + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * _MIX[0] % 2**64
    z = (z ^ z >> 27) * _MIX[1] % 2**64
    return z ^ z >> 31


@dataclass(frozen=True, eq=False)
class PairValues:
    """Which kinds may be paired and at what value; the last row is *nobody*, of value 0.

    ``value`` is symmetric, shape (kinds + 1, kinds + 1); ``allowed`` (upper triangle) tells which
    pairs may be made, idle nodes (paired with nobody) included.
    """

    value: Ints
    allowed: Flags

    @property
    def kinds(self) -> int:
        """Number of kinds, which is also the index of nobody."""
        return len(self.value) - 1

    def among(self, present: list[int]) -> PairValues:
        """Return the same values of some of the kinds (ascending), numbered anew."""
        kept = np.ix_([*present, self.kinds], [*present, self.kinds])
        return PairValues(self.value[kept], self.allowed[kept])


def pair_values(weights: Floats) -> PairValues:
    """Return the values of the pairs of a table of weights (upper triangle), 0 or less = never.

    Values are in the order of the weights at a resolution of 1e-9; the bonus of a pair is a hash
    of its two indices. Raises ValueError for weights that are not square, finite or small enough.

    Examples
    --------
    >>> values = pair_values(np.array([[0.5, 0.5], [0.0, 0.0]]))
    >>> values.allowed.astype(int)
    array([[1, 1, 1],
           [0, 0, 1],
           [0, 0, 0]])
    """
    kinds = len(weights)
    if weights.shape != (kinds, kinds) or not np.isfinite(weights).all():
        raise ValueError(f"weights of shape {weights.shape} are not a square of finite numbers")
    whole = np.rint(np.triu(weights) / RESOLUTION)
    largest = int(whole.max(initial=1))
    # Two matchings that differ by one augmentation differ in at most 4 t pairs, so bonuses
    # below 1/(4 t) of a unit never outweigh a unit of weight.
    headroom = (4 * kinds).bit_length()
    bonus_bits = min(32, _VALUE_BITS - largest.bit_length() - headroom)
    if bonus_bits < _BONUS_BITS:
        raise ValueError(f"weight {weights.max():g} is too large; weights up to 1000 are accepted")
    allowed = np.zeros((kinds + 1, kinds + 1), bool)
    allowed[:kinds, :kinds] = whole > 0
    allowed[:kinds, kinds] = True
    value = np.zeros((kinds + 1, kinds + 1), np.int64)
    for a, b in np.argwhere(whole > 0).tolist():
        bonus = _hash64(a, b) >> (64 - bonus_bits)
        value[a, b] = value[b, a] = (int(whole[a, b]) << bonus_bits + headroom) + bonus
    return PairValues(value, allowed)
