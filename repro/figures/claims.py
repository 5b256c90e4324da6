"""Claims and their verdicts: published values against the values of one run."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationInfo, field_validator, model_validator

from repro.base.errors import ClaimError
from repro.base.extras import is_installed
from repro.figures.points import Origin, Point, Unknown
from repro.figures.tolerance import (
    Accept,
    Relation,
    Strict,
    Text,
    check_number,
    excess,
    flat,
    in_python_types,
    is_nan,
    is_number,
    not_blank,
    plain,
    within,
)

REPRODUCED = "reproduced"
PARTIAL = "partial"
NOT_COMPARABLE = "not comparable"
MISSED = "missed"
#: From best to worst.
OUTCOMES = (REPRODUCED, NOT_COMPARABLE, PARTIAL, MISSED)
#: Verdict of a figure without a claim of a paper, whose own checks hold.
OWN_CHECKS = "own checks only"
#: ``number``: published values within a tolerance; ``order``: a relation or trend; ``example``: a
#: worked example or arithmetic; ``check``: a requirement of this package, an input, a calibration
#: target or a value that holds by construction. A check is shown and never counted as reproduced.
Kind = Literal["number", "order", "example", "check"]
KINDS: tuple[Kind, ...] = ("number", "order", "example", "check")
#: Why a claim is not comparable.
Reason = Literal[
    "not published",
    "data not public",
    "data not available here",
    "not at this profile",
    "package not installed",
]
NOT_PUBLISHED: Reason = "not published"
DATA_NOT_PUBLIC: Reason = "data not public"
DATA_NOT_AVAILABLE: Reason = "data not available here"
NOT_AT_THIS_PROFILE: Reason = "not at this profile"
PACKAGE_NOT_INSTALLED: Reason = "package not installed"

#: Largest depth of a published list. A list of times by round, GPU type and job has depth 3.
_LEVELS = 3
_CERTAINTY = re.compile(r"(paper|artifact|derived|calibrated)\b.*|plot ±\s*\d.*")


class ClaimFields(Strict):
    """Fields of a claim that its parameter file and ``result.json`` share."""

    id: Text
    kind: Kind
    what: Text
    published: Any = None
    series: Text | list[Text] | None = None
    source: Text
    certainty: Text
    stand_in: bool = False
    deviation: Text | None = None


class Claim(ClaimFields):
    """A statement of a paper about a figure, with its source and the certainty of its value.

    A claim about a ``series`` (or several) judges every point of it and has no ``published`` value.
    ``at`` keeps the points whose x is listed or within a bound. ``quantity`` keeps the points of
    one or several quantities. ``origin``, ``fitted_on`` and ``unknown`` are those of this claim's
    points, where they differ from the figure's. ``package`` is a Python package without which this
    run differs from the paper's, such as a solver; where it is not installed, the claim is not
    comparable.
    """

    package: Text | None = None
    at: Relation | list[float | str] | None = None
    quantity: Text | list[Text] | None = None
    origin: Origin | None = None
    fitted_on: str | None = None
    unknown: Unknown | None = None
    accept: Accept | None = None
    relation: Relation | None = None

    @field_validator("certainty")
    @classmethod
    def _valid_certainty(cls, text: str) -> str:
        if not _CERTAINTY.fullmatch(text):
            raise ValueError("must be paper, plot ±e, artifact, derived or calibrated")
        return text

    @field_validator("published")
    @classmethod
    def _number_list_or_text(cls, published: Any) -> Any:
        if published is None:
            return None
        items = list(flat(published))
        for item in items:
            if item is not None and not isinstance(item, bool | int | float | str):
                raise ValueError("must be a number, a list of numbers or a text relation")
            not_blank(item) if isinstance(item, str) else check_number(item)
        if not _is_table(published, _LEVELS):
            raise ValueError(f"mixes lists and single values or has more than {_LEVELS} levels")
        if all(item is None for item in items):
            raise ValueError(
                "has no value, so nothing could fail the claim; give a number, a list of numbers "
                "or the paper's statement as a text"
            )
        return published

    @field_validator("accept")
    @classmethod
    def _fits_published(cls, accept: Accept | None, info: ValidationInfo) -> Accept | None:
        published = info.data.get("published")
        if accept is None or accept.exact or published is None:
            return accept
        items = [item for item in flat(published) if item is not None]
        # If the published value is a text, low and high can still judge our number.
        has_width = accept.rel is not None or accept.abs is not None
        if has_width or not isinstance(published, str):
            for item in items:
                if not is_number(item):
                    raise ValueError(f"needs a published number instead of {item!r:.40}")
        # None: a single value, which takes a plain bound and no list.
        value_count = len(list(flat(published))) if isinstance(published, list) else None
        if accept.bound_count() not in (None, value_count):
            raise ValueError(
                f"{accept.bound_count()} bounds for {value_count or 1} published; give one bound "
                "for all values, or a list with a bound for each value of a published list"
            )
        return accept

    @field_validator("relation")
    @classmethod
    def _judges_numbers(cls, relation: Relation | None, info: ValidationInfo) -> Relation | None:
        kinds = map(type, flat(info.data.get("published")))
        if relation is not None and bool in kinds:
            raise ValueError(
                "applies to numbers only; a published true or false needs accept: exact"
            )
        return relation

    @model_validator(mode="after")
    def _can_be_judged(self) -> Claim:
        if (self.published is None) is (self.series is None):
            raise ValueError(
                "needs either published, the paper's value, or series, the points to judge"
            )
        if self.series is not None and self.kind not in ("number", "order"):
            raise ValueError(f"kind {self.kind} judges no series; only number and order do")
        if self.series is None and (self.at is not None or self.quantity is not None):
            raise ValueError("at and quantity choose points of a series; name the series")
        if self.accept is None and self.relation is None:
            raise ValueError("needs accept or relation, or nothing could fail it")
        return self

    def tolerance(self) -> str:
        """Tolerance and relation as a text (``4.2 … 5.8; > 1``)."""
        rules = (self.accept, self.relation)
        return "; ".join(rule.text() for rule in rules if rule is not None)

    def judges(self, point: Point) -> bool:
        """Whether a claim about a series judges this point."""
        return (
            not (point.aside or point.fitted)
            and point.series in _listed(self.series)
            and (self.quantity is None or point.quantity in _listed(self.quantity))
            and self._is_at(point.x)
        )

    def _is_at(self, x: float | str | None) -> bool:
        """Whether ``at`` keeps points at a position on the x axis."""
        if self.at is None:
            return True
        if isinstance(self.at, Relation):
            return isinstance(x, float) and self.at.holds(x)
        return x in self.at


def _listed(texts: str | list[str] | None) -> list[str]:
    """One or several texts as a list."""
    return [texts] if isinstance(texts, str) else texts or []


def _is_table(value: Any, levels: int) -> bool:
    """Whether a list has at most ``levels`` levels and never mixes lists and values."""
    if not isinstance(value, list):
        return True
    kinds = {isinstance(item, list) for item in value}
    return levels > 0 and len(kinds) < 2 and all(_is_table(item, levels - 1) for item in value)


@dataclass(frozen=True)
class Verdict:
    """A claim, the value of this run and the outcome that follows from the two.

    For a claim about a series, ``judged`` counts its points, and ``point`` is the farthest of them
    from its published value.
    """

    claim: Claim
    ours: Any
    outcome: str
    #: why the claim is not comparable
    reason: Reason | None = None
    point: Point | None = None
    judged: int = 0
    #: fields that identify the farthest point: x, series, quantity
    where: Mapping[str, Any] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """Row of ``result.json``: plain values, NaN as None."""
        claim = self.claim
        row = {name: getattr(claim, name) for name in ("id", "kind", "what", "published")}
        row |= {"ours": plain(self.ours), "tolerance": claim.tolerance()}
        row |= {"source": claim.source, "certainty": claim.certainty}
        row |= {"verdict": self.outcome, "stand_in": claim.stand_in}
        optional: dict[str, Any] = {"series": claim.series, "deviation": claim.deviation}
        optional["reason"] = self.reason
        if self.point is not None:
            row["published"] = self.point.published
            optional |= {"farthest": {**self.where, "unit": self.point.unit}, "judged": self.judged}
        return row | {name: value for name, value in optional.items() if value is not None}


def judge(claim: Claim, value: Any, reason: Reason = NOT_PUBLISHED) -> Verdict:
    """Compare a value with a claim.

    ``reproduced``: the tolerance holds and the relation holds, as far as the claim has them.
    ``partial``: only the relation holds. ``missed``: the relation fails, or the claim has none and
    the tolerance fails. ``not comparable``: all values are None; ``reason`` says why. NaN without
    any other value, and an empty list, are errors: the notebook failed to compute the value. So is
    a text if the published values are numbers.
    """
    try:
        value = in_python_types(value)
        given = list(flat(value))
        value = plain(value)
        items = list(flat(value))
        if all(item is None for item in items):
            if not items or any(map(is_nan, given)):
                raise ClaimError(
                    f"its value in the notebook is {'NaN' if items else 'an empty list'}; mend "
                    "how it is computed, or give None if nobody can compare it"
                )
            return Verdict(claim, value, NOT_COMPARABLE, reason)
        texts = [item for item in items if isinstance(item, str)]
        if texts and _publishes_numbers(claim):
            raise ClaimError(
                f"its value in the notebook is the text {texts[0]!r:.40}; give a number, as the "
                "published value is one"
            )
        accepted = claim.accept is None or within(claim.accept, claim.published, value)
    except ClaimError as error:
        raise ClaimError(f"claim {claim.id}: {error}") from None
    relation = claim.relation
    if relation is None:
        return Verdict(claim, value, REPRODUCED if accepted else MISSED)
    if not all(is_number(item) and relation.holds(item) for item in items):
        return Verdict(claim, value, MISSED)
    return Verdict(claim, value, REPRODUCED if accepted else PARTIAL)


def _publishes_numbers(claim: Claim) -> bool:
    """Whether all published values of a claim are numbers."""
    published = [item for item in flat(claim.published) if item is not None]
    return bool(published) and all(map(is_number, published))


def judge_all(
    claims: Sequence[Claim],
    values: Mapping[str, Any],
    points: Sequence[Point] = (),
    *,
    reason: Reason = NOT_PUBLISHED,
    all_values: bool = True,
    missing_packages: Collection[str] = (),
) -> list[Verdict]:
    """Judge claims about a series by its points, the others by ``values``, keyed by claim id.

    A claim without a value is not comparable; ``reason`` says why. A series without points is an
    error if the reason is "not published", because the run should then have its points. With
    ``all_values``, ``values`` must have the id of every claim without a series. The value None
    stands for a value that nobody can compare. ``missing_packages`` lists Python packages that are
    not installed. A claim that needs one of them is not comparable.
    """
    wanted = [claim.id for claim in claims if claim.series is None]
    missing = [name for name in wanted if name not in values] if all_values else []
    unknown = [str(name) for name in values if name not in wanted]
    if missing or unknown:
        faults = [f"no value for claim {', '.join(missing)}"] if missing else []
        faults += [f"value for unknown claim {', '.join(unknown)}"] if unknown else []
        raise ClaimError(
            f"{'; '.join(faults)} (claims: {', '.join(wanted) or 'none'}); the values passed to "
            "save() must match the claims of the parameter file, None where not comparable"
        )
    verdicts = []
    for claim in claims:
        if claim.package in missing_packages:
            value = None if claim.series else plain(values.get(claim.id))
            verdicts.append(Verdict(claim, value, NOT_COMPARABLE, PACKAGE_NOT_INSTALLED))
        elif claim.series is None:
            verdicts.append(judge(claim, values.get(claim.id), reason))
        else:
            verdicts.append(_judge_series(claim, points, reason))
    return verdicts


def absent_packages(claims: Iterable[Claim]) -> set[str]:
    """Packages that claims need and that are not installed."""
    needed = {claim.package for claim in claims if claim.package is not None}
    return {name for name in needed if not is_installed(name)}


def _judge_series(claim: Claim, points: Sequence[Point], reason: Reason) -> Verdict:
    """Judge a claim by every point of its series; all must hold, and the farthest is shown."""
    chosen = [point for point in points if claim.judges(point)]
    if not chosen:
        if reason != NOT_PUBLISHED:
            return Verdict(claim, None, NOT_COMPARABLE, reason)
        names = ", ".join(sorted({point.series for point in points})) or "none"
        series = ", ".join(_listed(claim.series))
        raise ClaimError(f"claim {claim.id}: no point of series {series!r} (series: {names})")
    bound_count = None if claim.accept is None else claim.accept.bound_count()
    if bound_count not in (None, len(chosen)):
        raise ClaimError(
            f"claim {claim.id}: {bound_count} bounds for {len(chosen)} points of its series; give "
            "one bound for all points, or a list with a bound for each"
        )
    if all(point.ours is None for point in chosen):
        if reason == NOT_PUBLISHED:
            # a published point without a value of ours is a fault of the notebook
            series = ", ".join(_listed(claim.series))
            raise ClaimError(
                f"claim {claim.id}: no point of series {series!r} has a value of ours; mend how "
                "the column ours is computed in the notebook"
            )
        return Verdict(claim, None, NOT_COMPARABLE, reason)
    published = [point.published for point in chosen]
    ours = [point.ours for point in chosen]
    outcome = judge(claim.model_copy(update={"published": published}), ours).outcome
    ours_or_nan = [math.nan if value is None else value for value in ours]
    # a value that this run does not have is farther than any other
    distances = [
        distance if math.isfinite(distance) else math.inf
        for distance in excess(claim.accept, claim.relation, published, ours_or_nan)
    ]
    farthest = chosen[distances.index(max(distances))]
    where: dict[str, Any] = {} if farthest.x is None else {"x": farthest.x}
    if len({point.series for point in chosen}) > 1:
        where["series"] = farthest.series
    if len({point.quantity for point in chosen if point.series == farthest.series}) > 1:
        where["quantity"] = farthest.quantity
    return Verdict(claim, farthest.ours, outcome, None, farthest, len(chosen), where)


def points_of(
    verdicts: Sequence[Verdict],
    series_points: Sequence[Point] = (),
    *,
    data: str,
    rules: str,
    origin: str = "simulation",
    fitted_on: str | None = None,
    unknown: str | None = None,
) -> list[Point]:
    """Points of the claims of kind ``number`` that are about no series and publish only numbers.

    If the figure has ``series_points``, derived claims are left out. Their numbers follow from
    these points.
    """
    points = []
    for verdict in verdicts:
        claim = verdict.claim
        follows_from_points = bool(series_points) and claim.certainty.startswith("derived")
        if claim.kind != "number" or claim.series is not None or follows_from_points:
            continue
        published = list(flat(claim.published))
        ours = list(flat(verdict.ours))
        all_numbers = all(is_number(value) for value in published if value is not None)
        if not all_numbers or len(published) != len(ours):
            continue
        certainty = claim.certainty.split()[0]
        certainty = certainty if certainty in ("paper", "artifact", "plot") else "text"
        facts: dict[str, Any] = {"series": claim.id, "quantity": claim.what, "rules": rules}
        facts |= {"certainty": certainty, "data": "stand-in" if claim.stand_in else data}
        facts["origin"] = claim.origin or origin
        facts["fitted_on"] = claim.fitted_on or fitted_on
        facts["unknown"] = claim.unknown or unknown
        for number, (value, our_value) in enumerate(zip(published, ours, strict=True)):
            # A published 0 stands for a statement in words, such as "no distance". The paper does
            # not print this 0, so there is no point for it.
            if value:
                x = float(number) if len(published) > 1 else None
                our_number = float(our_value) if is_number(our_value) else None
                points.append(Point(x=x, published=float(value), ours=our_number, **facts))
    return points


def is_own_check(kind: str, certainty: str) -> bool:
    """Whether a claim tests this package rather than a number of the paper.

    Such claims are checks, and examples whose value is derived here.
    """
    return kind == "check" or (kind == "example" and certainty.startswith("derived"))


def figure_verdict(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """Worst verdict of the claims of a figure; own checks count only if they fail.

    The verdict is `OWN_CHECKS` if all claims are own checks that hold, None without claims.
    """
    rows = list(rows)
    outcomes = [
        row["verdict"]
        for row in rows
        if row["verdict"] != REPRODUCED or not is_own_check(row["kind"], row["certainty"])
    ]
    return max(outcomes, key=OUTCOMES.index, default=OWN_CHECKS if rows else None)
