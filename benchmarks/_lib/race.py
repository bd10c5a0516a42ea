"""Models built, trained and evaluated on one clock: a box, an interval, points; any SVGP."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

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


def box(data: Rows, num_inducing: int, lengthscale: float, margin: float) -> tuple[Any, Any]:
    """Fourier features of a box under a Matern-3/2 of finite rank, after `fit`; the model, and
    what the fit did."""
    import gpflow

    import interdomain as idm

    base = gpflow.kernels.Matern32(lengthscales=np.full(data[0].shape[1], lengthscale))
    kernel = idm.kernels.Periodized.from_data(base, data[0], margin=margin)
    features = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, num_inducing)
    prior = idm.kernels.FiniteRank(kernel, features)
    model = idm.models.StructuredSGPR(data, prior, features, noise_variance=0.1)
    return model, idm.fit(model)


def collapsed(model: Any, fit: Any, held_out: Rows, started: float) -> dict[str, Any]:
    """The result of a model after `fit`, with the clock stopped after the predictions."""
    errors = evaluated(model, held_out)
    return {
        "trace": [{"seconds": time.perf_counter() - started, **errors}],
        "num_inducing": int(model.inducing_variable.num_inducing),
        "pass_seconds": fit.pass_seconds,
        "subset_seconds": fit.subset_seconds,
        "steps": fit.steps,
        "rows": model.num_data,
    }


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
    """gpflow's SVGP with points at centres of k-means, a stationary kernel, minibatches, natural
    gradients 0.1 and Adam 0.01; evaluated whenever one of the times has passed, which does not
    count."""
    import gpflow
    from scipy.cluster.vq import kmeans2

    import interdomain  # noqa: F401 - imports are not counted

    started = time.perf_counter()
    chosen = np.random.default_rng(seed).permutation(len(data[0]))[:ROWS_FOR_CENTRES]
    centres, _ = kmeans2(data[0][chosen], num_inducing, minit="points", seed=seed)
    model = gpflow.models.SVGP(
        getattr(gpflow.kernels, kernel)(lengthscales=np.full(data[0].shape[1], lengthscale)),
        gpflow.likelihoods.Gaussian(0.1),
        centres,
        num_data=len(data[0]),
    )
    trace = trained_with_looks(
        model,
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
