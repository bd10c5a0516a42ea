"""Tables in Markdown, and figures of papers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tabulate import tabulate


def markdown(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in GitHub's Markdown; cells are printed as given.

    :raises ValueError: if a row has more or fewer cells than there are headers.
    """
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    for row in cells:
        if len(row) != len(headers):
            raise ValueError(f"{len(headers)} headers, {list(headers)}, for the row {row}")
    return str(tabulate(cells, headers=list(headers), tablefmt="github", disable_numparse=True))


def tabulated(rows: Iterable[Mapping[str, Any]], layout: str) -> str:
    """A table in GitHub's Markdown, of figures by name.

    :param layout: columns, separated by semicolons. A column is a header that is also the figure's
        name, or "header = name", or "header = name format" with a format of Python:
        ``RMSE = rmse .3f``. Figures that are None or that a row lacks are empty cells.
    """
    columns = []
    for column in layout.split(";"):
        header, _, figure = column.strip().partition(" = ")
        name, _, form = figure.partition(" ") if figure else (header, "", "")
        columns.append((" ".join(header.split()), name, form))
    cells = [
        [None if row.get(name) is None else format(row[name], form) for _, name, form in columns]
        for row in rows
    ]
    return markdown([header for header, _, _ in columns], cells)


@dataclass(frozen=True)
class PaperFigure:
    """A mean and standard deviation as printed, with the number of decimals of each."""

    mean: float
    deviation: float
    mean_decimals: int = 3
    deviation_decimals: int = 2

    def __str__(self) -> str:
        deviation = f"{self.deviation:.{self.deviation_decimals}f}"
        return f"{self.mean:.{self.mean_decimals}f} ± {deviation}"

    def verdict(self, ours: float) -> str:
        """The verdict whether `ours` (lower is better) is within two of the paper's deviations.

        It is "undecided" if the answer depends on digits that the paper does not print. A deviation
        printed as 0.00 may be anything up to 0.005.
        """
        distance = abs(ours - self.mean)
        if distance <= 2 * self.deviation:
            return "yes"
        rounded_mean = 0.5 * 10.0**-self.mean_decimals
        rounded_deviation = 0.5 * 10.0**-self.deviation_decimals
        possible = 2 * (self.deviation + rounded_deviation) + rounded_mean
        side = "better" if ours < self.mean else "worse"
        return f"{'undecided' if distance <= possible else 'no'}, {side}"


def mean_and_deviation(values: Sequence[float], decimals: int = 3) -> str:
    """Mean and standard deviation over splits or seeds (with n - 1), if there are two."""
    mean = f"{np.mean(values):.{decimals}f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {np.std(values, ddof=1):.{decimals}f}"


def spread(summary: dict[str, float], digits: int = 3) -> str:
    """A median with its quartiles, from the value of `timing.summarise`."""
    median, lower, upper = (f"{summary[key]:.{digits}g}" for key in ("median", "lower", "upper"))
    return f"{median} [{lower}, {upper}]"


def megabytes(count: float | None) -> str:
    """Bytes as MB (10^6)."""
    return "" if count is None else f"{count / 1e6:.0f}"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as ranges, such as 0-4, 7."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)
