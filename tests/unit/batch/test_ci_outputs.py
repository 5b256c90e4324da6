"""Outputs of ``repro check`` that CI systems read: JUnit XML, GitHub annotations and summary."""

import json
import re
from xml.etree import ElementTree

import pytest
from test_gallery import CLAIM, POINT, SERIES, put, record
from test_gallery import root as root

from repro.cli import app

#: Attributes that the schema of the Jenkins plug-in requires.
REQUIRED = {
    "testsuites": {"tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
    "system-out": set(),
}
#: Elements that the schema allows inside of each element.
INSIDE = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase"},
    "testcase": {"failure", "error", "skipped", "system-out"},
}


def words(root, *more):
    return ["check", "--out", str(root / "mine"), *map(str, more)]


def broken(root):
    """A better and a worse figure, a failed one, and a claim of each verdict."""
    claims = [
        CLAIM | {"id": "good"},
        CLAIM | {"id": "lost", "verdict": "missed", "what": "a < b | c, 100 %\x07"},
        CLAIM | {"id": "known", "verdict": "missed", "deviation": "Other jobs."},
        CLAIM | {"id": "partly", "verdict": "partial"},
        CLAIM
        | {"id": "none", "verdict": "not comparable", "reason": "not published", "ours": None},
    ]
    moved = [POINT | {"ours": 20.0}]
    put(root, record(*SERIES[1]) | {"claims": claims, "points": moved}, out="mine")
    failed = root / "mine" / SERIES[0][0]
    failed.mkdir(parents=True)
    (failed / "error.json").write_text(
        json.dumps({"error": "ValueError: no\x00", "traceback": "Traceback <>\nno"})
    )


def checked(element):
    """Check names, attributes and numbers of an element and of all below it."""
    assert REQUIRED[element.tag] <= set(element.attrib)
    for child in element:
        assert child.tag in INSIDE[element.tag]
        checked(child)
    if element.tag in ("testsuites", "testsuite"):
        cases = list(element.iter("testcase"))
        assert int(element.get("tests")) == len(cases)
        kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
        for name, kind in kinds.items():
            assert int(element.get(name)) == sum(case.find(kind) is not None for case in cases)


def test_junit_has_a_suite_per_paper_and_fails_what_check_fails(root):
    broken(root)
    path = root / "reports/check.xml"
    assert app.main(words(root, "--junit", path, "--against", root / "figures")) == 1
    tree = ElementTree.parse(path).getroot()
    checked(tree)
    assert [suite.get("name") for suite in tree] == ["Gavel", "Tiresias"]
    cases = {(case.get("classname"), case.get("name")): case for case in tree.iter("testcase")}
    names = [name for figure, name in cases if figure == "gavel.tab03_x"]
    assert names == ["run", "good", "lost", "known", "partly", "none", "against"]
    failed = {name: case.find("failure") for (_, name), case in cases.items()}
    assert [name for name, failure in failed.items() if failure is not None] == ["lost", "against"]
    assert "a < b | c, 100 %?: ours 5.4, published 5.5" in failed["lost"].get("message")
    assert "claim gain is gone, was reproduced" in failed["against"].text
    skipped = {name: case.find("skipped") for (_, name), case in cases.items()}
    assert skipped["known"].get("message") == "missed; deviation: Other jobs."
    assert skipped["none"].get("message") == "not comparable: not published"
    error = cases["tiresias.fig10_testbed", "run"].find("error")
    assert error.get("message") == "ValueError: no?" and error.text == "Traceback <>\nno"


def test_junit_of_good_results_has_no_failure(root):
    path = root / "check.xml"
    app.main(["check", "--out", str(root / "figures"), "--junit", str(path)])
    tree = ElementTree.parse(path).getroot()
    checked(tree)
    assert (tree.get("failures"), tree.get("errors"), tree.get("skipped")) == ("0", "0", "1")
    assert float(tree.get("time")) == 6.42


def test_annotations_name_the_figure_and_its_parameter_file(root, capsys, monkeypatch):
    broken(root)
    summary = root / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert app.main(words(root, "--github", "--against", root / "figures")) == 1
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::")]
    errors, warnings = told[:2], told[2:]
    head = "::error file=params/gavel/tab03_x.yaml,title=gavel/tab03_x::"
    assert errors[0].startswith(f"{head}missed: lost: ours 5.4, published 5.5%0Aworse: claim gain")
    assert errors[1].startswith("::error file=params/tiresias/fig10_testbed.yaml,title=tiresias/")
    (warning,) = warnings
    assert warning == (
        "::warning file=params/gavel/tab03_x.yaml,title=gavel/tab03_x::moved: las at 1, JCT: 20, "
        "was 10.1, published 10 h"
    )
    text = summary.read_text()
    assert text.startswith("before\n## Published numbers against regenerated\n")
    assert "| Gavel | 1 | 1 | 1 | 1 | 2 | 0 of 0 |" in text
    assert "### Missed without a recorded deviation: 1" in text
    assert "a &lt; b \\| c, 100 %" in text
    assert "### Worse: 3" in text and "### Moved: 1" in text
    assert "| gavel/tab03_x | las at 1, JCT: 20, was 10.1, published 10 h |" in text
    tables = re.findall(r"^\|.*\|$", text, re.MULTILINE)
    assert all(row.replace("\\|", "").count("|") in (3, 8) for row in tables)


def test_the_summary_is_printed_outside_of_github(root, capsys, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert app.main(["check", "--out", str(root / "figures"), "--github"]) == 0
    assert "| paper | figures | reproduced |" in capsys.readouterr().out
    assert app.main(["check", "--out", str(root / "figures"), "--github", "--json"]) == 2
    assert "give one of them" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--junit", "--save"])
def test_a_folder_as_output_is_refused_in_a_line(root, capsys, option):
    assert app.main(["check", "--out", str(root / "figures"), option, str(root)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(root) in line
