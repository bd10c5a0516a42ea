"""Models of functionals: additive, harmonic, orthogonal and of several outputs."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import LinearCoregionalization, Matern52, SharedIndependent, SquaredExponential

import interdomain as idm
from interdomain.functionals import Derivative, Mean, Value
from interdomain.inducing_variables import (
    HarmonicInducingPoints,
    InducingPatches,
    SumInducingVariables,
)
from interdomain.kernels import Convolutional, FiniteRank, Functional, HarmonicKernel
from interdomain.tables import GroupFeatures, GroupIntercepts
from tests.conformance.helpers import assert_refused

RNG = np.random.default_rng(0)
Z = RNG.uniform(-1, 1, size=(6, 2))
X = np.column_stack([RNG.uniform(-1, 1, size=(12, 2)), np.arange(12) % 3])
Y = np.sin(X[:, :1])
FUNCTIONALS = [Value(), Mean([0.4, 0.0]), Derivative(0)]


def kernels() -> tuple[gpflow.kernels.Kernel, gpflow.kernels.Kernel]:
    return SquaredExponential(0.9, [0.7, 0.9]), Matern52(0.6, 0.8, active_dims=[0])


def check(model: gpflow.models.SVGP) -> None:
    """A finite bound with gradients; predictions with consistent variances."""
    with tf.GradientTape() as tape:
        bound = model.elbo((X, Y))
    for gradient in tape.gradient(bound, model.trainable_variables):
        assert np.all(np.isfinite(tf.convert_to_tensor(gradient)))
    variance = model.predict_f(X)[1].numpy()
    assert np.all(variance > 0)
    joint = model.predict_f(X, full_cov=True)[1].numpy()
    np.testing.assert_allclose(np.diagonal(joint, axis1=1, axis2=2).T, variance, rtol=1e-6)


def test_additive_models() -> None:
    """The additive model has the prior of the sum at q = prior."""
    first, second = kernels()
    blocks = SumInducingVariables([InducingPoints(Z), InducingPoints(Z[:4])])
    kernel = Functional(first + second, FUNCTIONALS)
    model = idm.models.AdditiveSVGP(kernel, gpflow.likelihoods.Gaussian(0.1), blocks)
    check(model)
    np.testing.assert_allclose(model.predict_f(X)[1][:, 0], kernel(X, full_cov=False), rtol=1e-5)


def test_harmonic_kernels() -> None:
    """A sum over parts of a group; slopes need features."""
    base = SquaredExponential(0.9, 0.9)
    kernel = HarmonicKernel(base, idm.transforms.Rotation(3))
    points = HarmonicInducingPoints.for_kernel(kernel, Z)
    rows = Functional(kernel, FUNCTIONALS[:2])
    model = gpflow.models.SVGP(rows, gpflow.likelihoods.Gaussian(0.1), points)
    data = X.copy()
    data[:, 2] = np.arange(12) % 2
    assert np.isfinite(model.elbo((data, Y)))
    steps, weights = np.polynomial.legendre.leggauss(16)
    at = data[1, :2] + np.outer(steps * 0.2, [1.0, 0.0])
    wanted = weights @ kernel(at, data[:1, :2]).numpy() / 2
    np.testing.assert_allclose(rows(data[1:2], data[:1])[0], wanted, rtol=1e-9)


def test_orthogonal_points_and_several_outputs() -> None:
    """GPflow's own wrapper of points requires that rows have the columns of points."""
    first, _ = kernels()
    kernel, noise = Functional(first, FUNCTIONALS), gpflow.likelihoods.Gaussian(0.1)
    points = InducingPoints(Z), InducingPoints(Z + 0.1)
    check(idm.models.OrthogonalSVGP(kernel, noise, *points))
    wrapped = idm.inducing_variables.SharedIndependentInducingVariables(InducingPoints(Z))
    mixing = LinearCoregionalization([kernel, Functional(Matern52(), FUNCTIONALS)], np.eye(2))
    for outputs in (SharedIndependent(kernel, 2), mixing):
        check(gpflow.models.SVGP(outputs, noise, wrapped, num_latent_gps=2))


def test_refused() -> None:
    """Images and categories are no coordinates."""
    images = Convolutional(SquaredExponential(), (3, 2), (2, 1))
    patches = InducingPatches(RNG.normal(size=(4, 2)))
    prior = FiniteRank(images, patches)
    Functional(prior, Value())(RNG.normal(size=(3, 6)))
    groups = GroupIntercepts([0, 1, 2], active_dims=[1])
    levels = FiniteRank(groups, GroupFeatures(groups))
    rows = np.array([[0.3, 1.0], [0.2, 2.0]])
    assert_refused(
        [
            (
                lambda: Functional(prior, Mean(0.1))(RNG.normal(size=(3, 6))),
                "functionals .* images",
            ),
            (lambda: Functional(levels, Derivative(1))(rows), "functionals must not act along"),
            (lambda: Functional(levels, Mean([0.0, 1.0]))(rows), "functionals must not act along"),
        ]
    )
    np.testing.assert_allclose(Functional(levels, Mean([1.0, 0.0]))(rows), groups(rows))
    np.testing.assert_allclose(Functional(levels, Derivative(0))(rows), 0.0)


@pytest.mark.parametrize("order", [1, 2])
def test_second_slopes_have_the_right_gradients(order: int) -> None:
    """TensorFlow's gradients of a forward derivative of a forward derivative are wrong."""
    kernel = idm.kernels.SphericalMatern52(weight_variances=[0.8, 1.4])
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=2)
    rows = Functional(FiniteRank(kernel, features), Derivative(1, order))
    variable = kernel.weight_variances.unconstrained_variable

    def total() -> tf.Tensor:
        return tf.reduce_sum(tf.sin(gpflow.covariances.Kuf(features, rows, X[:3, :2])))

    with tf.GradientTape() as tape:
        value = total()
    gradient, start = tape.gradient(value, variable), variable.numpy()
    ends = []
    for sign in (1, -1):
        variable.assign(start + sign * np.array([1e-5, -2e-5]))
        ends.append(total().numpy())
    slope = np.sum(gradient * np.array([1e-5, -2e-5])) / 1e-5
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-5, rtol=1e-6)
