"""``repro new-policy NAME``: a policy and its test to fill in."""

from __future__ import annotations

import keyword
import re
from typing import Annotated

import typer

from repro.errors import ParamError

_POLICY = '''"""{title}: say in one line what it does."""

from __future__ import annotations

from dataclasses import dataclass

from repro.core.policy import Policy, register
from repro.core.decision import RunSet
from repro.core.view import View


@register("{name}")
@dataclass(frozen=True)
class {cls}(Policy):
    """Run the jobs that have received least service first.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> from repro import simulate
    >>> simulate(small_trace(), "1x4", {cls}()).summary()["n_finished"]
    6
    """

    def decide(self, view: View) -> RunSet:
        """Return the jobs to run, best first; what does not fit is skipped."""
        return RunSet(
            sorted(view.jobs, key=lambda job: (view.attained(job), view.submit(job), job))
        )
'''

_TEST = '''"""{title} keeps every rule a policy must keep, and does what it is for."""

from repro import simulate
from repro.policies.{module} import {cls}
from repro.testing import check_policy, small_trace


def test_conformance():
    check_policy({cls}())


def test_every_job_of_a_small_trace_ends():
    assert simulate(small_trace(), "1x4", "{name}").summary()["n_finished"] == 6
'''


def new_policy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Registered name, such as my-las.")],
) -> None:
    """Write repro/policies/NAME.py and its test, ready to run and to change."""
    from repro import paths
    from repro.core.policy import policies
    from repro.files.whole import write_whole

    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise ParamError(
            f"policy name {name!r}: use lower-case letters, digits and single hyphens, "
            "beginning with a letter, such as my-las"
        )
    module = name.replace("-", "_")
    root = paths.project_root()
    files = {
        root / "repro" / "policies" / f"{module}.py": _POLICY,
        root / "tests" / "unit" / "policies" / f"test_{module}.py": _TEST,
    }
    if name in policies or any(path.exists() for path in files):
        raise ParamError(f"policy {name!r} exists already; choose another name")
    words = {
        "name": name,
        "module": module,
        "cls": "".join(part.capitalize() for part in name.split("-")),
        "title": name.replace("-", " ").capitalize(),
    }
    for path, text in files.items():
        write_whole(path, text.format(**words).encode())
        typer.echo(f"wrote {path.relative_to(root)}")
    typer.echo(f"next: fill in decide(), then pytest -k {module}")
