"""Log-concave likelihoods, for which ``charge="log"`` of ``SVGP`` gives a lower bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
from gpflow.likelihoods import (
    Bernoulli,
    Exponential,
    Gamma,
    Gaussian,
    GaussianMC,
    Likelihood,
    Poisson,
    Softmax,
    SwitchedLikelihood,
)
from gpflow.likelihoods.utils import inv_probit

from ..._targets import densities_of

_LINKS: Mapping[type[Likelihood], tuple[Callable[..., Any], ...]] = {
    Bernoulli: (tf.sigmoid,),
    Exponential: (tf.exp,),
    Gamma: (tf.exp,),
    Poisson: (tf.exp, tf.math.softplus),
}
"""The links with which the densities of these classes are log-concave."""


def is_log_concave(likelihood: Likelihood) -> bool:
    """Whether ``log p(y | f)`` is known to be concave in f, for every y.

    The attribute ``log_concave`` of the likelihood decides. Without it, the class and the link
    decide for GPflow's likelihoods, and the answer for all other likelihoods is False.
    """
    if hasattr(likelihood, "log_concave"):
        return bool(likelihood.log_concave)
    kind = densities_of(likelihood)
    if kind is SwitchedLikelihood:
        return all(map(is_log_concave, likelihood.likelihoods))
    if kind is not None and kind in _LINKS:
        return any(likelihood.invlink is link for link in _LINKS[kind])
    return kind in (Gaussian, GaussianMC, Softmax)


def require_log_concave(likelihood: Likelihood) -> None:
    """:raises ValueError: Unless the likelihood is known to be log-concave."""
    if is_log_concave(likelihood):
        return
    link: Any = getattr(likelihood, "invlink", None)
    named = type(likelihood).__name__
    if hasattr(link, "__name__"):
        named += f"(invlink={link.__name__})"
    remedy = "pass charge='trace', or set likelihood.log_concave = True if the density is"
    if link is inv_probit and isinstance(likelihood, Bernoulli):  # (1 - 2e-3) Phi(f) + 1e-3
        remedy = "pass charge='trace', or Bernoulli(invlink=tf.sigmoid)"
    raise ValueError(
        "charge must be 'trace' for a likelihood that is not known to be log-concave, found 'log' "
        f"with {named}; {remedy}."
    )
