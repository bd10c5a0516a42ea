"""A layer from images to images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType
from gpflow.mean_functions import Linear
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType
from gpflux.sampling.sample import Sample

from .._arguments import as_integers, instance, integer
from .._tracing import unconverted
from ..families.images.patch_grid import PatchGrid
from ..posteriors.groups import Group
from ..svgp.initial_q import Pair
from .layer import Function, Layer


class ConvolutionalLayer(Layer):
    """A layer that applies another layer to every patch of an image (Blomqvist et al. 2018; Sun et
    al. 2021, section 5).

    The outputs of the other layer for the patch around a place are the channels of a new image at
    that place. The layer on patches determines everything else. It can be a
    :class:`StructuredLayer` with points or harmonics on patches, an :class:`AdditiveLayer` with
    harmonic blocks of patches and their negations, or an :class:`OrthogonalLayer`. Its mean
    function is a function of patches: :func:`convolutional_identity` passes on the pixel in the
    middle.

    Images are rows of ``H W C`` columns, row-major with the channel last, for inputs and outputs.
    Samples at two places of an image are independent given u.

    >>> import gpflow, numpy as np
    >>> from interdomain import deep
    >>> points = gpflow.inducing_variables.InducingPoints(np.random.default_rng(0).random((10, 9)))
    >>> mean = deep.convolutional_identity((3, 3), num_channels=1, num_outputs=4)
    >>> patches = deep.StructuredLayer(
    ...     gpflow.kernels.SquaredExponential(), points, 100, mean, num_latent_gps=4
    ... )
    >>> layer = deep.ConvolutionalLayer(patches, image_shape=(8, 8), patch_shape=(3, 3))
    >>> layer.output_image_shape, layer.predict(np.zeros([5, 64]))[0].shape
    ((6, 6, 4), TensorShape([5, 144]))

    :param patch_layer: The layer on patches, with ``h w C`` input columns.
    :param image_shape: The shape ``(H, W)`` or ``(H, W, C)`` of the input images.
    :param patch_shape: The shape ``(h, w)`` of the patches.
    :param stride: The distance in pixels from one patch to the next: one number, or (rows,
        columns).
    :param padding: "VALID" for patches inside the image only; "SAME" for patches around every pixel
        (at a stride of one), with zeros outside the border.
    :param num_samples: As for :class:`StructuredLayer`.
    :param name: As for :class:`StructuredLayer`.
    :ivar patch_layer: As given.
    :raises ValueError: If ``patch_layer`` is not a layer, the shapes, the stride or the padding are
        wrong, or a patch does not have as many columns as the layer takes.
    """

    def __init__(
        self,
        patch_layer: Layer,
        image_shape: Sequence[int],
        patch_shape: Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        padding: Literal["VALID", "SAME"] = "VALID",
        num_samples: int | None = None,
        name: str | None = None,
    ) -> None:
        instance("patch_layer", patch_layer, Layer, "a layer of interdomain.deep")
        grid = PatchGrid(image_shape, patch_shape, stride, padding)
        self._begin(patch_layer.num_data, num_samples, name)
        self.patch_layer = patch_layer
        self._grid = grid
        self.num_latent_gps = patch_layer.num_latent_gps
        self.output_dim = grid.num_patches * patch_layer.output_dim
        if patch_layer.input_dim not in (None, grid.patch_size):
            raise ValueError(
                f"{self.name}: patch_layer must take patches of {grid.patch_size} columns, found "
                f"{patch_layer.name} with {patch_layer.input_dim}; pass one for patches of "
                f"{(*grid.patch_shape, grid.num_channels)}."
            )
        try:
            patch_layer.check_input_dim(grid.patch_size)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from error

    @property
    def kernel(self) -> gpflow.kernels.Kernel:  # type: ignore[override]
        """The kernel on patches."""
        return self.patch_layer.kernel

    @property
    def inducing_variable(  # type: ignore[override]
        self,
    ) -> gpflow.inducing_variables.InducingVariables:
        """The inducing variable on patches."""
        return self.patch_layer.inducing_variable

    @property
    def input_dim(self) -> int:
        """The number ``H W C`` of columns of the inputs."""
        return self._grid.input_dim

    @property
    def output_image_shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels of the outputs."""
        return (*self._grid.grid_shape, self.patch_layer.output_dim)

    @property
    def layer_of_inputs(self) -> None:
        """None: columns of the inputs are pixels, which are not checked one by one."""
        return None

    @property
    def variational_parameters(self) -> list[Pair]:
        return self.patch_layer.variational_parameters

    @property
    def _groups(self) -> Sequence[Group]:
        return self.patch_layer._groups

    def posterior(
        self, precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR
    ) -> AbstractPosterior:
        """The posterior of the responses to patches ``[N, h w C]``."""
        posterior: AbstractPosterior = self.patch_layer.posterior(precompute_cache)
        return posterior

    def sample(self) -> Sample:
        """A function drawn from the posterior, from images to images: one function of patches,
        applied to every patch.

        :raises ValueError: As of the layer on patches.
        """
        of_patches = self.patch_layer.sample()

        def of_images(X: TensorType) -> tf.Tensor:
            patches, shape = self._patches(X)
            return tf.reshape(of_patches(patches), tf.concat([shape[:-1], [self.output_dim]], 0))

        return Function(of_images)

    @unconverted
    def predict(
        self, inputs: TensorType, *, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Mean and variance of the output pixels, for images ``[batch..., N, H W C]``. With
        ``full_cov``, the covariances between images for each output pixel.

        :raises NotImplementedError: With ``full_output_cov``.
        """
        if full_output_cov:
            raise NotImplementedError(
                "full_output_cov must be False for a ConvolutionalLayer, whose pixels are drawn "
                "independently given u; predict patches by layer.patch_layer."
            )
        patches, shape = self._patches(inputs)
        rows = tf.concat([shape[:-1], [self.output_dim]], axis=0)
        if not full_cov:
            mean, variance = self.patch_layer.predict(patches)
            return tf.reshape(mean, rows), tf.reshape(variance, rows)
        places, size = self._grid.num_patches, self._grid.patch_size
        sets = tf.concat([shape[:-1], [places, size]], axis=0)
        by_place = _exchanged(tf.reshape(patches, sets))  # [..., places, N, size]
        mean, cov = self.patch_layer.predict(by_place, full_cov=True)
        square = tf.concat([shape[:-2], [self.output_dim], shape[-2:-1], shape[-2:-1]], axis=0)
        return tf.reshape(_exchanged(mean), rows), tf.reshape(cov, square)

    @unconverted
    def marginals_and_kl(self, inputs: TensorType) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        mean, variance, kl = self.patch_layer.marginals_and_kl(self._patches(inputs)[0])
        rows = [-1, self.output_dim]
        return tf.reshape(mean, rows), tf.reshape(variance, rows), kl

    def check_input_dim(self, num_columns: int) -> None:
        if num_columns != self.input_dim:
            height, width, channels = self._grid.image_shape
            raise ValueError(
                f"image_shape must have as many entries as the inputs have columns, {num_columns}, "
                f"found ({height}, {width}, {channels}), of {self.input_dim}."
            )

    def check_hidden_inputs(self, num_columns: int) -> None:
        self.patch_layer.check_hidden_inputs(self._grid.patch_size)

    def _patches(self, inputs: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """All patches as rows ``[B N P, E]``, and the shape of the inputs."""
        inputs = tf.cast(tf.convert_to_tensor(inputs), gpflow.default_float())
        shape = tf.shape(inputs)
        images = tf.reshape(inputs, [-1, self.input_dim])
        return tf.reshape(self._grid.extract(images), [-1, self._grid.patch_size]), shape


def _exchanged(values: tf.Tensor) -> tf.Tensor:
    """The third and the second axis from the end exchanged."""
    rank = values.shape.rank
    return tf.transpose(values, [*range(rank - 3), rank - 2, rank - 3, rank - 1])


def convolutional_identity(
    patch_shape: Sequence[int], num_channels: int, num_outputs: int
) -> Linear:
    """A mean function of patches that returns the pixel in their middle. It is not trainable.

    Output p is channel ``p mod num_channels`` of the pixel in row ``h // 2`` and column ``w // 2``.
    So a :class:`ConvolutionalLayer` starts as the identity, except for the border and the stride
    (Blomqvist et al. 2018).

    :param patch_shape: The shape ``(h, w)`` of the patches.
    :param num_channels: The number C of channels of the image.
    :param num_outputs: The number of outputs of the layer on patches.
    :raises ValueError: If one of these is not a positive integer.
    """
    remedy = "pass (h, w), in pixels"
    shape = as_integers("patch_shape", patch_shape, remedy)
    if len(shape) != 2 or min(shape) < 1:
        raise ValueError(f"patch_shape must be two positive integers, found {shape}; {remedy}.")
    channels = integer("num_channels", num_channels, at_least=1)
    outputs = integer("num_outputs", num_outputs, at_least=1)
    matrix = np.zeros((*shape, channels, outputs))
    for output in range(outputs):
        matrix[shape[0] // 2, shape[1] // 2, output % channels, output] = 1
    mean = Linear(matrix.reshape(-1, outputs), np.zeros(outputs))
    gpflow.set_trainable(mean, False)
    return mean
