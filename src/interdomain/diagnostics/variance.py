"""The terms that the posterior variance is made of."""

from __future__ import annotations

from typing import NamedTuple

import gpflow
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.inducing_variables import MultioutputInducingVariables
from gpflow.kernels import MultioutputKernel

from ..linalg.variational import Terms
from ..models import OrthogonalSVGP
from ..posteriors.groups import joint_groups
from ..posteriors.orthogonal_terms import OrthogonalPair, OrthogonalQ, orthogonal_groups


class VarianceTerms(NamedTuple):
    """The terms of the posterior variance of f, ``[N, P]`` each.

    ``prior - explained - orthogonal_explained`` is the part that no inducing variable explains; the
    two other terms are added to it (Tiao et al. 2023, eq. 12 and Figure 5).

    :ivar prior: Kff.
    :ivar explained: Qff, what u explains.
    :ivar uncertain: The uncertainty about u.
    :ivar orthogonal_explained: ``S_fv S_vv^{-1} S_vf``, what the orthogonal variables explain.
    :ivar orthogonal_uncertain: The uncertainty about them.
    """

    prior: tf.Tensor
    explained: tf.Tensor
    uncertain: tf.Tensor
    orthogonal_explained: tf.Tensor
    orthogonal_uncertain: tf.Tensor

    @property
    def variance(self) -> tf.Tensor:
        """What the terms add up to, ``[N, P]``: the variance of f; never negative."""
        # What both sets do not explain is not negative; rounding can make it so.
        unexplained = tf.maximum(self.prior - self.explained - self.orthogonal_explained, 0)
        return unexplained + self.uncertain + self.orthogonal_uncertain


@check_shapes(
    "X: [N, D]",
    "return[0]: [N, P]",
    "return[1]: [N, P]",
    "return[2]: [N, P]",
    "return[3]: [N, P]",
    "return[4]: [N, P]",
)
def variance_terms(model: gpflow.models.SVGP, X: TensorType) -> VarianceTerms:
    """The terms of the posterior variance of f at X (Tiao et al. 2023, eq. 12 and Figure 5).

    ``prior - explained + uncertain - orthogonal_explained + orthogonal_uncertain`` is the variance
    that ``model.predict_f`` returns. A large ``prior - explained`` where there are data means that
    the inducing variables cannot represent the prior there; a large ``uncertain`` means that the
    data do not determine f. The orthogonal terms are zero for a model that has no orthogonal
    variables.

    :param model: A ``gpflow.models.SVGP`` with any inducing variable whose latent GPs share one
        kernel, or an :class:`interdomain.models.OrthogonalSVGP`.
    :param X: Inputs.
    :return: The terms, ``[N, P]`` each.
    :raises ValueError: If the model is another one, or its latent GPs have several priors.
    """
    if isinstance(model, OrthogonalSVGP):
        pair = OrthogonalPair(model.inducing_variable, model.orthogonal_inducing_variable)
        both = OrthogonalQ(model.q_mu, model.q_sqrt, model.q_mu_orthogonal, model.q_sqrt_orthogonal)
        (split,) = orthogonal_groups(pair, model.kernel, both, whiten=model.whiten)
        base, orthogonal = split.parts()[0].terms_of_sets(X)
        of_orthogonal = [orthogonal.explained[:, None], _uncertain(orthogonal)]
    else:
        _validate(model)
        q = (model.q_mu, model.q_sqrt)
        (group,) = joint_groups(model.inducing_variable, model.kernel, q, whiten=model.whiten)
        base = group.parts()[0].terms(X)
        of_orthogonal = [tf.zeros([1, 1], X.dtype)] * 2
    prior = model.kernel(X, full_cov=False)[:, None]
    terms = [prior, base.explained[:, None], _uncertain(base), *of_orthogonal]
    shape = [tf.shape(X)[0], model.num_latent_gps]
    return VarianceTerms(*(tf.broadcast_to(term, shape) for term in terms))


def _validate(model: gpflow.models.SVGP) -> None:
    remedy = "pass a gpflow.models.SVGP or an interdomain.models.OrthogonalSVGP"
    if not isinstance(model, gpflow.models.SVGP) or not isinstance(model.q_mu, gpflow.Parameter):
        raise ValueError(
            f"model must be an SVGP with one q(u), found {type(model).__name__}; {remedy}."
        )
    for part in (model.kernel, model.inducing_variable):
        if isinstance(part, (MultioutputKernel, MultioutputInducingVariables)):
            raise ValueError(
                f"model must have one prior for all its latent GPs, found {type(part).__name__}; "
                f"{remedy} with a kernel of one output and num_latent_gps."
            )


def _uncertain(terms: Terms) -> tf.Tensor:
    """The variance that the uncertainty about the variables brings."""
    return terms.change + terms.explained[:, None]
