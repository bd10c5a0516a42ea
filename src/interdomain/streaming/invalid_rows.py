"""The error for rows that a pass over the data cannot use."""

from __future__ import annotations

from typing import Any

from ..covariances.domains import Complaint

_ROWS_NAMED = 10

MISSING = (
    "of targets with missing values, give interdomain.models.CollapsedSVGP or gpflow.models.SVGP a "
    "likelihood of your own that leaves out NaN, with allow_nan = True"
)
"""What to do where NaN in Y is no mistake."""


class InvalidRowsError(ValueError):
    """An error for rows of data that are not finite, or outside of the box of the features.

    :ivar rows: The numbers of these rows, counted from zero in the order of the data.
    :ivar part: The name of the part of the data; empty if the data are in one piece.
    """

    def __init__(self, message: str, rows: Any, part: str = "", *, argument: str = "data") -> None:
        self.rows, self.part = rows, part
        what = f"{argument}[{part!r}]" if part else argument
        super().__init__(f"{what}: {message}")


def not_finite(rows: Any, saved: str, part: str) -> InvalidRowsError:
    """
    :param saved: What has been saved, as a sentence; empty if nothing.
    """
    return InvalidRowsError(
        f"{len(rows)} rows have NaN or infinite numbers: {named(rows)} "
        f'(counted from zero); mend them, or pass on_invalid="skip" to leave them out; {MISSING}.'
        f"{saved}",
        rows,
        part,
    )


def outside(complaint: Complaint, rows: Any, part: str) -> InvalidRowsError:
    """
    :param complaint: Of all rows of the part.
    """
    which = f"rows {named(rows)}, counted from zero"
    return InvalidRowsError(f"{complaint.what} ({which}); {complaint.remedy}.", rows, part)


def named(rows: Any) -> str:
    """The first of the rows in words, and how many more there are."""
    named = ", ".join(str(row) for row in rows[:_ROWS_NAMED])
    more = "" if len(rows) <= _ROWS_NAMED else f" and {len(rows) - _ROWS_NAMED} more"
    return f"{named}{more}"
