"""Small models of every kind that predicts, with a q that is not the prior."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

import interdomain as idm
from tests.conformance.helpers import moved
from tests.parts import with_harmonics

NUM_COLUMNS = 2


def rows(num_rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num_rows, NUM_COLUMNS))


def targets(X: np.ndarray, num_outputs: int = 1) -> np.ndarray:
    return np.sin(X @ np.arange(1, 2 * num_outputs + 1).reshape(2, num_outputs) / num_outputs)


class Counting(gpflow.mean_functions.Constant):
    """Counts how often Python evaluates it in a graph: once per trace."""

    def __init__(self, traced: Any) -> None:
        """
        :param traced: Called at each trace. Not a counter of its own: a model with another
            attribute is another model, and is compiled anew.
        """
        super().__init__(0.3)
        self.traced = traced

    def __call__(self, X: Any) -> tf.Tensor:
        if tf.inside_function():
            self.traced()
        return super().__call__(X)


def harmonics() -> tuple[Any, Any]:
    return with_harmonics(idm.kernels.SphericalMatern52(variance=1.3, lengthscale=0.8), 4)


def features_svgp(kernel: Any, features: Any, likelihood: Any = None, **options: Any) -> Any:
    likelihood = likelihood or gpflow.likelihoods.Gaussian(0.2)
    return moved(gpflow.models.SVGP(kernel, likelihood, features, **options))


def svgp() -> gpflow.models.SVGP:
    mean = gpflow.mean_functions.Constant(0.3)
    return features_svgp(*harmonics(), num_latent_gps=2, mean_function=mean)


def points_svgp(likelihood: Any = None, **options: Any) -> gpflow.models.SVGP:
    """Of GPflow alone, which is traced and saved in the shortest time."""
    return features_svgp(stationary(), rows(5, seed=1), likelihood, **options)


def stationary() -> gpflow.kernels.Kernel:
    return gpflow.kernels.Matern32(lengthscales=[0.9, 1.1])


def with_points(kind: type) -> Any:
    """An additive or an orthogonal model of harmonics and points."""
    kernel, features = harmonics()
    likelihood, points = gpflow.likelihoods.Gaussian(0.2), rows(4, seed=1)
    parts = features, gpflow.inducing_variables.InducingPoints(points)
    if kind is idm.models.OrthogonalSVGP:
        return moved(kind(kernel, likelihood, *parts))
    blocks = idm.inducing_variables.SumInducingVariables(parts)
    return moved(kind(kernel + stationary(), likelihood, blocks))


def data_model(kind: type, num_outputs: int = 1) -> Any:
    X = rows(20, seed=5)
    data = (X, targets(X, num_outputs))
    if kind is gpflow.models.GPMC:
        return kind(data, stationary(), gpflow.likelihoods.Gaussian(0.2))
    if kind is gpflow.models.GPR:
        return kind(data, stationary(), noise_variance=0.1)
    kernel, features = harmonics()
    return kind(data, kernel, inducing_variable=features, noise_variance=0.1)


MODELS: dict[str, Callable[[], Any]] = {
    "SVGP": svgp,
    "SVGP-points": points_svgp,
    "AdditiveSVGP": lambda: with_points(idm.models.AdditiveSVGP),
    "OrthogonalSVGP": lambda: with_points(idm.models.OrthogonalSVGP),
    "StructuredSGPR": lambda: data_model(idm.models.StructuredSGPR, 2),
    "SGPR": lambda: data_model(gpflow.models.SGPR, 2),
    "CGLB": lambda: data_model(gpflow.models.CGLB),
    "GPR": lambda: data_model(gpflow.models.GPR, 2),
    "GPMC": lambda: data_model(gpflow.models.GPMC),
}
