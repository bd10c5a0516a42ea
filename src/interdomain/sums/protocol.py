"""The protocol of sums over rows: :class:`Sums` adds up rows, and makes a :class:`Collapsed`.

A row (x, y) has the features ``phi = Kuf[:, n]`` and the targets t. Sums of ``phi phi^T`` and of
``phi t^T`` are all that a bound and its q need. A row of weight w has the noise variance s / w, and
enters all sums with the factor w. :class:`Sums` computes the sums in batches, in the shortest form
that the features' structure allows. :meth:`Sums.finish` turns the sums into a :class:`Collapsed`,
which has the terms of the bound and the posterior of the weights.

A new structure of sums needs one file: a subclass of :class:`Sums`, its :class:`Collapsed`, and a
:class:`interdomain.core.structures.FeatureStructure` that a family returns.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Protocol, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType

from .._arguments import Array, BoolArray
from .._tracing import compiled
from ..core.pairs import feature_sums
from ..linalg.variational import Whitened, kl_divergence
from ..posteriors import CollapsedPosterior

Tensors: TypeAlias = tuple[tf.Tensor, tf.Tensor]


class Collapsed(Protocol):
    """A collapsed posterior, which combines sums over rows with the prior of the weights. It has
    the terms of the bound and q.

    ``G = sum phi phi^T``, ``C = sum phi t^T``, R is a root of Kuu (``Kuu = R R^T``), s the noise
    variance, and ``B = I + R^{-1} G R^{-T} / s``.
    """

    def terms(self, noise_variance: tf.Tensor, *, refuse: bool = True) -> Tensors:
        """The terms ``log det B`` and ``|B^{-1/2} R^{-1} C / s|^2`` of the bound, with gradients.

        :param refuse: Whether a B that cannot be factorised is an error; if False, both are NaN.
        :raises tf.errors.InvalidArgumentError: If B cannot be factorised.
        """

    def explained_variance(self, incomplete: BoolArray) -> tf.Tensor:
        """The trace ``tr R^{-1} G R^{-T}`` over the incomplete features alone, ``[]``.

        :param incomplete: Whether a feature's kernel has variance that the features do not
            explain, ``[M]``.
        """

    def whitened_q(self, noise_variance: tf.Tensor) -> Tensors:
        """The mean ``[M, P]`` and root ``[M, M]``, lower triangular, of the optimal q of
        ``R^{-1} u``.

        :raises ValueError: If a dense root is too large.
        """

    def weights(self, noise_variance: tf.Tensor) -> Tensors:
        """The posterior of the weights of Kuf: mean ``[M, P]``, and a root ``[M, M]`` of the
        covariance.

        :raises ValueError: If a dense root is too large.
        """

    def mean_of_weights(self, noise_variance: tf.Tensor) -> Array:
        """The mean of the weights, ``(Kuu + G / s)^{-1} C / s``, ``[M, P]``, as an array."""


Latents: TypeAlias = Sequence[tuple[Collapsed, tf.Tensor]]
"""Pairs of a :class:`Collapsed` and its noise variance: one for all latent GPs, or one for each."""


class Sums(abc.ABC):
    """Sums over rows of products of their features.

    The defaults work for any features, at the cost of dense features.

    :param features: The :class:`interdomain.sums.features.Features` of the rows.
    :ivar rows_at_once: The least number of rows in a joined batch.
    :ivar rows_of_a_prediction: The largest number of rows that are predicted at a time; None for
        any number.
    """

    rows_at_once = 1
    rows_of_a_prediction: int | None = None

    def __init__(self, features: Any) -> None:
        self.features = features
        self.traced = compiled(self.in_graph, input_signature=features.signature())

    # Rows of a regression: from batches to sums.

    @property
    def numbers_per_row(self) -> int:
        """The approximate count of numbers that a gradient stores for each row."""
        return int(self.features.num_stacked)

    def batch(self, X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        """The sums over one batch of rows. Results of batches are added to the sums of all rows.

        :param X: Rows in the domains of the features, ``[n, D]``.
        :param Y: The targets minus ``SufficientStatistics.reference``, ``[n, P]``.
        :param more: Further parts of the rows, such as weights, ``[n, 1]`` in float64, or the
            places of neighbours.
        """
        dtype = gpflow.default_float()
        return self.tensors(tf.constant(X, dtype), tf.constant(Y, dtype), *more)

    def total(self, added: Mapping[str, Array]) -> dict[str, Array]:
        """The sums by the names of :meth:`in_graph`, from the total of all batches."""
        return dict(added)

    def tensors(self, *rows: tf.Tensor) -> dict[str, tf.Tensor]:
        """The sums over some rows, in float64, with gradients: see :meth:`in_graph`."""
        # In a graph, the plain function: the gradient of a compiled one would be a second graph.
        function = self.in_graph
        if tf.executing_eagerly():
            known = len(rows) == len(self.features.signature())
            function = self.traced if known else self._traced_with_weights
        sums: dict[str, tf.Tensor] = function(*rows)
        return sums

    @cached_property
    def _traced_with_weights(self) -> Any:
        weights = tf.TensorSpec([None, 1], tf.float64)
        return compiled(self.in_graph, input_signature=[*self.features.signature(), weights])

    def in_graph(self, X: tf.Tensor, Y: tf.Tensor, *more: tf.Tensor) -> dict[str, tf.Tensor]:
        """The sums over some rows, of weights w, with gradients, as a function that can be
        compiled:

        * "gram": ``sum w phi phi^T``, in the shape of :meth:`gram_shape`;
        * "products": ``sum w phi t^T``, ``[M, P + H]``, with the targets ``t = (y, h)``, where h
          are the H columns of the mean function;
        * "targets": ``sum w t t^T``, ``[P + H, P + H]``;
        * "diagonal": the weighted sum of each of the T terms of the prior variance, ``[T]``;
        * "log_weights": ``sum log w``, if rows have weights.

        :param more: The weights, ``[n, 1]`` in float64; nothing for weights of one.
        """
        features, size = self.features, self.features.num_inducing
        targets, sums = features.target_sums(X, Y, *more)
        weights = more[0] if more else None
        gram, products = feature_sums(
            features.inducing_variable, features.kernel, X, weights, targets
        )
        return {
            "gram": tf.ensure_shape(gram[0] if more else gram, [size, size]),
            "products": tf.ensure_shape(products, [size, None]),
            **sums,
        }

    def weighted(self, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """The features of rows ``[n, D]`` in the domains times weights ``[M, P]``, summed over the
        features: ``[n, P]``."""
        features, *_ = self.features.row_features(X)
        return tf.matmul(features, tf.cast(weights, features.dtype), transpose_a=True)

    def explained_at_rows(self) -> BoolArray | None:
        """Whether each feature belongs to a block that explains all of its prior variance at the
        rows that the sums accept, ``[M]``; None, the default, if no block does."""
        return None

    def variables(self) -> tuple[tf.Variable, ...]:
        """The variables that the sums depend on, captured by their graph."""
        return tuple(self.traced.get_concrete_function().graph.variables)

    def require_fixed(self, trainable: Mapping[str, Any]) -> None:  # noqa: B027
        """Check that the features depend on no trainable parameter, if sums have no gradients.

        :param trainable: The trainable parameters of the features, by name.
        :raises ValueError: If there is such a parameter and sums have no gradients.
        """

    # Rows with Gaussian sites: sums with weights, bordered by the columns of the mean function.

    def rows(self, X: tf.Tensor) -> tuple[Any, tf.Tensor]:
        """The rows ``[n, D]`` in the form that :meth:`site_batch` takes, and the terms of the prior
        variance at each row, ``[T, n]``."""
        return X, self.features.terms_of(X)

    def site_batch(self, rows: Any, precisions: Array, shifts: Array) -> tuple[Array, Array]:
        """The sums of :meth:`site_sums` over some rows, as arrays that add up.

        :param rows: See :meth:`rows`.
        :param precisions: ``[L, n]``, all of one sign.
        :param shifts: ``[L, n]``.
        """
        grams, shifted = self.site_sums(rows, precisions, shifts)
        return np.asarray(grams), np.asarray(shifted)

    def site_total(self, added: Mapping[str, Array], prefix: str = "") -> tuple[Array, Array]:
        """The sums of :meth:`site_sums` over all rows, from the total of all batches.

        :param prefix: The prefix of the names "precisions" and "shifts".
        """
        return added[f"{prefix}precisions"], added[f"{prefix}shifts"]

    @abc.abstractmethod
    def site_sums(
        self, X: tf.Tensor, precisions: tf.Tensor, shifts: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Two weighted sums over rows for each latent GP, where ``psi = (phi, h)`` joins the
        features and the columns of the mean function: ``sum precision psi psi^T``, ``[L,
        *gram_shape(H)]``, and ``sum shift psi``, ``[M + H, L]``.

        :param X: ``[n, D]``.
        :param precisions: ``[L, n]``.
        :param shifts: ``[L, n]``.
        """

    # The form of a sum of products.

    @abc.abstractmethod
    def gram_shape(self, num_columns: int) -> tuple[int, ...]:
        """The shape of a sum of products of features, with a border of ``num_columns`` columns."""

    @abc.abstractmethod
    def border(self, gram: tf.Tensor, num_columns: int) -> tuple[tf.Tensor, tf.Tensor]:
        """The products of features with the columns that border a sum, ``[M, H]``, and of the
        columns with each other, ``[H, H]``."""

    @abc.abstractmethod
    def prior_gram(self, num_columns: int) -> Array:
        """Kuu in the form of a sum of products, bordered by zeros."""

    # From sums to q.

    @abc.abstractmethod
    def prior(self) -> Any:
        """The prior of the weights in the form that :meth:`finish` needs, in float64, once for all
        latent GPs."""

    @abc.abstractmethod
    def finish(
        self,
        prior: Any,
        gram: tf.Tensor,
        columns: tf.Tensor,
        *,
        num_columns: int = 0,
        gram_gradient: bool = False,
    ) -> Collapsed:
        """Combine the sums with the prior.

        :param prior: The result of :meth:`prior`.
        :param gram: A sum of products; the ``num_columns`` columns of its border are ignored.
        :param columns: The sums ``C = sum phi t^T``, ``[M, P]``.
        :param gram_gradient: Whether ``gram`` depends on a trained parameter.
        """

    def q(self, latents: Latents) -> Q:
        """The current posterior of the weights of all latent GPs."""
        return Q(self, latents)

    def posterior(
        self,
        latents: Callable[[], Latents],
        precompute_cache: PrecomputeCacheType | str | None,
    ) -> AbstractPosterior:
        """A posterior of GPflow, for predictions.

        :param latents: Function that returns the :data:`Latents` of q.
        """
        features = self.features
        return CollapsedPosterior(
            features.kernel,
            features.inducing_variable,
            partial(q_of_posterior, latents),
            mean_function=features.mean_function,
            precompute_cache=precompute_cache,
        )

    def predictions_of_many(self, latents: Latents) -> Callable[..., Tensors] | None:
        """A fast predictor, or None if the structure has none. It maps rows X ``[n, D]`` to mean
        and variance of f, ``[n, P]`` each. For more rows than features it is faster than the
        posterior. It has no gradients and no covariances."""
        return None

    def moments(self, q: Q, X: tf.Tensor) -> tuple[Any, tf.Tensor, tf.Tensor, tf.Tensor]:
        """The two results of :meth:`rows`, and the mean and variance of f at X, ``[n, L]`` each."""
        rows = max(int(X.shape[0]), 1)
        size = self.rows_of_a_prediction or rows
        parts = [q.posterior.predict_f(X[start : start + size]) for start in range(0, rows, size)]
        mean, variance = (tf.concat(part, axis=0) for part in zip(*parts, strict=True))
        return *self.rows(X), mean, variance

    def check_spacing(self) -> None:  # noqa: B027
        """Warn of features that are too coarse or too fine for the kernel's lengthscales."""


def whitened_q(latents: Latents) -> Tensors:
    """The mean ``[M, P]`` and roots ``[P, M, M]``, or one root for all ``[1, M, M]``, of the
    whitened q, in float64."""
    means, roots = zip(*(part.whitened_q(noise) for part, noise in latents), strict=True)
    return tf.concat(means, axis=1), tf.stack(roots)


def q_of_posterior(latents: Callable[[], Latents]) -> Tensors:
    """The whitened q in the default float, for a function that returns :data:`Latents`."""
    mean, root = (tf.cast(part, gpflow.default_float()) for part in whitened_q(latents()))
    return mean, root


class Q:
    """The posterior of the weights of all latent GPs.

    :param sums: The sums of its features.
    :param latents: See :data:`Latents`.
    :raises tf.errors.InvalidArgumentError: If a precision cannot be factorised.
    """

    def __init__(self, sums: Sums, latents: Latents) -> None:
        self.sums, self.latents = sums, latents
        self.whitened = whitened_q(latents)

    @cached_property
    def posterior(self) -> AbstractPosterior:
        """A posterior of GPflow with this q, for predictions."""
        # A function that held q itself would keep its arrays until garbage is collected.
        latents = self.latents
        return self.sums.posterior(lambda: latents, PrecomputeCacheType.TENSOR)

    def kl(self) -> float:
        """The KL divergence from the prior, of all latent GPs."""
        return float(kl_divergence(Whitened(*(part[None] for part in self.whitened))))

    def is_finite(self) -> bool:
        """Whether all numbers of q are finite."""
        return all(bool(np.all(np.isfinite(part))) for part in self.whitened)
