"""``--set K=V``: parameters of a policy, its rounds and the trace format from the command line."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from repro.base.errors import ParamError, refuse_unknown
from repro.cli import complete
from repro.engine.rounds.settings import RoundSettings
from repro.model.policy import Order, parameter_names, policies
from repro.placement.base import Placement, make
from repro.trace.formats import FORMATS, options_of

DropOption = Annotated[
    bool,
    typer.Option(
        "--drop-bad-rows",
        help="Leave out invalid rows of the trace; report their number by reason.",
    ),
]
MapOption = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="COLUMN=NAME,…",
        help="Columns of a CSV file with other names, such as "
        "submit_time=arrival,duration=runtime.",
    ),
]
UnitOption = Annotated[
    str | None,
    typer.Option(
        "--unit",
        metavar="s|ms|min|h|…",
        help="Unit of the times in the file (default: s).",
        autocompletion=complete.units,
    ),
]
_WORDS = {"true": True, "false": False, "none": None}
#: Parameters that have separate options of `repro simulate` -> these options.
WITH_OPTION = {"name": "--policy", "rules": "--rules", "throughputs": "--throughputs"}
#: Arguments of readers of traces that have separate options -> these options.
READER_OPTIONS = {
    "path": "--trace",
    "format": "--format",
    "cluster_gpus": "--cluster",
    "drop_bad_rows": "--drop-bad-rows",
}
#: Arguments of generators of traces that have separate options -> these options.
GENERATOR_OPTIONS = {"name": "--trace", "rng": "--seed", "seed": "--seed"}
#: Largest number of a setting; a float does not hold every whole number beyond it.
_LARGEST = 2.0**53


def parse_settings(
    pairs: list[str], with_option: Mapping[str, str] = WITH_OPTION
) -> dict[str, Any]:
    """Parameters by name from texts ``K=V``.

    Names in ``with_option`` are refused. Its values are the options that set them.

    A value is a whole number, a number (also ``inf``), true, false, none, or text. A comma makes a
    tuple.

    >>> parse_settings(["thresholds=3250,7200", "promote_knob=inf", "exact=true"])
    {'thresholds': (3250, 7200), 'promote_knob': inf, 'exact': True}
    """
    settings: dict[str, Any] = {}
    for name, value in setting_texts(pairs, with_option, "thresholds=3250,7200").items():
        pair = f"{name}={value}"
        # ``K=`` sets the empty text, and a comma needs at least one value.
        texts = [text for text in value.split(",") if text.strip() or "," not in value]
        if not texts:
            raise ParamError(
                f"--set {pair}: has a comma but no value; give values, or leave it out"
            )
        items = tuple(_scalar(text.strip(), pair) for text in texts)
        settings[name] = items if "," in value else items[0]
    return settings


def setting_texts(pairs: list[str], with_option: Mapping[str, str], example: str) -> dict[str, str]:
    """Text of each setting by name, from texts ``K=V``.

    Refused are texts of another form, names in ``with_option``, and names given twice.

    >>> setting_texts(["attempts=join"], READER_OPTIONS, "attempts=join")
    {'attempts': 'join'}
    """
    texts: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ParamError(f"--set {pair}: expected K=V, such as {example}")
        if name in with_option:
            raise ParamError(f"--set {pair}: use {with_option[name]} instead")
        if name in texts:
            raise ParamError(f"--set {pair}: {name} has a value already; give one")
        texts[name] = text
    return texts


def column_options(columns: str | None, unit: str | None) -> dict[str, str]:
    """Options of format ``repro`` from ``--map`` and ``--unit``."""
    options = {"map": columns, "unit": unit}
    for name, value in options.items():
        if value is not None and not value.strip():
            raise ParamError(f"--{name}: has no value; give one, or leave it out")
    return {name: value for name, value in options.items() if value is not None}


def parse_placement(text: str | None) -> Placement | str | None:
    """Placement from its name, with settings behind a colon.

    >>> parse_placement("skew:pack_limit=0.3")
    Skew(pack_limit=0.3, skew=None)
    """
    if text is None or ":" not in text:
        return text
    name, _, settings = text.partition(":")
    pairs = settings.split(",")
    if not all(map(str.strip, pairs)) or not all("=" in pair for pair in pairs):
        raise ParamError(f"--placement {text}: expected NAME:K=V,K=V, such as liquid:lambda=0.3")
    return make(name.strip(), **parse_settings(pairs, with_option={}))


def split_format_options(
    policy: str, trace_format: str | None, settings: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split settings into parameters of policy and rounds, and options of the trace format.

    A name that both have is a parameter of the policy or the rounds.
    """
    if trace_format is None or trace_format not in FORMATS:
        return settings, {}
    policy_names = {
        *parameter_names(policies[policy]),
        *(field.name for field in dataclasses.fields(RoundSettings)),
    }
    format_names = options_of(trace_format).keys() - policy_names
    remaining = {key: value for key, value in settings.items() if key not in format_names}
    return remaining, {key: value for key, value in settings.items() if key in format_names}


def split_round_settings(
    policy: str, settings: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split settings into parameters of the policy and parameters of the round mechanism."""
    cls = policies[policy]
    # an order has no rounds
    if issubclass(cls, Order):
        return settings, {}
    policy_names = parameter_names(cls)
    round_names = [
        field.name for field in dataclasses.fields(RoundSettings) if field.name not in policy_names
    ]
    accepted = [*policy_names, *round_names]
    refuse_unknown(f"policy {policy!r} and its rounds have no parameter", settings, accepted)
    rounds = {key: value for key, value in settings.items() if key in round_names}
    return {key: value for key, value in settings.items() if key in policy_names}, rounds


def _scalar(text: str, pair: str) -> Any:
    """Value of a text: true, false or none, a number, or the text.

    The size of a finite number is at most 2^53.
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if not text.isascii():
        return text
    try:
        value = float(text)
    except ValueError:
        return text
    if abs(value) > _LARGEST and "inf" not in text.lower():
        shown = text if len(text) <= 20 else f"{text[:20]}…"
        raise ParamError(f"--set {pair.partition('=')[0]}: {shown} is too large; at most 2^53")
    return int(text) if text.lstrip("+-").isdecimal() else value
