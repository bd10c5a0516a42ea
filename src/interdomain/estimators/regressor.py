"""Gaussian-process regression in the interface of scikit-learn: ``GPRegressor``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.likelihoods import StudentT
from gpflow.models import GPR
from scipy.special import ndtri
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state

from .. import fit, predict_quantiles
from .._arguments import Array, BoolArray, choice, number
from ..models import StructuredSGPR, VecchiaSGPR
from . import recipes
from .base import ENDING, Estimator
from .prepared import noise_weights

_STUDENT = "StudentT(scale=0.3, df=4.0)"


class GPRegressor(MultiOutputMixin, RegressorMixin, Estimator):  # type: ignore[misc]
    """A Gaussian process for tables and maps of up to millions of rows, with error bars.

    ``fit`` compares models of this library and GPflow on held-out rows, as
    :func:`interdomain.recommend` does, and trains the best one on all rows. X and y need no
    scaling.

    >>> import numpy as np
    >>> from interdomain.estimators import GPRegressor
    >>> X = np.random.default_rng(0).uniform(size=(150, 2))
    >>> y = np.sin(9 * X[:, 0]) * X[:, 1]
    >>> regressor = GPRegressor(progress=False).fit(X, y)
    >>> mean, deviation = regressor.predict(X[:5], return_std=True)
    >>> bool(np.all(np.abs(mean - y[:5]) < 0.1))
    True

    X may be a matrix, or a data frame of pandas or polars. A column of text or of pandas'
    categories with more than 10 levels gets a number for each level: a group effect, of which a new
    level has the prior. Columns of fewer levels become zeros and ones, and may interact with other
    columns; a new level is the mean of the others, with a warning.

    A model of a box, "waves" or "splines", knows nothing of rows that are more than a tenth of the
    range beyond the training rows. Predictions are there the mean and the deviation of y.

    :param model: "auto" compares the models that suit the rows. "exact" is a GP without
        approximation (up to 2,000 rows). "neighbours" conditions on the nearest rows, "splines"
        (up to two columns) and "waves" (up to three) are features of a box, "harmonics" (3 to 50
        columns) features of all columns together, "effects" sums of functions of columns and of
        pairs. "globe" is for latitudes and longitudes, and "points" are inducing points.
    :param seconds: Seconds of all processors together in which "auto" compares models. The training
        of the chosen model comes after them. With up to 200 rows "auto" is "exact".
    :param noise: "gaussian", or "student" for targets with outliers.
    :param categorical: The names or numbers of columns of numbers that are categories.
    :param inputs: "degrees" for two columns of latitude and longitude, "euclidean" for a plane;
        by default the names of a frame's columns tell.
    :param bounds: ``{column: (low, high)}``, how far rows of :meth:`partial_fit` reach in columns
        of numbers.
    :param random_state: The seed of held-out rows and of training.
    :param progress: Show progress bars of work that takes more than a second.
    :ivar model_: The GPflow model, of X and y on its own scales.
    :ivar code_: A program of X and ``Y = y`` that makes the same model, trains it and predicts.
    :ivar report_: What was compared, how well it predicted, and what to know of the columns.
    :ivar n_features_in_: The number of columns of X.
    :ivar feature_names_in_: Their names, if X was a frame whose columns have names.
    :raises ValueError: In ``fit``, for values that are missing, y that does not vary, a model that
        does not suit the rows, and wrong arguments.
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
        self.model = model
        self.seconds = seconds
        self.noise = noise
        self.categorical = categorical
        self.inputs = inputs
        self.bounds = bounds
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, noise_variance: Any = None) -> GPRegressor:
        """Choose a model and train it.

        :param X: Rows ``[N, D]``, or a data frame.
        :param y: ``[N]``, or ``[N, P]`` for several outputs, which share the kernel and the noise.
        :param noise_variance: The variance of the noise of each row, ``[N]``, if it is known. No
            further noise is trained. :meth:`predict` then speaks of f, as new rows say nothing of
            their noise, and "auto" is "neighbours".
        """
        self._fit(X, y, noise_variance, None)
        return self

    def _fit(self, X: Any, y: Any, noise_variance: Any, names: Sequence[str] | None) -> None:
        student = choice("noise", self.noise, ("gaussian", "student")) == "student"
        rows, targets = self._checked_pair(X, y, reset=True, multi_output=True, y_numeric=True)
        if student and noise_variance is not None:
            raise ValueError(
                "noise_variance must be None with noise='student', found an array; pass one of two."
            )
        code = _STUDENT if student else "Gaussian(0.1)"
        self._noise_is_known, self._is_vector = noise_variance is not None, np.ndim(targets) == 1
        self._choose(
            rows,
            targets,
            StudentT(scale=0.3, df=4.0) if student else None,
            names,
            targets=recipes.standardised,
            likelihood_code=code,
            bounds=self.bounds,
            noise_variance=noise_variance,
        )

    def partial_fit(self, X: Any, y: Any, noise_variance: Any = None) -> GPRegressor:
        """Add rows without looking at the rows before. The first call is a :meth:`fit`.

        Models of features keep sums over the rows. The new rows are added to the sums, and all
        parameters are trained again on these, but for those that the features depend on.
        "neighbours" finds the neighbours of new rows, and keeps its parameters. Features, scales
        and levels are those of the first call. Rows of "waves" and "splines" have to be within
        ``bounds``; without them, in a box of the first rows and a tenth of their range around it.

        :param X: As for :meth:`fit`, and so are ``y`` and ``noise_variance``.
        :raises ValueError: For rows beyond the box, of other columns or of new levels; if the model
            is another one, or has Student-t noise and features.
        """
        if not hasattr(self, "model_"):
            self._fit(X, y, noise_variance, ENDING)
            return self
        checked, y = self._checked_pair(X, y, reset=False, multi_output=True, y_numeric=True)
        rows, beyond = self._scaled(checked)
        if np.any(beyond):
            raise ValueError(
                f"X must be within the box of the model, found {np.sum(beyond)} of {len(rows)} "
                "rows beyond it; pass bounds={column: (low, high)} to GPRegressor, and fit again."
            )
        for k, levels in enumerate(self._scaler.num_levels):
            if np.any(rows[:, self._numeric + k] >= levels):
                name = self._scaler.names[self._numeric + k]
                raise ValueError(
                    f"X must have levels of the first rows in column {name!r}, found new ones; fit "
                    "again with rows of all levels."
                )
        mean, deviation = self._units
        Y = np.asarray(y, float).reshape(len(rows), -1)
        if Y.shape[1] != len(mean):
            raise ValueError(
                f"y must have {len(mean)} outputs, as in the first call, found {Y.shape[1]}; pass "
                "all of them."
            )
        Y = (Y - mean) / deviation
        weights = None
        if (noise_variance is not None) != self._noise_is_known:
            raise ValueError(
                "noise_variance must be passed in all calls or in none, found another choice than "
                "in the first call; fit again."
            )
        if noise_variance is not None:
            weights = noise_weights(noise_variance, Y, self._units)
        model = self.model_
        if isinstance(model, VecchiaSGPR):
            model.extend((rows, Y), weights)
        elif isinstance(model, GPR):
            model.data = [
                tf.concat(parts, axis=0) for parts in zip(model.data, (rows, Y), strict=True)
            ]
            fit(model, progress=self.progress)
        elif isinstance(model, StructuredSGPR):
            statistics = model.statistics + model.accumulate((rows, Y), noise_weights=weights)
            self.model_ = StructuredSGPR(
                statistics,
                model.kernel,
                model.inducing_variable,
                mean_function=model.mean_function,
                likelihood=model.likelihood,
            )
            fit(self.model_, progress=self.progress)
        else:
            raise ValueError(
                f"model must keep sums over rows or neighbours to add rows to, found a "
                f"{type(model).__name__}; pass model='auto' and call partial_fit first, or one of "
                "'neighbours', 'waves', 'splines', 'harmonics' and 'effects' with Gaussian noise."
            )
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The mean of y at rows, in the units of y.

        :param X: Rows ``[n, D]``, or a data frame with the columns of the training rows.
        :param return_std: Also return the standard deviation of y, noise included.
        :param return_cov: Also return the joint covariance of y, ``[n, n]``, or ``[n, n, P]``.
        :return: ``[n]`` or ``[n, P]``, as y was; or a pair with the deviation or the covariance.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        if return_cov:
            mean, covariance, noise = self._joint(X)
            covariance += noise[:, None, None] * np.eye(len(mean))
            scale = np.square(self._units[1])
            return self._in_units(mean), self._shaped(np.moveaxis(covariance, 0, 2) * scale, 2)
        mean, variance, _ = self._moments(X)
        if return_std:
            return self._in_units(mean), self._shaped(np.sqrt(variance) * self._units[1])
        return self._in_units(mean)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """The ends of the interval of y at rows that has a probability, with equal tails.

        :param X: As for :meth:`predict`.
        :param level: The probability, between 0 and 1.
        :return: The lower and the upper ends, each of the shape of y.
        """
        if not 0 < number("level", level) < 1:
            raise ValueError(f"level must be between 0 and 1, found {level!r}; pass 0.9.")
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        mean, variance, beyond = self._moments(X)
        quantiles = mean[:, :, None] + np.sqrt(variance)[:, :, None] * ndtri(tails)
        if not self._noise_is_known and not np.all(beyond):
            rows, _ = self._rows(X)
            quantiles[~beyond] = predict_quantiles(
                self.model_, rows[~beyond], tails, progress=self.progress
            )
        low, high = np.moveaxis(quantiles, 2, 0)
        return self._in_units(low), self._in_units(high)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draws of y at rows, jointly: ``[n, n_samples]``, or ``[n, P, n_samples]``.

        :param X: As for :meth:`predict`.
        :param n_samples: The number S of draws.
        :param random_state: The seed.
        """
        rng = check_random_state(random_state)
        mean, covariances, noise = self._joint(X)
        drawn = [
            rng.multivariate_normal(of_output, covariance, n_samples).T
            for of_output, covariance in zip(mean.T, covariances, strict=True)
        ]
        y = np.stack(drawn, axis=1)  # [n, P, S]
        likelihood = self.model_.likelihood
        if isinstance(likelihood, StudentT):
            y += float(likelihood.scale) * rng.standard_t(float(likelihood.df), y.shape)
        else:
            y += np.sqrt(noise)[:, None] * rng.standard_normal(y.shape)
        mean, deviation = (part[:, None] for part in self._units)
        return self._shaped(y * deviation + mean)

    def _moments(self, X: Any) -> tuple[Array, Array, BoolArray]:
        """Mean and variance of y at rows, or of f if noise is known, on the scale of the model; and
        which rows are beyond the box, where the mean and the variance are zero and one."""
        rows, beyond = self._rows(X)
        method = "predict_f" if self._noise_is_known else "predict_y"
        mean, variance = self._predict(rows, method)
        mean[beyond], variance[beyond] = 0.0, 1.0
        return mean, variance, beyond

    def _joint(self, X: Any) -> tuple[Array, Array, Array]:
        """The mean ``[n, P]`` and the covariance ``[P, n, n]`` of f at rows, and the variance of
        the noise, ``[P]``, on the scale of the model."""
        rows, beyond = self._rows(X)
        if np.any(beyond):
            raise ValueError(
                f"X must be within the box of the model for joint predictions, found {sum(beyond)} "
                "rows beyond it; leave them out."
            )
        mean, covariance = (np.array(m, float) for m in self.model_.predict_f(rows, full_cov=True))
        _, total = self.model_.likelihood.predict_mean_and_var(
            rows[:1], mean[:1], covariance[:, :1, 0].T
        )
        noise = np.asarray(total)[0] - covariance[:, 0, 0]
        return mean, covariance, np.zeros_like(noise) if self._noise_is_known else noise

    def _in_units(self, values: Array) -> Array:
        """Values ``[n, P]`` in the units of y, in its shape."""
        return self._shaped(values * self._units[1] + self._units[0])

    def _shaped(self, values: Array, axis: int = 1) -> Array:
        """Values without the axis of outputs, if y is a vector."""
        return values.take(0, axis) if self._is_vector else values
