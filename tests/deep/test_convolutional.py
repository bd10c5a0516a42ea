"""Layers from images to images, against loops over patches."""

from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.covariances import Kuu
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import SquaredExponential
from scipy.special import eval_gegenbauer

from interdomain import deep
from interdomain.inducing_variables import ActivationFeatures, HarmonicInducingPoints
from interdomain.kernels import ArcCosine, FiniteRank, HarmonicKernel
from interdomain.models import JointQ, QPerBlock
from interdomain.transforms import Negation

from .cases import NUM_DATA, randomise

SHAPE = (5, 4, 2)
rng = np.random.default_rng(0)
IMAGES = rng.normal(size=(3, 40))
Z = rng.normal(size=(6, 12))


def layers(
    form: type, outputs: int = 3, **options: Any
) -> tuple[deep.ConvolutionalLayer, deep.Layer]:
    """A layer of images, and the layer of patches of the same kernel and q."""
    kernel: Any = SquaredExponential(lengthscales=2.0)
    points: Any = InducingPoints(Z)
    if form is QPerBlock:
        kernel = HarmonicKernel(kernel, Negation())
        points = HarmonicInducingPoints.for_kernel(kernel, Z)
    q = form(kernel, points, num_latent_gps=outputs)
    shapes = {"image_shape": SHAPE, "patch_shape": (3, 2)}
    layer = deep.ConvolutionalLayer(kernel, q, NUM_DATA, "identity", **shapes, **options)
    randomise(layer)
    return layer, deep.Layer(kernel, q, NUM_DATA, layer.mean_function)


def patches(image: Any, stride: int, padding: str) -> list[Any]:
    """Patches of 3 x 2 pixels, row by row, as TensorFlow's convolutions see them."""
    pixels = image.reshape(SHAPE)
    if padding == "SAME":
        assert stride == 1
        pixels = np.pad(pixels, [[1, 1], [0, 1], [0, 0]])
    rows, columns = pixels.shape[:2]
    return [
        pixels[i : i + 3, j : j + 2].reshape(-1)
        for i in range(0, rows - 2, stride)
        for j in range(0, columns - 1, stride)
    ]


@pytest.mark.parametrize(
    ("form", "stride", "padding", "shape"),
    [
        (JointQ, 1, "VALID", (3, 3, 3)),
        (QPerBlock, 2, "VALID", (2, 2, 3)),
        (JointQ, 1, "SAME", SHAPE),
    ],
)
def test_every_patch_by_itself(form: type, stride: int, padding: Any, shape: Any) -> None:
    layer, inner = layers(form, shape[2], stride=stride, padding=padding)
    assert layer.output_image_shape == shape and layer.output_dim == np.prod(shape)
    found = layer.predict(IMAGES)
    marginals = layer.marginals_and_kl(IMAGES)
    for k, image in enumerate(IMAGES):
        patch_moments = inner.predict(np.array(patches(image, stride, padding)))
        for part, other, expected in zip(found, marginals, patch_moments, strict=False):
            pixels = np.reshape(expected, [-1])  # place by place, the channels of each together
            np.testing.assert_allclose(part[k], pixels, rtol=1e-9)
            np.testing.assert_allclose(other[k], pixels, rtol=1e-9)
    np.testing.assert_allclose(marginals[2], inner.prior_kl())


def test_it_begins_as_the_identity() -> None:
    """The mean of the prior is the image without its border; channels come round."""
    layer, _ = layers(JointQ)
    layer.q_mu.assign(0 * layer.q_mu)
    mean = np.reshape(layer.predict(IMAGES)[0], [3, 3, 3, 3])
    images = IMAGES.reshape([3, *SHAPE])
    np.testing.assert_allclose(mean, images[:, 1:4, 1:4][..., [0, 1, 0]])


def test_wrong_shapes_are_named() -> None:
    layer, _ = layers(JointQ, name="images")
    with pytest.raises(ValueError, match="patch_shape must make patches of 12 columns, .* of 18;"):
        deep.ConvolutionalLayer(
            layer.kernel, layer.q, NUM_DATA, image_shape=SHAPE, patch_shape=(3, 3)
        )
    model = deep.DeepGP([layer], gpflow.likelihoods.Gaussian())
    with pytest.raises(ValueError, match=r"f_layers\[0\] \(images\): image_shape must have .* 41,"):
        model.check_input_dim(41)


# Activation features.


def relu_up_to(degree: int, dimension: int) -> Any:
    """The ReLU's Gegenbauer series, its coefficients by numerical integration."""
    alpha = dimension / 2 - 1
    nodes, weights = np.polynomial.legendre.leggauss(100)
    angle = np.pi / 4 * (nodes + 1)  # where the activation is not zero
    t, measure = np.cos(angle), weights * np.sin(angle) ** (2 * alpha)
    coefficients = []
    for n in range(degree + 1):
        values = eval_gegenbauer(n, alpha, t)
        squares = 2 * np.sum(measure * values**2)  # of both halves
        coefficients.append(np.sum(measure * t * values) / squares)

    def activation(x: Any) -> Any:
        terms = [c * eval_gegenbauer(n, alpha, x) for n, c in enumerate(coefficients)]
        return np.sum(terms, axis=0)

    return activation


def arc_cosine() -> ArcCosine:
    return ArcCosine(weight_variances=[1.0, 0.5, 2.0], variance=1.5, bias_variance=0.7)


def make_layer(outputs: int, max_degree: int, finite_rank: bool = False, **form: Any) -> deep.Layer:
    units = ActivationFeatures.random(3, 9, "relu", max_degree)
    mean = gpflow.mean_functions.Constant(np.arange(1.0, 1 + outputs))
    kernel = FiniteRank(arc_cosine(), units) if finite_rank else arc_cosine()
    q = JointQ(kernel, units, num_latent_gps=outputs, **form)
    return deep.Layer(kernel, q, NUM_DATA, mean)


@pytest.mark.parametrize("options", [{}, {"whiten": False}, {"finite_rank": True}])
def test_the_mean_is_a_forward_pass(options: dict[str, Any]) -> None:
    """A network of one hidden layer, with weights computed apart from the library: to rounding."""
    layer = make_layer(2, 7, **options)
    randomise(layer)
    X = np.random.default_rng(1).normal(size=(20, 3))
    # Lifted by hand.
    lifted = np.hstack([X * np.sqrt([1.0, 0.5, 2.0]), np.full([20, 1], np.sqrt(0.7))])
    radius = np.linalg.norm(lifted, axis=1, keepdims=True)
    kuu = Kuu(layer.inducing_variable, arc_cosine(), jitter=gpflow.default_jitter()).numpy()
    root = np.eye(9) if options.get("whiten") is False else np.linalg.cholesky(kuu)
    weights = np.linalg.solve(kuu, root @ layer.q_mu)
    hidden = relu_up_to(7, 4)(lifted / radius @ layer.inducing_variable.Z.numpy().T)
    expected = radius * hidden @ weights + [1.0, 2.0]
    np.testing.assert_allclose(layer.predict(X)[0], expected, rtol=1e-9, atol=1e-9)
    layer.q_sqrt.assign(1e-6 * layer.q_sqrt.numpy())  # what is left is what no unit explains
    assert np.all((layer.predict(X)[1] < 1e-6) == options.get("finite_rank", False))
