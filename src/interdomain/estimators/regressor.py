"""Gaussian-process regression in the interface of scikit-learn: ``GPRegressor``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
from gpflow.likelihoods import StudentT
from scipy.special import ndtri
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state

from .. import predict_quantiles
from .._arguments import Array, choice, lacks, number
from . import outputs
from .base import MEANINGS, Estimator
from .more_rows import with_more_rows

_STUDENT = "StudentT(scale=0.3, df=4.0, scale_lower_bound=0.01)"
_NUMBERS = {"multi_output": True, "y_numeric": True}
"""The code of :func:`student_noise`; the options of scikit-learn's checks of y."""


def student_noise() -> StudentT:
    """The Student-t noise at the start of training, for y of variance one."""
    return StudentT(scale=0.3, df=4.0, scale_lower_bound=0.01)


class GPRegressor(MultiOutputMixin, RegressorMixin, Estimator):  # type: ignore[misc]
    """A Gaussian process for tables and maps of up to millions of rows, with error bars.

    ``fit`` compares models on held-out rows, as :func:`interdomain.recommend` does, and trains the
    best one on all rows. X and y need no scaling.

    >>> import numpy as np
    >>> from interdomain.estimators import GPRegressor
    >>> X = np.random.default_rng(0).uniform(size=(150, 2))
    >>> y = np.sin(9 * X[:, 0]) * X[:, 1]
    >>> regressor = GPRegressor(progress=False).fit(X, y)
    >>> mean, deviation = regressor.predict(X[:5], return_std=True)
    >>> bool(np.all(np.abs(mean - y[:5]) < 0.1))
    True

    X may be a matrix, or a data frame of pandas or polars. A column of text or categories with more
    than 10 levels has a random effect for each level; a new level has the prior of these effects. A
    column of 10 levels or fewer becomes columns of zeros and ones, which may interact with other
    columns; a new level becomes their mean over the training rows, with a warning. "waves" and
    "splines" have a box: the training rows plus a margin of a tenth of their range, or ``bounds``.
    Outside of the box they predict the mean and the standard deviation of all training y.

    :param model: "auto" compares the models that suit the rows; up to 200 rows it is "exact".
        "exact" is a GP without approximation (up to 2,000 rows). "neighbours" conditions on the
        nearest rows. "splines" (up to 2 columns) and "waves" (up to 3) are features of a box,
        "harmonics" (3 to 50) features of all columns. "effects" are sums of functions of columns
        and of pairs. "globe" is for latitudes and longitudes. "points" are inducing points.
    :param seconds: Seconds of all processors together in which "auto" compares models; then the
        chosen model is trained.
    :param noise: "gaussian", or "student" for targets with outliers.
    :param categorical: The names or numbers of columns of numbers that are categories.
    :param inputs: "degrees" for latitude and longitude, "euclidean" for a plane; by default the
        names of a frame's columns decide.
    :param bounds: ``{column: (low, high)}``, by name or number: the range of X in all later calls.
    :param random_state: The seed of held-out rows and of training.
    :param progress: Show progress bars of work that takes more than a second.
    :ivar model_: The GPflow model, of scaled X and y.
    :ivar code_: A program of X and ``Y = y`` that makes the same model, trains it and predicts.
    :ivar report_: The compared models, their scores on held-out rows, and remarks on the columns.
    :ivar n_features_in_: The number of columns of X. ``feature_names_in_`` are a frame's names.
    :raises ValueError: In ``fit``, for missing values, constant y, and a model that does not suit.
    """

    def __init__(
        self,
        model: str = "auto",
        *,
        seconds: float = 60,
        noise: str = "gaussian",
        categorical: Sequence[Any] | None = None,
        inputs: str | None = None,
        bounds: Mapping[Any, tuple[float, float]] | None = None,
        random_state: Any = 0,
        progress: bool = True,
    ) -> None:
        given = {"categorical": categorical, "inputs": inputs, "random_state": random_state}
        super().__init__(model, seconds=seconds, progress=progress, **given)
        self.noise, self.bounds = noise, bounds

    @lacks("sample_weight", f"{MEANINGS}; repeat rows, or pass noise_variance")
    def fit(self, X: Any, y: Any, noise_variance: Any = None) -> GPRegressor:
        """Choose a model and train it.

        :param X: Rows ``[N, D]``, or a data frame.
        :param y: ``[N]``, or ``[N, P]`` for several outputs, which share the kernel and the noise.
        :param noise_variance: The known noise variance of each row, ``[N]``, for one output. No
            noise is then trained, :meth:`predict` describes f, and "auto" is "neighbours".
        """
        self._fit(X, y, noise_variance)
        return self

    def _fit(self, X: Any, y: Any, noise_variance: Any, *, grows: bool = False) -> None:
        student = choice("noise", self.noise, ("gaussian", "student")) == "student"
        if student and noise_variance is not None:
            raise ValueError("noise_variance must be None with noise='student'; pass one of both.")
        rows, targets = self._checked(X, y, reset=True, **_NUMBERS)
        self._noise_is_known, self._is_vector = noise_variance is not None, np.ndim(targets) == 1
        self._choose(
            rows,
            targets,
            student_noise() if student else None,
            grows=grows,
            targets=outputs.standardised,
            likelihood_code=_STUDENT if student else "Gaussian(0.1)",
            bounds=self.bounds,
            noise_variance=noise_variance,
        )

    @lacks("sample_weight", f"{MEANINGS}; repeat rows, or pass noise_variance")
    def partial_fit(self, X: Any, y: Any, noise_variance: Any = None) -> GPRegressor:
        """Add rows to the model. The first call trains as :meth:`fit` does.

        Models of features read only the new rows, and add them to sums over rows. On the sums they
        train all parameters again, except parameters of the features. "neighbours" finds the
        neighbours of new rows, and keeps its parameters. "exact" is trained again on all rows.
        Features, scales and levels are those of the first call. Rows must lie within ``bounds``;
        without ``bounds``, rows of "waves" and "splines" within the box.

        :param X: The new rows. X, ``y`` and ``noise_variance`` are as in :meth:`fit`.
        :raises ValueError: For rows outside of the box, with other columns or new levels; if the
            model is "points", or has Student-t noise and features.
        """
        if not hasattr(self, "model_"):
            self._fit(X, y, noise_variance, grows=True)
            return self
        if (noise_variance is not None) != self._noise_is_known:
            raise ValueError("noise_variance must be passed in all calls or in none; fit again.")
        checked, targets = self._checked(X, y, **_NUMBERS)
        scaled, beyond = self._rows(checked)
        if np.any(beyond):
            raise ValueError(
                f"X must be within the box of the model, found {sum(beyond)} of {len(beyond)} rows "
                "beyond it; pass bounds={column: (low, high)} to GPRegressor, and fit again."
            )
        with self._shown():
            rows = self._data.further_rows(scaled, targets, noise_variance)
            self.model_ = with_more_rows(self.model_, rows)
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The mean of y at rows, in the units of y.

        :param X: Rows ``[n, D]``, or a data frame with the columns of the training rows.
        :param return_std: Also return the standard deviation of y, noise included.
        :param return_cov: Also return the joint covariance of y, ``[n, n]``, or ``[n, n, P]``.
        :return: ``[n]`` or ``[n, P]``, as y was; or a pair with the deviation or the covariance.
        :raises ValueError: With ``return_cov``, for rows outside of the box.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        if return_cov:
            mean, covariance, noise = self._joint(X)
            covariance = np.moveaxis(covariance, 0, 2) + noise * np.eye(len(mean))[:, :, None]
            return self._in_units(mean), self._shaped(covariance * self._data.scale**2, 2)
        mean, variance, _ = self._predict(X)
        if return_std:
            return self._in_units(mean), self._shaped(np.sqrt(variance) * self._data.scale)
        return self._in_units(mean)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """The lower and the upper ends of intervals of y at rows X, each ``[n]`` or ``[n, P]``.

        :param level: The probability of an interval, between 0 and 1; both tails are equal.
        """
        if not 0 < number("level", level) < 1:
            raise ValueError(f"level must be between 0 and 1, found {level!r}; pass 0.9.")
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        if self._noise_is_known:
            mean, variance, _ = self._predict(X)
            ends = mean[:, :, None] + np.sqrt(variance)[:, :, None] * ndtri(tails)
        else:
            rows, beyond = self._rows(self._checked(X))
            ends = predict_quantiles(self.model_, rows, tails, progress=self.progress)
            ends[beyond & self._is_boxed] = ndtri(tails)
        return self._in_units(ends[:, :, 0]), self._in_units(ends[:, :, 1])

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Joint draws of y at rows X, ``[n, n_samples]`` or ``[n, P, n_samples]``; outputs are
        independent. Rows outside of the box raise a ValueError."""
        mean, covariances, noise = self._joint(X)
        rng, likelihood = check_random_state(random_state), self.model_.likelihood
        pairs = zip(mean.T, covariances, strict=True)
        f = np.stack([rng.multivariate_normal(*pair, n_samples).T for pair in pairs], axis=1)
        if isinstance(likelihood, StudentT):
            scale, degrees = (np.asarray(part) for part in (likelihood.scale, likelihood.df))
            y = f + scale * rng.standard_t(degrees, f.shape)
        else:
            y = f + np.sqrt(noise)[:, None] * rng.standard_normal(f.shape)
        return self._shaped(y * self._data.scale[:, None] + self._data.shift[:, None])

    def _joint(self, X: Any) -> tuple[Array, Array, Array]:
        """The mean ``[n, P]`` and the covariance ``[P, n, n]`` of f at rows, and the noise variance
        ``[P]``, on the scale of the model."""
        rows, beyond = self._rows(self._checked(X))
        if self._is_boxed and np.any(beyond):
            raise ValueError(f"X must be within the box, found {sum(beyond)} rows beyond it.")
        mean, covariance = (np.array(m, float) for m in self.model_.predict_f(rows, full_cov=True))
        zeros: Any = np.zeros([1, mean.shape[1]], gpflow.default_float())
        _, variance = self.model_.likelihood.predict_mean_and_var(rows[:1], zeros, zeros)
        noise = (0.0 if self._noise_is_known else 1.0) * np.asarray(variance, float)[0]
        return mean, covariance, noise

    def _in_units(self, values: Array) -> Array:
        """Values ``[n, P]`` in the units and the shape of y."""
        return self._shaped(values * self._data.scale + self._data.shift)

    def _shaped(self, values: Array, axis: int = 1) -> Array:
        """Values without the axis of outputs, if y is a vector."""
        return np.asarray(np.take(values, 0, axis) if self._is_vector else values)
