"""Which model for these data: small versions of those that fit, in a race."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpflow.likelihoods import Gaussian, Likelihood

from .._arguments import instance, integer
from .candidates import Candidate, Sizes, candidates_for
from .prepared import prepare


def candidates(
    X: Any,
    Y: Any,
    likelihood: Likelihood | None = None,
    *,
    globe: Sequence[int] | None = None,
    image_shape: Sequence[int] | None = None,
    num_inducing: int = 500,
) -> dict[str, Candidate]:
    """
    The models of this library, and GPflow's SVGP, that fit a table, ready to be trained.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[300, 2])
    >>> Y = np.sin(5 * X[:, 0] * X[:, 1])
    >>> found = idm.diagnostics.candidates(X, Y, num_inducing=50)
    >>> list(found)[:4]
    ['exact', 'waves', 'harmonics', 'effects']
    >>> print(found["waves"].code.splitlines()[-1])
    idm.training.fit_sgpr(model)

    ``race({name: one.entrant for name, one in found.items()}, (X, Y), 60)`` compares them at the
    size that they have here, on columns that are standardised; :func:`recommend` compares small
    versions, on rows that it prepares by itself.

    :param X: ``[N, D]``; see :func:`recommend`.
    :param Y: ``[N, P]`` or ``[N]``.
    :param likelihood: None for Gaussian noise.
    :param globe: as of :func:`recommend`.
    :param image_shape: as of :func:`recommend`.
    :param num_inducing: points, harmonics, effects; of waves there are twice as many.
    :raises ValueError: as :func:`recommend`.
    """
    likelihood = checked_likelihood(likelihood)
    num_inducing = integer("num_inducing", num_inducing, at_least=2)
    data = prepare(X, Y, gaussian=likelihood is None, globe=globe, image_shape=image_shape)
    return candidates_for(data, likelihood, Sizes(num_inducing), len(data.X))


def checked_likelihood(likelihood: Any) -> Likelihood | None:
    """None for a Gaussian one."""
    if likelihood is None or isinstance(likelihood, Gaussian):
        return None
    instance("likelihood", likelihood, Likelihood, "a GPflow likelihood", "pass one, or None")
    return likelihood  # type: ignore[no-any-return]
