"""Warnings after training, with the remedy: of features that no longer suit the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Product
from gpflow.utilities import Dispatcher

from .._arguments import Array, warn
from ..covariances.blocks import Block
from ..covariances.finite_rank import is_whole
from ..inducing_variables import (
    InterDomainInducingVariables,
    PeriodicFourierFeatures,
    ProductInducingVariables,
)
from ..kernels import FiniteRank, Periodized
from ..kernels.periodic.spectral_density import column_lengthscales
from .scales import Parts, blocks_of
from .structured_sgpr import StructuredSGPR

NOTABLE_COST = 0.05
"""Of the bound, for each row: what features leave out of a kernel that does not end with them."""

NOTABLE_SHARE = 0.25
"""Of a kernel's variance: what its finite rank lacks deserves a warning from here on."""

LEAST_MARGIN = 2.0
"""Of a box, in lengthscales: the ends of the data see each other around it below this."""

_MAX_ROWS = 1_000


def warn_of_fit(model: Any, X: Array | None) -> None:
    """One warning for each cause.

    :param X: Rows that the model was trained on, ``[N, D]``; None if they are not at hand.
    """
    blocks = blocks_of(Parts.of(model))
    _warn_of_left_variance(model, X, blocks)
    for complaint in dict.fromkeys(text for pair in blocks for text in complaints(*pair, False)):
        warn(complaint)


def _warn_of_left_variance(model: Any, X: Array | None, blocks: Sequence[Block]) -> None:
    """Whether the bound pays much for what the kernel has and the features lack, ``(Kff - Qff) / (2
    noise)`` for each row.

    Training makes that term small, by lengthscales and a noise that the data do not ask for: what
    is left of it is the lesser part of the loss. Features with trainable parameters, such as
    points, are trained to leave less.
    """
    charged = isinstance(model, (gpflow.models.SVGP, gpflow.models.SGPR, StructuredSGPR))
    gaussian = isinstance(getattr(model, "likelihood", None), gpflow.likelihoods.Gaussian)
    if not (charged and gaussian) or hasattr(model, "orthogonal_inducing_variable"):
        return
    blocks = [
        (features, kernel)
        for features, kernel in blocks
        if isinstance(features, InterDomainInducingVariables)
        and not features.trainable_variables
        and not is_whole(features, kernel)
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


def _left_variance(blocks: Sequence[Block], rows: tf.Tensor) -> float:
    """The mean prior variance of what the features of blocks leave out, at these rows."""
    left = [
        kernel(rows, full_cov=False) - FiniteRank(kernel, features)(rows, full_cov=False)
        for features, kernel in blocks
    ]
    return float(tf.reduce_mean(tf.add_n(left)))


complaints = Dispatcher("complaints")
complaints.__doc__ = """What is wrong with a block and its kernel after training, as messages.

``complaints(inducing_variable, kernel, finite)``; a family registers what can come to be wrong with
it. ``finite``: whether the features are all that the prior has of the kernel.
"""


@complaints.register(InducingVariables, Kernel, bool)
def complaints_none(
    inducing_variable: InducingVariables, kernel: Kernel, finite: bool
) -> list[str]:
    """Nothing is known."""
    return []


@complaints.register(PeriodicFourierFeatures, Periodized, bool)
def complaints_periodic(
    inducing_variable: PeriodicFourierFeatures, kernel: Periodized, finite: bool
) -> list[str]:
    """Lengthscales that outgrew the margin of the box, or the frequencies of a finite rank."""
    found = []
    lengthscales = column_lengthscales(kernel.base_kernel, kernel.num_columns)
    if kernel.margin is not None:
        # A lengthscale beyond the box leaves nothing that could be wrong about its ends.
        outgrown = lengthscales * LEAST_MARGIN > kernel.margin
        outgrown &= lengthscales < kernel.periods
        if np.any(outgrown):
            column = int(np.argmax(outgrown * lengthscales / kernel.margin))
            found.append(
                f"kernel: the lengthscale of column {column}, {lengthscales[column]:.3g}, has "
                f"outgrown the margin of the box, {kernel.margin[column]:.3g}, around which the "
                "ends of the data see each other; make the kernel anew by Periodized.from_data "
                "with the trained base_kernel."
            )
    explained = kernel.explained_variance(inducing_variable.frequencies)
    share = 1 - float(explained / kernel.total_variance())
    if finite and share > NOTABLE_SHARE:
        became = ", ".join(f"{lengthscale:.3g}" for lengthscale in lengthscales)
        found.append(
            f"kernel: {share:.0%} of the variance of the base kernel is now in frequencies that it "
            f"lacks, after its lengthscales became {became}; take more features, or choose them "
            "anew, by PeriodicFourierFeatures.for_kernel, for the trained kernel, and pass "
            "FiniteRank(kernel, features)."
        )
    return found


@complaints.register(ProductInducingVariables, Product, bool)
def complaints_product(
    inducing_variable: ProductInducingVariables, kernel: Product, finite: bool
) -> list[str]:
    """Those of the factors."""
    pairs = inducing_variable.pairs(kernel)
    return [text for pair in pairs for text in complaints(*pair, finite)]


@complaints.register(InducingVariables, FiniteRank, bool)
def complaints_finite_rank(
    inducing_variable: InducingVariables, kernel: FiniteRank, finite: bool
) -> list[str]:
    """Those of the features that it consists of."""
    found: list[str] = complaints(kernel.inducing_variable, kernel.kernel, True)
    return found
