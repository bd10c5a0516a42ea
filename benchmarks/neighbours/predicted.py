"""The predictions of a method at test rows, and their errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.prediction import gaussian_errors, interval_errors, student_errors


@dataclass(frozen=True)
class Predicted:
    """Predictions of test rows.

    :ivar mean: the mean of y, in any shape with a number for each row.
    :ivar variance: the variance of y; under Student-t noise the variance of f.
    :ivar noise: the scale and the degrees of freedom of Student-t noise; None for Gaussian noise.
    :ivar more: additional entries of the record.
    """

    mean: Array
    variance: Array
    noise: tuple[float, float] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def errors(self, Y: Array) -> dict[str, Any]:
        """RMSE, NLPD, the share in the central 90%, z, and the additional entries."""
        mean, variance = (np.reshape(part, Y.shape) for part in (self.mean, self.variance))
        if self.noise is None:
            errors, scores = gaussian_errors(Y, mean, variance), (Y - mean) / np.sqrt(variance)
        else:
            errors, scores = student_errors(Y, mean, variance, *self.noise)
        return {**errors, **interval_errors(scores), **self.more}
