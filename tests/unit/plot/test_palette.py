"""Colours: policies and everything else apart, and what colour cannot tell told by other means."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from repro.model.policy import policies
from repro.plot.series_styles import _COLORS, _SOLE, _listed_looks, look

ROOT = Path(__file__).resolve().parents[3]
#: Variants of policies that have a look of their own.
VARIANTS = (
    "muri-l-",
    "pcs-",
    "liquid-",
    "LAS (",
    "Gavel (",
    "Gavel, ",
    "agnostic, ",
    "LAS, ",
    "Water filling, ",
    "Hierarchical, ",
    "gavel-hierarchical-ss",
    "gavel-water-filling-ss",
    "gavel-makespan-ss, ",
    "SS, ",
    "drf",
    "partition",
    "Liquid, sharing",
    "Muri-S",
    "Eq 3 of Muri",
)
POLICIES = sorted(
    name for name in _listed_looks() if name in set(policies) or name.startswith(VARIANTS)
)
OTHERS = sorted(set(_listed_looks()) - set(POLICIES))
#: Distance in OKLab below which two colours are hard to tell from each other.
NEAR = 0.05
#: What eyes without red, green or blue cones see of linear RGB (Machado, Oliveira, Fernandes 2009).
EYES = {
    "all cones": np.eye(3),
    "no red cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue cones": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
    "grey": np.tile([0.2126, 0.7152, 0.0722], (3, 1)),
}


def oklab(color, eyes="all cones"):
    """Return the place of a colour, as eyes of a kind see it, in OKLab (Ottosson 2020)."""
    rgb = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(EYES[eyes]) @ linear, 0, 1)
    cones = np.cbrt(
        np.array(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ]
        )
        @ seen
    )
    return cones @ np.array(
        [
            [0.2104542553, 1.9779984951, 0.0259040371],
            [0.7936177850, -2.4285922050, 0.7827717662],
            [-0.0040720468, 0.4505937099, -0.8086757660],
        ]
    )


def apart(one, other, eyes="all cones"):
    return float(np.linalg.norm(oklab(one, eyes) - oklab(other, eyes)))


def meeting():
    """Return the pairs of series with looks of their own that stand in one committed figure."""
    found = set()
    for path in sorted((ROOT / "figures").glob("*/*/*.csv")):
        if path.name.endswith(".points.csv"):
            continue
        table = pd.read_csv(path, comment="#", dtype=str, low_memory=False)
        for column in {"policy", "series"} & set(table.columns):
            known = sorted(set(table[column].dropna()) & set(_listed_looks()))
            found |= set(itertools.combinations(known, 2))
    return sorted(found)


MEETING = meeting()


def test_the_distance_is_that_of_the_published_examples():
    white, black = oklab("#ffffff"), oklab("#000000")
    assert white == pytest.approx([1, 0, 0], abs=1e-3) and black == pytest.approx([0, 0, 0])
    assert apart("#ff0000", "#ff0000") == 0


def test_what_is_no_policy_has_no_colour_of_a_policy():
    colors = {*_COLORS, _SOLE.color, *(_listed_looks()[name].color for name in OTHERS)}
    for color, policy in itertools.product(sorted(colors), POLICIES):
        assert apart(color, look(policy).color) > 0.04, (color, policy)


def test_colours_of_unknown_series_are_told_from_each_other():
    for one, other in itertools.combinations(_COLORS, 2):
        assert apart(one, other) > 2 * NEAR, (one, other)


def test_many_series_meet():
    assert len(MEETING) > 150


@pytest.mark.parametrize("eyes", EYES)
def test_series_that_meet_are_told_apart(eyes):
    """Where colours are too near for some eyes, line or marker and hatch are not the same."""
    for one, other in MEETING:
        a, b = look(one), look(other)
        if apart(a.color, b.color, eyes) < NEAR:
            assert (a.line, a.marker) != (b.line, b.marker) and a.hatch != b.hatch, (one, other)
