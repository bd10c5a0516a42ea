"""Models of tables of numbers: harmonics chosen by the data, an exact GP, boosted trees."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._lib.prediction import gaussian_errors
from benchmarks._lib.race import Rows, evaluated
from benchmarks._lib.splits import seeded_rows


def low(data: Rows, max_degree: int) -> tuple[Any, Any]:
    """A model with whole degrees, untrained, and its kernel without a finite rank."""
    import interdomain as idm

    input_dim = data[0].shape[1]
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(input_dim))
    few = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, input_dim, max_degree)
    prior = idm.kernels.FiniteRank(kernel, few)
    return idm.models.StructuredSGPR(data, prior, few, noise_variance=0.1), kernel


def chosen_harmonics(
    data: Rows, likelihood: Any, num_inducing: int, **arguments: Any
) -> tuple[Any, Any, Any]:
    """A prior of finite rank and its harmonics, those with the most prior variance once
    `fit` has found input scales on a subset, with whole degrees up to 2; and what that
    did. The likelihood is trained, too.

    :param arguments: Of `fit`.
    """
    import interdomain as idm

    input_dim = data[0].shape[1]
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(input_dim))
    few = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, input_dim, max_degree=2)
    first = idm.models.DualSVGP(data, idm.kernels.FiniteRank(kernel, few), likelihood, few)
    fit = idm.fit(first, steps=1, progress=False, **arguments)
    chosen = idm.inducing_variables.SphericalHarmonics.for_data(kernel, data[0], num_inducing)
    return idm.kernels.FiniteRank(kernel, chosen), chosen, fit


def exact(data: Rows, held_out: Rows) -> dict[str, Any]:
    """An exact GP with a Matern-5/2 that has a lengthscale for each column, by L-BFGS."""
    import gpflow

    import interdomain as idm

    started = time.perf_counter()
    lengthscales = np.full(data[0].shape[1], np.sqrt(data[0].shape[1]))
    kernel = gpflow.kernels.Matern52(lengthscales=lengthscales)
    model = gpflow.models.GPR(data, kernel, noise_variance=0.1)
    steps = idm.fit(model, steps=300).steps
    seconds = time.perf_counter() - started
    trace = [{"seconds": seconds, "steps": steps, **evaluated(model, held_out)}]
    return {"trace": trace, "rows": len(data[0])}


def boosting(
    data: Rows,
    held_out: Rows,
    seed: int,
    *,
    categorical: list[int] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """scikit-learn's HistGradientBoostingRegressor; its variance is that of the residuals of a
    tenth of the training rows, which it is not fitted to."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    started = clock()
    fitted, apart = seeded_rows(len(data[0]), seed)
    trees = HistGradientBoostingRegressor(random_state=seed, categorical_features=categorical)
    trees.fit(data[0][fitted], data[1][fitted, 0])
    variance = np.mean(np.square(data[1][apart, 0] - trees.predict(data[0][apart])))
    passed = clock() - started
    mean = trees.predict(held_out[0])[:, None]
    errors = gaussian_errors(held_out[1], mean, np.full_like(mean, variance))
    return {"trace": [{"seconds": passed, **errors}], "rows": len(data[0])}
