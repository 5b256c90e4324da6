"""Contact sheets of all committed pictures: as they were at a commit, next to the present ones.

`make sheet` writes one page per paper into `build/sheet/`; `make sheet BEFORE=commit` compares with
another commit. A picture that the commit does not have is alone. Any browser shows the pages.
"""

import html
import os
import subprocess
import sys
from pathlib import Path

from repro.figures.params import FigureEntry, discover

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "sheet"
PAGE = """\
<!doctype html>
<meta charset="utf-8"><title>{paper}</title>
<style>
body {{ font: 14px sans-serif; columns: 2; }}
figure {{ break-inside: avoid; display: flex; flex-wrap: wrap; margin: 0 0 1rem; }}
figcaption {{ width: 100%; }}
img {{ width: 50%; }}
</style>
{figures}
"""


def main(before: str) -> None:
    """Write the pages."""
    papers: dict[str, list[str]] = {}
    for entry in discover(ROOT):
        path = ROOT / "figures" / entry.id / f"{entry.stem}.svg"
        if path.is_file():
            papers.setdefault(entry.paper, []).append(figure(entry, path, before))
    for paper, figures in papers.items():
        page = OUT / f"{paper}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(PAGE.format(paper=paper, figures="\n".join(figures)), encoding="utf-8")
        print(page)


def figure(entry: FigureEntry, path: Path, before: str) -> str:
    """Name of a figure, and below it the picture at the commit and the present picture."""
    source = f"{before}:{path.relative_to(ROOT).as_posix()}"
    old = subprocess.run(["git", "show", source], cwd=ROOT, capture_output=True, check=False)
    pictures = [path]
    if old.returncode == 0:
        copy = OUT / "before" / entry.id / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(old.stdout)
        pictures.insert(0, copy)
    addresses = [Path(os.path.relpath(picture, OUT)).as_posix() for picture in pictures]
    images = "".join(f'<img src="{html.escape(address)}">' for address in addresses)
    state = "before, now" if old.returncode == 0 else "new"
    return f"<figure><figcaption>{html.escape(entry.id)} ({state})</figcaption>{images}</figure>"


if __name__ == "__main__":
    main(*sys.argv[1:])
