"""Models of tables of numbers: harmonics chosen by the data, an exact GP, boosted trees."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.prediction import gaussian_errors
from benchmarks._lib.race import Rows, evaluated
from benchmarks._lib.splits import seeded_rows


def low_degrees(X: Array) -> tuple[Any, Any]:
    """A kernel on the sphere with a scale for each column, and its harmonics up to degree 2."""
    import interdomain as idm

    input_dim = X.shape[1]
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(input_dim))
    return kernel, idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, input_dim, 2)


def chosen_harmonics(data: Rows, likelihood: Any, num_inducing: int) -> tuple[Any, Any]:
    """A kernel and its harmonics of most prior variance, after `fit` has trained the input scales
    and the likelihood on a subset. All harmonics up to degree 2 are included."""
    import interdomain as idm

    kernel, few = low_degrees(data[0])
    first = idm.models.DualSVGP(data, idm.kernels.FiniteRank(kernel, few), likelihood, few)
    idm.fit(first, steps=1, progress=False)
    return kernel, idm.inducing_variables.SphericalHarmonics.for_data(kernel, data[0], num_inducing)


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


def boosted(
    data: Rows, seed: int, categorical: list[int] | None = None, **settings: Any
) -> tuple[Any, float]:
    """scikit-learn's HistGradientBoostingRegressor, fitted to nine tenths of the rows, and the
    variance of its residuals on the last tenth."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    (X, Y), (fitted, apart) = data, seeded_rows(len(data[0]), seed)
    trees = HistGradientBoostingRegressor(
        random_state=seed, categorical_features=categorical, **settings
    )
    trees.fit(X[fitted], Y[fitted, 0])
    return trees, float(np.mean(np.square(Y[apart, 0] - trees.predict(X[apart]))))


def boosting(
    data: Rows,
    held_out: Rows,
    seed: int,
    *,
    categorical: list[int] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """The errors of `boosted`, on a clock that stops before the predictions."""
    import sklearn.ensemble  # noqa: F401 - the clock does not count imports

    started = clock()
    trees, variance = boosted(data, seed, categorical)
    passed = clock() - started
    mean = trees.predict(held_out[0])[:, None]
    errors = gaussian_errors(held_out[1], mean, np.full_like(mean, variance))
    return {"trace": [{"seconds": passed, **errors}], "rows": len(data[0])}
