"""What both estimators share: rows of scikit-learn's kinds, and the choice of a model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gpflow.likelihoods import Likelihood
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import predict_in_batches
from .._arguments import Array, BoolArray, choice, warn
from .candidates import BOTH, MOST_ROWS_OF_Q
from .prepared import prepare
from .recommend import Recommendation, choose

NAMED: Mapping[str, tuple[str, ...]] = {
    "exact": ("exact", "all rows"),
    "neighbours": ("neighbours",),
    "splines": ("splines",),
    "waves": ("waves",),
    "harmonics": ("harmonics",),
    "effects": ("effects",),
    "globe": (BOTH, "harmonics"),
    "points": ("points",),
}
"""The candidates by the names of ``model``; the first that suits is taken."""

ENDING = "waves", "splines", "neighbours", "effects", "harmonics", "effects and harmonics", BOTH
"""Candidates whose training ends by itself, and to which rows can be added under Gaussian noise."""

_FEW_ROWS = 2_000
"""As many rows or fewer need no candidates of minibatches, which would take all of the seconds."""

_BOXED, _MARGIN = ("waves", "splines"), 0.1
"""Candidates that know nothing beyond their rows, and the share of the rows' range beyond them."""


_ROUNDING = 1e-9


class Estimator(BaseEstimator):  # type: ignore[misc]
    """An estimator of scikit-learn that chooses a GPflow model of the rows, and trains it."""

    model: Any
    seconds: float
    categorical: Any
    inputs: str | None
    random_state: Any
    progress: bool
    model_: Any

    def _checked(self, X: Any) -> Any:
        """New rows of numbers as a matrix. A frame stays as it is, and so do rows of categories."""
        check_is_fitted(self)
        rows, mixed = self._with_categories(X)
        if mixed:
            return validate_data(self, rows, reset=False, skip_check_array=True)
        return validate_data(self, rows, reset=False, dtype=np.float64)

    def _checked_pair(self, X: Any, y: Any, *, reset: bool, **of_targets: Any) -> Any:
        """Rows and their targets."""
        rows, mixed = self._with_categories(X)
        least = 2 if reset else 1
        if not mixed:
            options = {"dtype": np.float64, "ensure_min_samples": least, **of_targets}
            return validate_data(self, rows, y, reset=reset, **options)
        validate_data(self, rows, y, reset=reset, skip_check_array=True)
        if of_targets:
            y = check_array(y, dtype=np.float64, ensure_2d=False, estimator=self, input_name="y")
        else:
            y = column_or_1d(y, warn=True)
        check_consistent_length(rows, y)
        if len(y) < least:
            raise ValueError(f"Found {len(y)} sample(s) while a minimum of {least} is required.")
        return rows, y

    def _with_categories(self, X: Any) -> tuple[Any, bool]:
        """The rows, and whether they may have columns of categories."""
        if hasattr(X, "columns"):
            return X, True
        mixed = self.categorical is not None
        return (np.asarray(X, object) if mixed else X), mixed

    def _choose(
        self,
        X: Any,
        Y: Array,
        likelihood: Likelihood | None,
        names: Sequence[str] | None = None,
        **options: Any,
    ) -> Recommendation:
        """Train the named model, or the one that predicts held-out rows best.

        :param names: The candidates that "auto" chooses among; None for all.
        :param options: Further arguments of :func:`.prepare`.
        """
        started = time.process_time()
        choice("model", self.model, ("auto", *NAMED))
        inputs = "degrees" if self.model == "globe" else self.inputs
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        categorical = () if self.categorical is None else self.categorical
        data = prepare(X, Y, likelihood, None, inputs, categorical=categorical, **options)
        count = len(data.X)
        if self.model != "auto":
            names = NAMED[self.model]
        elif data.noise_weights is not None:
            names = NAMED["neighbours"]
        elif names is None and count <= MOST_ROWS_OF_Q:
            names = NAMED["exact"]
        elif names is None and count <= _FEW_ROWS:
            names = ("exact", "all rows", *ENDING)
        chosen = choose(
            data, likelihood, self.seconds, started, seed=seed, progress=self.progress, names=names
        )
        self.model_ = chosen.fit(progress=self.progress)
        self._scaler, self._units, self._numeric = data.scaler, data.units, data.num_numeric
        self._box = None
        if chosen.name in _BOXED:
            numbers = data.X[:, : data.num_numeric]
            margin = _MARGIN * np.ptp(numbers, axis=0)
            ends = numbers.min(axis=0) - margin, numbers.max(axis=0) + margin
            self._box = np.array(data.box or ends)
        self.report_, self.code_ = str(chosen), chosen.code
        if not chosen.learnt:
            warn(chosen.sentences[0])
        return chosen

    def _predict(self, rows: Array, method: str) -> tuple[Array, Array]:
        """Mean and variance of f or of y at rows, ``[N, P]`` each, on the scale of the model."""
        moments = predict_in_batches(self.model_, rows, method=method, progress=self.progress)
        mean, variance = (np.asarray(part, np.float64) for part in moments)
        return mean, variance

    def _rows(self, X: Any) -> tuple[Array, BoolArray]:
        """Rows on the scale of the model; and which of them are beyond its box. These are moved to
        its edge."""
        return self._scaled(self._checked(X))

    def _scaled(self, checked: Any) -> tuple[Array, BoolArray]:
        """See :meth:`_rows`."""
        rows: Array = self._scaler(checked)
        if self._box is None:
            return rows, np.zeros(len(rows), bool)
        numbers = rows[:, : self._numeric]
        inside = np.clip(numbers, *self._box)
        beyond: BoolArray = np.any(np.abs(inside - numbers) > _ROUNDING, axis=1)
        return np.hstack([inside, rows[:, self._numeric :]]), beyond
