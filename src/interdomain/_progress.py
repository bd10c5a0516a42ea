"""Progress bars, all of one kind (plain tqdm on stderr, in terminals and notebooks), and tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm


def progress_bar(description: str, unit: str, total: int | None, *, shown: bool, **how: Any) -> Any:
    """A bar; if stderr is a file, where lines pile up, at most one line every two seconds.

    :param total: The number of units; None if it is not known.
    :param how: Further arguments of tqdm.
    """
    return tqdm(
        total=total,
        desc=description,
        unit=unit,
        file=sys.stderr,
        disable=not shown,
        dynamic_ncols=True,
        mininterval=0.1 if sys.stderr.isatty() else 2.0,
        **how,
    )


def bar_of_rows(description: str, total: int | None, *, progress: bool) -> Any:
    """A bar that counts rows, and appears after a second."""
    return progress_bar(description, "row", total, shown=progress, unit_scale=True, delay=1.0)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, with the first column on the left, and numbers on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])])
        for name, *numbers in rows
    ]
