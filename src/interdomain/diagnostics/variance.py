"""The prior variance that inducing variables do not explain, a ranking of transformations by it,
and the terms of a posterior variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.inducing_variables import (
    InducingPoints,
    InducingVariables,
    MultioutputInducingVariables,
)
from gpflow.kernels import Kernel, MultioutputKernel

from .._arguments import filled_matrix
from ..core.clustering import k_means, where_it_lives
from ..core.pairs import block_batches
from ..core.parameters import single_output
from ..core.set_kernel import SetKernel
from ..families.harmonic.decomposition import HarmonicKernel
from ..families.harmonic.invariant import OrbitInducingPoints
from ..families.harmonic.points import HarmonicInducingPoints
from ..families.harmonic.transforms.base import CyclicTransform
from ..linalg.variational import Terms
from ..models.svgp.orthogonal import OrthogonalSVGP
from ..plotting.axes import new_axes
from ..posteriors.groups import block_groups
from ..posteriors.parts import batch_root

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Transforms = CyclicTransform | Sequence[CyclicTransform] | None


@check_shapes("X: [N, D]", "return: []")
def nystrom_trace_error(
    kernel: Kernel, inducing_variable: InducingVariables, X: TensorType
) -> tf.Tensor:
    """``tr(Kff - Kfu Kuu^{-1} Kuf)``: the prior variance at X that the variables do not explain.

    For a sum of kernels it is the error of all parts together (Sun et al. 2021, eq. 24). It bounds
    how far the posterior of a sparse GP can be from the exact posterior, without use of y.
    Gradients flow to the inducing variable and to the kernel.

    :param inducing_variable: Any inducing variable with ``Kuu`` and ``Kuf`` under this kernel.
    """
    X = tf.convert_to_tensor(X)
    error = tf.reduce_sum(kernel(X, full_cov=False))
    for batch in block_batches(inducing_variable, kernel):
        error -= tf.reduce_sum(tf.square(batch_root(batch).solve(batch.features(X))))
    return error


def rank_transforms(
    kernel: Kernel,
    candidates: Sequence[Transforms],
    X: TensorType,
    *,
    num_inducing: int,
    seed: int = 0,
) -> list[tuple[Transforms, int, float]]:
    """Rank transformations for the data by their Nystrom error, smallest first.

    The error is the prior variance that inducing points of the decomposed kernel do not explain.
    Each part of a candidate has ``num_inducing`` points, at the centres of k-means: of the rows, or
    of the patches if the kernel is convolutional. If a transformation moves the data to places
    without data, it wastes points and ranks low. A smaller error goes with better regression (Sun
    et al. 2021, section 6.3 and Figure 6). Candidates with more parts have more variables.

    :param kernel: The base kernel, with lengthscales of about the right size.
    :param candidates: Transformations, lists of transformations that commute, or None for points
        without a decomposition.
    :param X: Inputs ``[N, D]``; all rows are used, and a few thousand are enough.
    :param num_inducing: The number m of points of each part.
    :param seed: The seed of k-means.
    :return: For each candidate, the smallest error first: the candidate itself, the number of
        variables in all of its parts, and the unexplained prior variance, averaged over the rows.
    :raises ValueError: If the kernel is not invariant to a transformation.
    """
    single_output("kernel", kernel)
    X = filled_matrix("X", X, "[N, D]").astype(gpflow.default_float())
    ranking, summed = [], kernel
    for transforms in candidates:
        inducing_variable: InducingVariables
        if transforms is None:
            points = k_means(where_it_lives(kernel, X, seed), num_inducing, seed=seed)
            points_class = OrbitInducingPoints if isinstance(kernel, SetKernel) else InducingPoints
            summed, size, inducing_variable = kernel, num_inducing, points_class(points)
        else:
            summed = HarmonicKernel(kernel, transforms)
            inducing_variable = HarmonicInducingPoints.from_data(summed, X, num_inducing, seed=seed)
            size = num_inducing * summed.num_components
        error = float(nystrom_trace_error(summed, inducing_variable, X)) / len(X)
        ranking.append((transforms, size, error))
    return sorted(ranking, key=lambda entry: entry[-1])


class VarianceTerms(NamedTuple):
    """The terms of the posterior variance of f, ``[N, P]`` each.

    ``prior - explained - orthogonal_explained`` is the part that no inducing variable explains. The
    variance is this part plus the two other terms (Tiao et al. 2023, eq. 12 and Figure 5).

    :ivar prior: The prior variance Kff.
    :ivar explained: Qff, the part that u explains.
    :ivar uncertain: The variance from the uncertainty about u.
    :ivar orthogonal_explained: ``S_fv S_vv^{-1} S_vf``, which the orthogonal variables explain.
    :ivar orthogonal_uncertain: The variance from the uncertainty about the orthogonal variables.
    """

    prior: tf.Tensor
    explained: tf.Tensor
    uncertain: tf.Tensor
    orthogonal_explained: tf.Tensor
    orthogonal_uncertain: tf.Tensor

    @property
    def variance(self) -> tf.Tensor:
        """The variance of f, ``[N, P]``, from the sum of the terms; never negative."""
        # The part that both sets do not explain is nonnegative, except for rounding errors.
        unexplained = tf.maximum(self.prior - self.explained - self.orthogonal_explained, 0)
        return unexplained + self.uncertain + self.orthogonal_uncertain

    def plot(self, x: TensorType, ax: Axes | None = None, *, latent: int = 0) -> Axes:
        """Draw the terms along a line (Tiao et al. 2023, Figure 5).

        Terms that are added are solid, and terms that are subtracted are dashed. Terms of the base
        are blue, and terms of the orthogonal variables orange. Their sum, the variance, is black.

        :param x: The positions of the points on the line, ``[N]`` or ``[N, 1]``, in any order.
        :param ax: The axes to draw in; a new figure by default.
        :param latent: The index of the latent GP.
        """
        ax = new_axes() if ax is None else ax
        position = np.reshape(x, [len(self.explained)])
        order = np.argsort(position)
        along = position[order]
        prior, explained, uncertain, orthogonal_explained, orthogonal_uncertain = (
            np.asarray(term)[order, latent] for term in self
        )
        ax.plot(along, prior - explained, color="darkblue", label=r"$+\,(K_{ff} - Q_{ff})$")
        ax.plot(along, uncertain, color="cornflowerblue", label="+ uncertainty of u")
        if np.any(orthogonal_explained):
            label = r"$-\,S_{fv} S_{vv}^{-1} S_{vf}$"
            ax.plot(along, orthogonal_explained, "--", color="darkorange", label=label)
            ax.plot(along, orthogonal_uncertain, color="orange", label="+ uncertainty of v'")
        ax.plot(along, self.variance.numpy()[order, latent], color="black", label="variance of f")
        ax.set_ylabel("variance")
        ax.legend(fontsize="small")
        return ax


@check_shapes("X: [N, D]", "return[all]: [N, P]")
def variance_terms(model: gpflow.models.SVGP, X: TensorType) -> VarianceTerms:
    """The terms of the posterior variance of f at X (Tiao et al. 2023, eq. 12 and Figure 5).

    ``prior - explained + uncertain - orthogonal_explained + orthogonal_uncertain`` is the variance
    that ``model.predict_f`` returns. If ``prior - explained`` is large near data, the inducing
    variables cannot represent the prior there. If ``uncertain`` is large, the data do not determine
    f. Without orthogonal variables, the two orthogonal terms are zero.

    :param model: A ``gpflow.models.SVGP`` with any inducing variable whose latent GPs share one
        kernel, or an :class:`interdomain.models.OrthogonalSVGP`.
    :raises ValueError: If the model has another class, or its latent GPs have several priors.
    """
    prior, is_complete = model.kernel(X, full_cov=False)[:, None], False
    if isinstance(model, OrthogonalSVGP):
        (split,) = model.q.groups(model.kernel)
        base, orthogonal = split.parts()[0].terms_of_sets(X)
        orthogonal_terms = [orthogonal.explained[:, None], _uncertain(orthogonal)]
    else:
        multioutput = MultioutputKernel, MultioutputInducingVariables
        pair = model.kernel, model.inducing_variable
        q_mu = getattr(model, "q_mu", None)
        if not isinstance(q_mu, gpflow.Parameter) or any(isinstance(p, multioutput) for p in pair):
            raise ValueError(
                "model must be an SVGP with one q(u) and one prior for all its latent GPs, found "
                f"{type(model).__name__} with {type(model.kernel).__name__}; pass a "
                "gpflow.models.SVGP or an interdomain.models.OrthogonalSVGP."
            )
        q, whiten = [(model.q_mu, model.q_sqrt)], model.whiten
        parts = model.inducing_variable, model.kernel
        (group,) = block_groups(*parts, q, whiten=whiten, joint=True)
        (part,) = group.parts()
        base, is_complete = part.terms(X), part.is_complete
        orthogonal_terms = [tf.zeros([1, 1], X.dtype)] * 2
    explained = prior if is_complete else base.explained[:, None]
    terms = [prior, explained, _uncertain(base), *orthogonal_terms]
    shape = [tf.shape(X)[0], model.num_latent_gps]
    return VarianceTerms(*(tf.broadcast_to(term, shape) for term in terms))


def _uncertain(terms: Terms) -> tf.Tensor:
    """The variance of f that comes from the uncertainty about the inducing variables."""
    return terms.change + terms.explained[:, None]
