"""Models built, trained and evaluated on one clock: features of a box, points; any SVGP."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.cluster.vq import kmeans2

from benchmarks._lib.data import Array
from benchmarks._lib.looks import trained_with_looks
from benchmarks._lib.prediction import Predictor, gaussian_errors

ROWS_FOR_CENTRES = 20_000
BATCH_SIZE = 1_000
Rows = tuple[Array, Array]


def evaluated(model: Any, held_out: Rows) -> dict[str, float]:
    """Test errors of a model with a Gaussian likelihood."""
    X, Y = held_out
    mean, variance = Predictor(model, X.shape[1])(X)
    return gaussian_errors(Y, mean, variance + float(model.likelihood.variance.numpy()))


def waves(X: Array, num_inducing: int, lengthscale: float, margin: float) -> tuple[Any, Any]:
    """A periodized Matern-3/2, and Fourier features of its box around the rows."""
    import gpflow

    import interdomain as idm

    base = gpflow.kernels.Matern32(lengthscales=np.full(X.shape[1], lengthscale))
    kernel = idm.kernels.Periodized.from_data(base, X, margin=margin)
    return kernel, idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, num_inducing)


def splines(
    X: Array, size: str, matern: Any, degree: int, variance: float, lengthscale: float
) -> tuple[Any, Any]:
    """A product of Matern kernels, one for each column, with one variance; and splines of it.

    :param size: numbers of splines by column, such as "100x85".
    """
    import gpflow

    import interdomain as idm

    numbers = [int(number) for number in size.split("x")]
    first, *others = (matern(variance, lengthscale, active_dims=[k]) for k in range(len(numbers)))
    for part in others:
        gpflow.set_trainable(part.variance, False)
    kernel = gpflow.kernels.Product([first, *others]) if others else first
    return kernel, idm.inducing_variables.SplineFeatures.from_data(X, numbers, degree)


def fitted(data: Rows, kernel: Any, features: Any) -> tuple[Any, Any]:
    """A model under the kernel of the features' rank, after `fit`; and what the fit did."""
    import interdomain as idm

    prior = idm.kernels.FiniteRank(kernel, features)
    model = idm.models.StructuredSGPR(data, prior, features, noise_variance=0.1)
    return model, idm.fit(model)


def fit_record(model: Any, fit: Any) -> dict[str, Any]:
    """What is recorded of `fitted`."""
    return {
        "num_inducing": int(model.inducing_variable.num_inducing),
        "pass_seconds": fit.pass_seconds,
        "subset_seconds": fit.subset_seconds,
        "steps": fit.steps,
    }


def linear(X: Array, Y: Array, X_test: Array) -> tuple[Array, Array]:
    """SciPy's linear interpolation, beyond the convex hull the nearest row."""
    from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator

    def at(X: Array, Y: Array, new: Array) -> Array:
        inside = LinearNDInterpolator(X, Y[:, 0])(new)
        return np.where(np.isnan(inside), NearestNDInterpolator(X, Y[:, 0])(new), inside)

    return with_variance(at, X, Y, X_test)


def nearest_four(X: Array, Y: Array, X_test: Array) -> tuple[Array, Array]:
    """Scikit-learn's mean of the nearest four rows, weighted by inverse distances."""
    from sklearn.neighbors import KNeighborsRegressor

    def at(X: Array, Y: Array, new: Array) -> Array:
        found = KNeighborsRegressor(4, weights="distance").fit(X, Y[:, 0]).predict(new)
        return np.asarray(found)

    return with_variance(at, X, Y, X_test)


def with_variance(
    at: Callable[[Array, Array, Array], Array], X: Array, Y: Array, X_test: Array
) -> tuple[Array, Array]:
    """Predictions without a model; the variance is that of the errors at 2,000 rows."""
    apart = min(2_000, len(X) // 10)
    chosen = np.random.default_rng(0).permutation(len(X))
    few, rest = chosen[:apart], chosen[apart:]
    variance = np.mean(np.square(Y[few, 0] - at(X[rest], Y[rest], X[few])))
    return at(X, Y, X_test), np.full(len(X_test), variance)


def gpboost(data: Rows, **arguments: Any) -> Any:
    """GPBoost's GP and its defaults, without other `arguments` with a Matern-3/2 that has a
    lengthscale for each column."""
    import gpboost as gpb

    if "cov_function" not in arguments:
        arguments |= {"cov_function": "matern_ard", "cov_fct_shape": 1.5}
    model = gpb.GPModel(gp_coords=data[0], seed=0, **arguments)
    model.fit(y=data[1][:, 0])
    return model


def stock(
    data: Rows, num_inducing: int, kernel: Any, seed: int, likelihood: Any | None = None
) -> Any:
    """gpflow's SVGP with points at centres of k-means of some rows; by default Gaussian noise."""
    import gpflow

    X = data[0]
    chosen = np.random.default_rng(seed).permutation(len(X))[:ROWS_FOR_CENTRES]
    centres, _ = kmeans2(X[chosen], num_inducing, minit="points", seed=seed)
    likelihood = likelihood or gpflow.likelihoods.Gaussian(0.1)
    return gpflow.models.SVGP(kernel, likelihood, centres, num_data=len(X))


def svgp(
    data: Rows,
    held_out: Rows,
    num_inducing: int,
    lengthscale: float,
    seconds: list[float],
    seed: int,
    *,
    kernel: str = "Matern32",
) -> dict[str, Any]:
    """`stock` with a stationary kernel, minibatches, natural gradients 0.1 and Adam 0.01;
    evaluated whenever one of the times has passed, which does not count."""
    import gpflow

    import interdomain  # noqa: F401 - imports are not counted

    started = time.perf_counter()
    stationary = getattr(gpflow.kernels, kernel)
    lengthscales = np.full(data[0].shape[1], lengthscale)
    trace = trained_with_looks(
        stock(data, num_inducing, stationary(lengthscales=lengthscales), seed),
        data,
        lambda model: evaluated(model, held_out),
        seconds=seconds,
        started=started,
        optimizer=gpflow.optimizers.NaturalGradient(0.1),
        options={"every": 5, "seed": seed},
        **minibatches(data),
    )
    return {"trace": trace, "num_inducing": num_inducing, "rows": len(data[0])}


def log_density(model: Any, held_out: Rows, *, cached: bool) -> float:
    """The mean log density of rows held out, under any likelihood."""
    X, Y = held_out
    moments = Predictor(model, X.shape[1], cached=cached)(X)
    return float(np.mean(model.likelihood.predict_log_density(X, *moments, Y)))


def density_trace(
    model: Any,
    train: Rows,
    held_out: Rows,
    seconds: Sequence[float],
    started: float,
    **arguments: Any,
) -> list[dict[str, float]]:
    """The log density of rows held out, by seconds."""

    def evaluate(model: Any) -> dict[str, float]:
        return {"log_density": log_density(model, held_out, cached=False)}

    arguments |= {**minibatches(train), "options": {"every": 5}}
    return trained_with_looks(model, train, evaluate, seconds=seconds, started=started, **arguments)


def minibatches(data: Rows) -> dict[str, Any]:
    """For `trained_with_looks`, on the wall's clock."""
    size = min(BATCH_SIZE, len(data[0]))
    return {"batch_size": size, "clock": time.perf_counter}
