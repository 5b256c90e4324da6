"""Comparison of two sets of results: points that moved or left their tolerance, verdicts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from repro.batch.check import StoredFigure, listed
from repro.figures.claims import OUTCOMES, Claim
from repro.figures.params import FigureEntry, FigureSpec
from repro.figures.points import Point
from repro.figures.tolerance import Accept, flat, is_number, show, within

#: Largest relative distance of values that count as equal; last digits differ between machines.
_SAME = 1e-6


@dataclass(frozen=True)
class Same:
    """Largest relative and absolute distance of values that count as equal."""

    relative: float = _SAME
    absolute: float = 0.0

    def holds(self, new: Any, old: Any) -> bool:
        """Whether two of our values count as equal."""
        if is_number(new) and is_number(old) and abs(new - old) <= self.absolute:
            return True
        return _distance(new, old) <= self.relative


#: Number of moved points that have a line of their own, the farthest first. Also the number of
#: moved claims with a line.
_LISTED = 5


#: Reason for a figure that only the other results have.
NO_RESULT = "no result here"
#: Reason for a figure of the other results whose parameter file is gone.
NO_FIGURE = "no parameter file here"


@dataclass
class Change:
    """Differences of a figure's two results, a line each.

    ``other`` is the obstacle to a comparison of the two results, or empty. ``moved`` has points.
    ``moved_claims`` has claims without points whose values moved. It also has claims on measured
    times whose verdict changed, if they have a recorded deviation. The fields are keys of
    ``repro check --against DIR --json``.
    """

    id: str
    other: str = ""
    worse: list[str] = field(default_factory=list)
    better: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    moved_claims: list[str] = field(default_factory=list)
    #: number of points in the new result
    points: int = 0

    @property
    def is_compared(self) -> bool:
        """Whether the two results were compared."""
        return not self.other

    def lines(self) -> list[str]:
        """Lines of all differences, the worst first."""
        worse = [f"worse: {line}" for line in self.worse]
        better = [f"better: {line}" for line in self.better]
        moved = [f"moved: {line}" for line in self.moved[:_LISTED]]
        hidden = len(self.moved) - _LISTED
        if hidden > 0:
            moved.append(f"{hidden} more points moved")
        claims = [f"moved: {line}" for line in self.moved_claims[:_LISTED]]
        hidden_claims = len(self.moved_claims) - _LISTED
        if hidden_claims > 0:
            claims.append(f"{hidden_claims} more claims moved")
        return [*worse, *better, *moved, *claims]


def compare(
    figures: Sequence[StoredFigure],
    earlier: Sequence[StoredFigure],
    specs: Mapping[FigureEntry, FigureSpec],
    same: Same | None = None,
) -> list[Change]:
    """Compare each figure's result with the result of the same figure in ``earlier``.

    A figure that measures computing time is compared by its verdicts alone. ``same`` says which
    values count as equal.
    """
    same = same or Same()
    before = {figure.entry: figure.result for figure in earlier if figure.result}
    damaged = {figure.entry for figure in earlier if figure.damage}
    changes = []
    for figure in figures:
        change = Change(figure.entry.id)
        old = before.get(figure.entry)
        change.other = _obstacle(figure.result, old, is_damaged=figure.entry in damaged)
        if change.is_compared and old:
            spec = specs.get(figure.entry)
            is_timed = (spec is not None and spec.timed) or bool(old.get("timed"))
            _compare_verdicts(change, figure.result, old, is_timed=is_timed)
            if not is_timed:
                _compare_points(change, figure.result, old, spec, same)
                _compare_claims(change, figure.result, old, same)
        changes.append(change)
    return changes


def totals(changes: Sequence[Change]) -> str:
    """Summary ``3 of 900 points moved; 1 worse, 0 better; 2 figures not compared``."""
    compared = [change for change in changes if change.is_compared]
    moved = sum(len(change.moved) for change in compared)
    worse = sum(len(change.worse) for change in compared)
    better = sum(len(change.better) for change in compared)
    points = sum(change.points for change in compared)
    text = f"{moved} of {points} points moved; {worse} worse, {better} better"
    claims = sum(len(change.moved_claims) for change in compared)
    if claims:
        text += f"; {claims} claim{'s' * (claims > 1)} moved"
    not_compared = len(changes) - len(compared)
    if not_compared:
        text += f"; {not_compared} figure{'s' * (not_compared > 1)} not compared"
    return text


def not_compared_lines(changes: Sequence[Change]) -> list[str]:
    """Lines of the reasons why figures were not compared, with the figures."""
    by_reason: dict[str, list[str]] = {}
    for change in changes:
        if not change.is_compared:
            by_reason.setdefault(change.other, []).append(change.id)
    return [f"not compared, {reason}: {listed(ids)}" for reason, ids in by_reason.items()]


def _obstacle(
    new: Mapping[str, Any], old: Mapping[str, Any] | None, *, is_damaged: bool = False
) -> str:
    """Reason why two results cannot be compared, or empty.

    Results of two profiles can be compared if their inputs are equal. ``is_damaged`` says whether
    the old result, or a file of it, is damaged.
    """
    if not new:
        return NO_RESULT
    if not old:
        return "result damaged there" if is_damaged else "no result there"
    if new["profile"] != old["profile"] and new["params"] != old["params"]:
        return f"profile {new['profile']} here, {old['profile']} there, with other inputs"
    if new["seed"] != old["seed"]:
        return f"seed {new['seed']} here, {old['seed']} there"
    return "other data" if new["stand_in"] != old["stand_in"] else ""


def _compare_verdicts(
    change: Change, new: Mapping[str, Any], old: Mapping[str, Any], *, is_timed: bool
) -> None:
    """Note changed verdicts and missing claims.

    A measured time depends on the machine. So a changed verdict of a timed figure counts as moved,
    not as worse or better, if the claim has a recorded deviation.
    """
    new_rows = {row["id"]: row for row in new["claims"]}
    for old_row in old["claims"]:
        new_row = new_rows.get(old_row["id"])
        new_rank = OUTCOMES.index(new_row["verdict"]) if new_row else len(OUTCOMES)
        old_rank = OUTCOMES.index(old_row["verdict"])
        if new_rank != old_rank:
            verdict = new_row["verdict"] if new_row else "gone"
            line = f"claim {old_row['id']} is {verdict}, was {old_row['verdict']}"
            if is_timed and new_row and new_row.get("deviation"):
                change.moved_claims.append(f"{line}; a measured time")
            else:
                (change.worse if new_rank > old_rank else change.better).append(line)


def _compare_claims(
    change: Change, new: Mapping[str, Any], old: Mapping[str, Any], same: Same
) -> None:
    """Note claims without points whose values moved."""
    old_rows = {row["id"]: row for row in old["claims"]}
    with_points = {point["series"] for point in new["points"]}
    for row in new["claims"]:
        old_row = old_rows.get(row["id"])
        if old_row is None or "series" in row or row["id"] in with_points:
            continue
        values = list(flat(row["ours"]))
        old_values = list(flat(old_row["ours"]))
        has_moved = len(values) != len(old_values) or not all(
            same.holds(*pair) for pair in zip(values, old_values, strict=True)
        )
        if has_moved:
            line = f"claim {row['id']}: {show(row['ours'])}, was {show(old_row['ours'])}"
            change.moved_claims.append(f"{line}, published {show(row['published'])}")


def _compare_points(
    change: Change,
    new: Mapping[str, Any],
    old: Mapping[str, Any],
    spec: FigureSpec | None,
    same: Same,
) -> None:
    """Note points that moved, and points that left or met the tolerance of their claim."""
    claims = spec.claims if spec else []
    new_points = _by_key(new)
    moved = list[tuple[float, str]]()
    change.points = len(new_points)
    for key, old_point in _by_key(old).items():
        name = old_point["series"]
        name += f" at {show(old_point['x'])}" if old_point["x"] is not None else ""
        name += f", {old_point['quantity']}" if old_point["quantity"] != old_point["series"] else ""
        new_point = new_points.get(key)
        if new_point is None:
            change.worse.append(f"point {name} is gone")
            continue
        if same.holds(new_point["ours"], old_point["ours"]):
            continue
        line = f"{name}: {show(new_point['ours'])}, was {show(old_point['ours'])}"
        line += f", published {show(new_point['published'])} {new_point['unit']}".rstrip()
        moved.append((_distance(new_point["ours"], old_point["ours"]), line))
        accepts = _accepts(claims, new_point)
        is_within = _fits(accepts, new_point)
        # the old point of a reference file lacks its published value, which the new point has
        was_within = _fits(accepts, {**new_point, "ours": old_point["ours"]})
        if is_within is not None and is_within != was_within:
            word = "came into" if is_within else "left"
            text = f"point {word} its tolerance: {line}"
            (change.better if is_within else change.worse).append(text)
    change.moved = [line for _, line in sorted(moved, key=lambda pair: -pair[0])]


def _by_key(result: Mapping[str, Any]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    """Points by series, x, quantity, rules and the number of earlier points with equal fields."""
    points: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    seen: Counter[tuple[Any, ...]] = Counter()
    for point in result["points"]:
        key = tuple(map(point.get, ("series", "x", "quantity", "rules")))
        points[*key, seen[key]] = point
        seen[key] += 1
    return points


def _distance(new: Any, old: Any) -> float:
    """Relative distance of two of our values.

    Different values are infinitely distant if one of them is no number.
    """
    if not is_number(new) or not is_number(old):
        return 0.0 if new == old else float("inf")
    return float(abs(new - old) / max(abs(new), abs(old), 1e-300))


def _accepts(claims: Sequence[Claim], row: Mapping[str, Any]) -> list[Accept]:
    """Tolerances of the claims that judge a point, except tolerances with a list of bounds."""
    point = Point.model_construct(**row)
    judging = [
        claim
        for claim in claims
        if (claim.id == row["series"] if claim.series is None else claim.judges(point))
    ]
    accepts = [claim.accept for claim in judging if claim.accept is not None]
    return [accept for accept in accepts if accept.bound_count() is None]


def _fits(accepts: Sequence[Accept], point: Mapping[str, Any]) -> bool | None:
    """Whether a point is within all tolerances; None without any."""
    if not accepts:
        return None
    return all(within(accept, point["published"], point["ours"]) for accept in accepts)
