"""The parameter `extra`: forms of its entries, forms of a figure's list of policies, errors."""

import pytest

from repro.base.errors import ParamError, PolicyError
from repro.figures.extra import ExtraPolicy, policy_entries, read_extra, with_extra

MINE = {"policy": "tiresias-l", "settings": {"thresholds": [60]}, "label": "mine"}


@pytest.mark.parametrize(
    ("extra", "policies"),
    [
        (None, []),
        ([], []),
        ("srtf", [("srtf", "srtf", {})]),
        (["srtf", "las-2d"], [("srtf", "srtf", {}), ("las-2d", "las-2d", {})]),
        (("srtf",), [("srtf", "srtf", {})]),
        ({"policy": "srtf"}, [("srtf", "srtf", {})]),
        ({"policy": "srtf", "settings": None}, [("srtf", "srtf", {})]),
        ([MINE], [("mine", "tiresias-l", {"thresholds": [60]})]),
    ],
)
def test_forms_of_an_entry(extra, policies):
    assert read_extra(extra) == [ExtraPolicy(*entry) for entry in policies]


@pytest.mark.parametrize(
    ("extra", "line"),
    [
        (3, r"^extra: 3 is no policy; give the name of a policy, {policy: NAME, settings"),
        ([["srtf"]], r"extra: \['srtf'\] is no policy"),
        ({"name": "srtf"}, "is no policy"),
        ({"policy": 3}, "is no policy"),
        ({"policy": "srtf", "setings": {}}, "extra: unknown key 'setings'; did you mean 'settings"),
        ({"policy": "srtf", "settings": [1]}, r"settings of srtf are \[1\]; give {name: value}"),
        (
            {"policy": "las-2d", "settings": {"quantm": 9}},
            "extra: policy 'las-2d' has no parameter",
        ),
    ],
)
def test_other_entries_are_refused(extra, line):
    with pytest.raises(ParamError, match=line):
        read_extra(extra)


def test_an_unknown_policy_comes_with_the_nearest_names():
    with pytest.raises(PolicyError) as caught:
        read_extra("srtff")
    assert str(caught.value) == (
        "extra: unknown policy 'srtff'; did you mean 'srtf' or 'srsf'?; `repro new-policy NAME` "
        "writes a file of your own in repro/policies/own"
    )


def test_the_message_on_a_file_has_the_names_like_its_stem_or_the_command_that_lists_all():
    with pytest.raises(PolicyError, match=r"unknown policy 'srtf.py'; did you mean 'srtf'"):
        read_extra("srtf.py")
    with pytest.raises(PolicyError, match=r"unknown policy 'zzzz'; `repro policies` lists all; "):
        read_extra("zzzz")
    with pytest.raises(PolicyError, match="'zzzz'; `repro policies` lists all; pay more"):
        read_extra("zzzz", remedy="pay more")


def test_an_alias_is_a_policy():
    assert read_extra("fcfs") == [ExtraPolicy("fcfs", "fcfs", {})]


@pytest.mark.parametrize(
    ("inputs", "extra", "merged"),
    [
        # a list of names
        ({"policies": ["srtf"]}, ["las-2d"], {"policies": ["srtf", "las-2d"]}),
        # labels and [policy, settings]
        (
            {"policies": {"short": ["srtf", {}]}},
            [MINE],
            {"policies": {"short": ["srtf", {}], "mine": ["tiresias-l", {"thresholds": [60]}]}},
        ),
        # labels and {policy, settings}
        (
            {"series": {"LAS": {"policy": "las-2d"}}},
            ["srtf"],
            {"series": {"LAS": {"policy": "las-2d"}, "srtf": {"policy": "srtf", "settings": {}}}},
        ),
        # policies and settings
        (
            {"policies": {"srtf": {}}},
            [{**MINE, "label": "tiresias-l"}],
            {"policies": {"srtf": {}, "tiresias-l": {"thresholds": [60]}}},
        ),
        # an input `policies` that is no list is none
        (
            {"policies": "srtf", "series": ["srtf"]},
            ["las-2d"],
            {"policies": "srtf", "series": ["srtf", "las-2d"]},
        ),
    ],
)
def test_forms_of_a_figures_list(inputs, extra, merged):
    before = {name: list(entries) for name, entries in inputs.items()}
    assert with_extra(inputs, read_extra(extra)) == merged
    assert {name: list(entries) for name, entries in inputs.items()} == before


def test_without_extra_policies_the_inputs_stay():
    assert with_extra({"cluster": "1x4"}, []) == {"cluster": "1x4"}


@pytest.mark.parametrize(
    ("inputs", "extra", "line"),
    [
        ({"cluster": "1x4"}, "srtf", "this figure has no list of policies"),
        # a label is offered only where the figure takes one
        ({"policies": {"srtf": {}}}, "srtf", "'srtf' is in the figure already; leave it out"),
        ({"policies": ["srtf"]}, "srtf", "'srtf' is in the figure already; leave it out"),
        ({"policies": {"srtf": ["srtf", {}]}}, "srtf", "in the figure already; give a label"),
        ({"series": {"srtf": {"policy": "srtf"}}}, "srtf", "in the figure already; give a label"),
        ({"policies": {"srtf": {}}}, ["las-2d", "las-2d"], "'las-2d' is in the figure already"),
        ({"policies": {"srtf": {}}}, MINE, "policies of this figure have no labels; leave out"),
        ({"policies": ["srtf"]}, {"policy": "las-2d", "label": "x"}, "have no labels; leave out"),
        ({"policies": ["srtf"]}, MINE, "have no settings; leave out tiresias-l's"),
    ],
)
def test_a_figure_that_cannot_show_it_says_so(inputs, extra, line):
    with pytest.raises(ParamError, match=line):
        with_extra(inputs, read_extra(extra))


@pytest.mark.parametrize("empty", [None, {}, {"policy": "srtf", "settings": None}])
def test_a_policy_without_settings_has_none(empty):
    assert policy_entries({"srtf": empty}) == {"srtf": ("srtf", {})}
