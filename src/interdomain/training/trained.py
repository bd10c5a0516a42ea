"""Warnings after training, with the remedy: of features that no longer suit the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array, warn
from ..core.domains import boxed_parts
from ..core.family import Block, InterDomainInducingVariables
from ..core.finite_rank import FiniteRank, is_complete
from ..core.pairs import prior_features
from ..regression.scales import blocks_of
from ..regression.structured_sgpr import StructuredSGPR

NOTABLE_COST = 0.05
"""Of the bound, for each row: what features leave out of a kernel that does not end with them."""

_MAX_ROWS = 1_000


def warn_of_fit(model: Any, X: Array | None) -> None:
    """One warning for each cause.

    :param X: Rows that the model was trained on, ``[N, D]``; None if they are not at hand.
    """
    blocks = blocks_of(model)
    _warn_of_left_variance(model, X, blocks)
    for complaint in dict.fromkeys(text for pair in blocks for text in complaints(*pair)):
        warn(complaint)


def _warn_of_left_variance(model: Any, X: Array | None, blocks: Sequence[Block]) -> None:
    """Whether the bound pays much for what the kernel has and the features lack, ``(Kff - Qff) / (2
    noise)`` for each row.

    Training makes that term small, by lengthscales and a noise that the data do not ask for: what
    is left of it is the lesser part of the loss. Features with trainable parameters, such as
    points, are trained to leave less.
    """
    has_bound = isinstance(model, (gpflow.models.SVGP, gpflow.models.SGPR, StructuredSGPR))
    gaussian = isinstance(getattr(model, "likelihood", None), gpflow.likelihoods.Gaussian)
    if not (has_bound and gaussian) or hasattr(model, "orthogonal_inducing_variable"):
        return
    blocks = [
        (features, kernel)
        for features, kernel in blocks
        if isinstance(features, InterDomainInducingVariables)
        and not features.trainable_variables
        and not is_complete(features, kernel)
    ]
    # Where the features of a StructuredSGPR are trained, too, its rows are a subset.
    of_sums = isinstance(model, StructuredSGPR) and not model._features.trainable()
    if not blocks or (X is None and not of_sums):
        return
    somewhere = np.zeros([1, 1]) if X is None else X[:: -(-len(X) // _MAX_ROWS)]
    rows = tf.constant(somewhere, gpflow.default_float())
    left = model.unexplained_variance() if X is None else _left_variance(blocks, rows)
    cost = left / (2 * float(np.mean(model.likelihood.variance_at(rows).numpy())))
    if cost > NOTABLE_COST:
        kinds = dict.fromkeys(type(features).__name__ for features, _ in blocks)
        warn(
            f"inducing_variable: the {' and '.join(kinds)} end, the kernel does not, and the bound "
            f"pays {cost:.2g} a row for the rest, after a training that has made it small at the "
            "expense of the fit; pass FiniteRank(kernel, inducing_variable) as the kernel, of "
            "which nothing is left out, or take more features."
        )


def complaints(inducing_variable: InducingVariables, kernel: Kernel) -> list[str]:
    """What is wrong with features and their kernel after training; of a kernel of finite rank, with
    those that it is made of."""
    finite = prior_features(inducing_variable, kernel)[1] is not kernel
    parts = boxed_parts(inducing_variable, kernel)
    return [text for features, part in parts for text in features.complaints(part, finite)]


def _left_variance(blocks: Sequence[Block], rows: tf.Tensor) -> float:
    """The mean prior variance of what the features of blocks leave out, at these rows."""
    left = [
        kernel(rows, full_cov=False) - FiniteRank(kernel, features)(rows, full_cov=False)
        for features, kernel in blocks
    ]
    return float(tf.reduce_mean(tf.add_n(left)))
