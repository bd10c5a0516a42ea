"""What both estimators share: rows of scikit-learn's kinds, and the choice of a model."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gpflow.likelihoods import Likelihood
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import predict_in_batches
from .._arguments import Array, BoolArray, choice, warn
from .._progress import bars
from .candidates import BOXED, NAMED, names_for
from .prepared import prepare
from .recommend import choose

_MARGIN = 0.1
"""How far the box of a model exceeds the rows, in ranges of the rows."""


class Estimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that chooses a GPflow model of the rows: the parameters of both."""

    _noise_is_known = False

    def __init__(
        self,
        model: str = "auto",
        *,
        seconds: float = 60,
        categorical: Sequence[Any] | None = None,
        inputs: str | None = None,
        random_state: Any = 0,
        progress: bool = True,
    ) -> None:
        self.model, self.seconds, self.categorical = model, seconds, categorical
        self.inputs, self.random_state, self.progress = inputs, random_state, progress

    def _checked(self, X: Any, y: Any = None, *, reset: bool = False, **y_options: Any) -> Any:
        """Rows of numbers as a matrix, with their targets if they are training rows. A frame stays
        as it is, and so do rows with categories.

        :param y_options: What scikit-learn has to know of targets that are numbers.
        """
        if not reset:
            check_is_fitted(self)
        pair = (y,) if reset or y_options else ()
        least, framed = 1 + reset, hasattr(X, "columns")
        if not framed and self.categorical is None:
            options = {"dtype": np.float64, "ensure_min_samples": least, **y_options}
            return validate_data(self, X, *pair, reset=reset, **options)
        rows = X if framed else np.asarray(X, object)
        validate_data(self, rows, *pair, reset=reset, skip_check_array=True)
        if not pair:
            return rows
        numbers = {"dtype": np.float64, "ensure_2d": False, "ensure_min_samples": least}
        y = check_array(y, input_name="y", **numbers) if y_options else column_or_1d(y, warn=True)
        check_consistent_length(rows, y)
        return rows, y

    def _choose(
        self, X: Any, Y: Any, likelihood: Likelihood | None, *, grows: bool = False, **options: Any
    ) -> None:
        """Train the named model, or the one that predicts held-out rows best.

        :param grows: Whether rows will be added.
        :param options: Further arguments of :func:`.prepare`.
        """
        started, seed = time.process_time(), check_random_state(self.random_state).randint(2**31)
        inputs = "degrees" if self.model == "globe" else self.inputs
        options["categorical"] = () if self.categorical is None else self.categorical
        data = prepare(X, Y, likelihood, None, inputs, **options)
        model, gaussian = choice("model", self.model, ("auto", *NAMED)), likelihood is None
        names = names_for(model, data, gaussian=gaussian, grows=grows)
        how: Any = {"seed": int(seed), "names": names, "races": model == "auto"}
        with self._shown():
            found = choose(data, likelihood, self.seconds, started, **how)
            self.model_ = found.fit()
        self.report_, self.code_ = str(found), found.code
        self._is_boxed = found.name in BOXED
        self._data = data.without_rows(_MARGIN if self._is_boxed else None)
        if not found.learnt:
            warn(found.sentences[0])

    @contextlib.contextmanager
    def _shown(self) -> Iterator[None]:
        """Bars if they are wanted, and no advice on parameters that the estimator chooses."""
        with bars(shown=self.progress), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*are so narrow beside the kernel")
            yield

    def _rows(self, checked: Any) -> tuple[Array, BoolArray]:
        """Checked rows on the scale of the model; and which of them are beyond its box, whose edge
        a model of a box has for them."""
        rows: Array = self._data.scaler(checked)
        inside, beyond = self._data.in_box(rows)
        return (inside if self._is_boxed else rows), beyond

    def _predict(self, X: Any) -> tuple[Array, Array, BoolArray]:
        """Mean and variance of y at rows, or of f if noise is known, ``[N, P]`` each on the scale
        of the model; and which rows are beyond its box, where these are zero and one."""
        rows, beyond = self._rows(self._checked(X))
        options: Any = {"method": "predict_f" if self._noise_is_known else "predict_y"}
        moments = predict_in_batches(self.model_, rows, progress=self.progress, **options)
        mean, variance = (np.asarray(part, np.float64) for part in moments)
        beyond &= self._is_boxed
        mean[beyond], variance[beyond] = 0.0, 1.0
        return mean, variance, beyond
