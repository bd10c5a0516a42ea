"""How much prior variance inducing variables leave unexplained, and which transformations help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gpflow
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from .._arguments import filled_matrix, items
from ..covariances.blocks import block_batches
from ..inducing_variables import HarmonicInducingPoints, OrbitInducingPoints
from ..kernels import HarmonicKernel, SetKernel
from ..kernels._clustering import k_means, where_it_lives
from ..kernels._parameters import single_output
from ..posteriors.parts import batch_root
from ..transforms import CyclicTransform


@check_shapes(
    "X: [N, D]",
    "return: []",
)
def nystrom_trace_error(
    kernel: Kernel, inducing_variable: InducingVariables, X: TensorType
) -> tf.Tensor:
    """``tr(Kff - Kfu Kuu^{-1} Kuf)``: the prior variance at X that the variables do not explain.

    For a sum of kernels the error is that of all parts together (Sun et al. 2021, eq. 24). It
    bounds how far the posterior of a sparse GP can be from the exact one, before any y is seen.
    Gradients flow to the inducing variable and to the kernel.

    :param kernel: The kernel.
    :param inducing_variable: Any for which GPflow has ``Kuu`` and ``Kuf`` under this kernel.
    :param X: Inputs.
    """
    X = tf.convert_to_tensor(X)
    error = tf.reduce_sum(kernel(X, full_cov=False))
    for batch in block_batches(inducing_variable, kernel):
        error -= tf.reduce_sum(tf.square(batch_root(batch).solve(batch.features(X))))
    return error


@dataclass(frozen=True)
class TransformRanking:
    """How well one candidate decomposition explains the kernel on the data.

    :ivar transforms: The candidate; None for inducing points without a decomposition.
    :ivar num_components: The number T of parts.
    :ivar num_inducing: The number of variables in all parts.
    :ivar trace_error: :func:`nystrom_trace_error`, divided by the number of rows.
    """

    transforms: CyclicTransform | Sequence[CyclicTransform] | None
    num_components: int
    num_inducing: int
    trace_error: float


def rank_transforms(
    kernel: Kernel,
    candidates: Sequence[CyclicTransform | Sequence[CyclicTransform] | None],
    X: TensorType,
    *,
    num_inducing: int,
    seed: int = 0,
) -> list[TransformRanking]:
    """Rank transformations by how well they suit the data: by their Nystrom error, smallest first.

    Every candidate gets ``num_inducing`` points for each of its parts, at the centres of k-means
    (for a convolutional kernel, of patches, which the transformations act on). A
    transformation that moves the data to places without data wastes its points and ranks low; a
    smaller error goes with better regression (Sun et al. 2021, section 6.3 and Figure 6).
    Candidates with more parts have more inducing variables: compare ``num_inducing`` of the
    entries, too.

    :param kernel: The base kernel, with lengthscales of about the right size.
    :param candidates: Transformations, lists of transformations that commute, or None to see what
        the points explain without a decomposition.
    :param X: Inputs ``[N, D]``; all rows are used, and a few thousand are enough.
    :param num_inducing: The number m of points of each part.
    :param seed: The seed of k-means.
    :return: One entry for each candidate, the smallest error first.
    :raises ValueError: If there are no candidates, or the kernel is not invariant to one.
    """
    candidates = items("candidates", candidates, "a list of transformations")
    single_output("kernel", kernel)
    X = filled_matrix("X", X, "[N, D]").astype(gpflow.default_float())
    if not candidates:
        raise ValueError("candidates must not be empty; pass transformations, or None for none.")
    ranking = []
    for transforms in candidates:
        inducing_variable: InducingVariables
        if transforms is None:
            summed, count = kernel, 1
            points = k_means(where_it_lives(kernel, X, seed), num_inducing, seed=seed)
            of_sum = OrbitInducingPoints if isinstance(kernel, SetKernel) else InducingPoints
            inducing_variable = of_sum(points)
        else:
            summed = HarmonicKernel(kernel, transforms)
            count = summed.num_components
            inducing_variable = HarmonicInducingPoints.from_data(summed, X, num_inducing, seed=seed)
        error = float(nystrom_trace_error(summed, inducing_variable, X)) / len(X)
        size = count * num_inducing
        ranking.append(TransformRanking(transforms, count, size, error))
    return sorted(ranking, key=lambda entry: entry.trace_error)
