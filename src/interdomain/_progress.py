"""Progress bars over rows."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm

_DELAY = 1.0
"""Seconds before a bar appears."""


def bar_of_rows(description: str, total: int | None, *, progress: bool) -> Any:
    """A bar on stderr that counts rows; if stderr is a file, at most one line every two seconds.

    :param total: The number of rows; None if it is not known.
    :param progress: Whether the bar is shown.
    """
    return tqdm(
        total=total,
        desc=description,
        unit="row",
        unit_scale=True,
        file=sys.stderr,
        disable=not progress,
        delay=_DELAY,
        dynamic_ncols=True,
        mininterval=0.1 if sys.stderr.isatty() else 2.0,
    )
