"""Models built, trained and evaluated on one clock: a box, an interval, points; any SVGP."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
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
    trace = traced(
        model,
        data,
        lambda model: evaluated(model, held_out),
        seconds,
        started,
        optimizer=gpflow.optimizers.NaturalGradient(0.1),
        options={"seed": seed},
    )
    return {"trace": trace, "num_inducing": num_inducing, "rows": len(data[0])}


def traced(
    model: Any,
    data: Rows,
    evaluate: Callable[[Any], dict[str, float]],
    seconds: Sequence[float],
    started: float,
    options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> list[dict[str, float]]:
    """Train with minibatches until all times have passed, and evaluate at each, which does not
    count.

    :param started: When the clock began, of `time.perf_counter`.
    :param arguments: Of `idm.fit`.
    """
    import interdomain as idm

    trace: list[dict[str, float]] = []
    apart = 0.0

    def look(step: int, model: Any) -> None:
        nonlocal apart
        now = time.perf_counter()
        passed = now - started - apart
        if passed >= seconds[len(trace)]:
            trace.append({"seconds": passed, "steps": float(step), **evaluate(model)})
            apart += time.perf_counter() - now
        if len(trace) == len(seconds):
            raise idm.training.StopFit

    idm.fit(
        model,
        data,
        batch_size=min(BATCH_SIZE, len(data[0])),
        steps=10**6,
        callbacks=[look],
        options={"every": 5, **(options or {})},
        **arguments,
    )
    return trace


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
    """As `traced`: the log density of rows held out."""

    def evaluate(model: Any) -> dict[str, float]:
        return {"log_density": log_density(model, held_out, cached=False)}

    return traced(model, train, evaluate, seconds, started, progress=False, **arguments)
