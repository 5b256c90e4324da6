"""Policies store their parameters, check them before a run, and say what they accept."""

from __future__ import annotations

import dataclasses
import math
import sys

import pytest

from repro import simulate
from repro.base.errors import ParamError, PolicyError
from repro.model.policy import Order, Policy, make, policies, register
from repro.policies.tiresias.gandiva import Gandiva
from repro.policies.tiresias.tiresias_g import TiresiasG
from repro.policies.tiresias.tiresias_l import TiresiasL
from repro.testing import small_trace
from repro.trace.history import history

NAMES = ["best-effort", "gandiva", "las-2d", "sf", "srsf", "srtf", "tiresias-g", "tiresias-l"]


@pytest.mark.parametrize("name", [*NAMES, "yarn-cs"])
def test_registered_under_its_name(name):
    policy = make(name)
    assert policy.name == name
    assert policies[name] is type(policy)


@pytest.mark.parametrize("name", list(policies))
def test_constructors_only_store(name):
    """A frozen dataclass whose repr can be pasted back."""
    cls = policies[name]
    policy = cls()
    assert dataclasses.is_dataclass(cls)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.anything = 1
    known = vars(sys.modules[cls.__module__]) | {"inf": math.inf}
    assert eval(repr(policy), known) == policy


def test_settings_survive_a_round_trip():
    policy = TiresiasL(thresholds=(5.0, 9.0), promote_knob=2.0)
    assert eval(repr(policy)) == policy
    assert hash(policy) == hash(TiresiasL(thresholds=(5.0, 9.0), promote_knob=2.0))


def test_an_unknown_parameter_is_refused_with_the_list():
    with pytest.raises(ParamError, match="no parameter 'quanta'; did you mean 'quantum'"):
        make("las-2d", quanta=3)
    with pytest.raises(ParamError, match="accepted: none"):
        make("yarn-cs", quantum=3)


def test_an_unknown_policy_is_refused_with_near_matches():
    with pytest.raises(PolicyError, match=r"unknown policy 'tiresia'; did you mean 'tiresias-"):
        make("tiresia")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("tiresias-l", {"thresholds": (200.0, 100.0)}, "GPU-seconds in ascending order"),
        ("tiresias-l", {"thresholds": (100.0, 100.0)}, "GPU-seconds in ascending order"),
        ("tiresias-l", {"thresholds": (0.0,)}, "number of GPU-seconds above 0"),
        ("tiresias-l", {"thresholds": (-5.0, 10.0)}, "number of GPU-seconds above 0"),
        ("tiresias-l", {"thresholds": (math.nan,)}, "number of GPU-seconds above 0"),
        ("tiresias-l", {"promote_knob": 0.0}, "promote_knob is 0.0"),
        ("tiresias-l", {"promote_knob": -1.0}, "promote_knob"),
        ("tiresias-g", {"history": (1.0, 2.0), "delta": 0.0}, "delta is 0.0"),
        ("tiresias-g", {"history": (1.0, 2.0), "index": "best"}, "remaining or total"),
        ("tiresias-g", {"history": ()}, "at least one positive"),
        ("tiresias-g", {"history": (1.0, -2.0)}, "at least one positive"),
        ("las-2d", {"quantum": 0.0}, "quantum is 0.0"),
        ("las-2d", {"quantum": -3.0}, "quantum is -3.0"),
        ("gandiva", {"slice_s": 0.0}, "slice_s is 0.0; give a number of seconds above 0"),
    ],
)
def test_bad_values_are_refused_before_the_run(name, settings, message):
    with pytest.raises(ParamError, match=message) as caught:
        simulate(small_trace(), "1x4", make(name, **settings))
    assert "\n" not in str(caught.value)


def test_one_threshold_may_be_a_bare_number():
    assert TiresiasL(thresholds=5.0).limits() == (5.0, math.inf)
    assert simulate(small_trace(), "1x4", make("tiresias-l", thresholds=5)).summary()["n_finished"]


def test_any_number_of_queues():
    limits = tuple(float(2**n) for n in range(1, 12))
    assert len(TiresiasL(thresholds=limits).limits()) == 12
    result = simulate(small_trace(), "1x4", TiresiasL(thresholds=limits))
    assert result.summary()["n_finished"] == 6


@pytest.mark.parametrize(
    ("rules", "thresholds", "exact"),
    [("paper", (3200.0,), True), ("tiresias", (3250.0, 7200.0), False)],
)
def test_rules_fill_what_was_left_open(rules, thresholds, exact):
    policy = make("tiresias-l", rules)
    assert (policy.thresholds, policy.exact_demotion) == (thresholds, exact)
    chosen = make("tiresias-l", rules, thresholds=(1.0,), exact_demotion=not exact)
    assert (chosen.thresholds, chosen.exact_demotion) == ((1.0,), not exact)


def test_unset_parameters_follow_the_rules_of_the_run():
    result = simulate(small_trace(), "1x4", TiresiasL(), rules="tiresias")
    assert "3250.0, 7200.0" in result.meta["settings"]
    assert Gandiva().under("tiresias").poll_s == 10.0
    assert Gandiva().under("paper").poll_s == 0.0


def test_rules_without_values_of_their_own_are_the_papers():
    assert TiresiasL().under("gavel").thresholds == (3200.0,)


def test_a_parameter_may_deviate_from_its_rule_set():
    """Exact demotion under the rules of the public simulator, and late under the paper's."""
    for rules, exact in (("tiresias", True), ("paper", False)):
        policy = make("tiresias-l", rules, thresholds=(8.0,), exact_demotion=exact)
        assert simulate(small_trace(), "1x4", policy, rules=rules).summary()["n_finished"] == 6


def test_the_quantum_of_tiresias_g_is_the_limit_of_each_queue():
    policy = TiresiasG(thresholds=(4.0, 9.0), history=(4, 8, 12)).under("paper")
    first, second, last = policy.indices()
    assert (first.delta, second.delta, last) == (4.0, 9.0, None)
    assert [i.delta for i in dataclasses.replace(policy, delta=2.0).indices()[:2]] == [2.0, 2.0]


def test_history_of_values():
    assert history((3, 1, 2)).tolist() == [1, 2, 3]
    for bad in ((), (0.0,), (float("nan"),), (float("inf"),)):
        with pytest.raises(ParamError, match="at least one positive"):
            history(bad)


def test_a_name_is_used_once():
    with pytest.raises(PolicyError, match="'srtf' is registered twice"):

        @register("srtf")
        @dataclasses.dataclass(frozen=True)
        class Impostor(Order):
            pass


def test_needs_are_as_small_as_can_be():
    agnostic = ["yarn-cs", "best-effort", "sf", "las-2d", "tiresias-l", "tiresias-g", "gandiva"]
    assert all(not policies[name].needs for name in agnostic)
    assert policies["srtf"].needs == policies["srsf"].needs == {"duration"}
    assert Policy.needs == frozenset()
