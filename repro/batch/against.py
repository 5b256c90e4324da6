"""Comparison of two sets of results: points that moved or left their tolerance, verdicts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from repro.batch.check import Stored
from repro.figures.claims import OUTCOMES
from repro.figures.params import FigureEntry, FigureSpec
from repro.figures.tolerance import Accept, is_number, show, within

#: Relative distance of equal values; the last digits differ from machine to machine.
_SAME = 1e-6
#: Number of moved points that have a line of their own, the farthest first.
_LISTED = 5


@dataclass
class Change:
    """Differences of a figure's two results, a line each; ``other``: why they do not compare."""

    id: str
    other: str = ""
    worse: list[str] = field(default_factory=list)
    better: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    points: int = 0

    def lines(self) -> list[str]:
        """Lines of all differences, the worst first."""
        worse = [f"worse: {line}" for line in self.worse]
        better = [f"better: {line}" for line in self.better]
        moved = [f"moved: {line}" for line in self.moved[:_LISTED]]
        hidden = len(self.moved) - _LISTED
        if hidden > 0:
            moved.append(f"{hidden} more points moved")
        return [*worse, *better, *moved]


def compare(
    figures: Sequence[Stored], others: Sequence[Stored], specs: Mapping[FigureEntry, FigureSpec]
) -> list[Change]:
    """Compare each figure's result with the result of the same figure among ``others``."""
    before = {figure.entry: figure.result for figure in others if figure.result}
    changes = []
    for figure in figures:
        change = Change(figure.entry.id)
        old = before.get(figure.entry)
        change.other = _obstacle(figure.result, old)
        if not change.other and old:
            _compare_claims(change, figure.result, old)
            _compare_points(change, figure.result, old, specs.get(figure.entry))
        changes.append(change)
    return changes


def totals(changes: Sequence[Change]) -> str:
    """Write ``3 of 900 points moved; 1 worse, 0 better; 2 figures not compared``."""
    compared = [change for change in changes if not change.other]
    moved = sum(len(change.moved) for change in compared)
    worse = sum(len(change.worse) for change in compared)
    better = sum(len(change.better) for change in compared)
    points = sum(change.points for change in compared)
    text = f"{moved} of {points} points moved; {worse} worse, {better} better"
    rest = len(changes) - len(compared)
    return text + f"; {rest} figure{'s' * (rest > 1)} not compared" * bool(rest)


def _obstacle(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> str:
    """Reason why two results do not compare; profiles with equal inputs do."""
    if not new or not old:
        return f"no result {'here' if not new else 'there'}"
    if new["profile"] != old["profile"] and new["params"] != old["params"]:
        return f"profile {new['profile']} here, {old['profile']} there, with other inputs"
    if new["seed"] != old["seed"]:
        return f"seed {new['seed']} here, {old['seed']} there"
    return "other data" if new["stand_in"] != old["stand_in"] else ""


def _compare_claims(change: Change, new: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Note changed verdicts and missing claims."""
    now = {row["id"]: row for row in new["claims"]}
    for was in old["claims"]:
        row = now.get(was["id"])
        rank = OUTCOMES.index(row["verdict"]) if row else len(OUTCOMES)
        if rank != (before := OUTCOMES.index(was["verdict"])):
            verdict = row["verdict"] if row else "gone"
            line = f"claim {was['id']} is {verdict}, was {was['verdict']}"
            (change.worse if rank > before else change.better).append(line)


def _compare_points(
    change: Change, new: Mapping[str, Any], old: Mapping[str, Any], spec: FigureSpec | None
) -> None:
    """Note points that moved, and points that left or met the tolerance of their claim."""
    accepts = {claim.series or claim.id: claim.accept for claim in spec.claims} if spec else {}
    now = _by_key(new)
    moved = list[tuple[float, str]]()
    change.points = len(now)
    for key, was in _by_key(old).items():
        name = was["series"] + (f" at {show(was['x'])}" if was["x"] is not None else "")
        name += f", {was['quantity']}" if was["quantity"] != was["series"] else ""
        point = now.get(key)
        if point is None:
            change.worse.append(f"point {name} is gone")
            continue
        distance = _distance(point["ours"], was["ours"])
        if distance <= _SAME:
            continue
        line = f"{name}: {show(point['ours'])}, was {show(was['ours'])}"
        line += f", published {show(was['published'])} {was['unit']}".rstrip()
        moved.append((distance, line))
        accept = accepts.get(was["series"])
        fits = _fits(accept, point)
        fitted = _fits(accept, was)
        if fits is not None and fits != fitted:
            word = "came into" if fits else "left"
            text = f"point {word} its tolerance: {line}"
            (change.better if fits else change.worse).append(text)
    change.moved = [line for _, line in sorted(moved, key=lambda pair: -pair[0])]


def _by_key(result: Mapping[str, Any]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    """Points by series, x, quantity, rules and a number that tells equal keys apart."""
    points: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    seen: Counter[tuple[Any, ...]] = Counter()
    for point in result["points"]:
        key = tuple(map(point.get, ("series", "x", "quantity", "rules")))
        points[*key, seen[key]] = point
        seen[key] += 1
    return points


def _distance(new: Any, old: Any) -> float:
    """Relative distance of two of our values; infinite if one is no number and they differ."""
    if not is_number(new) or not is_number(old):
        return 0.0 if new == old else float("inf")
    return float(abs(new - old) / max(abs(new), abs(old), 1e-300))


def _fits(accept: Accept | None, point: Mapping[str, Any]) -> bool | None:
    """Tell whether a point is within its claim's tolerance; None without a single tolerance."""
    if accept is None or accept.bounds() is not None:
        return None
    return within(accept, point["published"], point["ours"])
