"""Sums over the channels of images, and of patches."""

import functools
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from gpflow import kernels as gk
from gpflow.covariances import Kuf, Kuu

from interdomain.inducing_variables import InducingPatches, SumInducingVariables
from interdomain.kernels import ChannelAdditive, Convolutional, MultiChannelConvolutional
from tests.conformance.helpers import assert_close
from tests.families.images.references import evaluate, numbered_patches

IMAGE, PATCH = (3, 4, 3), (2, 2)
OPTIONS: dict[str, Any] = {"stride": (1, 2), "padding": "SAME"}
NUM_PATCHES, NUM_CHANNELS = 6, 3
close = functools.partial(assert_close, rtol=1e-12)
X, X2 = np.random.default_rng(0).normal(size=(2, 3, 36))
Z = np.random.default_rng(1).normal(size=(4, 4))
WEIGHTS = np.random.default_rng(2).normal(size=(NUM_PATCHES, NUM_CHANNELS))


def own_kernels() -> list[gk.Kernel]:
    return [
        gk.SquaredExponential(1.3, 1.2),
        gk.Matern32(0.7, [1.0, 2.0, 1.5, 0.8]),
        gk.RationalQuadratic(0.4, 1.6),
    ]


def by_loops(kernels: list[gk.Kernel], weights: np.ndarray) -> list[np.ndarray]:
    """K(X), K(X, X2), K_diag(X) of each channel, and its covariances with the same patches."""
    columns = numbered_patches(IMAGE, PATCH, separate_channels=True, **OPTIONS)
    channel_columns = np.split(columns, NUM_CHANNELS)
    results: list[list[Any]] = [[], [], [], []]
    for kernel, patches, w in zip(kernels, channel_columns, weights.T, strict=True):
        own, own2 = (np.append(x, np.zeros((3, 1)), axis=1)[:, patches] for x in (X, X2))

        def matrix(
            A: np.ndarray, B: np.ndarray, w: np.ndarray = w, kernel: gk.Kernel = kernel
        ) -> np.ndarray:
            total = np.zeros((len(A), len(B)))
            for p, q in np.ndindex(NUM_PATCHES, NUM_PATCHES):
                total += w[p] * w[q] * evaluate(kernel, A[:, None, p], B[None, :, q])
            return total / NUM_PATCHES**2

        results[0].append(matrix(own, own))
        results[1].append(matrix(own, own2))
        results[2].append(np.diag(matrix(own, own)))
        results[3].append(
            sum(w[p] * evaluate(kernel, Z[:, None], own[None, :, p]) for p in range(NUM_PATCHES))
            / NUM_PATCHES
        )
    return [np.array(result) for result in results]


def covariances(kernel: gk.Kernel) -> list[Any]:
    return [kernel(X), kernel(X, X2), kernel(X, full_cov=False)]


@pytest.mark.parametrize(("shared", "weighted"), [(True, False), (False, True)])
def test_a_sum_over_channels(shared: bool, weighted: bool) -> None:
    kernels: Any = own_kernels()[1] if shared else own_kernels()
    weights = WEIGHTS if weighted else np.ones_like(WEIGHTS)
    kernel = MultiChannelConvolutional(
        kernels, IMAGE, PATCH, weights=weights if weighted else False, **OPTIONS
    )
    assert kernel.num_patches == NUM_PATCHES and len(kernel.kernels) == NUM_CHANNELS
    K, cross, diagonal, features = by_loops([kernels] * 3 if shared else kernels, weights)
    close(covariances(kernel), [part.sum(axis=0) for part in (K, cross, diagonal)])
    for c, part in enumerate(kernel.kernels):
        close(covariances(part), (K[c], cross[c], diagonal[c]))
    points = SumInducingVariables([InducingPatches(Z)] * 3)
    close(Kuf(points, kernel, X), features.reshape(12, 3))
    blocks = [part(Z) for part in ([kernels] * 3 if shared else kernels)]
    close(Kuu(points, kernel), scipy.linalg.block_diag(*blocks))


def test_weights_that_are_products() -> None:
    """w_pc = w_p w_c: a convolution of the sum over channels, with variances times w_c^2."""
    patch_weights, channel_weights = WEIGHTS[:, 0], np.array([0.7, -1.4, 0.3])
    multi = MultiChannelConvolutional(
        own_kernels(), IMAGE, PATCH, weights=np.outer(patch_weights, channel_weights), **OPTIONS
    )
    scaled = own_kernels()
    for kernel, w in zip(scaled, channel_weights, strict=True):
        kernel.variance.assign(kernel.variance * w**2)
    additive = Convolutional(
        ChannelAdditive(scaled, PATCH), IMAGE, PATCH, weights=patch_weights, **OPTIONS
    )
    close(covariances(additive), covariances(multi))


def test_parts_share_the_patches_and_a_kernel() -> None:
    kernel = MultiChannelConvolutional([gk.Matern32()] * 3, IMAGE, PATCH, weights=False)
    assert len(kernel.base_kernels) == 1 and len(kernel.parameters) == 2
    columns = numbered_patches(IMAGE, PATCH, separate_channels=True)
    np.testing.assert_array_equal(kernel.get_patches(X), X[:, columns])
