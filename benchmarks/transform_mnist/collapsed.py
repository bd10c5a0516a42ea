"""Regression on one-hot labels with the optimal q: what a model can explain, whatever trains it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.transform_mnist.digits import Digits


def trained_with_optimal_q(model: Any, digits: Digits, iterations: int) -> dict[str, float]:
    """Train the kernel, the noise and the inducing points by L-BFGS on the bound that the optimal q
    has, and give the model that q.

    :param digits: Labels of training images as columns.
    :returns: Minus the bound per image before and after, iterations, seconds of the processors, and
        the variance of an image that the points leave unexplained, as a share of the kernel's.
    """
    import interdomain as idm
    from benchmarks._lib.optimal_q import OptimalQ

    optimal = OptimalQ(model, (digits.X_train, digits.Y_train))
    before = float(optimal.training_loss())
    started = time.process_time()
    fit = idm.fit(optimal, steps=iterations, progress=False)
    seconds = time.process_time() - started
    optimal.assign_q()
    rows = digits.X_train[:1_000]
    left = idm.diagnostics.nystrom_trace_error(model.kernel, model.inducing_variable, rows)
    prior = float(np.sum(model.kernel(rows, full_cov=False)))
    return {
        "loss_before": before / len(digits.X_train),
        "loss": float(optimal.training_loss()) / len(digits.X_train),
        "iterations": float(fit.steps),
        "train_seconds": seconds,
        "unexplained": float(left) / prior,
    }
