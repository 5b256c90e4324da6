"""Write the tables of docs/speed.md from the last `make bench` and `make peers`: `make speed`."""

from pathlib import Path

import marks
import pandas as pd

BENCH = Path(__file__).parents[1] / "build" / "bench"
PAGE = Path(__file__).with_suffix(".md")
#: Name of a bench -> text of its row, jobs, GPUs.
ROWS = {
    "muri-trace4 srtf": ("Muri trace4, `srtf`", 2_638, 64),
    "muri-trace4 tiresias-l": ("Muri trace4, `tiresias-l`", 2_638, 64),
    "philly tiresias-l, 60x8": ("Philly, `tiresias-l`, `60x8`", 82_247, 480),
    "philly tiresias-l, 80x8": ("Philly, `tiresias-l`, `80x8`", 82_247, 640),
    "philly srtf, 60x8": ("Philly, `srtf`, `60x8`", 82_247, 480),
    "philly tiresias-l, 60x8, rules tiresias": (
        "Philly, first 10,000, `tiresias-l`, `60x8`, `--rules tiresias`",
        10_000,
        480,
    ),
    "philly tiresias-g, 60x8, rules tiresias": ("the same, `tiresias-g`", 10_000, 480),
    "philly srtf, 60x8, rules tiresias": ("the same, `srtf`", 10_000, 480),
    "philly srsf, 60x8, rules tiresias": ("the same, `srsf`", 10_000, 480),
    "philly gittins-2d, 60x8, rules tiresias": ("the same, `gittins-2d`", 10_000, 480),
    "1,000,000 jobs tiresias-l": ("generated, load 0.9, `tiresias-l`", 1_000_000, 100_000),
    "5,000,000 jobs tiresias-l": ("generated, load 0.9, `tiresias-l`", 5_000_000, 100_000),
    "muri-trace3 muri-s, rules muri": ("Muri trace3, `muri-s`, `--rules muri`", 992, 64),
    "muri-trace3 themis, rules muri": ("Muri trace3, `themis`, `--rules muri`", 992, 64),
    "muri-trace1 muri-s, rules muri": ("Muri trace1, `muri-s`, `--rules muri`", 1_494, 64),
    "muri-trace2 muri-s, rules muri": ("Muri trace2, `muri-s`, `--rules muri`", 5_755, 64),
    "100,000 jobs muri-l, load 1.5": (
        "generated, load 1.5, `muri-l`, at every event",
        100_000,
        8_192,
    ),
    "100,000 jobs muri-l, load 4": (
        "generated, load 4, `muri-l`, `--interval 360`",
        100_000,
        8_192,
    ),
}
#: Name of a peer (another simulator) in peers.csv -> first cell of its row.
PEERS = {
    "accasim fifo": "AccaSim 1.1.3, first in first out, gangs spread over nodes",
    "ciw fifo": "Ciw 3.2.7, first in first out, each job on one GPU for its GPU-seconds",
    "tiresias dlas-gpu": "Tiresias' simulator, `dlas-gpu`",
    "muri shortest": "Muri's simulator, `shortest`",
    "muri dlas-gpu": "Muri's simulator, `dlas-gpu`",
}


def _rounded(number: float) -> str:
    """Number with three digits, or two if it is below 1."""
    digits = 2 if number < 1 else 3
    return f"{float(f'{number:.{digits}g}'):,g}"


def table(costs: pd.DataFrame) -> str:
    """Table of costs in Markdown, and below it the length of the unit U."""
    lines = [
        "| what | jobs | GPUs | in use | queued | preemptions | cost | seconds here |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, (text, jobs, gpus) in ROWS.items():
        row = costs.loc[name]
        memory = f" ({row['peak_gib']:.2g} GiB)" if pd.notna(row["peak_gib"]) else ""
        lines.append(
            f"| {text}{memory} | {jobs:,} | {gpus:,} | {row['utilisation']:.0%} | "
            f"{row['queued_share']:.0%} | {row['preemptions']:,.0f} | "
            f"{_rounded(row['cost_U'])} U | {_rounded(row['cpu_s'])} |"
        )
    units = costs.loc[list(ROWS), "U_s"]
    return "\n".join(lines) + f"\n\n(U = {units.min():.3f} to {units.max():.3f} s.)"


def growth(sizes: pd.DataFrame, exponent: float) -> str:
    """Cost of each number of jobs in Markdown, and the exponent of its growth."""
    heads = [f"{jobs:,} jobs" for jobs in sizes["n_jobs"]]
    costs = [f"{_rounded(cost)} U" for cost in sizes["cost_U"]]
    rows = [heads, ["---"] * len(heads), costs]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return (
        "\n".join(lines) + f"\n\nThe cost grows as the number of jobs to the power {exponent:.2f}."
    )


def peers(measured: pd.DataFrame, before: str) -> str:
    """Table of peers in Markdown; a peer without a measurement keeps its row of ``before``."""
    old_rows = [line for line in before.splitlines() if line.startswith("| ")]
    row_of = {_first_cell(row): row for row in old_rows}
    lines = [
        "| simulator | cost | repro | its cost | ratio | average JCT | U | measured | command |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, text in PEERS.items():
        if name in measured.index:
            lines.append(_peer_row(text, measured.loc[name]))
        elif text in row_of:
            lines.append(row_of[text])
    return "\n".join(lines)


def _first_cell(row: str) -> str:
    """Text of the first cell of a row in Markdown."""
    return row.split("|")[1].strip()


def _peer_row(text: str, row: pd.Series) -> str:
    """Row of a peer in the table of peers; ``text`` is its first cell."""
    rules = "" if row["rules"] == "paper" else f", `--rules {row['rules']}`"
    difference = row["jct"] / row["our_jct"] - 1
    jct = "equal" if abs(difference) < 1e-9 else f"{100 * difference:+.2g} % of ours"
    day = str(row["date"])
    measured = f"{day}, {row['source']}" if pd.notna(row["source"]) and row["source"] else day
    cells = [
        text,
        f"{_rounded(row['cost_U'])} U",
        f"`{row['policy']}`{rules}",
        f"{_rounded(row['our_cost_U'])} U",
        _rounded(row["cost_U"] / row["our_cost_U"]),
        jct,
        f"{row['U_s']:.3f} s",
        measured,
        f"`{row['command']}`",
    ]
    return f"| {' | '.join(cells)} |"


def filled(page: str, name: str, text: str) -> str:
    """Page with ``text`` between the marks ``name``."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, marked = page.partition(begin)
    after = marked.partition(end)[2]
    return f"{before}{begin}\n{text}\n{end}{after}"


def written(page: str) -> str:
    """Page with new tables from the files of measurements in build/bench."""
    if (BENCH / "costs.csv").is_file():
        costs = pd.read_csv(BENCH / "costs.csv", index_col="name")
        sizes = pd.read_csv(BENCH / "growth-jobs.csv")
        exponent = costs["cost_U"]["exponent of cost against jobs"]
        page = filled(page, "costs", table(costs))
        page = filled(page, "growth", growth(sizes, exponent))
    else:
        print("no build/bench/costs.csv (make bench): the tables of costs and growth stay")
    if (BENCH / "peers.csv").is_file():
        measured = pd.read_csv(BENCH / "peers.csv", index_col="name")
        page = filled(page, "peers", peers(measured, marks.read(PAGE, "peers")))
    else:
        print("no build/bench/peers.csv (make peers): the table of peers stays")
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
