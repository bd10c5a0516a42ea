"""A convolutional layer of a deep GP, which maps images to images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType
from gpflow.kernels import Kernel
from gpflow.mean_functions import Linear, MeanFunction

from .._tracing import unconverted
from ..families.images.patch_grid import PatchGrid
from ..models import JointQ, QPerBlock
from .layer import Layer, num_outputs


class ConvolutionalLayer(Layer):
    """A layer that applies one GP to every patch of an image (Blomqvist et al. 2018; Sun et al.
    2021, section 5).

    The outputs of the GP for the patch around a place are the channels of a new image at that
    place. Kernel and q are defined on patches. With a :class:`~interdomain.models.QPerBlock` of
    harmonic blocks, of patches and their negations, it is a layer of Sun et al.'s deep
    convolutional GPs. Images are rows of ``H W C`` columns, row-major with the channel last, for
    inputs and outputs. Samples at two places of an image are independent given u.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> from interdomain import deep
    >>> kernel = gpflow.kernels.SquaredExponential()
    >>> points = gpflow.inducing_variables.InducingPoints(np.random.default_rng(0).random((10, 9)))
    >>> q = idm.models.JointQ(kernel, points, num_latent_gps=4)
    >>> layer = deep.ConvolutionalLayer(
    ...     kernel, q, 100, "identity", image_shape=(8, 8), patch_shape=(3, 3)
    ... )
    >>> layer.output_image_shape, layer.predict(np.zeros([5, 64]))[0].shape
    ((6, 6, 4), TensorShape([5, 144]))

    :param kernel: A kernel of patches, which have ``h w C`` columns.
    :param q: The q of inducing variables on patches.
    :param num_data: The number of images.
    :param mean_function: A function of patches, zero by default; or "identity" for the pixel in the
        middle, in row ``h // 2`` and column ``w // 2``: output p is its channel ``p mod C``. The
        layer then starts as the identity, up to the border and the stride.
    :param image_shape: The shape ``(H, W)`` or ``(H, W, C)`` of the input images.
    :param patch_shape: The shape ``(h, w)`` of the patches.
    :param stride: The distance in pixels from one patch to the next: one number, or (rows,
        columns).
    :param padding: "VALID" for patches inside the image only; "SAME" for patches around every pixel
        (at a stride of one), with zeros outside the border.
    :raises ValueError: For the errors of Layer; if the shapes, the stride or the padding are wrong;
        or if a patch does not have as many columns as the inducing variable.
    """

    def __init__(
        self,
        kernel: Kernel,
        q: JointQ | QPerBlock,
        num_data: int,
        mean_function: MeanFunction | Literal["identity"] | None = None,
        *,
        image_shape: Sequence[int],
        patch_shape: Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Literal["VALID", "SAME"] = "VALID",
        name: str | None = None,
    ) -> None:
        grid = self._grid = PatchGrid(image_shape, patch_shape, stride, padding)
        if mean_function == "identity":
            (height, width), size = grid.patch_shape, num_outputs(kernel, q)
            matrix, outputs = np.zeros((height, width, grid.num_channels, size)), np.arange(size)
            matrix[height // 2, width // 2, outputs % grid.num_channels, outputs] = 1
            mean_function = Linear(matrix.reshape(-1, size), np.zeros(size))
            gpflow.set_trainable(mean_function, False)
        super().__init__(kernel, q, num_data, mean_function, name=name)
        self.output_image_shape = (*grid.grid_shape, self._num_outputs)
        self.output_dim = grid.num_patches * self._num_outputs

    @property
    def input_dim(self) -> int:
        """The number ``H W C`` of columns of the inputs."""
        return self._grid.input_dim

    def sample(self) -> Any:
        """A random function from images to images: one posterior draw, applied to all patches."""
        patch_function = super().sample()
        return lambda X: self._as_images(patch_function(self._patches(X)), X)

    @unconverted
    def predict(
        self, inputs: TensorType, *, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Mean and variance, without covariances, of pixels for images ``[batch..., N, H W C]``."""
        if full_cov or full_output_cov:
            raise NotImplementedError("full_cov and full_output_cov must be False for images.")
        mean, variance = super().predict(self._patches(inputs))
        return self._as_images(mean, inputs), self._as_images(variance, inputs)

    @unconverted
    def marginals_and_kl(self, inputs: TensorType) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        mean, variance, kl = super().marginals_and_kl(self._patches(inputs))
        return self._as_images(mean, inputs), self._as_images(variance, inputs), kl

    def check_input_dim(self, num_columns: int) -> None:
        if num_columns != self.input_dim:
            raise ValueError(
                f"image_shape must have as many entries as the inputs have columns, {num_columns}, "
                f"found {self._grid.image_shape}, of {self.input_dim}."
            )
        shape, size = self._grid.patch_shape, self._grid.patch_size
        expected = self.q.input_dim(self.kernel)
        if expected not in (None, size):
            raise ValueError(
                f"patch_shape must make patches of {expected} columns, which inducing_variable "
                f"takes, found {shape}, of {size}; pass inducing variables for patches of {size}."
            )
        super().check_input_dim(size)

    def check_hidden_inputs(self, num_columns: int) -> None:
        self.check_input_dim(num_columns)
        self.q.check_unbounded_inputs(self.kernel, self._grid.patch_size)

    def _patches(self, inputs: TensorType) -> tf.Tensor:
        """All patches as rows ``[B N P, E]``."""
        inputs = tf.cast(tf.convert_to_tensor(inputs), gpflow.default_float())
        images = tf.reshape(inputs, [-1, self.input_dim])
        return tf.reshape(self._grid.extract(images), [-1, self._grid.patch_size])

    def _as_images(self, values: tf.Tensor, inputs: TensorType) -> tf.Tensor:
        """Values at all patches ``[B N P, C']`` as images ``[batch..., N, P C']``."""
        shape = tf.concat([tf.shape(inputs)[:-1], [self.output_dim]], axis=0)
        return tf.reshape(values, shape)
