"""The base class of both estimators: the checks of rows, and the choice of a model."""

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
from .._arguments import Array, BoolArray, choice, refusal, warn
from .._progress import bars
from .candidates import BOXED, NAMED, names_for
from .prepared import prepare
from .recommend import choose

MEANINGS = "a weight may mean a number of repetitions, or one over the noise variance"
"""The reason why estimators have no weights of rows."""

_MARGIN = 0.1
"""The margin of a model's box around the training rows, in ranges of each column."""


def _text(values: Any) -> str | None:
    """The first text in an array that is not a number; None if there is none."""
    try:
        entries = np.asarray(values).ravel()
    except (TypeError, ValueError):  # rows of different lengths, for example
        return None
    if entries.dtype.kind in "OSU":
        for entry in entries.tolist():
            try:
                _ = float(entry) if isinstance(entry, (str, bytes)) else None
            except ValueError:
                return str(entry)
    return None


class Estimator(BaseEstimator):  # type: ignore[misc]
    """The base class of both estimators, which choose a GPflow model of the rows and train it."""

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
        """The checked rows X, with y if they are training rows. Rows of numbers become a matrix. A
        data frame, and rows with categories, stay as they are.

        :param y_options: The options of scikit-learn's checks for y that holds numbers.
        """
        if not reset:
            check_is_fitted(self)
        pair = (y,) if reset or y_options else ()
        if (text := _text(y)) is not None and y_options:
            raise refusal("y", "be numbers", f"the text {text!r}", "GPClassifier predicts classes")
        least, framed = 1 + reset, hasattr(X, "columns")
        if not framed and self.categorical is None:
            if (text := _text(X)) is not None:
                remedy = (
                    "pass a data frame (a ColumnTransformer returns one after "
                    "set_output(transform='pandas')), or the numbers of such columns: "
                    f"{type(self).__name__}(categorical=[...])"
                )
                rule = "be numbers, if it is an array"
                raise refusal("X", rule, f"the text {text!r}", remedy)
            options = {"dtype": np.float64, "ensure_min_samples": least, **y_options}
            return validate_data(self, X, *pair, reset=reset, **options)
        rows = X if framed else np.asarray(X, object)
        validate_data(self, rows, *pair, reset=reset, skip_check_array=True)
        if reset and framed and all(isinstance(name, str) for name in X.columns):
            # scikit-learn 1.6 does not read the names of frames of polars 2.
            self.feature_names_in_ = np.asarray(X.columns, object)
        if not pair:
            return rows
        numbers = {"dtype": np.float64, "ensure_2d": False, "ensure_min_samples": least}
        y = check_array(y, input_name="y", **numbers) if y_options else column_or_1d(y, warn=True)
        check_consistent_length(rows, y)
        return rows, y

    def _choose(
        self, X: Any, Y: Any, likelihood: Likelihood | None, *, grows: bool = False, **options: Any
    ) -> None:
        """Train the named model, or the model that predicts held-out rows best.

        :param grows: Whether rows will be added later.
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
        """A context that shows progress bars if wanted, and hides warnings that ask for
        other features."""
        with bars(shown=self.progress), warnings.catch_warnings():
            for hidden in ("are so narrow beside the kernel", "half of the box's margin"):
                warnings.filterwarnings("ignore", message=f".*{hidden}")
            yield

    def _rows(self, checked: Any) -> tuple[Array, BoolArray]:
        """Checked rows on the scale of the model, and a mask of rows outside of the box. If the
        features have a box, rows outside are moved to its edge."""
        rows: Array = self._data.scaler(checked)
        inside, beyond = self._data.in_box(rows)
        return (inside if self._is_boxed else rows), beyond

    def _predict(self, X: Any) -> tuple[Array, Array, BoolArray]:
        """The mean and the variance of y (or f, if the noise is known), ``[N, P]`` on the scale of
        the model; and a mask of rows outside of its box, which get mean 0 and variance 1."""
        rows, beyond = self._rows(self._checked(X))
        options: Any = {"method": "predict_f" if self._noise_is_known else "predict_y"}
        moments = predict_in_batches(self.model_, rows, progress=self.progress, **options)
        mean, variance = (np.asarray(part, np.float64) for part in moments)
        beyond &= self._is_boxed
        mean[beyond], variance[beyond] = 0.0, 1.0
        return mean, variance, beyond
