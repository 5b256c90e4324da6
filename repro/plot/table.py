"""Tables in a paper's layout: each cell has our value and the published one, shaded by distance."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path

from repro.base.errors import ParamError
from repro.plot.panel import COLUMN_INCHES, PanelOptions, chart, owner, panel_axes
from repro.plot.published_marks import AGREEMENT, IN_TABLE, SETTING
from repro.plot.series_styles import look
from repro.plot.style import RC


class Agreement(NamedTuple):
    """Sign, shade and legend text of cells by their distance from the published value."""

    sign: str
    shade: str
    words: str


#: Largest relative distance -> agreement, ever darker.
AGREEMENTS = {
    0.02: Agreement("≈", "#e3f0fa", "within 2 % (= as printed)"),
    0.1: Agreement("~", "#f1d581", "within 10 %"),
    float("inf"): Agreement("≠", "#e39a6f", "farther"),
}
NEAR, *_, FAR = AGREEMENTS.values()
OURS_ONLY = Agreement("", "#ffffff", "no published value")
PUBLISHED_ONLY = Agreement("–", "#ebebeb", "published, not computed")


class _Font(NamedTuple):
    """Size (typographic points), weight and colour of text, and height of a line (inches)."""

    size: float
    weight: str
    ink: str
    line: float


_OURS = _Font(RC["font.size"], "bold", "#000000", 0.122)
_WORDS = _OURS._replace(weight="normal")
_PUBLISHED = _Font(6.0, "normal", "#3a3a3a", 0.105)
#: Padding left and right of a text (inches).
_SIDE_PAD = 0.06
#: Padding above and below a row (inches).
_ROW_PAD = 0.04
#: Padding around the table (inches).
_PAD = 0.1
#: Largest natural width of a column (inches), unless its least width is larger.
_WIDEST = 2.2


class _Cell(NamedTuple):
    """Our text and the published text of a cell, and their agreement.

    Agreement None: words or nothing, without a published value.
    """

    ours: str
    published: str = ""
    agreement: Agreement | None = None

    @property
    def texts(self) -> tuple[tuple[str, _Font], tuple[str, _Font]]:
        """Both texts with their fonts."""
        return (self.ours, _OURS if self.agreement else _WORDS), (self.published, _PUBLISHED)


@dataclass
class _Column:
    """Cells of a column and its heads, each from the top down."""

    heads: tuple[str, ...]
    cells: list[_Cell]
    #: whether both values of a cell are side by side, on one line
    side_by_side: bool = False
    #: inches
    width: float = 0.0

    @property
    def is_words_only(self) -> bool:
        """Whether the column has words only, without published values."""
        return not any(cell.agreement for cell in self.cells)

    def is_side_by_side(self, cell: _Cell) -> bool:
        """Whether the values of a cell are on one line, ours left and published right."""
        return self.side_by_side and cell.agreement is not None

    def half_widths(self) -> list[float]:
        """Largest width (inches) of our texts and of the published texts.

        Each includes its half of the gap between both values of a cell.
        """
        gap = _SIDE_PAD / 2 * any(cell.published for cell in self.cells)
        pairs = [cell.texts for cell in self.cells if cell.agreement]
        return [gap + max(_text_width(*texts[side]) for texts in pairs) for side in (0, 1)]

    def least_width(self) -> float:
        """Least width (inches) that cuts no word and no pair."""
        texts = [
            text for cell in self.cells for text in cell.texts if not self.is_side_by_side(cell)
        ]
        longest_word = max(
            _text_width(word, font)
            for text, font in [(self.heads[-1], _WORDS), *texts]
            for word in text.split() or [""]
        )
        pairs = sum(self.half_widths()) if self.side_by_side else 0.0
        return max(longest_word, pairs) + 2 * _SIDE_PAD

    def natural_width(self) -> float:
        """Width (inches) for a head on two lines and texts on one line.

        It is at most `_WIDEST`, unless the least width is larger.
        """
        texts = max(_text_width(*text) for cell in self.cells for text in cell.texts)
        wanted = max(0.6 * _text_width(self.heads[-1], _WORDS), texts) + 2 * _SIDE_PAD
        return max(self.least_width(), min(wanted, _WIDEST))

    def lines(self, cell: _Cell) -> list[tuple[str, _Font]]:
        """Lines of a cell with their fonts, from the top."""
        width = self.width - 2 * _SIDE_PAD
        return [(line, font) for text, font in cell.texts for line in _wrapped(text, font, width)]

    def text_height(self, cell: _Cell) -> float:
        """Height of the texts of a cell (inches)."""
        if self.is_side_by_side(cell):
            return _OURS.line
        return sum(font.line for _, font in self.lines(cell))


@chart
def table_chart(
    ours: pd.DataFrame,
    published: pd.DataFrame | None = None,
    *,
    form: str | Mapping[Any, str] = "{:.3g}",
    **panel: Unpack[PanelOptions],
) -> Figure:
    """Draw a table whose cells have our value in bold and the published value, smaller.

    A cell with both values has a shade and a sign (≈, ~, ≠) by their relative distance. The sign is
    ``=`` if both values are within 2 % and are written alike. Words are compared letter by letter.
    Words without a published value stay plain.

    Parameters
    ----------
    ours : DataFrame
        Rows and columns in the paper's order, heads with units. With two levels of columns, the
        outer level is a head over several columns. With two levels of rows, the outer level names
        groups of rows. NaN: not computed. Policies in the index are written with their labels.
    published : DataFrame, optional
        The same rows and columns, or some of them. NaN: not published.
    form : str or mapping, optional
        Format of numbers, for all columns or by column.
    **panel : PanelOptions
        Title and panel: title, columns (width in paper columns, 1 or 2), and axes (panel to draw
        into). The other options have no effect on a table.

    Returns
    -------
    matplotlib.figure.Figure
        The chart; a new one without ``axes``.

    Raises
    ------
    ParamError
        If the table is empty, repeats a name or is too wide, or if ``published`` has a row or
        column that ``ours`` does not have.

    Examples
    --------
    >>> hours = pd.DataFrame({"average JCT (h)": [19.2, 31.0]}, index=["Gavel", "LAS"])
    >>> published = pd.DataFrame({"average JCT (h)": [19.4]}, index=["Gavel"])
    >>> chart = table_chart(hours, published)
    >>> [text.get_text() for text in chart.axes[0].texts if "19" in text.get_text()]
    ['19.2', '≈ 19.4']
    """
    if ours.empty or not (ours.index.is_unique and ours.columns.is_unique):
        raise ParamError("a table needs at least one row and one column, and its names must differ")
    published = ours.iloc[:0, :0] if published is None else published
    for axis, our_names, names in zip(("row", "column"), ours.axes, published.axes, strict=True):
        if unknown := [name for name in names if name not in our_names]:
            raise ParamError(f"published {axis} {unknown[0]!r} is not in the table")
    columns = list(_columns(ours, published, form))
    sheet = _Sheet(_available_width(panel))
    _fit(columns, sheet.inches)
    sheet.top(panel.get("title", ""), pairs=not published.empty)
    sheet.rule(0.9)
    for depth in range(ours.columns.nlevels):
        sheet.heads(list(_spans(columns, depth)), last=depth == ours.columns.nlevels - 1)
    for row in range(len(ours)):
        if row == 0 or (ours.index.nlevels > 1 and columns[0].cells[row].ours):
            sheet.rule(0.3 if row else 0.6)
        sheet.row(columns, row)
    sheet.rule(0.9)
    if not published.empty:
        sheet.key({cell.agreement for column in columns for cell in column.cells})
    axes = panel_axes(panel, height=sheet.y + _PAD)
    axes.set(xlim=(0, sheet.inches), ylim=(sheet.y, 0), aspect="equal", anchor="N")
    axes.set_axis_off()
    for draw in sheet.marks:
        draw(axes).set_in_layout(False)
    return owner(axes)


class _Sheet:
    """A table typeset from the top down: its marks, and the height ``y`` (inches) reached."""

    def __init__(self, inches: float) -> None:
        self.inches = inches
        self.y = 0.0
        self.marks: list[Callable[[Axes], Artist]] = []

    def text(
        self, x: float, y: float, text: str, font: _Font, align: str = "left", label: str = ""
    ) -> None:
        """Write one line of text, its middle at height ``y``."""
        keywords: Any = {
            "size": font.size,
            "weight": font.weight,
            "color": font.ink,
            "parse_math": False,
            "label": label,
        }
        baseline = y + 0.36 * font.size / 72
        self.marks.append(lambda axes: axes.text(x, baseline, text, ha=align, **keywords))

    def box(self, x: float, width: float, height: float, shade: str, edge: str = "white") -> None:
        """Shade a rectangle below the present height."""
        corner = (x, self.y)
        keywords: Any = {
            "facecolor": shade,
            "edgecolor": edge,
            "linewidth": 0.6,
            "label": AGREEMENT,
        }
        self.marks.append(lambda axes: axes.add_patch(Rectangle(corner, width, height, **keywords)))

    def rule(self, thickness: float, left: float = 0.0, right: float | None = None) -> None:
        """Draw a line at the present height, across the table or between two ends."""
        ends = [left, self.inches if right is None else right]
        y = [self.y] * 2
        keywords: Any = {
            "color": "#1c1c1c",
            "lw": thickness,
            "clip_on": False,
            "solid_capstyle": "butt",
        }
        self.marks.append(lambda axes: axes.add_line(Line2D(ends, y, **keywords)))

    def top(self, title: str, *, pairs: bool) -> None:
        """Write the title and, at the right, a sample cell with ours and published."""
        sample = []
        if pairs:
            sample = [("in a cell: ", _PUBLISHED), ("ours", _OURS), ("  published", _PUBLISHED)]
        x = self.inches - sum(_text_width(text, font) for text, font in sample)
        lines = _wrapped(title, _WORDS, x - 0.1)
        for number, line in enumerate(lines):
            self.text(0, _WORDS.line * (number + 0.5), line, _WORDS)
        self.y += _WORDS.line * max(len(lines), pairs) + _ROW_PAD
        for text, font in sample:
            self.text(x, self.y - _ROW_PAD - _WORDS.line / 2, text, font)
            x += _text_width(text, font)

    def heads(self, spans: list[tuple[str, float, float, bool]], *, last: bool) -> None:
        """Write a line of heads; a head over several columns has a rule below it."""
        wrapped = [_wrapped(text, _WORDS, width - 2 * _SIDE_PAD) for text, _, width, _ in spans]
        self.y += _WORDS.line * max(map(len, wrapped)) + 2 * _ROW_PAD
        for lines, (text, x, width, is_left) in zip(wrapped, spans, strict=True):
            text_x, align = (x + _SIDE_PAD, "left") if is_left else (x + width / 2, "center")
            for number, line in enumerate(reversed(lines)):
                y = self.y - _ROW_PAD - _WORDS.line * (number + 0.5)
                self.text(text_x, y, line, _WORDS, align)
            if text and not last:
                self.rule(0.3, x + _SIDE_PAD, x + width - _SIDE_PAD)

    def row(self, columns: Sequence[_Column], number: int) -> None:
        """Write the cells of a row."""
        cells = [(column, column.cells[number]) for column in columns]
        height = 2 * _ROW_PAD + max(column.text_height(cell) for column, cell in cells)
        x = 0.0
        for column, cell in cells:
            if cell.agreement:
                self.box(x, column.width, height, cell.agreement.shade)
            if column.is_side_by_side(cell):
                self._pair(x, self.y + height / 2, column, cell)
            else:
                self._stack(x, self.y + height / 2, column, cell)
            x += column.width
        self.y += height

    def _pair(self, x: float, y: float, column: _Column, cell: _Cell) -> None:
        """Write both values side by side, with the gap at one x in all cells of a column."""
        left, right = column.half_widths()
        middle = x + (column.width + left - right) / 2
        gap = _SIDE_PAD / 2 * any(other.published for other in column.cells)
        (ours, bold), (published, small) = cell.texts
        self.text(middle - gap, y, ours, bold, "right")
        self.text(middle + gap, y, published, small, label=IN_TABLE)

    def _stack(self, x: float, y: float, column: _Column, cell: _Cell) -> None:
        """Write ours above published, or words, with their middle at height ``y``."""
        centred = (x + column.width / 2, "center")
        text_x, align = (x + _SIDE_PAD, "left") if column.is_words_only else centred
        lines = column.lines(cell)
        y -= sum(font.line for _, font in lines) / 2
        for text, font in lines:
            label = IN_TABLE if cell.agreement and font == _PUBLISHED else ""
            self.text(text_x, y + font.line / 2, text, font, align, label)
            y += font.line

    def key(self, present: set[Agreement | None]) -> None:
        """Write the key of the agreements that the table has.

        An empty text in its place can name the setting of the published values.
        """
        x = 0.0
        self.y += 0.06
        self.text(0, self.y + _PUBLISHED.line / 2, "", _PUBLISHED, label=SETTING)
        for agreement in (*AGREEMENTS.values(), OURS_ONLY, PUBLISHED_ONLY):
            width = 0.27 + _text_width(agreement.words, _PUBLISHED)
            # white cells alone need no key
            is_only_key = agreement is OURS_ONLY and len(present - {None}) == 1
            if agreement not in present or is_only_key:
                continue
            if x and x + width > self.inches:
                x = 0.0
                self.y += _OURS.line
            self.box(x, 0.22, _PUBLISHED.line, agreement.shade, "#9a9a9a")
            middle = self.y + _PUBLISHED.line / 2
            self.text(x + 0.11, middle, agreement.sign, _PUBLISHED, "center", AGREEMENT)
            self.text(x + 0.27, middle, agreement.words, _PUBLISHED, label=AGREEMENT)
            x += width + 0.15
        self.y += _OURS.line


def _columns(
    ours: pd.DataFrame, published: pd.DataFrame, form: str | Mapping[Any, str]
) -> Iterator[_Column]:
    """Yield the columns of a table from the left, first the names of its rows."""
    rows = [_levels_of(name) for name in ours.index]
    above = ("",) * (ours.columns.nlevels - 1)
    for depth, head in enumerate(ours.index.names):
        prefixes = [row[: depth + 1] for row in rows]
        # The name of a group of rows is written at its first row.
        is_group = depth < ours.index.nlevels - 1
        names = [
            "" if is_group and number and prefix == prefixes[number - 1] else look(prefix[-1]).label
            for number, prefix in enumerate(prefixes)
        ]
        yield _Column((*above, str(head or "")), [_Cell(name) for name in names])
    aligned = published.reindex(index=ours.index, columns=ours.columns)
    for number, name in enumerate(ours.columns):
        column_form = form if isinstance(form, str) else form.get(name, "{:.3g}")
        pairs = zip(ours.iloc[:, number], aligned.iloc[:, number], strict=True)
        yield _Column(_levels_of(name), [_cell(*pair, column_form) for pair in pairs])


def _levels_of(name: Any) -> tuple[str, ...]:
    """Name of a row or a column, a text per level of its index."""
    return tuple(map(str, name if isinstance(name, tuple) else (name,)))


def _cell(ours: Any, published: Any, form: str) -> _Cell:
    """Cell of our value and the published one."""
    if pd.isna(published):
        is_words = isinstance(ours, str) or pd.isna(ours)
        return _Cell(_written(ours, form), agreement=None if is_words else OURS_ONLY)
    if pd.isna(ours):
        return _Cell(PUBLISHED_ONLY.sign, _written(published, form), PUBLISHED_ONLY)
    is_number = not isinstance(ours, str) and not isinstance(published, str)
    if not is_number or math.isinf(ours) or math.isinf(published):
        agreement = NEAR if ours == published else FAR
    else:
        distance = abs(ours - published) - 1e-9
        # NaN counts as inside a limit, hence ``not >``: the last limit of a published 0 is
        # inf * 0 = NaN.
        agreement = next(
            agreement
            for largest, agreement in AGREEMENTS.items()
            if not distance > largest * abs(published)
        )
    our_text = _written(ours, form)
    published_text = _written(published, form)
    sign = "=" if agreement is NEAR and our_text == published_text else agreement.sign
    return _Cell(our_text, f"{sign} {published_text}", agreement)


def _written(value: Any, form: str) -> str:
    """Text of a value; empty for NaN."""
    if isinstance(value, str):
        return value
    return "" if pd.isna(value) else form.format(value)


def _available_width(panel: PanelOptions) -> float:
    """Largest width of a table (inches)."""
    if "axes" in panel:
        axes = panel["axes"]
        return owner(axes).get_figwidth() * axes.get_position().width
    return COLUMN_INCHES.get(panel.get("columns", 1), 0.0) - _PAD


def _fit(columns: Sequence[_Column], inches: float) -> None:
    """Set the widths of columns.

    Both values of a cell are side by side if the natural widths then fit.
    """
    for column in columns:
        column.side_by_side = not column.is_words_only
    if sum(column.natural_width() for column in columns) > inches:
        for column in columns:
            column.side_by_side = False
    least_widths = [column.least_width() for column in columns]
    if sum(least_widths) > inches:
        raise ParamError(
            f"a table of {len(columns)} columns needs {sum(least_widths):.1f} inches "
            f"and has {inches:.1f}; give it `columns=2`, shorter words or fewer columns"
        )
    natural_widths = [column.natural_width() for column in columns]
    total_growth = sum(natural_widths) - sum(least_widths)
    growth = min(1.0, (inches - sum(least_widths)) / (total_growth or 1.0))
    spare = max(0.0, inches - sum(natural_widths)) / len(columns)
    for column, low, high in zip(columns, least_widths, natural_widths, strict=True):
        column.width = low + growth * (high - low) + spare


def _spans(columns: Sequence[_Column], depth: int) -> Iterator[tuple[str, float, float, bool]]:
    """Yield the heads of a line: text, left end (inches), width (inches), whether left-aligned."""
    last = depth == len(columns[0].heads) - 1
    x = 0.0

    def head_of(numbered: tuple[int, _Column]) -> tuple[Any, ...]:
        number, column = numbered
        # Neighbours with equal heads share one head, except in the last line and where the head is
        # empty. There the number keeps them apart.
        is_separate = last or not column.heads[depth]
        return column.heads[: depth + 1], number if is_separate else None

    for _, group in itertools.groupby(enumerate(columns), head_of):
        spanned = [column for _, column in group]
        width = sum(column.width for column in spanned)
        yield spanned[0].heads[depth], x, width, last and spanned[0].is_words_only
        x += width


@functools.cache
def _text_width(text: str, font: _Font) -> float:
    """Width of a line of text (inches), the same on every machine."""
    face = FontProperties(family=RC["font.family"], size=font.size, weight=font.weight)
    points: float = text_to_path.get_text_width_height_descent(text, face, ismath=False)[0]
    return points / 72


def _wrapped(text: str, font: _Font, width: float) -> list[str]:
    """Lines of a text, broken at blanks, that are at most ``width`` inches wide."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and _text_width(longer, font) <= width + 1e-9:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
