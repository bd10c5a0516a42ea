"""Convolutional kernels: van der Wilk, Rasmussen and Hensman 2017."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from ..._arguments import finite_array, items, refusal
from ...core.columns import checked_columns
from ...core.decomposed import DecomposedKernel
from ...core.parameters import single_output
from ...core.set_kernel import SetKernel, mean_weights
from .patch_grid import PatchGrid


class Convolutional(SetKernel):
    """A weighted mean of the responses of one function g to the patches of an image.

    ``f(x) = 1/P sum_p w_p g(x_p)``, ``g ~ GP(0, k_g)`` (van der Wilk et al., *Convolutional
    Gaussian Processes*, 2017, eqs. 13 and 17). Images are rows of ``H W`` or ``H W C`` columns,
    row-major with the channel last, as for ``gpflow.kernels.Convolutional``. Like GPflow's kernel,
    this one divides by the number P of patches. The paper does not: its kernel is this one with
    the variance of ``base_kernel`` multiplied by P^2.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> base_kernel = gpflow.kernels.SquaredExponential()
    >>> kernel = idm.kernels.Convolutional(base_kernel, image_shape=(8, 8), patch_shape=(3, 3))
    >>> kernel.num_patches, kernel.patch_size
    (36, 9)
    >>> kernel(np.zeros([5, 64])).shape
    TensorShape([5, 5])

    With ``locations`` g also sees where a patch is, and the kernel can be insensitive to small
    shifts where without it is invariant to all (Dutordoir et al., *Bayesian Image Classification
    with Deep Convolutional Gaussian Processes*, 2020): let ``base_kernel`` be a product of one of
    patches and one of their locations::

        patches = gpflow.kernels.SquaredExponential(active_dims=range(9))
        locations = gpflow.kernels.SquaredExponential(lengthscales=3.0, active_dims=[9, 10])
        Convolutional(patches * locations, image_shape=(8, 8), patch_shape=(3, 3), locations=True)

    :param base_kernel: k_g, on patches of ``h w C`` columns (``h w`` with ``separate_channels``)
        and two more with ``locations``; any of GPflow's with one output, with its ``active_dims``,
        or :class:`ChannelAdditive`.
    :param image_shape: ``(H, W)`` or ``(H, W, C)``.
    :param patch_shape: ``(h, w)``.
    :param weights: Whether each patch has a trainable weight, initially one; or the initial values
        ``[P]`` of the weights. Without weights, it does not matter where in the image a patch is.
    :param stride: In pixels, from one patch to the next: one number, or (rows, columns).
    :param padding: "VALID" for patches inside the image, or "SAME" for a patch around every pixel,
        with zeros beyond the border; as in ``tf.nn.conv2d``.
    :param separate_channels: Whether g takes the patches of each channel separately, as points of
        their own: the "weighted" variant of the paper's colour images. Otherwise a patch has all
        channels (the "colour-patch" variant).
    :param locations: Whether the last two columns of a patch are the row and the column of its
        first pixel, counted from that of the first patch, in pixels.
    :param active_dims: The columns of X that hold the image.
    :ivar num_patches: The number P of patches of an image.
    :ivar patch_size: The number of columns of a patch.
    :raises ValueError: If an argument is not as above, or does not fit the others.
    """

    def __init__(
        self,
        base_kernel: Kernel,
        image_shape: Sequence[int],
        patch_shape: Sequence[int],
        *,
        weights: bool | TensorType = True,
        stride: int | Sequence[int] = 1,
        padding: Literal["VALID", "SAME"] = "VALID",
        separate_channels: bool = False,
        locations: bool = False,
        active_dims: Sequence[int] | slice | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        self.base_kernel = single_output("base_kernel", base_kernel)
        shapes = image_shape, patch_shape
        self.grid = PatchGrid(*shapes, stride, padding, separate_channels, locations)
        self.num_patches, self.patch_size = self.grid.num_patches, self.grid.patch_size
        self.weights = initial_weights(weights, (self.num_patches,))

    @property
    def point_dim(self) -> int:
        return self.patch_size

    @property
    def point_weights(self) -> tf.Tensor:
        return mean_weights(self.num_patches, self.weights)

    @property
    def input_dim(self) -> int:
        return self.grid.input_dim

    @inherit_check_shapes
    def points(self, X: tf.Tensor) -> tf.Tensor:
        return self.grid.extract(validate_images(X, self.grid))

    @check_shapes("X: [N, D]", "return: [N, P, E]")
    def get_patches(self, X: TensorType) -> tf.Tensor:
        """The patches of each image, row by row (and channel by channel, if those are separate).

        :raises ValueError: If X does not have a column for each entry of an image.
        """
        return self.points(self.slice(tf.convert_to_tensor(X), None)[0])


class MultiChannelConvolutional(DecomposedKernel):
    """A sum over the channels of an image. Each has its own function of its patches.

    ``f(x) = 1/P sum_c sum_p w_pc g_c(x_pc)`` with independent ``g_c ~ GP(0, k_c)`` (van der Wilk et
    al. 2017, eq. 22; without 1/P there). The parts, :attr:`kernels`, are independent a priori, so
    each part has its own inducing variables. They may be at the same patches:
    ``SumInducingVariables([InducingPatches(Z)] * C)`` (section 3.4 and Appendix C).

    The other arguments are those of :class:`Convolutional`.

    :param base_kernels: The k_c, on patches of ``h w`` columns: one for all channels, or for each.
    :param image_shape: ``(H, W, C)``.
    :param weights: Whether each patch of each channel has a trainable weight, initially one; or the
        initial values ``[P, C]`` of the weights.
    :ivar num_patches: The number P of patches of each channel.
    :ivar patch_size: The number ``h w`` of entries of a patch.
    :raises ValueError: As for :class:`Convolutional`; also for another number of kernels.
    """

    def __init__(
        self,
        base_kernels: Kernel | Sequence[Kernel],
        image_shape: Sequence[int],
        patch_shape: Sequence[int],
        *,
        weights: bool | TensorType = True,
        stride: int | Sequence[int] = 1,
        padding: Literal["VALID", "SAME"] = "VALID",
        active_dims: Sequence[int] | slice | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        image_grid = PatchGrid(image_shape, patch_shape, stride, padding, separate_channels=True)
        self.grid = PatchGrid(image_grid.image_shape[:2], patch_shape, stride, padding)
        self.num_patches, self.patch_size = self.grid.num_patches, self.grid.patch_size
        self.num_channels = image_grid.num_channels
        self.base_kernels = one_per_channel(base_kernels, self.num_channels)
        self.weights = initial_weights(weights, (self.num_patches, self.num_channels))

    @property
    def kernels(self) -> tuple[ChannelConvolutional, ...]:
        """The part of each channel: views made on demand that share the parameters."""
        return tuple(ChannelConvolutional(self, channel) for channel in range(self.num_channels))

    @check_shapes("X: [N, D]", "return: [N, P, E]")
    def get_patches(self, X: TensorType) -> tf.Tensor:
        """The patches of all channels, one channel after the other; P counts those of all.

        :raises ValueError: If X does not have a column for each entry of an image.
        """
        X, _ = self.slice(tf.convert_to_tensor(X), None)
        return tf.concat([part.points(X) for part in self.kernels], axis=1)


class ChannelConvolutional(SetKernel):
    """The part of one channel, made by :attr:`MultiChannelConvolutional.kernels`.

    :param parent: The whole kernel, whose parameters this one uses.
    """

    def __init__(self, parent: MultiChannelConvolutional, channel: int) -> None:
        super().__init__(name=f"{parent.name}_{channel}")
        self.parent, self.channel = parent, channel
        self.active_dims = parent.active_dims

    @property
    def point_kernel(self) -> Kernel:
        kernels = self.parent.base_kernels  # one for each channel, or one for all
        return kernels[self.channel % len(kernels)]

    @property
    def point_dim(self) -> int:
        return self.parent.patch_size

    @property
    def point_weights(self) -> tf.Tensor:
        weights = self.parent.weights
        channel_weights = None if weights is None else weights[:, self.channel]
        return mean_weights(self.parent.num_patches, channel_weights)

    @property
    def input_dim(self) -> int:
        return self.parent.grid.input_dim * self.parent.num_channels

    @inherit_check_shapes
    def points(self, X: tf.Tensor) -> tf.Tensor:
        grid, channels = self.parent.grid, self.parent.num_channels
        X = validate_images(tf.convert_to_tensor(X), grid, channels)
        pixels = tf.reshape(X, [-1, grid.input_dim, channels])
        return grid.extract(pixels[..., self.channel])


def one_per_channel(base_kernels: Kernel | Sequence[Kernel], num_channels: int) -> list[Kernel]:
    """A kernel for each channel, or a single one for all.

    :raises ValueError: If there are others than kernels, or not as many as channels.
    """
    alone = [base_kernels] if isinstance(base_kernels, Kernel) else base_kernels
    kernels = items("base_kernels", alone, "a kernel or a list of kernels")
    if len(kernels) not in (1, num_channels):
        remedy = f"pass one kernel, or a list of {num_channels}"
        rule = f"be one kernel, or one for each of {num_channels} channels"
        raise refusal("base_kernels", rule, f"{len(kernels)} of them", remedy)
    if len({id(kernel) for kernel in kernels}) == 1:
        kernels = kernels[:1]
    return [single_output("base_kernels", kernel) for kernel in kernels]


def initial_weights(weights: bool | TensorType, shape: tuple[int, ...]) -> gpflow.Parameter | None:
    """:raises ValueError: If values are given that are not finite or not of the shape."""
    if isinstance(weights, bool):
        return gpflow.Parameter(np.ones(shape)) if weights else None
    values = finite_array("weights", weights, (1, 2), "True, False or finite values")
    if values.shape != shape:
        remedy = "pass True for ones"
        rule = f"be True, False or finite values of shape {list(shape)}, one for each patch"
        raise refusal("weights", rule, f"shape {list(values.shape)}", remedy)
    return gpflow.Parameter(values)


def validate_images(X: tf.Tensor, grid: PatchGrid, channels: int = 1) -> tf.Tensor:
    """:raises ValueError: If X does not have a column for each entry of an image."""
    shape = (*grid.image_shape[:2], grid.num_channels * channels)
    remedy = "pass images flattened to rows, or active_dims to the kernel"
    return checked_columns(X, grid.input_dim * channels, f" for images of shape {shape}", remedy)
