"""What a method predicts at test rows, and its errors."""

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

    :ivar mean: of y, in any shape that has a number for each row.
    :ivar variance: of y; under Student-t noise of f.
    :ivar noise: the scale and the degrees of freedom of Student-t noise; None for Gaussian.
    :ivar more: what is recorded beside the errors.
    """

    mean: Array
    variance: Array
    noise: tuple[float, float] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def errors(self, Y: Array) -> dict[str, Any]:
        """RMSE, NLPD, the share in the central 90%, z, and what is recorded beside these."""
        mean, variance = (np.reshape(part, Y.shape) for part in (self.mean, self.variance))
        if self.noise is None:
            errors, scores = gaussian_errors(Y, mean, variance), (Y - mean) / np.sqrt(variance)
        else:
            errors, scores = student_errors(Y, mean, variance, *self.noise)
        return {**errors, **interval_errors(scores), **self.more}
