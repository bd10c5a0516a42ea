"""The time of a training step with a structured `Kuu` and with a dense one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._lib.runner import Configuration
from benchmarks._lib.timing import alternate, ratio, summarise
from benchmarks.vff_additive.models import MARGIN, additive_kernel

STEP_ROWS, STEP_COLUMNS = 8_611, 4  # the training rows of power


def time_steps(configuration: Configuration) -> dict[str, Any]:
    """Seconds of a step with the structured Kuu and with a dense one, and the difference of their
    bounds. It is taken with unwhitened variables, because the two roots of Kuu differ."""
    work = {key: value for key, value in configuration.items() if key not in ("method", "rounds")}
    sides = {side: step(side, **work) for side in ("structured", "dense")}
    bounds = {side: float(call()[0].numpy()) for side, call in sides.items()}
    samples = alternate(sides, rounds=configuration["rounds"], warm_up=1, description="rounds")
    difference = abs(bounds["dense"] / bounds["structured"] - 1)
    return {
        "seconds": {side: summarise(values) for side, values in samples.items()},
        "ratio": ratio(samples, "dense", "structured"),
        "difference": None if configuration["whiten"] else difference,
    }


def step(
    side: str,
    *,
    model: str,
    q: str,
    whiten: bool,
    frequencies: int,
    rows: int,
    columns: int,
    seed: int,
) -> Callable[[], Any]:
    """The traced elbo + gradient of one side, on random rows."""
    import gpflow
    import tensorflow as tf

    import interdomain as idm
    from benchmarks._lib.graphs import elbo_and_gradient
    from benchmarks.vff_additive.dense_kuu import DenseFeatures, DenseSum

    generator = np.random.default_rng(seed)
    X = generator.uniform(size=(rows, columns))
    Y = generator.normal(size=(rows, 1))
    additive = model == "additive"
    block = idm.inducing_variables.VariationalFourierFeatures
    whole = idm.inducing_variables.SumInducingVariables
    if side == "dense":
        # What is factorised: each block of the additive model, the whole matrix of the joint one.
        block, whole = (DenseFeatures, whole) if additive else (block, DenseSum)
    features = whole([block(-MARGIN, 1 + MARGIN, frequencies) for _ in range(columns)])
    make = idm.models.AdditiveSVGP if additive else gpflow.models.SVGP
    trained = make(
        additive_kernel(columns),
        gpflow.likelihoods.Gaussian(variance=0.1),
        features,
        q_diag=q == "diagonal",
        whiten=whiten,
        num_data=rows,
    )
    return elbo_and_gradient(trained, (tf.constant(X), tf.constant(Y)))
