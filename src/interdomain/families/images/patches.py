"""Inducing patches of convolutional kernels: van der Wilk et al. 2017, eqs. 15, 16 and 19."""

from __future__ import annotations

from typing import Literal

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from ..._arguments import Array, choice, filled_matrix, instance, integer
from ...core.clustering import k_means
from ...core.set_kernel import SetKernel
from ...core.set_points import SetInducingVariables, finite_parameter
from .convolutional import Convolutional, MultiChannelConvolutional

_MAX_PATCHES = 100_000


class InducingPatches(SetInducingVariables):
    """Values ``u = g(z)`` of the patch-response function of a convolutional kernel.

    ``cov(u, f(x)) = 1/P sum_p w_p k_g(z, x_p)`` and ``Kuu = k_g(z, z')`` (van der Wilk et al.,
    *Convolutional Gaussian Processes*, 2017, eqs. 15, 16 and 19). For a
    :class:`interdomain.kernels.MultiChannelConvolutional` pass one for each channel in a
    :class:`SumInducingVariables`; pass the same object several times to share its patches.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=(20, 8 * 8))
    >>> base_kernel = gpflow.kernels.SquaredExponential()
    >>> kernel = idm.kernels.Convolutional(base_kernel, image_shape=(8, 8), patch_shape=(3, 3))
    >>> patches = idm.inducing_variables.InducingPatches.from_data(kernel, X, 10)
    >>> patches.Z.shape  # patches, not images
    TensorShape([10, 9])
    >>> gpflow.covariances.Kuf(patches, kernel, X).shape
    TensorShape([10, 20])

    :param Z: ``[M, E]``, patches of the kernel's ``patch_size``.
    :param locations: ``[M, 2]``, the row and column, in pixels, of each patch's centre; required
        for kernels with a ``location_kernel``, and for no others.
    :raises ValueError: If Z or ``locations`` is not a matrix of these shapes, or not finite.
    """

    def __init__(
        self, Z: TensorType, locations: TensorType | None = None, *, name: str | None = None
    ) -> None:
        super().__init__(Z, name=name)
        if locations is not None:
            locations = finite_parameter("locations", locations, "[M, 2]")
            if tuple(locations.shape) != (self.Z.shape[0], 2):
                raise ValueError(
                    f"locations must be [M, 2] for M = {self.Z.shape[0]} patches, found shape "
                    f"{list(locations.shape)}; pass a row and a column for each patch."
                )
        self.locations: gpflow.Parameter | None = locations

    @classmethod
    def from_data(
        cls,
        kernel: Convolutional | MultiChannelConvolutional,
        X: TensorType,
        num_inducing: int,
        *,
        method: Literal["unique", "k-means"] = "unique",
        seed: int = 0,
        name: str | None = None,
    ) -> InducingPatches:
        """Make inducing patches from images: random distinct patches, or centres of clusters.

        :param kernel: The kernel they will be used with. If it has a ``location_kernel``, the
            inducing patches have locations: their own or, for the centres of k-means, that of the
            nearest patch (of at most 10,000 random ones).
        :param X: Images ``[N, H W C]``. Of many images a random sample is used, with at most
            100,000 patches.
        :param num_inducing: The number M of inducing patches.
        :param method: "unique" for random patches, no two of them equal; "k-means" for centres of
            clusters.
        :param seed: Seed of the random choice.
        :raises ValueError: If the kernel has no patches, X does not fit it, the method is unknown,
            or there are fewer different patches than asked for.
        """
        kinds = (Convolutional, MultiChannelConvolutional)
        instance("kernel", kernel, kinds, "a Convolutional or a MultiChannelConvolutional")
        choice("method", method, ("unique", "k-means"))
        num_inducing = integer("num_inducing", num_inducing, at_least=1)
        rng = np.random.default_rng(seed)
        points, located = _random_patches(kernel, X, rng)
        size = kernel.patch_size
        _, first = np.unique(points if located else points[:, :size], axis=0, return_index=True)
        if len(first) < num_inducing:
            raise ValueError(
                f"num_inducing must be at most {len(first)}, the number of different patches in X, "
                f"found {num_inducing}; pass a smaller number, or patches of your own."
            )
        if method == "unique":
            chosen = points[rng.permutation(first)[:num_inducing]]
        else:
            centres = k_means(points[:, :size], num_inducing, seed=seed)
            distances = np.sum(np.square(centres[:, None] - points[None, :10_000, :size]), axis=-1)
            places = points[np.argmin(distances, axis=1), size:]
            chosen = np.concatenate([centres, places], axis=1)
        return cls(chosen[:, :size], chosen[:, size:] if located else None, name=name)

    def points(self, kernel: SetKernel) -> tf.Tensor:
        Z = tf.convert_to_tensor(self.Z)
        if self.locations is None:
            if kernel.point_dim == Z.shape[-1] + 2:
                raise ValueError(
                    "locations must be given for a kernel with a location_kernel, found None; pass "
                    "InducingPatches(Z, locations), or InducingPatches.from_data(kernel, X, M)."
                )
        else:
            if kernel.point_dim == Z.shape[-1]:
                raise ValueError(
                    "locations must be None for a kernel without a location_kernel, found shape "
                    f"{list(self.locations.shape)}; leave them out."
                )
            Z = tf.concat([Z, tf.convert_to_tensor(self.locations)], axis=-1)
        return kernel.as_points(Z)


def _random_patches(
    kernel: Convolutional | MultiChannelConvolutional, X: TensorType, rng: np.random.Generator
) -> tuple[Array, bool]:
    """Patches and their places ``[n, E + 2]``, and whether the kernel looks at the places."""
    images: Array = filled_matrix("X", X, "[N, H W C]").astype(gpflow.default_float())
    channels = getattr(kernel, "num_channels", 1)  # one after the other
    limit = max(1, _MAX_PATCHES // (kernel.num_patches * channels))
    if len(images) > limit:
        images = images[rng.choice(len(images), limit, replace=False)]
    patches = kernel.get_patches(images).numpy()
    places = np.tile(kernel.grid.positions, (len(images), channels, 1))
    points = np.concatenate([patches, places], axis=-1).reshape(-1, patches.shape[-1] + 2)
    shuffled: Array = points[rng.permutation(len(points))]
    return shuffled, getattr(kernel, "location_kernel", None) is not None
