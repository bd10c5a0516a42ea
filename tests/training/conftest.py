"""Small models and data: what is tested is the loop, so that the models may be trivial."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.likelihoods import Gaussian
from gpflow.models.training_mixins import ExternalDataTrainingLossMixin

from interdomain.inducing_variables import SumInducingVariables
from interdomain.kernels import SphericalMatern32
from interdomain.models import AdditiveSVGP, OrthogonalSVGP
from tests.parts import with_harmonics

N = 40


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(N, 1))


@pytest.fixture
def make_svgp(data: tuple[np.ndarray, np.ndarray]) -> Callable[..., gpflow.models.SVGP]:
    def make(**arguments: Any) -> gpflow.models.SVGP:
        kernel, points = gpflow.kernels.SquaredExponential(), InducingPoints(data[0][:5].copy())
        return gpflow.models.SVGP(kernel, Gaussian(), points, **{"num_data": N, **arguments})

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
    """A Line with the variance of its noise: a second parameter, of another shape, positive."""

    def __init__(self) -> None:
        super().__init__()
        self.variance = gpflow.Parameter(1.0, transform=gpflow.utilities.positive())

    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        fit = super().maximum_log_likelihood_objective(data)
        return fit / self.variance - tf.math.log(self.variance)


class BayesianLine(Line):
    """A Line of Gaussian weights: the smallest model with a q, full or diagonal, and noise."""

    def __init__(self, q_diag: bool = False) -> None:
        super().__init__()
        self.likelihood = Gaussian()
        self.q_mu, self.weights = self.weights, None
        if q_diag:
            self.q_sqrt = gpflow.Parameter(np.ones((2, 1)), transform=gpflow.utilities.positive())
        else:
            self.q_sqrt = gpflow.Parameter(np.eye(2)[None], transform=gpflow.utilities.triangular())

    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        X, Y = data
        root = tf.convert_to_tensor(self.q_sqrt)
        root = tf.linalg.diag(root[:, 0]) if len(root.shape) == 2 else root[0]
        errors = (Y - X @ self.q_mu) ** 2 + tf.reduce_sum((X @ root) ** 2, 1, keepdims=True)
        noise = self.likelihood.variance
        squares = tf.reduce_sum(self.q_mu**2) + tf.reduce_sum(root**2)
        entropy = tf.reduce_sum(tf.math.log(tf.abs(tf.linalg.diag_part(root))))
        return -N * tf.reduce_mean(errors / noise + tf.math.log(noise)) / 2 - squares / 2 + entropy


class Valley(gpflow.models.BayesianModel, ExternalDataTrainingLossMixin):
    """Rosenbrock's, in which L-BFGS goes on for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = gpflow.Parameter(np.array([[-1.2], [1.0]]))

    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        x, y = self.weights[0, 0], self.weights[1, 0]
        return -((1 - x) ** 2) - 100 * (y - x**2) ** 2 + 0.0 * tf.reduce_sum(data[0])


make_line = pytest.fixture(lambda: Line, name="make_line")
make_noisy_line = pytest.fixture(lambda: NoisyLine, name="make_noisy_line")
make_bayesian_line = pytest.fixture(lambda: BayesianLine, name="make_bayesian_line")
make_valley = pytest.fixture(lambda: Valley, name="make_valley")


def values(model: tf.Module) -> dict[str, np.ndarray]:
    """Every parameter, unconstrained: what bit for bit means."""
    parameters = gpflow.utilities.parameter_dict(model)
    return {path: one.unconstrained_variable.numpy() for path, one in parameters.items()}


@pytest.fixture
def assert_same_bits() -> Callable[[tf.Module, tf.Module], None]:
    def assert_same(model: tf.Module, other: tf.Module) -> None:
        ours, theirs = values(model), values(other)
        assert ours.keys() == theirs.keys()
        for path in ours:
            assert ours[path].dtype == theirs[path].dtype, path
            np.testing.assert_array_equal(ours[path], theirs[path], err_msg=path)

    return assert_same


# Models of this library, of which a fit compiles something.

Data = tuple[np.ndarray, np.ndarray]


def harmonics_svgp(data: Data, likelihood: Any = None, **options: Any) -> gpflow.models.SVGP:
    kernel, harmonics = with_harmonics(SphericalMatern32(weight_variances=[0.8, 1.3]), 2)
    options["num_data"] = len(data[0])
    return gpflow.models.SVGP(kernel, likelihood or Gaussian(), harmonics, **options)


def additive_svgp(data: Data) -> AdditiveSVGP:
    kernel, harmonics = with_harmonics(SphericalMatern32(), 1)
    blocks = SumInducingVariables([harmonics, InducingPoints(data[0][:3].copy())])
    kernel = kernel + gpflow.kernels.Matern32()
    return AdditiveSVGP(kernel, Gaussian(), blocks, num_data=len(data[0]))


def orthogonal_svgp(data: Data) -> OrthogonalSVGP:
    kernel, harmonics = with_harmonics(SphericalMatern32(), 1)
    points = InducingPoints(data[0][:3].copy())
    return OrthogonalSVGP(kernel, Gaussian(), harmonics, points, num_data=len(data[0]))


MINIBATCHES: dict[str, Any] = {"batch_size": 10, "steps": 3}
