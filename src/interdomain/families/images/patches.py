"""Inducing patches of convolutional kernels: van der Wilk et al. 2017, eqs. 15, 16 and 19."""

from __future__ import annotations

from typing import Any, NoReturn

import gpflow
import numpy as np
from gpflow.base import TensorType

from ..._arguments import Array, filled_matrix, instance, integer, refusal
from ...core.functionals import LinearFunctional, Places
from ...core.set_inducing_variables import SetInducingVariables
from .convolutional import Convolutional, MultiChannelConvolutional

_MAX_PATCHES = 100_000


class InducingPatches(SetInducingVariables):
    """Values ``u = g(z)`` of the patch-response function of a convolutional kernel.

    ``cov(u, f(x)) = 1/P sum_p w_p k_g(z, x_p)`` and ``Kuu = k_g(z, z')`` (van der Wilk et al.,
    *Convolutional Gaussian Processes*, 2017, eqs. 15, 16 and 19). For a
    :class:`interdomain.kernels.MultiChannelConvolutional` pass a :class:`SumInducingVariables` of
    one InducingPatches for each channel. Repeat the same object to share its patches.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=(20, 8 * 8))
    >>> base_kernel = gpflow.kernels.SquaredExponential()
    >>> kernel = idm.kernels.Convolutional(base_kernel, image_shape=(8, 8), patch_shape=(3, 3))
    >>> patches = idm.inducing_variables.InducingPatches.from_data(kernel, X, 10)
    >>> patches.Z.shape  # patches, not images
    TensorShape([10, 9])
    >>> gpflow.covariances.Kuf(patches, kernel, X).shape
    TensorShape([10, 20])

    :param Z: ``[M, E]``, finite patches; E is the kernel's ``patch_size``.
    :raises ValueError: If Z is not a finite matrix.
    """

    @classmethod
    def from_data(
        cls,
        kernel: Convolutional | MultiChannelConvolutional,
        X: TensorType,
        num_inducing: int,
        *,
        seed: int = 0,
        name: str | None = None,
    ) -> InducingPatches:
        """Make inducing patches from images: random patches, of which no two are equal.

        :param X: Images ``[N, H W C]``; if they have more than 100,000 patches, a sample is used.
        :param num_inducing: The number M of inducing patches.
        :param seed: Seed of the random choice.
        :raises ValueError: If the kernel has no patches, X does not fit it, or has too few patches.
        """
        kinds = (Convolutional, MultiChannelConvolutional)
        instance("kernel", kernel, kinds, "a Convolutional or a MultiChannelConvolutional")
        images: Array = filled_matrix("X", X, "[N, H W C]").astype(gpflow.default_float())
        rng = np.random.default_rng(seed)
        # Every channel may have separate patches.
        limit = max(1, _MAX_PATCHES // (kernel.num_patches * getattr(kernel, "num_channels", 1)))
        if len(images) > limit:
            images = images[rng.choice(len(images), limit, replace=False)]
        patches = np.unique(np.reshape(kernel.get_patches(images), [-1, kernel.patch_size]), axis=0)
        remedy, most = "there are no more different patches in X", len(patches)
        count = integer("num_inducing", num_inducing, at_least=1, at_most=most, remedy=remedy)
        return cls(rng.permutation(patches)[:count], name=name)

    def acted_Kuf(self, kernel: Any, functional: LinearFunctional, places: Places) -> NoReturn:
        """A ValueError: a row is an image, and its pixels are no coordinates.

        :raises ValueError: In every case.
        """
        remedy = "pass Value(), or a prior of other features"
        rule = "be Value() for images, whose columns are pixels and no coordinates"
        raise refusal("functionals", rule, functional, remedy)
