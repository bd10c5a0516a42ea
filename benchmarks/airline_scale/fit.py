"""Fits of StructuredSGPR with spherical harmonics on memory-mapped rows, and what each part costs.

`fit_and_predict` and `growth` run in processes of their own: they take and return JSON values.
"""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks._lib.flight_table import COLUMNS
from benchmarks._lib.graphs import elbo_and_gradient
from benchmarks._lib.memory import peak_of_process
from benchmarks._lib.prediction import Predictor, gaussian_errors
from benchmarks._lib.row_files import RowFiles, open_rows
from benchmarks._lib.timing import alternate, summarise

SAMPLE_ROWS = 10_000  # the first test rows: what SVGP is judged by on its way
INITIAL_NOISE = 0.5  # of targets with variance one; of both tables noise is the larger part
_ROWS_AT_ONCE = 200_000


def harmonic_model(
    data: tuple[Array, Array],
    max_degree: int,
    *,
    truncated: bool,
) -> idm.models.StructuredSGPR:
    """A model of the rows with all harmonics up to a degree, at its initial parameters.

    :param truncated: whether the kernel is of finite rank, that of the harmonics.
    """
    input_dim = data[0].shape[1]
    kernel = idm.kernels.SphericalMatern32(weight_variances=np.full(input_dim, 1.0 / input_dim))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, input_dim, max_degree)
    return idm.models.StructuredSGPR(
        data,
        idm.kernels.FiniteRank(kernel, harmonics) if truncated else kernel,
        harmonics,
        noise_variance=INITIAL_NOISE,
        progress=False,
    )


def fit_and_predict(
    folder: str,
    max_degree: int,
    truncated: bool,
    subset_size: int,
    subset_steps: int,
    steps: int,
    floor_rounds: int,
    seed: int,
) -> dict[str, Any]:
    """One fit: the cost of its parts, the floor of its products, and its test errors."""
    before = peak_of_process()
    rows = open_rows(Path(folder))
    data = (rows.X_train, rows.Y_train)
    start = time.perf_counter()
    model = harmonic_model(data, max_degree, truncated=truncated)
    built = time.perf_counter()
    outcome = idm.training.fit_sgpr(
        model,
        subset_size=subset_size,
        subset_steps=subset_steps,
        steps=steps,
        seed=seed,
        progress=False,
    )
    done = time.perf_counter()
    assert outcome.subset is not None
    base = model.kernel.kernel if truncated else model.kernel
    return {
        **costs(model, outcome, rows, done - start, before, floor_rounds),
        "num_skipped": model.statistics.num_skipped,
        "build_seconds": built - start,
        "subset_steps": outcome.subset.steps,
        "subset_converged": outcome.subset.converged,
        "weight_variances": np.asarray(base.weight_variances).tolist(),
    }


def additive(
    folder: str, num_inducing: int, subset_size: int, steps: int, floor_rounds: int, seed: int
) -> dict[str, Any]:
    """A sum of effects in one call: the cost of its parts, and its test errors."""
    before = peak_of_process()
    rows = open_rows(Path(folder))
    data = (rows.X_train, rows.Y_train)
    start = time.perf_counter()
    outcome = idm.tables.fit_additive(
        data,
        num_inducing,
        names=COLUMNS if rows.X_train.shape[1] == len(COLUMNS) else None,
        subset_size=subset_size,
        steps=steps,
        seed=seed,
        progress=False,
    )
    seconds = time.perf_counter() - start
    return {
        **costs(outcome.model, outcome, rows, seconds, before, floor_rounds),
        "pairs": [[pair.name, pair.gain] for pair in outcome.pairs],
    }


def costs(
    model: Any, outcome: Any, rows: RowFiles, seconds: float, bytes_before: int, floor_rounds: int
) -> dict[str, Any]:
    """What a fit that is done took, and its test errors.

    :param outcome: What the library's function returned.
    :param seconds: Of the whole fit.
    """
    peak_of_fit = peak_of_process()
    parts = pass_parts(model, (rows.X_train, rows.Y_train), floor_rounds)
    start_of_predictions = time.perf_counter()
    errors = errors_of(model, rows)
    return {
        "num_rows": model.num_data,
        "test_rows": len(rows.X_test),
        "num_inducing": int(model.inducing_variable.num_inducing),
        "subset_seconds": outcome.subset_seconds,
        "pass_seconds": outcome.pass_seconds,
        **parts,
        "optimisation_seconds": outcome.seconds - outcome.subset_seconds - outcome.pass_seconds,
        "fit_seconds": seconds,
        "predict_seconds": time.perf_counter() - start_of_predictions,
        "peak_bytes_before": bytes_before,
        "peak_bytes_of_fit": peak_of_fit,
        "peak_bytes": peak_of_process(),
        **errors,
        "bound": outcome.elbo,
        "steps": outcome.steps,
        "converged": outcome.converged,
        "noise_variance": float(model.likelihood.variance.numpy()),
    }


def growth(
    folder: str, num_rows: int, max_degree: int, truncated: bool, rounds: int, floor_rounds: int
) -> dict[str, Any]:
    """The pass over the first rows, and a step of an optimiser after it: bound and gradient."""
    before = peak_of_process()
    rows = open_rows(Path(folder))
    data = (rows.X_train[:num_rows], rows.Y_train[:num_rows])
    model = harmonic_model(data, max_degree, truncated=truncated)
    for parameter in model.feature_parameters.values():
        gpflow.set_trainable(parameter, False)
    start = time.perf_counter()
    found = model.num_data
    seconds = time.perf_counter() - start
    step = elbo_and_gradient(model, tuple(tf.constant(array[:1]) for array in data))
    samples = alternate(
        {"step": step},
        rounds=rounds,
        warm_up=2,
        min_sample_seconds=0.0,
    )
    return {
        "num_rows": found,
        "num_inducing": int(model.inducing_variable.num_inducing),
        "pass_seconds": seconds,
        **pass_parts(model, data, floor_rounds),
        "step_seconds": summarise(samples["step"]),
        "peak_bytes_before": before,
        "peak_bytes": peak_of_process(),
    }


def pass_parts(model: Any, data: tuple[Array, Array], rounds: int) -> dict[str, Any]:
    """The seconds of the last pass by parts, and those that bare products of its shapes take."""
    statistics = model.statistics
    batch_size = model.batch_size
    floor = product_floor(len(statistics.sums["gram"]), batch_size, len(data[0]), rounds)
    features = features_seconds(model, data[0][:batch_size]) * len(data[0]) / batch_size
    products = statistics.seconds["sums"] - features
    return {
        "read_seconds": statistics.seconds["read"],
        "features_seconds": features,
        "products_seconds": products,
        "batch_size": batch_size,
        **floor,
        "products_over_floor": products / floor["floor_seconds"],
    }


def features_seconds(model: Any, X: Array) -> float:
    """Seconds of the features of a batch, without their products: the median of five."""
    from interdomain.core.covariances import Kuf_in_domain

    parts = model.inducing_variable, model.kernel
    features = tf.function(lambda X: Kuf_in_domain(*parts, X), autograph=False)
    X = tf.constant(X, gpflow.default_float())
    features(X)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        features(X).numpy()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def product_floor(size: int, batch_size: int, num_rows: int, rounds: int) -> dict[str, float]:
    """Seconds of S S^T, S [size, batch_size], for as many batches as hold the rows: the median of
    `rounds` products, in which NumPy computes one half (`floor_seconds`) or all of it."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, size, batch_size))
    product = np.empty((size, size))
    gc.freeze()  # or every sample searches all that TensorFlow and the model have made
    samples = alternate(
        {
            "symmetric": lambda: np.matmul(left, left.T, out=product),
            "full": lambda: np.matmul(left, right.T, out=product),
        },
        rounds=rounds,
        min_sample_seconds=0.0,
    )
    batches = num_rows / batch_size
    return {
        "floor_seconds": batches * float(np.median(samples["symmetric"])),
        "full_product_seconds": batches * float(np.median(samples["full"])),
    }


def errors_of(model: Any, rows: RowFiles) -> dict[str, float]:
    """Test errors of all rows, and the negative log density of the first `SAMPLE_ROWS`."""
    predict = Predictor(model, rows.X_test.shape[1])
    bounds = [0, *range(SAMPLE_ROWS, len(rows.X_test), _ROWS_AT_ONCE), len(rows.X_test)]
    parts = []
    for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
        found = noisy_errors(model, predict, rows.X_test[start:stop], rows.Y_test[start:stop])
        parts.append((stop - start, found["mse"], found["nlpd"]))
    counts, squared, log_density = np.array(parts).T
    return {
        "mse": float(np.average(squared, weights=counts)),
        "nlpd": float(np.average(log_density, weights=counts)),
        "sample_nlpd": parts[0][2],
    }


def noisy_errors(model: Any, predict: Predictor, X: Array, Y: Array) -> dict[str, float]:
    """Mean squared error and mean negative log density of noisy targets."""
    mean, variance = predict(X, batch_size=4_000)
    found = gaussian_errors(Y, mean, variance + float(model.likelihood.variance.numpy()))
    return {"mse": found["rmse"] ** 2, "nlpd": found["nll"]}
