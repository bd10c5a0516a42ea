"""The harmonizable component of one frequency, zero."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from ..._arguments import ROWS_OF_A_BATCH, check_size, integer, number
from .harmonizable_component import HarmonizableComponent


class LocallyStationaryGaussian(HarmonizableComponent):
    """A squared exponential under a Gaussian window (Shen et al. 2019, eq. 9).

    ``k(x, x') = variance exp(-2 pi^2 m^T envelope m) exp(-2 pi^2 t^T lag t)`` for m the mean of x
    and x' minus ``centre``, and t their difference. This is a :class:`HarmonizableComponent` whose
    only frequency is zero and is not trained.

    :param variance: The variance at the centre, a positive number.
    :param dimension: The number D of columns of X.
    :param allow_large: Whether to allow a ``dimension`` for which a window over 1,000 rows takes
        more than 4 GiB.
    :raises ValueError: As for :class:`HarmonizableComponent`, or if the variance is not positive.
    """

    def __init__(
        self,
        dimension: int = 1,
        *,
        variance: TensorType = 1.0,
        centre: TensorType = 0.0,
        envelope: TensorType = 0.1,
        lag: TensorType = 0.1,
        active_dims: slice | list[int] | None = None,
        allow_large: bool = False,
        name: str | None = None,
    ) -> None:
        amplitude = number("variance", variance, above=0)
        columns = integer("dimension", dimension, at_least=1)
        what = f"windows over {columns:,} columns"
        check_size("dimension", what, columns * ROWS_OF_A_BATCH, allow_large=allow_large)
        super().__init__(
            np.zeros([1, columns]),
            amplitudes=[amplitude],
            centre=centre,
            envelope=envelope,
            lag=lag,
            active_dims=active_dims,
            name=name,
        )
        gpflow.set_trainable(self.frequencies, False)

    @property
    def variance(self) -> tf.Tensor:
        """The variance at the centre."""
        return tf.reduce_sum(tf.square(self.amplitudes_real))
