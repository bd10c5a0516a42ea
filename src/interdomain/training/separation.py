"""A warning about labels that f separates almost without error.

The bound then rises with the kernel's variance without limit.
"""

from __future__ import annotations

import numpy as np
from gpflow.likelihoods import Bernoulli, MultiClass, Softmax

from .._arguments import warn
from ..models import CollapsedSVGP
from ..models.collapsed_svgp import PassResult

_CERTAIN = -0.1
"""Expected log-likelihood of a row, on average: labels have a probability of 90%, those near the
border included."""

_LARGE = 10.0
"""Standard deviation of f in the prior, where one to three are enough for certainty."""

_ROWS = 100
"""At which the prior's variance is looked at."""


def warn_of_separation(model: CollapsedSVGP, result: PassResult) -> None:
    """Warn if labels are almost certain under a kernel whose variance has become very large.

    :param result: Of the last pass.
    """
    if not isinstance(model.likelihood, (Bernoulli, MultiClass, Softmax)):
        return
    if result.mean_expectation < _CERTAIN or not model.kernel.trainable_parameters:
        return
    try:
        X, _ = model.draw(_ROWS)
    except ValueError:  # some rows were taken away
        return
    deviation = float(np.sqrt(np.mean(model.kernel(X, full_cov=False))))
    if deviation > _LARGE:
        warn(
            "data: f tells the labels apart almost without error (their expected log-likelihood is "
            f"{result.mean_expectation:.2g} on average), so that the bound rises with the "
            f"variance of the kernel without end: the prior's standard deviation is {deviation:.3g}"
            " by now. Predictions away from the data are too certain; keep the variance "
            "(gpflow.set_trainable(kernel.variance, False)), or give it a prior."
        )
