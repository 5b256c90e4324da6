"""Contact sheets of all committed pictures, as they were at a commit beside what they are now.

`make sheet` writes one page per paper into `build/sheet/`; `make sheet BEFORE=commit` compares with
another commit. Pictures that the commit does not have stand alone.
"""

import io
import subprocess
import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from repro.figures.params import FigureEntry, discover

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "sheet"
#: pixels: width of a picture, margin, height of a line of text; pairs side by side
WIDE = 700
MARGIN = 14
LINE = 26
ACROSS = 2


def main(before: str) -> None:
    """Write the pages."""
    OUT.mkdir(parents=True, exist_ok=True)
    papers: dict[str, list[Image.Image]] = {}
    for entry in discover(ROOT):
        path = f"figures/{entry.id}/{entry.stem}.png"
        if (ROOT / path).is_file():
            papers.setdefault(entry.paper, []).append(pair(entry, path, before))
    for paper, pairs in papers.items():
        page(pairs).save(OUT / f"{paper}.png")
        print(OUT / f"{paper}.png")


def pair(entry: FigureEntry, path: str, before: str) -> Image.Image:
    """Return the name of a figure over its picture then and its picture now."""
    old = subprocess.run(
        ["git", "show", f"{before}:{path}"], cwd=ROOT, capture_output=True, check=False
    )
    sources = [io.BytesIO(old.stdout)] if old.returncode == 0 else []
    pictures = [scaled(Image.open(one)) for one in [*sources, ROOT / path]]
    tall = max(picture.height for picture in pictures)
    sheet = Image.new("RGB", (2 * WIDE + MARGIN, LINE + tall), "white")
    state = "before, now" if sources else "new"
    font = ImageFont.load_default(size=17)
    ImageDraw.Draw(sheet).text((0, 2), f"{entry.id} ({state})", fill="black", font=font)
    for place, picture in enumerate(pictures):
        sheet.paste(picture, (place * (WIDE + MARGIN), LINE))
    return sheet


def scaled(picture: Image.Image) -> Image.Image:
    """Return a picture at the width of the sheet, none enlarged."""
    width = min(WIDE, picture.width)
    height = round(picture.height * width / picture.width)
    return picture.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)


def page(pairs: list[Image.Image]) -> Image.Image:
    """Return the pairs of a paper in columns of about equal height."""
    heights = [MARGIN] * ACROSS
    places = []
    for one in pairs:
        column = heights.index(min(heights))
        places.append((MARGIN + column * (one.width + 2 * MARGIN), heights[column]))
        heights[column] += one.height + 2 * MARGIN
    wide = MARGIN + ACROSS * (2 * WIDE + 3 * MARGIN)
    sheet = Image.new("RGB", (wide, max(heights)), "white")
    for one, place in zip(pairs, places, strict=True):
        sheet.paste(one, place)
    return sheet


if __name__ == "__main__":
    main(*sys.argv[1:])
