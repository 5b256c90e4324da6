"""Policies that are only a key function."""

import pickle
from dataclasses import dataclass

import pytest

import repro
from repro.base.errors import ParamError, PolicyError
from repro.model.policy import policies
from repro.testing import check_policy, small_trace


@pytest.fixture
def registered(monkeypatch):
    """Names registered in a test are gone after it."""
    list(policies)
    monkeypatch.setattr(policies, "_items", dict(policies._items))


def test_a_key_function_is_a_policy(registered):
    @repro.register("newest")
    def newest(view, job):
        """Run the job that arrived last first."""
        return -view.submit(job)

    check_policy("newest")
    assert "newest" in repro.policies()
    starts = repro.simulate(small_trace(), "1x4", "newest").jobs.set_index("job_id")["start_time"]
    # the last job needs all GPUs and takes them as it arrives
    assert starts[5] == 30
    policy = repro.make("newest")
    assert policy.__doc__ == newest.__doc__
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_a_key_function_says_what_it_reads(registered):
    @repro.register("shortest", needs={"duration"})
    def shortest(view, job):
        return view.duration(job)

    same = repro.simulate(small_trace(), "1x4", "shortest").jobs["end_time"]
    assert same.tolist()
    check_policy("shortest")


def test_a_class_says_itself_what_it_reads(registered):
    with pytest.raises(PolicyError, match="in its own `needs`"):

        @repro.register("classy", needs={"duration"})
        class Classy(repro.Order):
            pass


def test_a_cell_may_run_twice(registered):
    for _ in range(2):

        @repro.register("twice")
        def twice(view, job):
            return view.submit(job)


def test_a_parameter_without_default_needs_a_value(registered):
    @repro.register("strict")
    @dataclass(frozen=True)
    class Strict(repro.Order):
        limit: int

        def key(self, view, job):
            return view.gpus(job) > self.limit

    with pytest.raises(ParamError, match="policy 'strict' has no default for limit; give a value"):
        repro.make("strict")
    assert repro.make("strict", limit=2) == Strict(2)


@pytest.mark.parametrize("name", [None, 3])
def test_the_name_of_a_policy_is_a_text(name):
    with pytest.raises(PolicyError, match=f"the name of a policy is {name}; give a text"):
        repro.make(name)


@pytest.mark.parametrize("rules", ["murii", 3, None, ["paper"]])
@pytest.mark.parametrize("name", ["srtf", "tiresias-l"])
def test_a_policy_is_made_under_known_rules(name, rules):
    with pytest.raises(ParamError, match=r"unknown rules .*accepted: paper, tiresias"):
        repro.make(name, rules)


@pytest.mark.parametrize("name", repro.__all__)
def test_the_public_face_has_its_names(name):
    assert getattr(repro, name) is not None


@pytest.mark.parametrize(
    "name", ["", "my policy", "a,b", "a:b", "a=b", 3, None, lambda view, job: 1]
)
def test_names_that_no_option_can_carry_are_refused(name):
    with pytest.raises(PolicyError, match=r"a policy is registered under .*; give a name without"):
        repro.register(name)


def test_needs_given_as_a_text_are_refused():
    with pytest.raises(PolicyError, match=r"needs is 'duration'; give a set, \{'duration'\}"):
        repro.register("textual", needs="duration")


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (lambda view: 1, r"<lambda>\(view\) \(test_register.py:\d+\) takes other arguments than"),
        (3, "3 is neither a class nor a function"),
    ],
)
def test_what_is_no_key_function_is_refused(key, says):
    with pytest.raises(PolicyError, match=f"policy 'keyless': {says}"):
        repro.register("keyless")(key)


def test_a_class_that_is_no_policy_is_refused():
    with pytest.raises(PolicyError, match="policy 'rootless': the class object is no policy"):
        repro.register("rootless")(object)
