"""One training of a kernel towards its target, and the errors that are reported."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.results import significant
from benchmarks._lib.runner import Configuration
from benchmarks.kernel_recovery.starts import build_kernel
from benchmarks.kernel_recovery.targets import (
    FITTED_GRID,
    TARGETS,
    TESTED_GRID,
    gsm_frequency,
    gsm_slope,
    target_kernel,
)

WIGNER_PLACES = (-0.9, 0.9)  # where the ridge is measured: not at the ends


def recover(configuration: Configuration) -> dict[str, Any]:
    """One start: Adam on random pairs, L-BFGS on a grid; errors on another grid."""
    import gpflow
    import tensorflow as tf
    from gpflow.keras import tf_keras

    import interdomain as idm

    target = TARGETS[configuration["target"]]
    tested = target.grid(TESTED_GRID)
    truth = np.asarray(target_kernel(configuration["target"])(tested))
    mean_square = float(np.mean(truth**2))
    kernel = build_kernel(configuration)
    model = matching_model(kernel, target_kernel(configuration["target"]), mean_square)

    def error() -> float:
        return float(np.mean((np.asarray(kernel(tested)) - truth) ** 2))

    steps = configuration["steps"]
    generator = np.random.default_rng([configuration["seed"], 1])
    size = (2, steps, configuration["batch_size"], 1)
    pairs = tf.data.Dataset.from_tensor_slices(
        tuple(generator.uniform(target.low, target.high, size))
    )
    rate = tf_keras.optimizers.schedules.ExponentialDecay(
        configuration["learning_rate"], steps, 0.1
    )
    start, initial = time.perf_counter(), error()
    idm.fit(model, pairs, steps=steps, optimizer=tf_keras.optimizers.Adam(rate))
    after_adam, middle = error(), time.perf_counter()
    fitted = target.grid(FITTED_GRID)
    outcome = idm.fit(
        model,
        (fitted, fitted),
        steps=configuration["iterations"],
        options={"ftol": 1e-14, "gtol": 1e-10},
    )
    mse = error()
    result = {
        "mse": mse,
        "relative_mse": mse / mean_square,
        "mse_after_adam": after_adam,
        "initial_mse": initial,
        "mean_square": mean_square,
        "stationary_mse": least_stationary_error(truth),
        "num_parameters": sum(int(np.prod(v.shape)) for v in kernel.trainable_variables),
        "adam_seconds": round(middle - start, 1),
        "lbfgs_seconds": round(time.perf_counter() - middle, 1),
        "iterations": outcome.steps,
        "converged": outcome.converged,
        "parameters": {
            path: significant(parameter.numpy())
            for path, parameter in gpflow.utilities.parameter_dict(kernel).items()
        },
    }
    if target.hurst is None and configuration["kernel"] == "hmk":
        result["ridge"] = ridge_distances(kernel)
    return result


def matching_model(kernel: Any, target: Any, mean_square: float) -> Any:
    """A model for `fit` whose data (x, x') are places, and whose loss is the mean squared error
    over all their pairs, relative to the target's mean square."""
    import gpflow
    import tensorflow as tf

    class Matching(
        gpflow.models.BayesianModel, gpflow.models.training_mixins.ExternalDataTrainingLossMixin
    ):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = kernel

        def maximum_log_likelihood_objective(self, data: Any) -> Any:
            difference = self.kernel.K(*data) - target.K(*data)
            return -tf.reduce_mean(tf.square(difference)) / mean_square

    return Matching()


def least_stationary_error(matrix: Array) -> float:
    """The mean squared error of the best function of the lag on a regular grid: its values are the
    means along the diagonals. No stationary kernel has less."""
    count = len(matrix)
    diagonals = (np.diagonal(matrix, lag) for lag in range(1 - count, count))
    return sum(len(values) * float(np.var(values)) for values in diagonals) / count**2


def ridge_distances(kernel: Any) -> dict[str, float]:
    """How far the ridge of the Wigner distribution (the frequency at which it is largest) is from
    mu(x) and from the slope of mu(x) x, in the mean over places."""
    x, w = np.linspace(*WIGNER_PLACES, 91), np.linspace(0.0, 6.0, 601)
    ridge = w[np.argmax(kernel.wigner(x[:, None], w[:, None]).numpy(), axis=1)]
    return {
        "to_slope": float(np.mean(np.abs(ridge - gsm_slope(x)))),
        "to_mu": float(np.mean(np.abs(ridge - gsm_frequency(x)))),
    }
