"""Warnings after training, with the remedy: of features that no longer suit the kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Product
from gpflow.utilities import Dispatcher

from .._arguments import Array, warn
from ..covariances.finite_rank import is_whole
from ..inducing_variables import (
    PeriodicFourierFeatures,
    ProductInducingVariables,
    SphericalHarmonics,
)
from ..kernels import FiniteRank, Periodized, ZonalKernel
from ..kernels.periodic import column_lengthscales
from .scales import Parts, blocks_of
from .structured_sgpr import StructuredSGPR

NOTABLE_COST = 0.05
"""Of the bound, for each row: what features leave out of a kernel that does not end with them."""

NOTABLE_SHARE = 0.25
"""Of a kernel's variance: what its finite rank lacks deserves a warning from here on."""

LEAST_MARGIN = 2.0
"""Of a box, in lengthscales: the ends of the data see each other around it below this."""

_MAX_ROWS = 10_000

_MAX_ROWS_OF_CHOSEN = 2_000


def warn_of_fit(model: Any, X: Array | None) -> None:
    """One warning for each cause.

    :param X: Rows that the model was trained on, ``[N, D]``; None if they are not at hand.
    """
    _warn_of_left_variance(model, X)
    for complaint in dict.fromkeys(
        text for pair in blocks_of(Parts.of(model)) for text in complaints(*pair, False)
    ):
        warn(complaint)


class LeftVariance(NamedTuple):
    """The mean prior variance of what a block's features leave out.

    :ivar variance: That.
    :ivar end: Where they end, in words.
    :ivar remedy: What to do about it.
    """

    variance: float
    end: str
    remedy: str = (
        "pass FiniteRank(kernel, inducing_variable) as the kernel, of which nothing is left out, "
        "or take more of them"
    )


left_variance = Dispatcher("left_variance")
left_variance.__doc__ = """What a block leaves out of its kernel because its features end somewhere.

``left_variance(inducing_variable, kernel, X)`` returns a :class:`LeftVariance`, or None where
nothing ends, or X is needed and None.
"""


@left_variance.register(InducingVariables, Kernel, object)
def left_variance_none(
    inducing_variable: InducingVariables, kernel: Kernel, X: Array | None
) -> None:
    """Nothing is known to end."""


@left_variance.register(SphericalHarmonics, ZonalKernel, object)
def left_variance_harmonics(
    inducing_variable: SphericalHarmonics, kernel: ZonalKernel, X: Array | None
) -> LeftVariance | None:
    """The share of the missing degrees; of chosen harmonics, what the rows have of the others."""
    if X is None:
        return None
    if not inducing_variable.has_whole_degrees:
        return _left_by_chosen(inducing_variable, kernel, X, "chosen harmonics")
    degrees = inducing_variable.degrees
    eigenvalues = kernel.eigenvalues(inducing_variable.dimension, degrees).numpy()
    present = np.asarray(inducing_variable.multiplicities, float) * eigenvalues
    prior = float(np.mean(kernel(X, full_cov=False).numpy()))
    return LeftVariance(
        (1 - float(np.sum(present))) * prior,
        f"the harmonics end at degree {degrees[-1]}",
    )


def _left_by_chosen(
    features: InducingVariables, kernel: Kernel, X: Array, noun: str
) -> LeftVariance:
    """Single features are not the same everywhere: what some rows have of the others."""
    rows = tf.constant(X[:: -(-len(X) // _MAX_ROWS_OF_CHOSEN)], gpflow.default_float())
    present = FiniteRank(kernel, features)(rows, full_cov=False)
    return LeftVariance(
        float(tf.reduce_mean(kernel(rows, full_cov=False) - present)),
        f"the {int(features.num_inducing):,} {noun} end",
    )


@left_variance.register(ProductInducingVariables, Product, object)
def left_variance_product(
    inducing_variable: ProductInducingVariables, kernel: Product, X: Array | None
) -> LeftVariance | None:
    """What the rows have of other products, where the features of a factor end."""
    if X is None:
        return None
    ends = [left_variance(*pair, X[:1]) for pair in inducing_variable.pairs(kernel)]
    if all(end is None for end in ends):
        return None
    return _left_by_chosen(inducing_variable, kernel, X, "products of features")


@left_variance.register(PeriodicFourierFeatures, Periodized, object)
def left_variance_periodic(
    inducing_variable: PeriodicFourierFeatures, kernel: Periodized, X: Array | None
) -> LeftVariance | None:
    """That of the missing frequencies."""
    present = kernel.explained_variance(inducing_variable.frequencies)
    return LeftVariance(
        float(kernel.total_variance() - present),
        f"the features end at {inducing_variable.frequencies.max(axis=0).tolist()} periods",
    )


@left_variance.register(InducingVariables, FiniteRank, object)
def left_variance_finite_rank(
    inducing_variable: InducingVariables, kernel: FiniteRank, X: Array | None
) -> LeftVariance | None:
    """Nothing, if the features are the kernel's; of some of them, what the others have."""
    if is_whole(inducing_variable, kernel):
        return None
    left: LeftVariance | None = left_variance(inducing_variable, kernel.kernel, X)
    beyond: LeftVariance | None = left_variance(kernel.inducing_variable, kernel.kernel, X)
    if left is None or beyond is None:
        return None
    remedy = "pass kernel.inducing_variable, of which nothing is left out, or more of its features"
    return LeftVariance(left.variance - beyond.variance, left.end, remedy)


def _warn_of_left_variance(model: Any, X: Array | None) -> None:
    """Whether the bound pays much for what the kernel has and the features lack, ``(Kff - Qff) / (2
    noise)`` for each row.

    Training makes that term small, by lengthscales and a noise that the data do not ask for: what
    is left of it is the lesser part of the loss.
    """
    charged = isinstance(model, (gpflow.models.SVGP, gpflow.models.SGPR, StructuredSGPR))
    gaussian = isinstance(getattr(model, "likelihood", None), gpflow.likelihoods.Gaussian)
    if not (charged and gaussian) or hasattr(model, "orthogonal_inducing_variable"):
        return
    if X is not None:
        X = np.asarray(X[:: -(-len(X) // _MAX_ROWS)], gpflow.default_float())
    found = [
        left for pair in blocks_of(Parts.of(model)) if (left := left_variance(*pair, X)) is not None
    ]
    if not found:
        return
    left = sum(part.variance for part in found)
    somewhere = np.zeros([1, 1]) if X is None else X
    cost = left / (2 * float(np.mean(model.likelihood.variance_at(somewhere).numpy())))
    if cost > NOTABLE_COST:
        most = max(found, key=lambda part: part.variance)
        warn(
            f"inducing_variable: {most.end}, the kernel does not, and the bound pays {cost:.2g} a "
            "row for what is above, after a training that has made it small at the expense of the "
            f"fit; {most.remedy}."
        )


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
