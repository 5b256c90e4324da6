"""Published value against regenerated value: the verdict, which reads nothing but this run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationInfo, field_validator, model_validator

from repro.errors import ClaimError
from repro.figures.tolerance import (
    Accept,
    Relation,
    Strict,
    check_number,
    flat,
    is_number,
    plain,
    within,
)

REPRODUCED = "reproduced"
PARTIAL = "partial"
NOT_COMPARABLE = "not comparable"
MISSED = "missed"
#: From best to worst.
OUTCOMES = (REPRODUCED, NOT_COMPARABLE, PARTIAL, MISSED)

#: Lists in lists that a published value may be made of: times of jobs on types in rounds.
_LEVELS = 3
_CERTAINTY = re.compile(r"(paper|artifact|derived|calibrated)\b.*|plot ±\s*\d.*")


class Claim(Strict):
    """One thing a paper says about a figure, with its source and how sure we are of it."""

    id: str
    what: str
    published: Any
    accept: Accept | None = None
    relation: Relation | None = None
    source: str
    certainty: str
    stand_in: bool = False
    deviation: str | None = None

    @field_validator("id", "what", "source", "certainty", "deviation")
    @classmethod
    def _not_blank(cls, text: str | None) -> str | None:
        if text is not None and not text.strip():
            raise ValueError("must not be blank")
        return text

    @field_validator("certainty")
    @classmethod
    def _known_certainty(cls, text: str) -> str:
        if not _CERTAINTY.fullmatch(text):
            raise ValueError("must be paper, plot ±e, artifact, derived or calibrated")
        return text

    @field_validator("published")
    @classmethod
    def _number_list_or_text(cls, published: Any) -> Any:
        items = list(flat(published))
        for item in items:
            if item is not None and not isinstance(item, bool | int | float | str):
                raise ValueError("must be a number, a list of numbers or a text relation")
            check_number(item)
            if isinstance(item, str) and not item.strip():
                raise ValueError("must not be blank")
        if not _is_table(published, _LEVELS):
            raise ValueError(f"has a list beside a single value or more than {_LEVELS} levels")
        if all(item is None for item in items):
            raise ValueError(
                "holds no value, so nothing could fail the claim; give a number, a list of numbers "
                "or what the paper says as a text"
            )
        return published

    @field_validator("accept")
    @classmethod
    def _fits_published(cls, accept: Accept | None, info: ValidationInfo) -> Accept | None:
        published = info.data.get("published")
        if accept is None or accept.exact or published is None:
            return accept
        items = [item for item in flat(published) if item is not None]
        if (accept.rel, accept.abs) != (None, None) or not isinstance(published, str):
            for item in items:
                if not is_number(item):
                    raise ValueError(f"needs a published number where {item!r:.40} stands")
        # One value has one bound: a list of them could not be compared with it.
        wanted = len(list(flat(published))) if isinstance(published, list) else None
        if accept.bounds() not in (None, wanted):
            raise ValueError(
                f"{accept.bounds()} bounds for {wanted or 1} published; give one for all, or "
                "a list with one for each of a published list"
            )
        return accept

    @field_validator("relation")
    @classmethod
    def _orders_numbers(cls, relation: Relation | None, info: ValidationInfo) -> Relation | None:
        if relation is not None and any(
            isinstance(item, bool) for item in flat(info.data.get("published"))
        ):
            raise ValueError("orders numbers; a published true or false needs accept: exact")
        return relation

    @model_validator(mode="after")
    def _can_be_judged(self) -> Claim:
        if self.accept is None and self.relation is None:
            raise ValueError("needs accept or relation, or nothing could fail it")
        return self

    def tolerance(self) -> str:
        """Return accept and relation as a reader sees them."""
        parts = (rule.text() for rule in (self.accept, self.relation) if rule is not None)
        return "; ".join(parts)


def _is_table(value: Any, levels: int) -> bool:
    """Tell whether lists are of at most so many levels and none stands beside a single value."""
    if not isinstance(value, list):
        return True
    kinds = {isinstance(item, list) for item in value}
    return levels > 0 and len(kinds) < 2 and all(_is_table(item, levels - 1) for item in value)


@dataclass(frozen=True)
class Verdict:
    """A claim beside the value of this run and what follows from the two."""

    claim: Claim
    ours: Any
    outcome: str

    @property
    def excused(self) -> bool:
        """Tell whether a recorded deviation explains the outcome (it never changes it)."""
        return self.claim.deviation is not None

    def row(self) -> dict[str, Any]:
        """Return the entry of ``result.json``: plain values, NaN as None."""
        claim = self.claim
        row = {
            "id": claim.id,
            "what": claim.what,
            "published": claim.published,
            "ours": plain(self.ours),
            "tolerance": claim.tolerance(),
            "source": claim.source,
            "certainty": claim.certainty,
            "verdict": self.outcome,
            "stand_in": claim.stand_in,
        }
        if claim.deviation is not None:
            row["deviation"] = claim.deviation
        return row


def judge(claim: Claim, value: Any) -> Verdict:
    """Compare one claim with the value this run produced.

    Parameters
    ----------
    claim : Claim
        What the paper says.
    value : number, bool, list of these, or None
        What this run found; None or NaN when it cannot be compared.

    Returns
    -------
    Verdict
        ``reproduced`` if the tolerance holds (or there is only a relation and that holds),
        ``partial`` if only the relation holds, ``missed``, or ``not comparable``.

    Raises
    ------
    ClaimError
        If the value has not the published shape.

    Examples
    --------
    >>> claim = Claim(id="gain", what="average gain", published=5.5, accept=Accept(rel=0.1),
    ...               relation=Relation(gt=1), source="section 5.2.1", certainty="paper")
    >>> judge(claim, 5.3).outcome, judge(claim, 2.0).outcome, judge(claim, 0.9).outcome
    ('reproduced', 'partial', 'missed')
    """
    try:
        value = plain(value)
        items = list(flat(value))
        if all(item is None for item in items):
            return Verdict(claim, value, NOT_COMPARABLE)
        accepted = claim.accept is None or within(claim.accept, claim.published, value)
    except ClaimError as error:
        raise ClaimError(f"claim {claim.id}: {error}") from None
    relation = claim.relation
    if relation is None:
        return Verdict(claim, value, REPRODUCED if accepted else MISSED)
    if not all(is_number(item) and relation.holds(item) for item in items):
        return Verdict(claim, value, MISSED)
    return Verdict(claim, value, REPRODUCED if accepted else PARTIAL)


def judge_all(claims: Sequence[Claim], values: Mapping[str, Any]) -> list[Verdict]:
    """Judge every claim of a figure; each claim needs a value and each value a claim.

    Raises
    ------
    ClaimError
        Naming the claims without a value and the values without a claim.
    """
    known = [claim.id for claim in claims]
    missing = [name for name in known if name not in values]
    extra = [name for name in values if name not in known]
    if missing or extra:
        parts = []
        if missing:
            parts.append(f"no value for claim {', '.join(missing)}")
        if extra:
            parts.append(f"value for unknown claim {', '.join(map(str, extra))}")
        raise ClaimError(
            f"{'; '.join(parts)} (claims: {', '.join(known) or 'none'}); the values passed to "
            "save() must match the claims of the parameter file, None where not comparable"
        )
    return [judge(claim, values[claim.id]) for claim in claims]


def worst(outcomes: Iterable[str]) -> str | None:
    """Return the worst outcome, or None when there is none.

    Examples
    --------
    >>> worst(["reproduced", "partial", "not comparable"])
    'partial'
    """
    return max(outcomes, key=OUTCOMES.index, default=None)
