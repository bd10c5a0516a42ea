"""Progress bars (plain tqdm on stderr, in terminals and notebooks) and aligned tables."""

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
    """A context that shows bars only if ``shown`` is true and the caller of a bar wants it."""
    before = _ALLOWED.set(shown and _ALLOWED.get())
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def progress_bar(description: str, unit: str, total: int | None, *, shown: bool, **how: Any) -> Any:
    """A progress bar. If stderr is a file, it writes at most one line every two seconds.

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
    """A progress bar that counts rows and appears after one second."""
    return progress_bar(description, "row", total, shown=progress, unit_scale=True, delay=1.0)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: the first column is aligned left, the other columns right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])])
        for name, *numbers in rows
    ]
