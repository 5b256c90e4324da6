"""Random traces: cases, faults that each check finds, reduction, runs that go on, the table."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd
import pytest

from repro import RunSet
from repro.model.policy import Order, Policy, make
from repro.testing import small_trace
from tools.random_traces import __main__ as command_line
from tools.random_traces import cases, check, idle, reduce, report, run
from tools.random_traces.cases import Case
from tools.random_traces.relations import RELATIONS

NAMED = {relation.name: relation for relation in RELATIONS}


@dataclass(frozen=True)
class Given(Case):
    """A case of a policy that is not registered."""

    instance: Policy | None = None

    def made(self):
        """The policy."""
        return self.instance


def given(policy, name="srtf", **changes):
    """A case of a policy on six jobs and four GPUs."""
    trace = small_trace().assign(model="vgg16")
    case = Given(name, "paper", 0, 0, trace, "2x2", 8.0, instance=policy, is_dyadic=True)
    return replace(case, **changes)


# cases -----------------------------------------------------------------------------------------


def test_a_case_depends_on_its_number_alone():
    first = cases.draw("gavel-las", "paper", 1, 5)
    pd.testing.assert_frame_equal(first.trace, cases.draw("gavel-las", "paper", 1, 5).trace)
    other = cases.draw("gavel-las", "paper", 1, 6)
    assert not first.trace.equals(other.trace)


def test_every_policy_has_every_rule_set_under_which_it_runs():
    pairs = cases.pairs()
    assert ("pcs", "pcs") in pairs
    assert ("srtf", "pcs") not in pairs
    for rules in ("paper", "tiresias", "muri", "gavel"):
        assert ("srtf", rules) in pairs


def test_cases_are_small_and_differ():
    drawn = [cases.draw("srtf", "paper", 3, index) for index in range(60)]
    assert all(2 <= len(case.trace) <= cases.MAX_JOBS for case in drawn)
    assert len({case.cluster for case in drawn}) > 20
    assert any(case.trace["submit_time"].eq(0).all() for case in drawn)
    assert any(len(set(case.trace["duration"])) == 1 for case in drawn)
    assert {"perf", "overhead", "failures", "predict", "placement", "interval"} <= {
        name for case in drawn for name in case.options
    }


# faults ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ByName(Order):
    """Favours some job ids."""

    needs: ClassVar[frozenset[str]] = frozenset({"job_id"})

    def key(self, view, job):
        # `hash` of a text differs from process to process
        return zlib.crc32(str(view.column("job_id")[job]).encode())


@dataclass(frozen=True)
class ByCount(Order):
    """Reverses its order if the trace has more than six jobs."""

    def key(self, view, job):
        return view.submit(job) * (1 if view._table.count > 6 else -1)


@dataclass(frozen=True)
class ByNodes(Order):
    """Reverses its order on more than two nodes."""

    def key(self, view, job):
        return view.submit(job) * (1 if view.cluster.num_nodes > 2 else -1)


@dataclass(frozen=True)
class ByClock(Order):
    """Favours wide jobs that arrive at once."""

    def key(self, view, job):
        return view.gpus(job) * (1 if view.now < 1.5 else -1)


@pytest.mark.parametrize(
    ("relation", "policy"),
    [("ids", ByName()), ("later", ByCount()), ("nodes", ByNodes()), ("scaled", ByClock())],
)
def test_a_relation_finds_a_policy_that_breaks_it(relation, policy):
    case = given(policy)
    assert NAMED[relation].applies(case)
    assert f"relation {relation!r}: job" in check.fault_of(case, NAMED[relation])
    assert check.fault_of(given(make("srtf")), NAMED[relation]) == ""


def test_no_job_is_added_that_is_too_short_for_its_time():
    case = cases.draw("srtf", "gavel", 42, 242)
    assert case.trace["duration"].iloc[0] < 1e-3
    assert not NAMED["later"].applies(case)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_relations_hold_for_an_order(relation):
    case = given(make("srtf"))
    assert relation.applies(case)
    assert check.fault_of(case, relation) == ""


@dataclass(frozen=True)
class OneByOne(Policy):
    """Runs one job after the other, although others fit."""

    def decide(self, view):
        return RunSet(view.jobs[:1])


def test_an_idle_gpu_is_a_fault_of_a_policy_that_promises_none():
    case = given(OneByOne())
    fault = "rule 'idle': job 1 waits for 1 GPUs at 2.5 s, and 2 are idle"
    assert check.fault_of(case, None) == fault
    assert check.fault_of(replace(case, policy="yarn-cs"), None) == ""


def test_a_job_that_comes_just_after_the_begin_of_a_round_may_wait():
    # the fifth round begins 0.4 s before the second job comes, at 8e8 s
    trace = pd.DataFrame(
        {
            "job_id": [0, 1],
            "submit_time": [0.0, 8e8 + 0.4],
            "duration": [1e5, 1e5],
            "num_gpus": [1, 1],
            "model": ["vgg16", "vgg16"],
        }
    )
    options = {"rounds": {"round_s": 2e8}, "keep_intervals": True}
    case = given(make("isolated"), "isolated", trace=trace, options=options)
    result = check.run(case)
    assert result.jobs["start_time"].tolist() == [0.0, 1e9]
    assert idle.idle_fault(case, result) == ""
    before = replace(result, jobs=result.jobs.assign(submit_time=[0.0, 8e8]))
    assert "job 1 waits for 1 GPUs" in idle.idle_fault(case, before)


def test_unmet_demand_is_a_fault_of_a_policy_that_divides_gpus():
    case = given(make("max-min"), "max-min")
    result = check.run(case)
    assert idle.idle_fault(case, result) == ""
    less = replace(result, intervals=result.intervals.assign(gpus=0.5))
    assert "could use" in idle.idle_fault(case, less)


def test_a_crash_is_a_fault_and_a_refusal_is_none():
    @dataclass(frozen=True)
    class Crash(Order):
        def key(self, view, job):
            raise ZeroDivisionError("division by zero")

    assert "division by zero" in check.fault_of(given(Crash()), None)
    with pytest.raises(check.Refused, match="can never run"):
        check.fault_of(given(make("srtf"), cluster="1x1"), None)


def test_a_promise_has_a_reason_if_gpus_may_be_idle():
    for policy in {policy for policy, _ in cases.pairs()}:
        promise = idle.promise_of(policy)
        assert (promise.when == "never") == bool(promise.reason)


# reduction -------------------------------------------------------------------------------------


def test_a_case_is_reduced_to_the_jobs_that_show_the_fault(monkeypatch):
    def faulty(case, relation):
        wide = case.trace["num_gpus"].eq(4).sum()
        return "two wide jobs" if wide == 2 else ""

    monkeypatch.setattr(reduce, "fault_of", faulty)
    assert reduce.reduced(given(make("srtf")), None) == ([2, 5], "two wide jobs")


# runs ------------------------------------------------------------------------------------------


@pytest.fixture
def options(tmp_path):
    return run.Options(
        tmp_path, traces=3, only=("sr?f",), rules=("paper",), results=tmp_path / "results.csv"
    )


def test_a_run_goes_on_where_it_stopped(options):
    lines = []
    assert run.run(options, lines.append) == 0
    assert lines[0] == "2 blocks without a clean result, 6 traces"
    results = run.read_lines(options.results_file)
    assert [(line.policy, line.traces, line.violations) for line in results] == [
        ("srsf", 3, 0),
        ("srtf", 3, 0),
    ]
    lines.clear()
    run.run(options, lines.append)
    assert lines == ["0 blocks without a clean result, 0 traces"]


def test_a_line_that_was_cut_off_is_run_again(options):
    run.run(options, lambda line: None)
    text = options.results_file.read_text("utf-8")
    options.results_file.write_text(text[: text.rindex("paper") + 8], "utf-8")
    lines = []
    run.run(options, lines.append)
    assert lines[0] == "1 block without a clean result, 3 traces"
    assert len(run.read_lines(options.results_file)) == 2


def test_a_violation_is_one_line_that_shows_it_again(options, monkeypatch):
    def faulty(case, relation):
        return "rule 'idle': a fault" if case.policy == "srtf" else ""

    monkeypatch.setattr(check, "fault_of", faulty)
    monkeypatch.setattr(reduce, "fault_of", faulty)
    lines = []
    assert run.run(options, lines.append) == 3
    pattern = r"show srtf paper 0 --seed 42 --rows \d+: rule 'idle': a fault"
    assert re.fullmatch(pattern, lines[2])


def test_blocks_cover_every_trace_once(tmp_path):
    options = run.Options(tmp_path, traces=120, only=("srtf",), rules=("muri",))
    assert [(block.first, block.traces) for block in run.blocks(options)] == [
        (0, 50),
        (50, 50),
        (100, 20),
    ]


LINE = run.Line("srtf", "paper", 42, 0, 50, 400, 49, 0, 2.25, "abc", "2026-11-26")


def test_a_block_with_a_violation_runs_again(tmp_path):
    options = run.Options(tmp_path, traces=150, only=("srtf",), rules=("paper",))
    done = [replace(LINE, violations=1), replace(LINE, first=50)]
    assert [(block.first, block.traces) for block in run.blocks(options, done)] == [
        (0, 50),
        (100, 50),
    ]


def test_the_longest_line_from_a_trace_on_counts(tmp_path):
    options = run.Options(tmp_path, traces=200, only=("srtf",), rules=("paper",))
    done = [replace(LINE, traces=120), LINE]
    assert [(block.first, block.traces) for block in run.blocks(options, done)] == [
        (120, 30),
        (150, 50),
    ]


def test_more_leaves_out_the_committed_traces(options):
    options.committed_file.parent.mkdir()
    run.write_lines(options.committed_file, [replace(LINE, traces=3)])
    lines = []
    assert run.run(replace(options, more=True), lines.append) == 0
    assert lines[0] == "1 block without a clean result, 3 traces"
    assert [line.policy for line in run.read_lines(options.results_file)] == ["srsf"]


def test_neighbouring_blocks_become_one_line():
    after = replace(LINE, first=50, traces=20, cpu_s=1.5, commit="abd", date="2026-11-28")
    far = replace(LINE, first=100)
    other = replace(LINE, rules="muri", first=70)
    joined = run.merged([after, far, LINE, LINE, other, replace(LINE, first=70, violations=1)])
    both = replace(LINE, traces=70, jobs=800, compared=98, cpu_s=3.75)
    both = replace(both, commit="abc abd", date="2026-11-26 to 2026-11-28")
    assert joined == [other, both, far]
    assert run.merged([*joined, after]) == joined


def test_the_report_adds_results_to_the_committed_ones(tmp_path):
    page = tmp_path / report.PAGE
    page.parent.mkdir()
    marks = [f"<!-- {name}: {end} -->" for name in ("relations", report.MARK) for end in _ENDS]
    page.write_text("\n".join(marks), "utf-8")
    results = tmp_path / "results.csv"
    for _ in range(2):
        run.write_lines(results, [LINE, replace(LINE, first=50, cpu_s=3.5)])
        report.write(tmp_path, [results])
        assert "| `srtf` | paper | 100 | 800 | 98 | 6 |" in page.read_text("utf-8")
    assert [line.end for line in run.read_lines(tmp_path / run.COMMITTED)] == [100]


_ENDS = ("begin", "end")


def test_the_table_sums_lines():
    table = report.table([LINE, replace(LINE, first=100, traces=70, cpu_s=3.5, date="2026-11-28")])
    assert "Run on 2026-11-26 to 2026-11-28 at 1 commit (see" in table
    assert "| `srtf` | paper | 120 | 800 | 98 | 6 |" in table
    assert table.splitlines()[-1] == "| **all** |  | 120 | 800 | 98 | 6 |"
    assert report.table([]) == "No results yet."


def test_show_prints_a_case(capsys):
    assert command_line.main(["show", "srtf", "paper", "0", "--seed", "1"]) == 0
    printed = capsys.readouterr().out
    assert "submit_time" in printed
    assert "violation: none" in printed


@pytest.mark.parametrize("words", [["run", "--traces", "0"], ["show", "srtf"]])
def test_bad_arguments_are_refused(words, capsys):
    with pytest.raises(SystemExit) as caught:
        command_line.main(words)
    assert caught.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
