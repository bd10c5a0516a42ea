"""Inducing patches and orbit points: harmonic parts, whole orbits, pairs, and patches from data."""

from typing import Any

import gpflow
import numpy as np
import pytest
import scipy.linalg
import tensorflow as tf
from gpflow import kernels as gk
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel

from interdomain.covariances import Kvu
from interdomain.inducing_variables import (
    HarmonicInducingPoints,
    InducingPatches,
    OrbitInducingPoints,
)
from interdomain.kernels import (
    Convolutional,
    HarmonicKernel,
    Invariant,
    MultiChannelConvolutional,
    SetKernel,
)
from interdomain.transforms import ImageFlip, ImageTranslation, Negation, Rotation
from tests.conformance.helpers import assert_close, assert_refused
from tests.conformance.kernel_cases import inputs
from tests.families.images.references import numbered_patches

NOISE = 0.2
RNG = np.random.default_rng(0)
X, X2 = RNG.normal(size=(7, 9)), RNG.normal(size=(3, 9))
Y = np.sin(X @ RNG.normal(size=(9, 1)))
Z = RNG.normal(size=(3, 4))
WEIGHTS = RNG.normal(size=4)


def conv(base: Kernel | None = None, **options: Any) -> Convolutional:
    base = base or gk.SquaredExponential(3.0, 1.4)
    return Convolutional(base, (3, 3), (2, 2), **{"weights": WEIGHTS, **options})


@pytest.mark.parametrize("name", ["Convolutional", "Invariant"])
def test_harmonic_parts(name: str) -> None:
    """The parts add up, and each is the sum of responses of a part of g."""
    inner = gk.Matern52(1.3, 1.7)
    base: SetKernel = conv(inner)
    inputs, inputs2, group = X, X2, [ImageFlip((2, 2), 0), Negation(range(4))]
    if name == "Invariant":
        base = Invariant(inner, Negation(0))
        inputs, inputs2, group = X[:, :4], X2[:, :4], [Rotation(3, (1, 2))]  # in other columns
    kernel, point_kernel = HarmonicKernel(base, group), HarmonicKernel(inner, group)
    weights, total = base.point_weights.numpy(), 0.0
    points, points2 = (base.points(tf.constant(A)).numpy() for A in (inputs, inputs2))
    assert len(kernel.kernels) == point_kernel.num_components > 1
    rows, rows2 = (A.reshape(-1, A.shape[-1]) for A in (points, points2))
    for part, part_of_g in zip(kernel.kernels, point_kernel.kernels, strict=True):
        pair_values = part_of_g(rows, rows2).numpy().reshape(7, len(weights), 3, len(weights))
        desired = np.einsum("p,npmq,q->nm", weights, pair_values, weights)
        assert_close(part(inputs, inputs2), desired, rtol=1e-11)
        assert_close(part(inputs, full_cov=False), np.diag(part(inputs)), rtol=1e-11)
        features = part_of_g(Z, rows).numpy().reshape(len(Z), 7, len(weights)) @ weights
        u = InducingPatches(Z) if name == "Convolutional" else OrbitInducingPoints(Z)
        assert_close(Kuf(u, part, inputs), features, rtol=1e-11)
        assert_close(Kuu(u, part), part_of_g(Z), rtol=1e-11)
        total = total + part(inputs, inputs2)
    assert_close(kernel(inputs, inputs2), total, rtol=1e-12)
    assert_close(kernel(inputs), base(inputs), rtol=1e-14)
    assert_close(kernel(inputs, full_cov=False), base(inputs, full_cov=False), rtol=1e-14)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_variables_at_images(shared: bool) -> None:
    """Complete: one variable at z and one at G z for the part that pairs two."""
    kernel = HarmonicKernel(conv(), Rotation(3, (1, 2)))
    assert kernel.multiplicities == (1, 2)
    points = HarmonicInducingPoints.for_kernel(
        kernel, Z[:2] if shared else np.stack([Z[:2], Z[1:]]), complete=True
    )
    part_points = [Z[:2], Z[:2] if shared else Z[1:]]
    places = [part_points[0], np.concatenate([part_points[1], kernel.transform(part_points[1])])]
    blocks = [InducingPatches(place) for place in places]
    each = list(zip(blocks, kernel.kernels, strict=True))
    features = np.concatenate([Kuf(block, part, X) for block, part in each])
    assert_close(Kuf(points, kernel, X), features, rtol=1e-12)
    dense = scipy.linalg.block_diag(*(Kuu(block, part) for block, part in each))
    assert_close(Kuu(points, kernel), dense, rtol=1e-12)
    batches = np.stack([X, 2 * X])
    assert_close(Kuf(points, kernel, batches)[:, 0], features, rtol=1e-12)
    # One part by itself.
    block, part = points.inducing_variables[1], kernel.kernels[1]
    assert_close(Kuf(block, part, X), features[2:], rtol=1e-12)
    assert_close(Kuu(block, part), dense[2:, 2:], rtol=1e-12)


def test_complete_points_are_the_patches_of_whole_orbits() -> None:
    """Theorem 4.1 for the responses: with the best q(u), the same bound and predictions."""
    transforms = [Rotation(3, (1, 2)), Negation(range(4))]
    kernel = HarmonicKernel(conv(gk.Matern32(3.0, 1.4)), transforms)
    points = HarmonicInducingPoints.for_kernel(kernel, Z[:2], complete=True)
    assert points.num_inducing == 12
    orbit = tf.reshape(kernel.transform.orbit(Z[:2]), [-1, 4])
    base = kernel.base_kernel
    pairs = (kernel, points), (base, InducingPatches(orbit)), (base, InducingPatches(Z[:2]))
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        harmonic, stock, fewer = (
            gpflow.models.SGPR((X, Y), *pair, noise_variance=NOISE) for pair in pairs
        )
        assert_close(harmonic.elbo(), stock.elbo(), rtol=1e-6)
        predictions = (model.predict_f(X2, full_cov=True) for model in (harmonic, stock))
        assert_close(*predictions, rtol=1e-6)
        assert fewer.elbo() < stock.elbo() - 1e-3


def test_pairs() -> None:
    kernel = conv()
    W = np.random.default_rng(5).normal(size=(2, 4))
    v, u = InducingPatches(W), InducingPatches(Z)
    assert_close(Kvu(v, u, kernel), kernel.base_kernel(W, Z), rtol=1e-14)
    points = InducingPoints(X2)
    assert_close(Kvu(points, u, kernel), tf.transpose(Kuf(u, kernel, X2)), rtol=1e-15)
    assert_close(Kvu(u, points, kernel), Kuf(u, kernel, X2), rtol=1e-15)
    invariant = Invariant(gk.Matern32(), ImageTranslation((3, 3), (1, 1)))
    v, u = OrbitInducingPoints(X2), OrbitInducingPoints(X[:2])
    assert_close(Kvu(v, u, invariant), invariant.base_kernel(X2, X[:2]), rtol=1e-14)


# Where inducing patches come from, and bad input to them and to their kernels.


def convolutional(**options: Any) -> Convolutional:
    return Convolutional(gk.SquaredExponential(), (3, 4), (2, 2), **options)


def multi(**options: Any) -> MultiChannelConvolutional:
    return MultiChannelConvolutional(gk.SquaredExponential(), (3, 4, 2), (2, 2), **options)


def rows(array: Any) -> list[tuple[float, ...]]:
    return [tuple(row) for row in np.asarray(array)]


def test_unique_patches() -> None:
    kernel, X = convolutional(padding="SAME", stride=(1, 2)), inputs(3, 12)
    points = InducingPatches.from_data(kernel, X, 15)
    columns = numbered_patches((3, 4), (2, 2), (1, 2), "SAME")
    patches = np.append(X, np.zeros((3, 1)), axis=1)[:, columns].reshape(-1, 4)
    assert len(set(rows(points.Z))) == 15 and set(rows(points.Z)) <= set(rows(patches))
    again, other = (InducingPatches.from_data(kernel, X, 15, seed=s) for s in (0, 1))
    np.testing.assert_array_equal(points.Z, again.Z)
    assert rows(other.Z) != rows(points.Z)


def test_repeated_patches_of_binary_images() -> None:
    """16 different patches among 300: each of them is found, once."""
    X = np.random.default_rng(0).integers(0, 2, size=(50, 12)).astype(float)
    points = InducingPatches.from_data(convolutional(), X, 16)
    assert sorted(rows(points.Z)) == sorted(np.ndindex(2, 2, 2, 2))
    with pytest.raises(ValueError, match="num_inducing must be an integer from 1 to 16, found 17"):
        InducingPatches.from_data(convolutional(), X, 17)


def test_patches_of_all_channels() -> None:
    X = inputs(4, 24)
    X[:, 1::2] += 100.0
    points = InducingPatches.from_data(multi(), X, 12)
    patches = X[:, numbered_patches((3, 4, 2), (2, 2), separate_channels=True)].reshape(-1, 4)
    means = points.Z.numpy().mean(axis=1)
    assert (means > 50).any() and (means < 50).any()
    assert set(rows(points.Z)) <= set(rows(patches))


def test_errors() -> None:
    X, rbf = inputs(2, 12), gk.RBF()
    block = HarmonicInducingPoints(np.zeros((2, 3, 4))).inducing_variables[0]
    kinds = (
        "kernel must be a Convolutional or a MultiChannelConvolutional, found SquaredExponential"
    )
    part = "kernel must be a part of a HarmonicKernel, found Convolutional; use InducingPatches or"
    shape = r"weights must be .* of shape \[6, 2\], .* found shape"
    columns = r"X must have 24 columns for images of shape \(3, 4, 2\), found 12"
    assert_refused(
        [
            (lambda: InducingPatches.from_data(rbf, X, 3), kinds),
            (lambda: multi()(X), columns),
            (lambda: multi(weights=np.ones(6)), shape),
            (lambda: Kuu(block, convolutional()), part),
        ]
    )
