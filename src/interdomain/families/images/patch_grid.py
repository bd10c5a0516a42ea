"""The patches of an image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from ..._arguments import as_image_shape, as_integers, choice, refusal


class PatchGrid:
    """Which pixels make up the patches of an image ``[H, W, C]``.

    :param image_shape: ``(H, W)`` or ``(H, W, C)``.
    :param patch_shape: ``(h, w)``.
    :param stride: In pixels to the next patch, downwards and to the right: one number or two.
    :param padding: "VALID": patches inside the image; "SAME": one patch for every pixel (every
        ``stride`` pixels), with zeros around the image. As in ``tf.nn.conv2d``.
    :param separate_channels: Whether patches are ``[h, w]``, of one channel each, or ``[h, w, C]``.
    :param with_locations: Whether the row and the column of a patch follow its pixels.
    :ivar num_channels: The number C.
    :ivar grid_shape: How many patches there are downwards and to the right.
    :ivar num_patches: The number P of patches of an image.
    :ivar patch_size: The number E of entries of a patch.
    :ivar input_dim: The number ``H W C`` of columns of X.
    :raises ValueError: If an argument is not as above, or the patch is larger than the image.
    """

    def __init__(
        self,
        image_shape: Sequence[int],
        patch_shape: Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Literal["VALID", "SAME"] = "VALID",
        separate_channels: bool = False,
        with_locations: bool = False,
    ) -> None:
        shape = as_image_shape(image_shape)
        self.image_shape = shape if len(shape) == 3 else (*shape, 1)
        self.patch_shape = _pair("patch_shape", patch_shape, "pass (h, w), in pixels")
        self.stride = _pair("stride", stride, "pass one number of pixels, or (rows, columns)")
        self.padding = choice("padding", padding, ("VALID", "SAME"))
        self.separate_channels, self.with_locations = bool(separate_channels), bool(with_locations)
        sides = list(zip(self.image_shape[:2], self.patch_shape, self.stride, strict=True))
        if any(patch > size for size, patch, _ in sides):
            remedy = "pass a smaller patch"
            rule = f"be at most that of the image, {self.image_shape[:2]}"
            raise refusal("patch_shape", rule, self.patch_shape, remedy)
        self.num_channels = self.image_shape[2]
        rows, columns = self.grid_shape = tuple(
            -(-size // step) if self.padding == "SAME" else (size - patch) // step + 1
            for size, patch, step in sides
        )
        copies, together = (self.num_channels, 1) if separate_channels else (1, self.num_channels)
        self.num_patches = rows * columns * copies
        self.patch_size = math.prod(self.patch_shape) * together + 2 * self.with_locations
        self.input_dim = math.prod(self.image_shape)

    def extract(self, X: tf.Tensor) -> tf.Tensor:
        """The patches of images ``[N, H W C]``: ``[N, P, E]``.

        Patches follow one another row by row, and channel by channel if those are separate; the
        entries of each are row-major with the channel last, then come its row and its column.
        """
        height, width, channels = self.image_shape
        images = tf.reshape(X, [-1, height, width, channels])
        # From the first pixel of the first patch to that of the last one, in both directions.
        reach = (np.array(self.grid_shape) - 1) * self.stride
        if self.padding == "SAME":
            # How many zeros there are above and below together, and left and right.
            totals = np.maximum(reach + self.patch_shape - self.image_shape[:2], 0)
            margins = np.stack([totals // 2, totals - totals // 2], axis=1)
            images = tf.pad(images, [[0, 0], *margins, [0, 0]])
        # One slice for each pixel of a patch: its gradient is as cheap, which is not true of
        # tf.image.extract_patches.
        (down, right), (last_row, last_column) = self.stride, reach.tolist()
        pixels = [
            images[:, i : i + last_row + 1 : down, j : j + last_column + 1 : right]
            for i, j in np.ndindex(*self.patch_shape)
        ]
        if self.separate_channels:
            patches = tf.transpose(tf.stack(pixels, axis=-1), [0, 3, 1, 2, 4])
        else:
            patches = tf.stack(pixels, axis=3)
        size = self.patch_size - 2 * self.with_locations
        patches = tf.reshape(patches, [-1, self.num_patches, size])
        if not self.with_locations:
            return patches
        corners = np.indices(self.grid_shape).reshape(2, -1).T * self.stride
        repeated = np.tile(corners, [self.num_patches // len(corners), 1])
        locations = tf.cast(tf.broadcast_to(repeated, [tf.shape(X)[0], *repeated.shape]), X.dtype)
        return tf.concat([patches, locations], axis=-1)


def _pair(name: str, values: Any, remedy: str) -> tuple[int, int]:
    integers = as_integers(name, values, remedy)
    if len(integers) == 1 and name == "stride":
        integers = integers * 2
    if len(integers) != 2 or min(integers) < 1:
        raise ValueError(f"{name} must be two positive integers, found {values!r}; {remedy}.")
    return integers[0], integers[1]
