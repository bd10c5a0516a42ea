"""Convolutional kernels by brute force: patches by loops over pixels, kernels by their formulas."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.experimental.numpy as tnp
from gpflow import kernels as gk
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from interdomain.inducing_variables import InducingPatches
from interdomain.kernels import ChannelAdditive, Convolutional

NUM_Z = 4


def evaluate(kernel: Kernel, a: TensorType, b: TensorType) -> Any:
    """k(a, b) over the last axis, from the difference of a and b."""
    if isinstance(kernel, gk.Sum):
        return sum(evaluate(part, a, b) for part in kernel.kernels)
    if isinstance(kernel, gk.Product):
        return math.prod(evaluate(part, a, b) for part in kernel.kernels)
    if isinstance(kernel, ChannelAdditive):
        height, width, channels = kernel.patch_shape
        total = 0.0
        for c in range(channels):
            own = [(i * width + j) * channels + c for i in range(height) for j in range(width)]
            part = kernel.base_kernels[c if len(kernel.base_kernels) > 1 else 0]
            total += evaluate(part, tnp.take(a, own, axis=-1), tnp.take(b, own, axis=-1))
        return total
    if not isinstance(kernel.active_dims, slice):
        a, b = (tnp.take(x, list(kernel.active_dims), axis=-1) for x in (a, b))
    variance = tf.convert_to_tensor(kernel.variance)
    r2 = tnp.sum(tnp.square((a - b) / tf.convert_to_tensor(kernel.lengthscales)), axis=-1)
    r = tnp.where(r2 > 0, tnp.sqrt(tnp.where(r2 > 0, r2, 1.0)), 0.0)
    formulas: dict[type[Kernel], Callable[[], Any]] = {
        gk.SquaredExponential: lambda: tnp.exp(-r2 / 2),
        gk.Matern32: lambda: (1 + np.sqrt(3) * r) * tnp.exp(-np.sqrt(3) * r),
        gk.Matern52: lambda: (1 + np.sqrt(5) * r + 5 / 3 * r2) * tnp.exp(-np.sqrt(5) * r),
        gk.RationalQuadratic: lambda: tnp.power(
            1 + r2 / (2 * kernel.alpha), -tf.convert_to_tensor(kernel.alpha)
        ),
    }
    return variance * formulas[type(kernel)]()


def starts(size: int, patch: int, stride: int, padding: str) -> list[int]:
    """Where patches begin along one axis; as many zeros before the image as after, or one less."""
    if padding == "VALID":
        return [first for first in range(0, size, stride) if first + patch <= size]
    number = int(np.ceil(size / stride))
    zeros = max((number - 1) * stride + patch - size, 0)
    return [k * stride - zeros // 2 for k in range(number)]


def numbered_patches(
    image_shape: tuple[int, ...],
    patch_shape: tuple[int, int],
    stride: int | tuple[int, int] = 1,
    padding: str = "VALID",
    separate_channels: bool = False,
) -> np.ndarray:
    """The columns of X that make up each patch ``[P, E]``, D standing for a zero beyond the
    border."""
    (H, W), C = image_shape[:2], image_shape[2] if len(image_shape) == 3 else 1
    steps = (stride, stride) if isinstance(stride, int) else stride
    patches = []
    for channels in [[c] for c in range(C)] if separate_channels else [list(range(C))]:
        for top in starts(H, patch_shape[0], steps[0], padding):
            for left in starts(W, patch_shape[1], steps[1], padding):
                columns = []
                for y in range(top, top + patch_shape[0]):
                    for x in range(left, left + patch_shape[1]):
                        inside = 0 <= y < H and 0 <= x < W
                        columns += [(y * W + x) * C + c if inside else H * W * C for c in channels]
                patches.append(columns)
    return np.array(patches)


@dataclass(frozen=True)
class Case:
    """A convolutional kernel."""

    name: str
    base: Callable[[], Kernel]
    image_shape: tuple[int, ...]
    patch_shape: tuple[int, int]
    options: dict[str, Any] = field(default_factory=dict)
    weighted: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def input_dim(self) -> int:
        return int(np.prod(self.image_shape))

    def patches(self) -> np.ndarray:
        options = {name: value for name, value in self.options.items() if name != "locations"}
        return numbered_patches(self.image_shape, self.patch_shape, **options)

    def locations(self) -> np.ndarray:
        """Row and column of each patch, less those of the first, ``[P, 2]``; or ``[P, 0]``."""
        padding, stride = self.options.get("padding", "VALID"), self.options.get("stride", 1)
        rows, columns = (
            starts(size, patch, stride, padding)
            for size, patch in zip(self.image_shape[:2], self.patch_shape, strict=True)
        )
        pairs = [[row - rows[0], column - columns[0]] for row in rows for column in columns]
        channels = self.image_shape[2] if self.options.get("separate_channels") else 1
        return np.array(pairs * channels)[:, : 2 if self.options.get("locations") else 0]

    def build(self) -> tuple[Convolutional, InducingPatches]:
        """The kernel, and inducing patches for it."""
        columns, rng = self.patches(), np.random.default_rng(len(self.name))
        weights = rng.normal(size=len(columns)) if self.weighted else False
        kernel = Convolutional(
            self.base(), self.image_shape, self.patch_shape, weights=weights, **self.options
        )
        size = columns.shape[1] + self.locations().shape[1]
        return kernel, InducingPatches(rng.normal(size=(NUM_Z, size)))

    def images(self, *shape: int, seed: int = 0) -> np.ndarray:
        return np.random.default_rng(seed).normal(size=(*shape, self.input_dim))


CASES = [
    Case("se", lambda: gk.SquaredExponential(1.3, 1.9), (4, 3), (2, 2)),
    Case(
        "se-ard-same-strided",
        lambda: gk.SquaredExponential(0.8, np.linspace(1, 3, 6)),
        (5, 4),
        (2, 3),
        {"stride": 2, "padding": "SAME"},
    ),
    Case(
        "matern52-ard-separate-same",
        lambda: gk.Matern52(0.7, np.linspace(1, 3, 4)),
        (3, 2, 3),
        (2, 2),
        {"separate_channels": True, "padding": "SAME"},
    ),
    Case(
        "rational-quadratic-same",
        lambda: gk.RationalQuadratic(1.2, 1.7, 0.8),
        (4, 3),
        (2, 2),
        {"padding": "SAME"},
    ),
    Case(
        "channel-additive",
        lambda: ChannelAdditive(
            [gk.SquaredExponential(1.3, 1.4), gk.Matern32(0.6, np.linspace(1, 2, 4))], (2, 2)
        ),
        (3, 3, 2),
        (2, 2),
    ),
    Case(
        "sum-with-active-dims",
        lambda: (
            gk.SquaredExponential(1.3, 1.4, active_dims=[0, 1])
            + gk.Matern52(0.6, [1.2, 0.9], active_dims=[3, 1])
        ),
        (3, 4),
        (2, 2),
        weighted=False,
    ),
    Case(
        "locations-matern32",
        lambda: (
            gk.SquaredExponential(1.3, 1.9, active_dims=range(4))
            * gk.Matern32(1.0, 3.0, active_dims=[4, 5])
        ),
        (3, 3),
        (2, 2),
        {"locations": True},
    ),
    Case(
        "locations-se-same-strided",
        lambda: (
            gk.SquaredExponential(1.3, 1.9, active_dims=range(4))
            * gk.SquaredExponential(0.8, [3.0, 2.0], active_dims=[4, 5])
        ),
        (5, 4, 2),
        (2, 2),
        {"stride": 2, "padding": "SAME", "separate_channels": True, "locations": True},
    ),
]
BY_NAME = {case.name: case for case in CASES}


def point_weights(kernel: Convolutional, num_patches: int) -> TensorType:
    """w_p / P."""
    weights = np.ones(num_patches) if kernel.weights is None else kernel.weights
    return tf.convert_to_tensor(weights) / num_patches


def by_broadcasting(
    case: Case, kernel: Convolutional, points: InducingPatches, X: tf.Tensor, X2: tf.Tensor
) -> list[tf.Tensor]:
    """K(X), K(X, X2), K_diag(X), Kuf(X) and Kuu from all pairs of patches at once; TensorFlow
    differentiates them."""
    columns, locations = case.patches(), case.locations()
    weights = point_weights(kernel, len(columns))

    def patches(x: tf.Tensor) -> tf.Tensor:
        pixels = tf.gather(tf.concat([x, tf.zeros_like(x[:, :1])], axis=1), columns, axis=1)
        places = np.tile(locations.astype(float), [x.shape[0], 1, 1])
        return tf.concat([pixels, places], axis=-1)

    def kernel_values(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
        """``[..., n, n2]`` of ``[..., n, E]`` and ``[..., n2, E]``."""
        values = evaluate(kernel.base_kernel, first[..., :, None, :], second[..., None, :, :])
        return tf.convert_to_tensor(values)

    def flat(x: tf.Tensor) -> tf.Tensor:
        return tf.reshape(x, [-1, x.shape[-1]])

    def matrix(x: tf.Tensor, x2: tf.Tensor) -> tf.Tensor:
        values = kernel_values(flat(patches(x)), flat(patches(x2)))
        split = tf.reshape(values, [x.shape[0], len(columns), x2.shape[0], len(columns)])
        return tf.einsum("npmq,p,q->nm", split, weights, weights)

    x_patches, Z = patches(X), tf.convert_to_tensor(points.Z)
    cross = tf.reshape(kernel_values(Z, flat(x_patches)), [Z.shape[0], X.shape[0], len(columns)])
    return [
        matrix(X, X),
        matrix(X, X2),
        tf.einsum("npq,p,q->n", kernel_values(x_patches, x_patches), weights, weights),
        tf.linalg.matvec(cross, weights),
        kernel_values(Z, Z),
    ]
