"""Progress bars, all of one kind (plain tqdm on stderr, in terminals and notebooks), and tables."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from tqdm import tqdm

_ALLOWED: ContextVar[bool] = ContextVar("bars are shown", default=True)


@contextlib.contextmanager
def bars(*, shown: bool) -> Iterator[None]:
    """Within it, bars are shown only if this is true and their own callers want them."""
    before = _ALLOWED.set(shown and _ALLOWED.get())
    try:
        yield
    finally:
        _ALLOWED.reset(before)


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
        disable=not (shown and _ALLOWED.get()),
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
