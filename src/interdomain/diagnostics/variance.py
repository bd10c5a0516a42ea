"""The posterior variance, taken apart."""

from __future__ import annotations

import gpflow
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.config import default_jitter
from gpflow.covariances import Kuf
from gpflow.inducing_variables import MultioutputInducingVariables
from gpflow.kernels import MultioutputKernel

from ..covariances import Kuu_operator
from ..models import OrthogonalSVGP
from ..posteriors import orthogonal_terms
from ..posteriors.gaussian import lower_triangle, square_root, whiten_q_sqrt
from ..posteriors.orthogonal_terms import (
    OrthogonalPair,
    VarianceTerms,
    Variational,
    factorise,
    whitened_residuals,
    whitened_variational,
)


@check_shapes(
    "X: [N, D]",
    "return[0]: [N, P]",
    "return[1]: [N, P]",
    "return[2]: [N, P]",
    "return[3]: [N, P]",
    "return[4]: [N, P]",
)
def variance_terms(model: gpflow.models.SVGP, X: TensorType) -> VarianceTerms:
    """What the posterior variance of f at X is made of (Tiao et al. 2023, eq. 12 and Figure 5).

    ``prior - explained + uncertain - orthogonal_explained + orthogonal_uncertain`` is the variance
    that ``model.predict_f`` returns. A large ``prior - explained`` where there are data means that
    the inducing variables cannot represent the prior there; a large ``uncertain``, that the data
    do not tell. The orthogonal terms are zero for a model that has no orthogonal variables.

    :param model: A ``gpflow.models.SVGP`` with any inducing variable whose latent GPs share one
        kernel, or an :class:`interdomain.models.OrthogonalSVGP`.
    :param X: Inputs.
    :return: The terms, ``[N, P]`` each.
    :raises ValueError: If the model is another one, or its latent GPs have several priors.
    """
    if isinstance(model, OrthogonalSVGP):
        terms = _of_orthogonal(model, X)
    else:
        _validate(model)
        terms = _of_svgp(model, X)
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


def _of_svgp(model: gpflow.models.SVGP, X: TensorType) -> VarianceTerms:
    kernel, base = model.kernel, model.inducing_variable
    root = square_root(Kuu_operator(base, kernel, jitter=default_jitter()))
    q_sqrt = lower_triangle(model.q_sqrt)
    if not model.whiten:
        q_sqrt = whiten_q_sqrt(root, q_sqrt)
    A = root.solve(Kuf(base, kernel, X))
    none = tf.zeros_like(A[:0])  # no orthogonal variables
    q = Variational(model.q_mu, q_sqrt, none, None)
    return orthogonal_terms.variance_terms(A, none, kernel(X, full_cov=False), q)


def _of_orthogonal(model: OrthogonalSVGP, X: TensorType) -> VarianceTerms:
    kernel = model.kernel
    pair = OrthogonalPair(model.inducing_variable, model.orthogonal_inducing_variable)
    q = Variational(model.q_mu, model.q_sqrt, model.q_mu_orthogonal, model.q_sqrt_orthogonal)
    roots = factorise(pair, kernel)
    whitened = whitened_variational(None if model.whiten else roots, q)
    A = roots.base.solve(Kuf(pair.base, kernel, X))
    D = whitened_residuals(roots, A, Kuf(pair.orthogonal, kernel, X))
    return orthogonal_terms.variance_terms(A, D, kernel(X, full_cov=False), whitened)
