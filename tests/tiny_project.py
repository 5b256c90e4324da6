"""A tiny project folder with real notebooks, run by real kernels, for tests."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from repro.cli.app import main

HERE = Path(__file__).resolve().parents[1]

YAML = """\
title: {title}
paper: {paper}
{notebook}reference: "Fig 1"
shows: a small thing
inputs:
  cluster: 1x4
  seeds: [0, 1]
profiles:
  quick: {{seeds: [0]}}
claims:
  - id: jobs
    kind: example
    what: finished jobs
    published: 6
    accept: {{exact: true}}
    source: section 1
    certainty: paper
  - id: big
    kind: order
    what: something large
    published: "> 100"
    relation: {{gt: 100}}
    source: section 2
    certainty: plot ±5
{deviation}
"""

PARAMETERS = 'profile = "quick"\nseed = 0\nout = "build/figures"\nseeds = None'

BODY = """\
import pandas as pd
from repro import figure
from repro.plot import line_chart
from repro.testing import small_trace
fig = figure({id}, profile=profile, seed=seed, out=out, seeds=seeds)
result = fig.simulate(small_trace(), cluster=fig.inputs.cluster, policy="srtf")
table = pd.DataFrame({{"x": range(5), "y": fig.rng("noise").random(5)}})
plot = line_chart(table, x="x", y="y", xlabel="x (s)", ylabel="y")
fig.save(plot, table, {{"jobs": result.summary()["n_finished"], "big": {big}}})
"""


class Project:
    """A checkout in a temporary folder, and the command line run in it."""

    def __init__(self, root: Path):
        self.root = root
        self.env = {
            **os.environ,
            "REPRO_HOME": str(root),
            "REPRO_CACHE_DIR": str(root / "cache"),
            "PYTHONPATH": str(HERE),
        }
        self.env.pop("REPRO_TRACE_MIRROR", None)
        (root / "traces").mkdir(parents=True)
        for folder in ("params", "notebooks"):
            (root / folder).mkdir()
        shutil.copy(HERE / "traces/registry.csv", root / "traces")

    def add(
        self,
        figure_id,
        *,
        before="",
        after="",
        big=200,
        deviation="",
        parameters=PARAMETERS,
        notebook=None,
    ):
        """Write a figure; ``notebook`` is the stem of a notebook of several figures."""
        paper, stem = figure_id.split("/")
        if notebook:
            parameters = f'figure_id = "{figure_id}"\n{parameters}'
        body = BODY.format(id="figure_id" if notebook else f'"{figure_id}"', big=big)
        key = f"notebook: {notebook}\n" if notebook else ""
        names = {"params": f"{stem}.yaml", "notebooks": f"{notebook or stem}.ipynb"}
        cells = [(parameters, ["parameters"])] + [(c, []) for c in (before, body, after) if c]
        document = {
            "cells": [
                {
                    "cell_type": "code",
                    "source": source,
                    "metadata": {"tags": tags},
                    "outputs": [],
                    "execution_count": None,
                    "id": f"c{n}",
                }
                for n, (source, tags) in enumerate(cells)
            ],
            "metadata": {
                "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        note = f"    deviation: {deviation}" if deviation else ""
        for folder, text in (
            ("params", YAML.format(title=stem, paper=paper, notebook=key, deviation=note)),
            ("notebooks", json.dumps(document)),
        ):
            (self.root / folder / paper).mkdir(exist_ok=True)
            (self.root / folder / paper / names[folder]).write_text(text)

    def command(self, *words):
        return [sys.executable, "-m", "repro.cli", *map(str, words)]

    def cli(self, *words, code=0, **env):
        """Call the command line in this process, which a new process for each call would slow."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            for name in os.environ.keys() - self.env.keys():
                patch.delenv(name)
            for name, value in {**self.env, **env}.items():
                patch.setenv(name, value)
            patch.chdir(self.root)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    returned = main([str(word) for word in words])
                except Exception:
                    # as Python ends a process
                    traceback.print_exc()
                    returned = 1
        done = subprocess.CompletedProcess(words, returned, out.getvalue(), err.getvalue())
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *words):
        return subprocess.Popen(
            self.command(*words),
            env=self.env,
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def folder(self, figure_id, out="build/figures"):
        return self.root / out / figure_id

    def result(self, figure_id, out="build/figures"):
        return json.loads((self.folder(figure_id, out) / "result.json").read_text())
