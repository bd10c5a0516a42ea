"""A layer of each kind, of any number of outputs, for inputs of two columns."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern32, SquaredExponential

from interdomain import deep
from interdomain.inducing_variables import (
    ActivationFeatures,
    HarmonicInducingPoints,
    SphericalHarmonics,
)
from interdomain.kernels import ArcCosine, FiniteRank, HarmonicKernel, SphericalMatern32
from interdomain.models import JointQ, OrthogonalQ, QPerBlock
from interdomain.transforms import Rotation

NUM_DATA = 40
Make = Callable[..., deep.Layer]


def make_data(num_outputs: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(NUM_DATA, 2))
    Y = np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(NUM_DATA, num_outputs))
    dtype = gpflow.default_float()
    return X.astype(dtype), Y.astype(dtype)


def layer(form: Any, parts: Callable[[int], tuple[Any, ...]]) -> Make:
    """Makes layers with a class of q, from kernel and inducing variables of some outputs."""

    def make(outputs: int, mean: Any = None, *, name: Any = None, **options: Any) -> deep.Layer:
        kernel, *sets = parts(outputs)
        q = form(kernel, *sets, num_latent_gps=outputs, **options)
        return deep.Layer(kernel, q, NUM_DATA, mean, name=name)

    return make


def finite_rank(outputs: int) -> tuple[Any, ...]:
    features = SphericalHarmonics(3, [0, 1, 2])
    return FiniteRank(SphericalMatern32(weight_variances=[1.0, 0.5]), features), features


def rotated(outputs: int) -> tuple[Any, ...]:
    kernel = HarmonicKernel(Matern32(), Rotation(3))
    return kernel, HarmonicInducingPoints.for_kernel(kernel, make_data()[0][:4])


def base_and_points(outputs: int) -> tuple[Any, ...]:
    return SphericalMatern32(), SphericalHarmonics(3, [0, 1]), InducingPoints(make_data()[0][:5])


harmonics = layer(JointQ, finite_rank)
points = layer(JointQ, lambda _: (SquaredExponential(), InducingPoints(make_data()[0][:6])))
activation = layer(JointQ, lambda _: (ArcCosine(), ActivationFeatures.random(2, 5, "relu", 4)))
blocks = layer(QPerBlock, rotated)
orthogonal = layer(OrthogonalQ, base_and_points)


def convolutional(outputs: int, mean: Any = None) -> deep.ConvolutionalLayer:
    """Patches of one pixel of an image of two: 2 outputs at each place would be 4, so one."""
    assert outputs % 2 == 0
    kernel, points = SquaredExponential(), InducingPoints(make_data()[0][:4, :1])
    q = JointQ(kernel, points, num_latent_gps=outputs // 2)
    shapes = {"image_shape": (2, 1), "patch_shape": (1, 1)}
    return deep.ConvolutionalLayer(kernel, q, NUM_DATA, "identity", **shapes)


def randomise(model: Any, seed: int = 0, scale: float = 0.3) -> None:
    """Every q of some layers away from zero, covariances of several sizes."""
    rng = np.random.default_rng(seed)
    for layer in model.f_layers if hasattr(model, "f_layers") else [model]:
        for q_mu, q_sqrt in layer.variational_parameters:
            q_mu.assign(rng.normal(size=q_mu.shape))
            root = scale * np.exp(0.3 * rng.normal(size=q_sqrt.shape))
            if len(q_sqrt.shape) == 3:
                size = q_sqrt.shape[-1]
                root = np.tril(0.1 * rng.normal(size=q_sqrt.shape)) + root * np.eye(size)
            q_sqrt.assign(root)


def stacked(*makes: Make, **options: Any) -> deep.DeepGP:
    """A model of these layers, one after the other: two outputs each, and one of the last."""
    hidden = [make(2, gpflow.mean_functions.Identity()) for make in makes[:-1]]
    return deep.DeepGP([*hidden, makes[-1](1)], gpflow.likelihoods.Gaussian(0.1), **options)


def each_kind(**options: Any) -> deep.DeepGP:
    """A layer of each q, and a convolution."""
    return stacked(harmonics, orthogonal, convolutional, blocks, **options)
