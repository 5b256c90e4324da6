from dataclasses import dataclass

import numpy as np
import pytest

from repro import simulate
from repro.base.errors import ParamError, PolicyError
from repro.engine import livelock
from repro.model.cluster import Cluster
from repro.placement import Placement, Placer, make, placements, register
from repro.testing import small_trace

NAMES = ("count", "ilp", "random", "skew", "yarn")
MODELS = {"big": 500.0, "small": 90.0}
SKEWS = {"big": 0.7, "small": 0.05}


def rule(name):
    settings = {"skew": {"skew": SKEWS}, "ilp": {"skew": SKEWS, "model_mb": MODELS}}
    return make(name, **settings.get(name, {}))


def bound(name, spec="4x4", seed=0):
    return rule(name).bind(Cluster.parse(spec), np.random.default_rng(seed))


def test_registered_names():
    assert set(NAMES) <= set(placements)
    for name in NAMES:
        assert isinstance(make(name), Placement)


def test_repr_can_be_pasted_back():
    from repro.placement.skew import Skew

    made = make("skew", pack_limit=0.3)
    assert repr(made) == "Skew(pack_limit=0.3, skew=None)"
    assert Skew(pack_limit=0.3, skew=None) == made


def test_unknown_name_and_setting():
    with pytest.raises(ParamError, match=r"unknown placement 'yran'; did you mean 'yarn'"):
        make("yran")
    with pytest.raises(ParamError, match=r"no setting 'packlimit'; did you mean 'pack_limit'"):
        make("skew", packlimit=0.1)
    with pytest.raises(ParamError, match=r"no setting 'seed' \(accepted: none\)"):
        make("random", seed=1)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("skew", {"pack_limit": 1.5}),
        ("skew", {"pack_limit": float("nan")}),
        ("yarn", {"fallback": "spread"}),
        ("ilp", {"other_mb": 0.0}),
    ],
)
def test_settings_out_of_range(name, settings):
    with pytest.raises(ParamError, match=f"placement '{name}'"):
        make(name, **settings).bind(Cluster.parse("2x4"), np.random.default_rng(0))


@pytest.mark.parametrize("name", NAMES)
def test_misuse_is_refused_and_changes_nothing(name):
    placer = bound(name)
    placer.take(7, 3, None)
    for job, gpus, message in (
        (8, 14, "job 8 was given 14 GPUs but only 13 are idle"),
        (7, 1, "job 7 already holds GPUs"),
        (9, 0, "job 9 asks for 0 GPUs"),
        (9, -1, "job 9 asks for -1 GPUs"),
    ):
        with pytest.raises(PolicyError, match=message):
            placer.take(job, gpus, None)
    with pytest.raises(PolicyError, match="job 8 holds no GPUs"):
        placer.give_back(8)
    assert placer.free == 13
    placer.give_back(7)
    with pytest.raises(PolicyError, match="job 7 holds no GPUs"):
        placer.give_back(7)
    assert placer.free == 16


@pytest.mark.parametrize("name", NAMES)
def test_allocations_name_nodes_unless_counting(name):
    placer = bound(name)
    allocation = placer.take(0, 6, "big")
    assert placer.tracks_nodes == (name != "count")
    assert bool(allocation) == placer.tracks_nodes
    assert placer.possible(16)
    assert not placer.possible(17)
    assert not placer.fits(11)


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (
            type("Q", (), {}),
            "the class Q is no placement; derive it from repro.placement.Placement",
        ),
        (Placer, "the class Placer is no placement; derive it from repro.placement.Placement"),
        (max, "<built-in function max> is no class; register a class derived from"),
        (make("yarn"), r"Yarn\(.*\) is no class; register a class derived from"),
        (type("Q", (Placement,), {}), r"the class Q has no method `bind`; define bind\(self, c"),
    ],
)
def test_what_is_no_placement_is_not_registered(item, says):
    with pytest.raises(ParamError, match=f"^placement 'mine': {says}"):
        register("mine")(item)
    assert "mine" not in placements


# placements of one's own -----------------------------------------------------------------------


class FixedPlacer(Placer):
    """Chooses the same nodes for every gang."""

    def __init__(self, cluster, nodes):
        super().__init__(cluster)
        self.nodes = nodes

    def _place(self, job, gpus, model):
        return self.nodes

    def _release(self, job, allocation):
        pass


@dataclass(frozen=True)
class Fixed(Placement):
    nodes: object

    def bind(self, cluster, rng):
        return FixedPlacer(cluster, self.nodes)


ONE_JOB = small_trace().assign(job_id=list("abcdef")).head(1)


WRONG_NODES = pytest.mark.parametrize(
    "nodes",
    [
        (),
        ((0, 1),),
        ((0, 2), (1, 1)),
        ((0, 1), (0, 1)),
        ((2, 2),),
        ((-1, 2),),
        ((0, 2), (1, 0)),
        ((0, 0.5), (1, 1.5)),
        [(0, 2)],
        {0: 2},
        (0, 2),
        "ab",
        5,
        ((0, 1, 2),),
        ((99, 2),),
        [[0, 2]],
        iter([(0, 2)]),
    ],
)


@WRONG_NODES
def test_nodes_of_a_placement_are_checked(nodes):
    with pytest.raises(
        PolicyError, match=r"placement fixed: the nodes of job 'a' are .* with 2 idle"
    ):
        simulate(ONE_JOB, "2x2", "srtf", placement=Fixed(nodes))


@WRONG_NODES
def test_nodes_of_a_placement_on_one_gpu_type_are_checked(nodes):
    trace = ONE_JOB.assign(gpu_type="k80")
    says = (
        r"^placement fixed: the nodes of job 'a' are .* with 2 idle GPUs in all, each node once, "
        r"numbered 0 to 1 within type 'k80'$"
    )
    with pytest.raises(PolicyError, match=says):
        simulate(trace, "1x2:v100,2x2:k80", "srtf", types="wished", placement=Fixed(nodes))


@pytest.mark.parametrize(("node", "of_cluster"), [(0, 1), (1, 2)])
def test_nodes_of_a_placement_on_one_gpu_type_are_numbered_within_it(node, of_cluster):
    trace = ONE_JOB.assign(gpu_type="k80")
    nodes = ((node, 2),)
    result = simulate(trace, "1x2:v100,2x2:k80", "srtf", types="wished", placement=Fixed(nodes))
    assert result.intervals["nodes"].tolist() == [((of_cluster, 2),)]


@pytest.mark.parametrize("interval", [None, 60])
@pytest.mark.parametrize(
    ("cluster", "types", "gpus"),
    [
        ("2x2", "fastest", "4 GPUs"),
        ("2x2:k80", "wished", "4 GPUs of type 'k80'"),
        ("1x2:v100,2x2:k80", "wished", "4 GPUs of type 'k80'"),
    ],
)
def test_a_placement_that_refuses_a_gang_on_idle_gpus_is_named(
    cluster, types, gpus, interval, monkeypatch
):
    monkeypatch.setattr(livelock, "MAX_IDLE_DECISIONS", 50)
    monkeypatch.setattr(FixedPlacer, "fits", lambda self, gpus: gpus < 2, raising=False)
    trace = small_trace().assign(job_id=list("abcdef"), gpu_type="k80").iloc[[3, 0]]
    trace["num_gpus"] = [1, 2]
    says = (
        rf"^placement fixed: `fits\(2\)` is False \(test_placement_base.py:\d+\) at \d+ s although "
        rf"{gpus} are idle, so job 'a' never starts under policy 'yarn-cs'; `fits` must return "
        rf"True if `_place` finds nodes$"
    )
    with pytest.raises(PolicyError, match=says):
        simulate(
            trace,
            cluster,
            "yarn-cs",
            types=types,
            interval=interval,
            placement=Fixed(((0, 1),)),
        )


def test_nodes_of_a_placement_have_idle_gpus():
    jobs = ONE_JOB.loc[[0, 0]].assign(job_id=["a", "b"])
    with pytest.raises(PolicyError, match="the nodes of job 'b' are"):
        simulate(jobs, "2x2", "srtf", placement=Fixed(((0, 2),)))
    one_by_one = jobs.assign(submit_time=[0.0, 10.0])
    assert simulate(one_by_one, "2x2", "srtf", placement=Fixed(((0, 2),))).jobs["jct"].sum() == 20.0


def test_a_placement_without_nodes_for_a_job_names_its_id():
    with pytest.raises(PolicyError, match="job 'a': no nodes for 2 GPUs under FixedPlacer"):
        simulate(ONE_JOB, "2x2", "srtf", placement=Fixed(None))


@pytest.mark.parametrize(
    ("method", "code", "fault"),
    [
        ("_place", lambda self, job, gpus, model: 1 / 0, r"ZeroDivisionError: .*:\d+ in <lambda>"),
        ("_place", lambda self, job: ((0, 2),), r"TypeError: .* \(test_placement_base.py:\d+"),
        ("_release", lambda self, job, nodes: nodes[7], r"IndexError: .*:\d+ in <lambda>"),
    ],
)
def test_a_placement_whose_code_fails_is_named(method, code, fault, monkeypatch):
    monkeypatch.setattr(FixedPlacer, method, code)
    with pytest.raises(
        PolicyError, match=rf"^placement FixedPlacer, job 'a': `{method}` fails: {fault}"
    ):
        simulate(ONE_JOB, "2x2", "srtf", placement=Fixed(((0, 2),)))


@pytest.mark.parametrize(
    ("bind", "says"),
    [
        (lambda self, cluster, rng: None, "`bind` returned None"),
        (lambda self, cluster, rng: 1 / 0, "`bind` fails: ZeroDivisionError: division by zero"),
        (lambda self, cluster: None, "`bind` fails: TypeError"),
    ],
)
@pytest.mark.parametrize("cluster", ["2x2", "1x4:v100,1x4:k80"])
def test_a_wrong_bind_of_a_user_is_refused_in_one_line(bind, says, cluster):
    rule = type("Mine", (Placement,), {"bind": bind, "__module__": __name__})()
    with pytest.raises(PolicyError, match=f"placement Mine: {says}") as caught:
        simulate(small_trace(), cluster, "srtf", placement=rule)
    assert "(test_placement_base.py:" in str(caught.value)


class Alone(FixedPlacer):
    """Does not call the initializer of its base."""

    def __init__(self, cluster, nodes):
        self.nodes = nodes


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"fits": lambda self, gpus: 1 / 0}, "`fits` fails: ZeroDivisionError: division by zero"),
        ({"fits": lambda self: True}, "fits(self) .* define fits(self, gpus)"),
        ({"fits": lambda self, gpus: None}, "`fits` returned None .* True or False"),
        ({"fits": lambda self, gpus: "no"}, "`fits` returned 'no' .* True or False"),
        ({"possible": lambda self, gpus: [][gpus]}, "`possible` fails: IndexError: list index"),
        ({"possible": lambda self, gpus: None}, "`possible` returned None .* True or False"),
        ({"possible": True}, "possible is True; define a method possible(self, gpus)"),
        ({"__init__": Alone.__init__}, "`__init__` .* super().__init__(cluster)"),
    ],
)
@pytest.mark.parametrize("cluster", ["1x2", "1x2:v100,1x2:k80"])
def test_a_wrong_placer_of_a_user_is_refused_in_one_line(members, says, cluster):
    placer = type("MyPlacer", (FixedPlacer,), {**members, "__module__": __name__})
    rule = type(
        "Mine",
        (Placement,),
        {"bind": lambda self, cluster, rng: placer(cluster, ((0, 2),)), "__module__": __name__},
    )()
    pattern = says.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(PolicyError, match=f"^placement M.*{pattern}") as caught:
        simulate(ONE_JOB, cluster, "yarn-cs", placement=rule)
    message = str(caught.value)
    assert "\n" not in message
    assert "test_placement_base.py:" in message or "define a method" in message
