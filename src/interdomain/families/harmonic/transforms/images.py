"""Transformations of images, which are flattened to rows of X as for GPflow's convolutional kernel.

An image ``[H, W]`` or ``[H, W, C]`` is a row of ``H W`` or ``H W C`` columns, row-major with the
channel last. If ``image_shape`` is the shape of a patch, the classes act on patches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...._arguments import as_image_shape, as_integer, as_integers, refusal
from .base import IntArray
from .closed_form import Permutation


def numbered_pixels(image_shape: Sequence[int]) -> IntArray:
    """An image in which the value of each pixel is its column in X."""
    return np.arange(int(np.prod(image_shape))).reshape(image_shape)


class ImageFlip(Permutation):
    """A flip of an image, of order 2 (Sun et al. 2021, section 6.2).

    :param image_shape: ``(H, W)`` or ``(H, W, C)``, of an image or a patch.
    :param axis: 0 flips up and down, 1 left and right.
    :raises ValueError: If an argument is invalid, or there is only one pixel along the axis.
    """

    shown = ("image_shape", "axis")

    def __init__(self, image_shape: Sequence[int], axis: int) -> None:
        self.image_shape, number = as_image_shape(image_shape), as_integer(axis)
        if number not in (0, 1):
            remedy = "pass 0 to flip up and down, 1 to flip left and right"
            raise refusal("axis", "be 0 or 1", f"{axis!r}", remedy)
        self.axis = number
        super().__init__(np.flip(numbered_pixels(self.image_shape), self.axis).ravel())


class ImageTranslation(Permutation):
    """A cyclic shift of an image, as by ``np.roll``.

    The rows return to their places after ``H / gcd(H, rows)`` shifts, and the columns after
    ``W / gcd(W, columns)``. The order is the least common multiple of these two numbers.

    :param image_shape: ``(H, W)`` or ``(H, W, C)``, of an image or a patch.
    :param shift: ``(rows, columns)`` in pixels; positive numbers shift down and to the right.
    :raises ValueError: If ``image_shape`` or ``shift`` has another form, or no pixel moves.
    """

    shown = ("image_shape", "shift")

    def __init__(self, image_shape: Sequence[int], shift: Sequence[int]) -> None:
        self.image_shape = as_image_shape(image_shape)
        self.shift = as_integers("shift", shift, "pass (rows, columns) in pixels")
        super().__init__(np.roll(numbered_pixels(self.image_shape), self.shift, (0, 1)).ravel())


class ImageRotation90(Permutation):
    """A rotation of a square image by 90 degrees, anticlockwise as by ``np.rot90``, of order 4.

    :param image_shape: ``(H, H)`` or ``(H, H, C)``, of an image or a patch.
    :raises ValueError: If ``image_shape`` has another form, or the image is a single pixel.
    """

    shown = ("image_shape",)

    def __init__(self, image_shape: Sequence[int]) -> None:
        self.image_shape = as_image_shape(image_shape)
        if self.image_shape[0] != self.image_shape[1]:
            raise ValueError(
                f"image_shape must be square, found {self.image_shape}; pass the shape of images "
                "cropped or padded to squares, or use ImageFlip, which takes any shape."
            )
        super().__init__(np.rot90(numbered_pixels(self.image_shape)).ravel())
