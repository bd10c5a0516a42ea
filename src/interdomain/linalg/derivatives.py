"""Gradients that cannot be differentiated again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def once(gradient: Callable[..., list[tf.Tensor]], inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The gradient, as a function that cannot be differentiated.

    What is computed in Python would have no derivative otherwise, which is not an error but a zero.
    """

    @tf.custom_gradient
    def first(*inputs: tf.Tensor) -> Any:
        def second(*upstream: tf.Tensor) -> Any:
            raise NotImplementedError(
                "The collapsed bound and its optimal q can be differentiated once: the gradient of "
                "their gradient is not implemented."
            )

        return tuple(gradient(*inputs)), second

    return list(first(*inputs))
