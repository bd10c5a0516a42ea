"""Small models and data: what is tested is the loop, so that the models may be trivial."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.models.training_mixins import ExternalDataTrainingLossMixin

N = 40


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(N, 1))


@pytest.fixture
def make_svgp(data: tuple[np.ndarray, np.ndarray]) -> Callable[..., gpflow.models.SVGP]:
    def make(**arguments: Any) -> gpflow.models.SVGP:
        return gpflow.models.SVGP(
            gpflow.kernels.SquaredExponential(),
            gpflow.likelihoods.Gaussian(),
            gpflow.inducing_variables.InducingPoints(data[0][:5].copy()),
            **{"num_data": N, **arguments},
        )

    return make


class Line(gpflow.models.BayesianModel, ExternalDataTrainingLossMixin):
    """Least squares: the model that is compiled fastest, where any model will do."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = gpflow.Parameter(np.zeros((2, 1)))

    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        X, Y = data
        return -tf.reduce_mean((Y - X @ self.weights) ** 2)


class NoisyLine(Line):
    """The same with the variance of its noise: a second parameter, of another shape, positive."""

    def __init__(self) -> None:
        super().__init__()
        self.variance = gpflow.Parameter(1.0, transform=gpflow.utilities.positive())

    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        fit = super().maximum_log_likelihood_objective(data)
        return fit / self.variance - tf.math.log(self.variance)


@pytest.fixture
def make_line() -> type[Line]:
    return Line


@pytest.fixture
def make_noisy_line() -> type[NoisyLine]:
    return NoisyLine


@pytest.fixture
def make_dataset(data: tuple[np.ndarray, np.ndarray]) -> Callable[[], tf.data.Dataset]:
    """Five batches of eight, in an order that differs between epochs."""

    def make() -> tf.data.Dataset:
        slices = tf.data.Dataset.from_tensor_slices(data)
        return slices.shuffle(N, seed=3, reshuffle_each_iteration=True).batch(8)

    return make


def values(model: tf.Module) -> dict[str, np.ndarray]:
    """Every parameter, unconstrained: what bit for bit means."""
    return {
        path: parameter.unconstrained_variable.numpy()
        for path, parameter in gpflow.utilities.parameter_dict(model).items()
    }


class Interrupted(Exception):
    """Stands for whatever stops a process."""


@pytest.fixture
def assert_same_bits() -> Callable[[tf.Module, tf.Module], None]:
    def assert_same(model: tf.Module, other: tf.Module) -> None:
        ours, theirs = values(model), values(other)
        assert ours.keys() == theirs.keys()
        for path in ours:
            assert ours[path].dtype == theirs[path].dtype, path
            np.testing.assert_array_equal(ours[path], theirs[path], err_msg=path)

    return assert_same


@pytest.fixture
def interrupt_at() -> Callable[[int], Callable[[int, Any], None]]:
    def make(at: int) -> Callable[[int, Any], None]:
        def callback(step: int, model: Any) -> None:
            if step == at:
                raise Interrupted

        return callback

    return make


@pytest.fixture
def interrupted() -> type[Exception]:
    return Interrupted
