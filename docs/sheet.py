"""Contact sheets of all committed pictures: as they were at a commit, next to the present ones.

`make sheet` writes one page per paper into `build/sheet/`; `make sheet BEFORE=commit` compares with
another commit. A picture that the commit does not have is alone.
"""

import io
import subprocess
import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from repro.figures.params import FigureEntry, discover

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "sheet"
#: Width of a picture, margin and height of a line of text (pixels), and pairs side by side.
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
    """Name of a figure, and below it the picture at the commit and the present picture."""
    old = subprocess.run(
        ["git", "show", f"{before}:{path}"], cwd=ROOT, capture_output=True, check=False
    )
    sources = [io.BytesIO(old.stdout)] if old.returncode == 0 else []
    pictures = [scaled(Image.open(source)) for source in [*sources, ROOT / path]]
    tall = max(picture.height for picture in pictures)
    sheet = Image.new("RGB", (2 * WIDE + MARGIN, LINE + tall), "white")
    state = "before, now" if sources else "new"
    font = ImageFont.load_default(size=17)
    ImageDraw.Draw(sheet).text((0, 2), f"{entry.id} ({state})", fill="black", font=font)
    for number, picture in enumerate(pictures):
        sheet.paste(picture, (number * (WIDE + MARGIN), LINE))
    return sheet


def scaled(picture: Image.Image) -> Image.Image:
    """Picture at most `WIDE` pixels wide."""
    width = min(WIDE, picture.width)
    height = round(picture.height * width / picture.width)
    return picture.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)


def page(pairs: list[Image.Image]) -> Image.Image:
    """Pairs of a paper in columns of about equal height."""
    heights = [MARGIN] * ACROSS
    corners = []
    for pair_image in pairs:
        column = heights.index(min(heights))
        corners.append((MARGIN + column * (pair_image.width + 2 * MARGIN), heights[column]))
        heights[column] += pair_image.height + 2 * MARGIN
    width = MARGIN + ACROSS * (2 * WIDE + 3 * MARGIN)
    sheet = Image.new("RGB", (width, max(heights)), "white")
    for pair_image, corner in zip(pairs, corners, strict=True):
        sheet.paste(pair_image, corner)
    return sheet


if __name__ == "__main__":
    main(*sys.argv[1:])
