"""Convolutional kernels of images: van der Wilk, Rasmussen and Hensman 2017."""

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
    row-major with the channel last, as for ``gpflow.kernels.Convolutional``. This kernel divides by
    the number P of patches, like GPflow's kernel. The paper does not divide by P: multiply the
    variance of ``base_kernel`` by P^2 to get the paper's kernel.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> base_kernel = gpflow.kernels.SquaredExponential()
    >>> kernel = idm.kernels.Convolutional(base_kernel, image_shape=(8, 8), patch_shape=(3, 3))
    >>> kernel.num_patches, kernel.patch_size
    (36, 9)
    >>> kernel(np.zeros([5, 64])).shape
    TensorShape([5, 5])

    With ``locations``, g also depends on the location of a patch (Dutordoir et al., *Bayesian Image
    Classification with Deep Convolutional Gaussian Processes*, 2020). The kernel can then be
    insensitive to small shifts only, instead of invariant to all shifts. Let ``base_kernel`` be a
    product of a kernel of patches and a kernel of their locations::

        patches = gpflow.kernels.SquaredExponential(active_dims=range(9))
        locations = gpflow.kernels.SquaredExponential(lengthscales=3.0, active_dims=[9, 10])
        Convolutional(patches * locations, image_shape=(8, 8), patch_shape=(3, 3), locations=True)

    :param base_kernel: k_g, on patches of ``h w C`` columns (``h w`` with ``separate_channels``),
        and two more columns with ``locations``. Pass any single-output kernel of GPflow, also with
        ``active_dims``, or a :class:`ChannelAdditive`.
    :param image_shape: ``(H, W)`` or ``(H, W, C)``.
    :param patch_shape: ``(h, w)``.
    :param weights: Whether each patch has a trainable weight, initially one (the default); or the
        initial values ``[P]`` of the weights.
    :param stride: The distance between adjacent patches in pixels: one number, or (rows, columns).
    :param padding: "VALID" for patches inside the image, or "SAME" for a patch around every pixel,
        with zeros outside the border; as in ``tf.nn.conv2d``.
    :param separate_channels: Whether each channel of a patch is a separate input of g (the paper's
        "weighted" variant for colour images). By default, a patch has all channels (the
        "colour-patch" variant).
    :param locations: Whether the last two columns of a patch are its row and its column: the
        offset of its first pixel from the first pixel of the first patch, in pixels.
    :param active_dims: The columns of X that hold the image.
    :ivar num_patches: The number P of patches of an image.
    :ivar patch_size: The number of columns of a patch.
    :raises ValueError: If an argument is not as above, or two arguments do not fit each other.
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
        """The patches of each image, row by row (and channel by channel with separate channels).

        :raises ValueError: If X does not have one column for each entry of an image.
        """
        return self.points(self.seen(X))


class MultiChannelConvolutional(DecomposedKernel):
    """A convolutional kernel with a separate patch-response function for each channel.

    ``f(x) = 1/P sum_c sum_p w_pc g_c(x_pc)`` with independent ``g_c ~ GP(0, k_c)`` (van der Wilk et
    al. 2017, eq. 22, which has no 1/P). The parts, :attr:`kernels`, are independent a priori, so
    each part has its own inducing variables. All parts may use the same patches:
    ``SumInducingVariables([InducingPatches(Z)] * C)`` (section 3.4 and Appendix C).

    The arguments that are not listed are those of :class:`Convolutional`.

    :param base_kernels: The k_c, on patches of ``h w`` columns: one for all channels, or a list.
    :param image_shape: ``(H, W, C)``.
    :param weights: Whether each patch of each channel has a trainable weight, initially one; or the
        initial values ``[P, C]`` of the weights.
    :ivar num_patches: The number P of patches of each channel.
    :ivar patch_size: The number ``h w`` of entries of a patch.
    :raises ValueError: As for :class:`Convolutional`, or if the number of kernels is not 1 or C.
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
        """One kernel of images for each channel, which shares this kernel's parameters."""
        return tuple(ChannelConvolutional(self, channel) for channel in range(self.num_channels))

    @check_shapes("X: [N, D]", "return: [N, P, E]")
    def get_patches(self, X: TensorType) -> tf.Tensor:
        """The patches of all channels, one channel after the other; P counts all channels.

        :raises ValueError: If X does not have one column for each entry of an image.
        """
        X = self.seen(X)
        return tf.concat([part.points(X) for part in self.kernels], axis=1)


class ChannelConvolutional(SetKernel):
    """The term of one channel in the sum; :attr:`MultiChannelConvolutional.kernels` builds it.

    :param parent: The whole kernel, whose parameters this kernel uses.
    """

    def __init__(self, parent: MultiChannelConvolutional, channel: int) -> None:
        super().__init__(name=f"{parent.name}_{channel}")
        self.parent, self.channel = parent, channel
        self.active_dims = parent.active_dims

    @property
    def point_kernel(self) -> Kernel:
        kernels = self.parent.base_kernels  # one kernel for each channel, or one for all
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
    """The kernels of the channels as a list: one for each channel, or a single one for all.

    :raises ValueError: If an entry is not a kernel, or the number of kernels is wrong.
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
    """The weights as a parameter, or None. A ValueError if values are not finite or misshapen."""
    if isinstance(weights, bool):
        return gpflow.Parameter(np.ones(shape)) if weights else None
    values = finite_array("weights", weights, (1, 2), "True, False or finite values")
    if values.shape != shape:
        remedy = "pass True for ones"
        rule = f"be True, False or finite values of shape {list(shape)}, one for each patch"
        raise refusal("weights", rule, f"shape {list(values.shape)}", remedy)
    return gpflow.Parameter(values)


def validate_images(X: tf.Tensor, grid: PatchGrid, channels: int = 1) -> tf.Tensor:
    """X, if it has one column for each entry of an image; a ValueError otherwise."""
    shape = (*grid.image_shape[:2], grid.num_channels * channels)
    remedy = "pass images flattened to rows, or active_dims to the kernel"
    return checked_columns(X, grid.input_dim * channels, f" for images of shape {shape}", remedy)
