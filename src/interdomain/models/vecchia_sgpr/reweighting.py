"""Passes that weigh the rows of a :class:`interdomain.models.VecchiaSGPR` with Student-t noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from ..._arguments import Array, integer
from ..noise import LEAST_DEGREES, noise_variance_of
from .student_t import expected_weights, scale_and_degrees

if TYPE_CHECKING:
    from .model import VecchiaSGPR

_ROWS_AT_A_TIME = 4_096

_LEAST_SHARE = 1e-8
"""The least s, as a share of the mean square of Y around its mean."""


_NEAREST, _FIRST_DEGREES, _VARIANCE_OF_FIRST = 8, 4.0, 2.0
"""Settings of the first weights: the number of nearest rows, the degrees of freedom, and the
squared scale in units of the squared median."""


class ExpectedWeights(tf.train.experimental.PythonState):  # type: ignore[misc]
    """The means omega of the weights of all rows, which checkpoints of the model save.

    :ivar values: The means, ``[N]``.
    """

    def __init__(self, values: Array) -> None:
        self.values = values

    def serialize(self) -> bytes:
        """The numbers, for a checkpoint."""
        return self.values.tobytes()

    def deserialize(self, value: Any) -> None:
        """Restore the numbers from a checkpoint."""
        data = value if isinstance(value, bytes) else value.encode("latin1")
        self.values = np.frombuffer(data, np.float64).copy()

    def __reduce__(self) -> Any:
        """A copy has its own numbers."""
        return ExpectedWeights, (self.values,)


def expected_squares(model: VecchiaSGPR, number: int | None = None) -> Array:
    """The expected squares ``w_n r_n`` of the errors ``y_n - f_n`` of all rows, ``[N]``: summed
    over outputs, times the given weights.

    q(f_n) is the posterior at the place of the row, given the row and its ``number`` nearest rows,
    by default as many as in training.
    """
    merged, search = model.ordered.merged, model.ordered.neighbours
    posterior = model.posterior_of_neighbours((number or model.num_neighbours) + 1)
    places, Y = merged.X, model.arrays[1]
    means, variances = np.empty(merged.Y.shape), np.empty(len(places))
    order = search.nearby
    for start in range(0, len(order), _ROWS_AT_A_TIME):
        rows = order[start : start + _ROWS_AT_A_TIME]
        mean, variance = posterior.predict_f(places[rows])
        means[rows], variances[rows] = mean, variance[:, 0]
    errors = np.sum(np.square(Y - means[merged.groups]), axis=1)
    squares: Array = errors + Y.shape[1] * variances[merged.groups]
    given = model.noise_weights
    return squares if given is None else given * squares


def first_weights(model: VecchiaSGPR) -> Array:
    """The weights of rows before any parameter is trained, ``[N]``. They are computed from
    distances to the median of the nearest rows, in units of the median of these distances."""
    (X, Y), search = model.arrays, model.ordered.neighbours
    near = search.nearest(model.local.points(X), _NEAREST + 1)[:, 1:]
    if not near.shape[1]:
        return np.ones(len(X))
    medians = np.median(model.ordered.merged.Y[near], axis=1)
    errors = np.abs(np.asarray(Y - medians, np.float64))
    scales = np.median(errors, axis=0)
    scales = np.where(scales > 0, scales, np.maximum(np.mean(errors, axis=0), 1e-300))
    squares = np.sum(np.square(errors / scales), axis=1)
    return expected_weights(squares, _VARIANCE_OF_FIRST, _FIRST_DEGREES, Y.shape[1])


def reweight(model: VecchiaSGPR, passes: int, tolerance: float) -> None:
    """Make passes that weigh the rows: see :meth:`interdomain.models.VecchiaSGPR.reweight`."""
    if not model.has_student_t_noise:
        raise ValueError(
            "likelihood must be a StudentT for weights of rows, found "
            f"{type(model.likelihood).__name__}; build the model with "
            "likelihood=gpflow.likelihoods.StudentT()."
        )
    for _ in range(integer("passes", passes, at_least=1)):
        before = model.expected_weights
        squares = expected_squares(model, 2 * model.num_neighbours)
        model.weigh(weights_of_squares(model, squares))
        if np.max(np.abs(model.expected_weights / before - 1)) <= tolerance:
            break


def weights_of_new_rows(model: VecchiaSGPR, X: Array, Y: Array, given: Array | None) -> Array:
    """The means of the weights lambda of new rows, ``[n]``, from the predictions at these rows.

    :param given: The given noise weights ``[n]``; None for ones.
    """
    mean, variance = (np.asarray(part, np.float64) for part in model.predict_f(X))
    squares = np.sum(np.square(Y - mean) + variance, axis=1)
    return weights_of_squares(model, squares if given is None else squares * given)


def weights_of_squares(model: VecchiaSGPR, squares: Array) -> Array:
    """The means of the weights lambda under the optimal q, ``[N]``, at the present s and nu."""
    variance, degrees = _noise(model)
    return expected_weights(squares, variance, degrees, model.num_latent_gps)


def train_noise(model: VecchiaSGPR, squares: Array) -> None:
    """Set the scale and the degrees of freedom, if trainable, to the values of highest bound.

    :param squares: The result of :func:`expected_squares`.
    :raises ValueError: If the scale becomes negligible, unless the ``scale_lower_bound`` of the
        likelihood prevents this.
    """
    likelihood, Y = model.likelihood, model.arrays[1]
    scale, df = likelihood.scale, likelihood.df
    floor = likelihood.scale_lower_bound * (1 + 1e-4)
    nothing = _LEAST_SHARE * float(np.mean(np.var(Y, axis=0)))
    least = max(floor**2, nothing)
    variance, degrees = scale_and_degrees(
        squares,
        *_noise(model),
        model.num_latent_gps,
        least_variance=least,
        least_degrees=LEAST_DEGREES * (1 + 1e-4),
        trained=(scale.trainable, df.trainable),
    )
    if scale.trainable and variance <= nothing * (1 + 1e-6):
        raise ValueError(
            f"likelihood: the scale of the Student-t noise fell to {np.sqrt(variance):.2g}, as "
            "many targets repeat exactly or have no noise; pass "
            "likelihood=gpflow.likelihoods.Gaussian(), or fix a scale by "
            "gpflow.set_trainable(likelihood.scale, False)."
        )
    for parameter, value in ((scale, np.sqrt(variance)), (df, degrees)):
        if parameter.trainable:
            parameter.assign(value)


def _noise(model: VecchiaSGPR) -> tuple[float, float]:
    """The present squared scale s and degrees of freedom nu."""
    likelihood = model.likelihood
    return float(noise_variance_of(likelihood)), float(tf.cast(likelihood.df, tf.float64))
