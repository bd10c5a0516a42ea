"""Gaussian-process classification in the interface of scikit-learn: ``GPClassifier``."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpflow.likelihoods import Bernoulli
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from .._arguments import Array, lacks
from . import outputs
from .base import MEANINGS, Estimator


class GPClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """A Gaussian process that predicts the probabilities of classes.

    It chooses a model as :class:`GPRegressor` does, and accepts the same X. The likelihood is
    Bernoulli with a probit link. With more than two classes, each class has a latent GP for this
    class against all others, and all share a kernel; probabilities are scaled to the sum one.
    There is no ``partial_fit``: without Gaussian noise, old rows would have to be read again.

    >>> import numpy as np
    >>> from interdomain.estimators import GPClassifier
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "red", "blue")
    >>> classifier = GPClassifier(progress=False).fit(X, y)
    >>> str(classifier.predict([[0.9, 0.1]])[0]), classifier.predict_proba([[0.9, 0.1]]).shape
    ('red', (1, 2))

    :param model: "auto", "exact" (up to 200 rows), "waves", "harmonics", "effects", "globe" or
        "points". :class:`GPRegressor` describes the models, other parameters and attributes.
    :ivar classes_: The classes, in increasing order.
    :raises ValueError: In ``fit``, for missing values, a single class, a model that does not suit
        the rows, and wrong arguments.
    """

    @lacks("sample_weight", f"{MEANINGS}; repeat rows instead")
    def fit(self, X: Any, y: Any) -> GPClassifier:
        """Choose a model and train it.

        :param X: Rows ``[N, D]``, or a data frame.
        :param y: Classes ``[N]``: numbers or text.
        """
        rows, labels = self._checked(X, y, reset=True)
        check_classification_targets(labels)
        _, self.classes_ = outputs.labelled(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have two classes or more, found 1 class, {self.classes_[0]!r}; pass rows "
                "of other classes."
            )
        self._choose(
            rows, labels, Bernoulli(), targets=outputs.labelled, likelihood_code="Bernoulli()"
        )
        return self

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class at rows, ``[n, C]``, in the order of ``classes_``.

        Outside of the box of "waves" all classes are equally probable.

        :param X: Rows ``[n, D]``, or a data frame with the columns of the training rows.
        """
        mean, _, beyond = self._predict(X)
        mean[beyond] = 0.5
        return np.asarray(outputs.probabilities(mean))

    def predict(self, X: Any) -> Any:
        """The most probable class of each row, ``[n]``.

        :param X: Rows ``[n, D]``, or a data frame with the columns of the training rows.
        """
        places = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[places]
