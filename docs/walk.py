"""Follow one decision of the simulator through the files; `make walk` writes the table of docs.

Each case is simulated up to an event at which jobs wait and GPUs change hands. Whatever the policy
remembers from earlier decisions is dropped first, and compiled loops run as plain Python, so that
everything one has to read to follow the decision is counted: from the receipt of the event to the
holdings written.
"""

import contextlib
import os

os.environ["NUMBA_DISABLE_JIT"] = "1"

import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import repro
from repro import simulate
from repro.sim.engine import Engine
from repro.trace import synth

ROOT = Path(repro.__file__).parent
PAGE = Path(__file__).with_name("architecture.md")
BEGIN = "<!-- walk -->"
END = "<!-- end of walk -->"
#: what remembers answers of earlier decisions, by name of the attribute
MEMO = {"_solved", "met", "_matchers"}


class Case(NamedTuple):
    """A policy on a generated trace; the first event after ``after`` arrivals that moves GPUs."""

    policy: str
    trace: str
    cluster: str
    after: int
    options: dict[str, Any]


CASES = (
    Case("tiresias-l", "philly-like", "4x4", 60, {"jobs": 120, "load": 1.3, "num_gpus": 16}),
    Case("muri-s", "muri-like", "4x8", 100, {"jobs": 200, "trace": "1"}),
    Case("gavel-las", "gavel-single", "6xv100,6xp100,6xk80", 60, {"jobs": 120, "rate": 8.0}),
    Case("gavel-las-ss", "gavel-single", "6xv100,6xp100,6xk80", 60, {"jobs": 120, "rate": 8.0}),
)


class Found(BaseException):
    """The event was walked; the rest of the run does not matter."""


class Walk:
    """Counts the files and the moves between them of one event of an engine."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.files = Counter[str]()
        self.moves = 0
        self.last = ""
        self.state = ""

    def __call__(self, frame: Any, event: str, arg: object) -> Any:
        """Count a call of a function of the package."""
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(str(ROOT)):
            return None
        name = str(Path(name).relative_to(ROOT))
        self.moves += name != self.last
        self.last = name
        self.files[name] += 1
        return None


def forget(thing: Any, seen: set[int]) -> None:
    """Drop what a decision function, and whatever of the package it holds, remembers."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    held = [getattr(thing, "__self__", None)]
    held += [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
    if type(thing).__module__.startswith("repro."):
        for name, value in getattr(thing, "__dict__", {}).items():
            if name in MEMO:
                value.clear()
            held.append(value)
    for one in held:
        forget(one, seen)


def walk(case: Case) -> Walk:
    """Return the walk of one case."""
    found = Walk(case.after)
    sleep = Engine._sleep
    decide = Engine._decide

    def woken(engine: Engine, target: float) -> Any:
        now = yield from sleep(engine, target)
        if not found.state and engine.table.arrived >= case.after:
            forget(getattr(engine.driver, "decide", None), set())
            found.files.clear()
            found.moves = 0
            found.last = ""
            sys.settrace(found)
        return now

    def decided(engine: Engine, now: float) -> None:
        tracing = sys.gettrace()
        running = engine.table.state.running
        sys.settrace(None)
        held = running.copy()
        sys.settrace(tracing)
        decide(engine, now)
        sys.settrace(None)
        if tracing and (held & ~running).any() and (running & ~held).any():
            waiting = len(engine.table.active) - running.sum()
            found.state = f"{running.sum()} jobs run, {waiting} wait"
            raise Found

    seed = 0 if case.trace.startswith("gavel") else np.random.default_rng(0)
    trace = synth.make(case.trace, seed, **case.options)
    # event by event, even where compiled loops could simulate the whole run
    steps = {"_sleep": woken, "_decide": decided, "_played": lambda engine: False}
    with patch.multiple(Engine, **steps), contextlib.suppress(Found):
        simulate(trace, case.cluster, case.policy)
    return found


def table() -> str:
    """Return the table of all cases, in Markdown."""
    rows = ["| policy | state after the event | files | moves between files | which files |"]
    rows.append("|---|---|---|---|---|")
    for case in CASES:
        found = walk(case)
        names = ", ".join(f"`{name}`" for name in sorted(found.files))
        rows.append(
            f"| `{case.policy}` | {found.state} | {len(found.files)} | {found.moves} | {names} |"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    text = PAGE.read_text()
    if BEGIN in text:
        head, _, rest = text.partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}")
    else:
        print(table())
