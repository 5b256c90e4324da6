"""Results against others: which points moved, and which left their tolerance or got worse."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from repro.batch.check import Stored
from repro.figures.claims import OUTCOMES
from repro.figures.params import FigureEntry, FigureSpec
from repro.figures.tolerance import Accept, is_number, show, within

#: Relative distance below which a value is the same: another machine's last digits.
_SAME = 1e-6
#: Moved points that are told one by one, the farthest first.
_TOLD = 5


@dataclass
class Change:
    """How a figure's result differs from another: a line each; or why the two do not compare."""

    id: str
    other: str = ""
    worse: list[str] = field(default_factory=list)
    better: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    points: int = 0

    def lines(self) -> list[str]:
        """Return one line per difference, the worst first."""
        hidden = len(self.moved) - _TOLD
        more = [f"{hidden} more points moved"] * (hidden > 0)
        moved = [f"moved: {line}" for line in self.moved[:_TOLD]] + more
        worse = [f"worse: {line}" for line in self.worse]
        return [*worse, *(f"better: {line}" for line in self.better), *moved]


def compare(
    found: Sequence[Stored], others: Sequence[Stored], specs: Mapping[FigureEntry, FigureSpec]
) -> list[Change]:
    """Return how each result differs from that of the same figure among ``others``."""
    before = {one.entry: one.result for one in others if one.result}
    changes = []
    for one in found:
        change = Change(one.entry.id)
        old = before.get(one.entry)
        change.other = _why_not(one.result, old)
        if not change.other and old:
            _claims(change, one.result, old)
            _points(change, one.result, old, specs.get(one.entry))
        changes.append(change)
    return changes


def totals(changes: Sequence[Change]) -> str:
    """Return ``3 of 900 points moved; 1 worse, 0 better; 2 figures not compared``."""
    compared = [one for one in changes if not one.other]
    moved, worse, better = (
        sum(len(getattr(one, name)) for one in compared) for name in ("moved", "worse", "better")
    )
    left = len(changes) - len(compared)
    points = sum(one.points for one in compared)
    text = f"{moved} of {points} points moved; {worse} worse, {better} better"
    return text + f"; {left} figure{'s' * (left > 1)} not compared" * bool(left)


def _why_not(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> str:
    """Return why two results do not compare; another profile with equal inputs is no reason."""
    if not new or not old:
        return f"no result {'here' if not new else 'there'}"
    if new["profile"] != old["profile"] and new["params"] != old["params"]:
        return f"profile {new['profile']} here, {old['profile']} there, with other inputs"
    if new["seed"] != old["seed"]:
        return f"seed {new['seed']} here, {old['seed']} there"
    return "other data" if new["stand_in"] != old["stand_in"] else ""


def _claims(change: Change, new: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Note which verdicts changed, and which claims are gone."""
    now = {row["id"]: row for row in new["claims"]}
    for was in old["claims"]:
        row = now.get(was["id"])
        rank = OUTCOMES.index(row["verdict"]) if row else len(OUTCOMES)
        if rank != (before := OUTCOMES.index(was["verdict"])):
            told = row["verdict"] if row else "gone"
            line = f"claim {was['id']} is {told}, was {was['verdict']}"
            (change.worse if rank > before else change.better).append(line)


def _points(
    change: Change, new: Mapping[str, Any], old: Mapping[str, Any], spec: FigureSpec | None
) -> None:
    """Note which points moved, and which left or came into the tolerance of their claim."""
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
        far = _apart(point["ours"], was["ours"])
        if far <= _SAME:
            continue
        line = f"{name}: {show(point['ours'])}, was {show(was['ours'])}"
        line += f", published {show(was['published'])} {was['unit']}".rstrip()
        moved.append((far, line))
        fits, fitted = (_fits(accepts.get(was["series"]), one) for one in (point, was))
        if fits is not None and fits != fitted:
            word = "came into" if fits else "left"
            text = f"point {word} its tolerance: {line}"
            (change.better if fits else change.worse).append(text)
    change.moved = [line for _, line in sorted(moved, key=lambda one: -one[0])]


def _by_key(result: Mapping[str, Any]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    """Return points by what tells them apart; equal ones are numbered."""
    found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    seen: Counter[tuple[Any, ...]] = Counter()
    for point in result["points"]:
        key = tuple(map(point.get, ("series", "x", "quantity", "rules")))
        found[*key, seen[key]] = point
        seen[key] += 1
    return found


def _apart(new: Any, old: Any) -> float:
    """Return the relative distance of two values of ours; infinite if one is no number."""
    if not is_number(new) or not is_number(old):
        return 0.0 if new == old else float("inf")
    return float(abs(new - old) / max(abs(new), abs(old), 1e-300))


def _fits(accept: Accept | None, point: Mapping[str, Any]) -> bool | None:
    """Tell whether a point lies within its claim's tolerance; None if that has no single bound."""
    if accept is None or accept.bounds() is not None:
        return None
    return within(accept, point["published"], point["ours"])
