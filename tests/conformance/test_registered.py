"""Every registered policy passes the battery, also in the settings that stress it."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.model.performance import Overhead
from repro.model.policy import make, policies
from repro.perf import ThroughputTable
from repro.perf.stages import STAGE_COLUMNS
from repro.testing import check_policy, stress_traces

HISTORY = (20.0, 45.0, 80.0, 150.0, 400.0, 1200.0)
#: AlloX is defined for jobs of one GPU and refuses gangs.
ONE_GPU = ("allox",)
#: Policies whose decisions the round mechanism realises.
SHARES = [
    name
    for name in policies
    if any("Shares" in vars(sys.modules[cls.__module__]) for cls in policies[name].__mro__)
]
SPEEDS = {"vgg16": {"v100": 2.0, "k80": 0.5}, "resnet18": {"v100": 1.0, "k80": 0.4}}
GANGS = (1, 2, 4)
ALONE = ThroughputTable({(m, w): row for m, row in SPEEDS.items() for w in GANGS}, "v100")
SHARED = dataclasses.replace(
    ALONE,
    pairs={
        (one, other, width): {
            k: (0.6 * SPEEDS[one][k], 0.6 * SPEEDS[other][k]) for k in SPEEDS[one]
        }
        for one, other in (("vgg16", "vgg16"), ("vgg16", "resnet18"), ("resnet18", "resnet18"))
        for width in GANGS
    },
)


#: Settings with which a policy decides quickly.
QUICK = {"liquid-batch": {"generations": 10}}
#: Settings without which a policy does not run on a cluster such as 2x4.
REQUIRED = {"drf": {"cpus_per_gpu": 4.0, "memory_per_gpu": 4096.0}}


def instance(name, **chosen):
    """Return a policy that needs no public data and decides quickly."""
    chosen = QUICK.get(name, {}) | REQUIRED.get(name, {}) | chosen
    if "history" in {field.name for field in dataclasses.fields(policies[name])}:
        chosen = {"history": HISTORY} | chosen
    return make(name, **chosen)


def jobs_for(name, widths=None):
    """Return the traces to check a policy with, None for the battery's own."""
    if name in ONE_GPU:
        widths = [1]
    return stress_traces(list(widths)) if widths else None


@pytest.mark.parametrize("name", list(policies))
def test_battery(name):
    check_policy(instance(name), traces=jobs_for(name))


@pytest.mark.nightly
@pytest.mark.parametrize("name", QUICK)
def test_battery_as_it_comes(name):
    check_policy(make(name), traces=jobs_for(name))


@pytest.mark.parametrize("rules", ["muri", "gavel"])
@pytest.mark.parametrize("name", SHARES)
def test_rounds_under_the_rules_of_public_simulators(name, rules):
    check_policy(instance(name), rules=rules, traces=jobs_for(name))


@pytest.mark.parametrize(
    ("rules", "perf"),
    [
        ("paper", SHARED),
        # under these a member of a pair holds the GPUs until the other has ended too
        ("gavel", ALONE),
    ],
)
@pytest.mark.parametrize("name", SHARES)
def test_rounds_on_two_types(name, rules, perf):
    check_policy(
        instance(name), rules=rules, perf=perf, cluster="4xv100,4xk80", traces=jobs_for(name, GANGS)
    )


@pytest.mark.parametrize("name", ["gavel-las", "las-agnostic", "gavel-fifo", "gavel-makespan"])
@pytest.mark.parametrize(
    "rounds",
    [
        {"prior_rounds": 0},
        {"whole_queue": True},
        {"lease_renewal": False},
        {"drop_unallocated": True},
        {"min_realloc_interval_s": 30.0, "round_s": 7.0},
        {"ideal": "fluid"},
    ],
)
def test_round_settings(name, rounds):
    check_policy(
        name, rounds=rounds, perf=ALONE, cluster="4xv100,4xk80", traces=jobs_for(name, GANGS)
    )


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("tiresias-l", {"thresholds": (50.0, 200.0), "promote_knob": 1.0}),
        ("tiresias-l", {"thresholds": (64.0,), "promote_knob": 0.5}),
        ("tiresias-g", {"thresholds": (50.0, 200.0), "promote_knob": 2.0}),
        ("tiresias-g", {"thresholds": (50.0,), "delta": 30.0}),
        ("las-2d", {"quantum": 4.0}),
        ("gandiva", {"slice_s": 10.0}),
        ("pcs", {"thresholds": (50.0,), "weights": (2.0, 1.0)}),
        ("srtf", {"history_ties": True}),
        ("tiresias-l", {"thresholds": (50.0,), "history_ties": True}),
    ],
)
def test_settings(name, chosen):
    check_policy(instance(name, **chosen))


@pytest.mark.parametrize("placement", ["yarn", "random"])
@pytest.mark.parametrize("name", ["srtf", "tiresias-l", "gandiva"])
def test_placements(name, placement):
    check_policy(instance(name), placement=placement, cluster="3x4")


TIRESIAS = ["yarn-cs", "best-effort", "sf", "srtf", "srsf", "las-2d", "tiresias-l", "tiresias-g"]


@pytest.mark.parametrize("name", [*TIRESIAS, "gandiva"])
def test_rules_of_the_public_simulator(name):
    check_policy(instance(name), rules="tiresias")


def test_a_wish_to_wake_does_not_outlive_the_jobs():
    """A lease of Themis that ends while nothing is there must not keep the clock busy."""
    late = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 9000.0], "duration": [5.0, 5.0], "num_gpus": [1, 1]}
    )
    check_policy("themis", traces=[late])


MURI = ["srtf", "srsf", "tiresias-l", "antman", "themis", "muri-s", "muri-l"]
MURI += ["yarn-cs", "best-effort", "sf", "las-2d", "tiresias-g"]


@pytest.mark.parametrize("name", MURI)
def test_rules_of_muris_simulator(name):
    check_policy(instance(name), rules="muri")


@pytest.mark.parametrize(
    "chosen",
    [
        {"max_group": 2},
        {"max_group": 3},
        {"ordering": "worst"},
        {"blossom": False},
        {"autopack": True},
        {"noise": 0.5},
        {"collapse": False},
        {"interval": 60.0},
        {"wide_first": True},
    ],
)
@pytest.mark.parametrize("name", ["muri-s", "muri-l"])
def test_muri_settings(name, chosen):
    check_policy(make(name, **chosen))


@pytest.mark.parametrize("name", TIRESIAS)
def test_decisions_on_a_grid(name):
    check_policy(instance(name), interval=7.0)


class Toll(Overhead):
    """Costs of preemption, to see that the battery allows for them."""

    def pause_s(self, table, job):
        return 3.0

    def resume_s(self, table, job):
        return 5.0


@pytest.mark.parametrize("name", TIRESIAS)
def test_preemption_may_cost(name):
    check_policy(instance(name), overhead=Toll())


@st.composite
def traces(draw):
    n = draw(st.integers(1, 12))
    whole = st.lists(st.integers(0, 40), min_size=n, max_size=n)
    stages = np.array([draw(st.permutations([0.0, 1.0, 2.0, 4.0])) for _ in range(n)])
    return pd.DataFrame(
        {
            "job_id": draw(st.permutations(range(n))),
            "submit_time": np.sort(np.array(draw(whole), float)),
            "duration": np.array(draw(whole), float) + 1,
            "num_gpus": draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=n, max_size=n)),
            "user": draw(st.lists(st.sampled_from(["ada", "ben"]), min_size=n, max_size=n)),
            "num_cpus": np.array(draw(st.lists(st.integers(0, 32), min_size=n, max_size=n)), float),
            "memory_mib": 1024.0 * np.arange(n),
            "iteration_time": stages.sum(axis=1),
            **dict(zip(STAGE_COLUMNS, stages.T, strict=True)),
        }
    )


@pytest.mark.parametrize("name", list(policies))
@given(trace=traces())
@settings(max_examples=10)
def test_random_traces(name, trace):
    if name in ONE_GPU:
        trace = trace.assign(num_gpus=1)
    if name == "edf":
        trace = trace.assign(slo=1.0 + np.arange(len(trace)) % 3)
    check_policy(instance(name), traces=[trace])


@pytest.mark.nightly
@pytest.mark.parametrize("name", QUICK)
@given(trace=traces())
@settings(max_examples=10)
def test_random_traces_as_it_comes(name, trace):
    check_policy(make(name), traces=[trace])
