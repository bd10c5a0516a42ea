"""Non-stationary kernels of the literature, which harmonizable mixtures are to recover."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.utilities import positive, set_trainable

from interdomain._arguments import finite_array, instance
from interdomain._tracing import unconverted
from interdomain.core.columns import select_columns
from interdomain.families.harmonizable.gaussian_factors import outer_product

FunctionOfInputs: TypeAlias = Callable[[tf.Tensor], tf.Tensor]


class GeneralizedSpectralMixture(gpflow.kernels.Kernel):
    """Sinusoids whose amplitude, lengthscale and frequency are functions of the input.

    With Gibbs kernels (Remes, Heinonen and Kaski, *Non-stationary spectral kernels*, 2017; Shen et
    al. 2019, eqs. 72 and 73):

        k(x, x') = sum_q w_q(x) w_q(x') Gibbs_q(x, x') cos(2 pi (mu_q(x)^T x - mu_q(x')^T x')),
        Gibbs_q = (2 l l' / (l^2 + l'^2))^(D/2) exp(-|x - x'|^2 / (l^2 + l'^2)), l = l_q(x).

    The functions are given, as TensorFlow functions of inputs ``[..., N, D]``; those that are
    modules of GPflow have their parameters trained. The frequency at x is not mu_q(x) but the slope
    of ``mu_q(x)^T x`` (the paper's section 5 of the supplement).

    :param amplitude: w, to ``[..., N, Q]``.
    :param lengthscale: l, to ``[..., N, Q]``, positive.
    :param frequency: mu, to ``[..., N, Q, D]``; or ``[..., N, Q]`` where D = 1.
    :raises ValueError: If one is not a function, or at first use if it returns another shape.
    """

    def __init__(
        self,
        amplitude: FunctionOfInputs,
        lengthscale: FunctionOfInputs,
        frequency: FunctionOfInputs,
        *,
        active_dims: slice | list[int] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        functions = {
            "amplitude": amplitude,
            "lengthscale": lengthscale,
            "frequency": frequency,
        }
        for argument, value in functions.items():
            remedy = "for a constant pass `lambda X: constant * tf.ones_like(X[..., :1])`"
            instance(argument, value, Callable, "a function of the inputs", remedy)
        self.amplitude = amplitude
        self.lengthscale = lengthscale
        self.frequency = frequency

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        X = select_columns(self, X)
        if X2 is None:
            if X.shape.rank > 2:
                return tf.map_fn(unconverted(self.K), X)
            return self._matrix(X, X)
        X2 = select_columns(self, X2)
        dimension = X.shape[-1]
        matrix = self._matrix(tf.reshape(X, [-1, dimension]), tf.reshape(X2, [-1, dimension]))
        return tf.reshape(matrix, tf.concat([tf.shape(X)[:-1], tf.shape(X2)[:-1]], axis=0))

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return tf.reduce_sum(tf.square(self.amplitude(select_columns(self, X))), axis=-1)

    def _matrix(self, X: tf.Tensor, X2: tf.Tensor) -> tf.Tensor:
        squares = tf.reduce_sum(tf.square(X[:, None] - X2[None]), axis=-1)
        half_dimension = X.shape[-1] / 2
        parts = []
        for (w, length, angle), (w2, length2, angle2) in zip(
            self._functions(X), self._functions(X2), strict=True
        ):
            total = tf.square(length)[:, None] + tf.square(length2)
            gibbs = (2 * outer_product(length[:, None], length2[:, None]) / total) ** half_dimension
            waves, waves2 = (
                amplitude[:, None] * tf.stack([tf.cos(turn), tf.sin(turn)], axis=-1)
                for amplitude, turn in ((w, angle), (w2, angle2))
            )
            parts.append(gibbs * tf.exp(-squares / total) * outer_product(waves, waves2))
        return tf.add_n(parts)

    def _functions(self, X: tf.Tensor) -> list[tuple[tf.Tensor, tf.Tensor, tf.Tensor]]:
        """w, l and ``2 pi mu^T x`` of each part, ``[N]``.

        :raises ValueError: If what a function returns has another shape than it is to have.
        """
        amplitude, lengthscale, frequency = (
            self.amplitude(X),
            self.lengthscale(X),
            self.frequency(X),
        )
        count = amplitude.shape[-1] if amplitude.shape.rank else None
        _validate_returned("amplitude", amplitude, [X.shape[0], count])
        _validate_returned("lengthscale", lengthscale, [X.shape[0], count])
        if frequency.shape.rank == 2 and X.shape[1] == 1:
            frequency = frequency[..., None]
        _validate_returned("frequency", frequency, [X.shape[0], count, X.shape[1]])
        angle = 2 * np.pi * tf.reduce_sum(frequency * X[:, None, :], axis=-1)
        parts = (tf.unstack(values, axis=-1) for values in (amplitude, lengthscale, angle))
        return list(zip(*parts, strict=True))


def _validate_returned(argument: str, values: tf.Tensor, shape: list[int | None]) -> None:
    if not values.shape.is_compatible_with(shape):
        raise ValueError(
            f"{argument} must return shape {tuple(shape)}, found {tuple(values.shape)}: [N, Q], "
            "and [N, Q, D] for frequencies, with one number Q of parts for all functions."
        )


class TimeInvertedFractionalBrownianMotion(gpflow.kernels.Kernel):
    """Fractional Brownian motion at the inverse of the time (Shen et al. 2019, section 5.1).

    ``k(t, s) = variance / 2 (t^-2h + s^-2h - |1/t - 1/s|^2h)``, for times above zero.

    :param hurst: h, between 0 and 1; 1/2 is Brownian motion. Not trained by default: the gradient
        of ``|1/t - 1/s|^2h`` to h is not defined where t = s.
    :param variance: At t = 1.
    :raises ValueError: If one is out of its range.
    """

    def __init__(
        self,
        hurst: TensorType = 0.5,
        *,
        variance: TensorType = 1.0,
        active_dims: slice | list[int] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        h = finite_array("hurst", hurst, (0,), "a number")
        if not 0 < h < 1:
            raise ValueError(f"hurst must be between 0 and 1, found {float(h)}.")
        power = finite_array("variance", variance, (0,), "a number")
        if not power > 0:
            raise ValueError(f"variance must be positive, found {float(power)}.")
        self.hurst = gpflow.Parameter(h)
        set_trainable(self.hurst, False)
        self.variance = gpflow.Parameter(power, transform=positive())

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        t = self._inverse_times(X)
        power = 2 * self.hurst
        if X2 is None:
            first, second = t[..., :, None], t[..., None, :]
        else:
            s = self._inverse_times(X2)
            first = tf.reshape(t, tf.concat([tf.shape(t), tf.ones_like(tf.shape(s))], axis=0))
            second = s
        lag = tf.abs(first - second)
        # Where the lag is zero its power is, and has no gradient to pass on.
        apart = lag > 0
        powered = tf.where(apart, tf.where(apart, lag, tf.ones_like(lag)) ** power, 0)
        return self.variance / 2 * (first**power + second**power - powered)

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return self.variance * self._inverse_times(X) ** (2 * self.hurst)

    def _inverse_times(self, X: TensorType) -> tf.Tensor:
        """:raises ValueError: If X has several columns; where values are known, if one is not
        positive (elsewhere an error of TensorFlow's, when the graph runs)."""
        X = select_columns(self, X)
        if X.shape[-1] != 1:
            raise ValueError(
                f"X must have one column, the time, found {X.shape[-1]}; select it by active_dims."
            )
        values = tf.get_static_value(X)
        remedy = "X must be positive: times at which 1 / t exists."
        if values is not None and not np.all(values > 0):
            raise ValueError(f"{remedy} Found {np.min(values)}.")
        with tf.control_dependencies([tf.debugging.assert_positive(X, remedy)]):
            return 1 / tf.squeeze(X, axis=-1)
