"""The public function :func:`interdomain.sample_functions`, and the functions that it returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.kernels import LinearCoregionalization

from .._arguments import integer, refusal
from .._tracing import unconverted
from ..core.columns import with_columns
from ..core.latents import in_order
from ..linalg.chunks import map_rows
from ..posteriors.blockwise import as_inputs
from .base import MOST_ENTRIES, Draws
from .conditioning import Parts, functions_of


class FunctionSamples:
    """Functions drawn from a GP by :func:`interdomain.sample_functions`; a call evaluates all.

    A function has the same value at the same place in every call, even if the model changes.
    Calls can be differentiated with respect to X, and can be part of a ``tf.function``.

    :ivar num_samples: The number S of functions.
    """

    def __init__(self, parts: Parts, num_samples: int, num_columns: int | None) -> None:
        self.num_samples = num_samples
        self._parts, self._num_columns = parts, num_columns

    @unconverted
    @check_shapes("X: [N, D]", "return: [S, N, P]")
    def __call__(self, X: TensorType) -> tf.Tensor:
        """The values of all functions at all rows.

        Rows are computed in batches, also in the gradient, which bounds the memory.
        """
        X = with_columns(as_inputs(self._parts[0], X), self._num_columns)
        entries = sum(f.entries_per_row for f in self._parts[2])
        by_rows = map_rows(self._row_values, X, [], max(1, MOST_ENTRIES // entries))
        return tf.transpose(by_rows, [1, 0, 2])

    def _row_values(self, X: tf.Tensor) -> tf.Tensor:
        """The values of all functions at some rows, ``[N, S, P]``."""
        kernel, mean_function, latents = self._parts
        values = in_order([f.latents for f in latents], [f(X) for f in latents], axis=2)
        if isinstance(kernel, LinearCoregionalization):
            values = tf.matmul(values, tf.convert_to_tensor(kernel.W), transpose_b=True)
        if mean_function is not None:
            values += mean_function(X)
        return tf.transpose(values, [1, 0, 2])


def sample_functions(
    model: Any,
    num_samples: int,
    *,
    seed: int = 0,
    num_features: int = 1_000,
    input_dim: int | None = None,
) -> FunctionSamples:
    """Draw functions from a model's posterior, which can be evaluated at any rows.

    If the features represent the prior completely, a function is given by a draw of their weights.
    This holds for :class:`~interdomain.kernels.FiniteRank` with its own features, and for sums of
    such kernels. Otherwise a function is drawn from the prior, as a sum of random or spectral
    features. It is then corrected by ``Kfu Kuu^{-1} (u - u')``: u is drawn from q, and u' are the
    inducing variables of the prior's function (Wilson et al. 2020, *Efficiently sampling functions
    from Gaussian process posteriors*). A value costs ``O(M)`` operations, plus ``O(num_features)``
    for the prior's function.

    Every function has its own random features. The mean and the covariance of the functions are
    therefore exactly those of the posterior, even with few features. With more features, each
    function is closer to Gaussian. The spectrum of a zonal kernel is cut off at degree 128; the
    last degree gets the variance of higher degrees, which is small except for rough kernels.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=[50, 1])
    >>> Y = np.sin(4 * X)
    >>> kernel = gpflow.kernels.Matern52(lengthscales=0.5)
    >>> model = gpflow.models.GPR((X, Y), kernel, noise_variance=0.01)
    >>> functions = idm.sample_functions(model, 5)
    >>> functions(X).shape
    TensorShape([5, 50, 1])
    >>> bool(np.allclose(functions(X)[:, 7:9], functions(X[7:9])))
    True

    :param model: A GPflow ``SVGP``, ``SGPR``, ``GPR`` or ``VGP``, or a model of
        ``interdomain.models`` other than ``VecchiaSGPR``; its posterior (``model.posterior()``); or
        a kernel, for functions of the prior.
    :param num_samples: The number S of functions.
    :param seed: The seed of all random numbers.
    :param num_features: The number F of random features of each function of the prior.
    :param input_dim: The number of columns of X; needed only if the model does not determine it.
    :return: The functions, from X ``[N, D]`` to ``[S, N, P]``, without the likelihood's noise.
    :raises ValueError: If a number is not positive, if this is called inside a compiled function,
        or if the outputs are not combinations of independent latent GPs. Also for unsupported
        models, kernels whose prior cannot be drawn from, and inducing variables that cannot be
        computed for a function of the prior.
    """
    num_samples = integer("num_samples", num_samples, at_least=1)
    num_features = integer("num_features", num_features, at_least=1)
    seed = integer("seed", seed, at_least=0)
    if input_dim is not None:
        input_dim = integer("input_dim", input_dim, at_least=1)
    if not tf.executing_eagerly():
        remedy = "draw functions before, and evaluate them in it"
        rule = "be called outside of compiled functions"
        raise refusal("sample_functions", rule, "a graph", remedy)
    draws = Draws(np.random.default_rng(seed), num_samples, num_features, input_dim)
    return FunctionSamples(functions_of(model, draws), num_samples, input_dim)
