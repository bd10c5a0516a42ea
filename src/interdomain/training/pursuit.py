"""Lets the data choose features of a regression model."""

from __future__ import annotations

from typing import Any

from .._arguments import integer, number
from .._tracing import operation_by_operation
from ..choosing.pursuit import LEAST_GAIN, MOST_CANDIDATES, Pursuit, pursue
from ..models import StructuredSGPR
from .loop import fit_quietly


def matching_pursuit(
    model: StructuredSGPR,
    num_inducing: int,
    *,
    growth: float = 1.5,
    steps: int = 6,
    max_candidates: int = MOST_CANDIDATES,
    least_gain: float = LEAST_GAIN,
    fill: bool = True,
    progress: bool = True,
) -> Pursuit:
    """
    Let the data choose features of an orthogonal dictionary, best first.

    The features of largest prior variance need not be those that explain y. This function starts
    from the features that the model has, and adds more in rounds. In every round:

    1. The candidates are the features of largest prior variance over the rows, and the neighbours
       of the model's features: harmonics of one degree more at one coordinate, or waves of one
       period more in one column. High degrees are reached this way where the data call for them.
    2. One pass over the rows computes the products of the candidates with the residuals of the
       model. They give a shortlist of the candidates that would each raise the marginal likelihood
       most alone. A second pass computes the products of the shortlist with itself and with the
       model's features. Candidates are then added one by one, always the one that raises the
       marginal likelihood most given all before, until M has grown by the factor ``growth``.
    3. A third pass computes the sums of the model with the new features, and the trainable
       parameters take ``steps`` steps of L-BFGS on them: what looks like noise with few features
       may be explained with more.

    This is orthogonal matching pursuit (Pati et al. 1993) in blocks, in the kernel's geometry. The
    Gram matrix of all candidates is not needed: a round is O(N C + N M^2) for C candidates.

    If the kernel does not depend on the features, every feature that is added raises the bound,
    which remains a bound on the same evidence. Choosing features is then as safe as moving inducing
    points. With :class:`interdomain.kernels.FiniteRank` the prior consists of the features:
    choosing them changes the model, and few rows can be overfitted. ``least_gain`` and ``fill``
    guard against that, and :func:`fit_sgpr`, which holds rows out to choose by.

    :param model: a model whose features belong to a dictionary:
        :class:`~interdomain.inducing_variables.SphericalHarmonics`,
        :class:`~interdomain.inducing_variables.PeriodicFourierFeatures`, products of these (made of
        the features that the factors have), or sums of these; a sum may also have other features,
        which are kept unchanged. Its ``inducing_variable`` is replaced, and also its kernel if that
        is a FiniteRank.
    :param num_inducing: the largest number M of features to end with; at least as many as the model
        has.
    :param growth: the factor by which M grows in a round, above 1.
    :param steps: the number of L-BFGS iterations between rounds, for all trainable parameters; 0
        for none. If features depend on some of these parameters, each iteration is a pass over the
        rows.
    :param max_candidates: the largest number of candidates by prior variance, and the largest
        number of neighbours. Neighbours of the features with the largest posterior means come
        first.
    :param least_gain: by how many nats a feature has to raise the bound to be added; when no
        candidate does, the pursuit ends. Among many candidates some fit the noise: with 0 these are
        added as well.
    :param fill: whether to use what is then left of ``num_inducing`` for the features of largest
        prior variance. They do not depend on y. A prior that consists of the features needs them:
        with only the features that fit y best, its predictions are overconfident.
    :param progress: show a progress bar.
    :raises ValueError: for wrong arguments, a model of another class, features that belong to no
        dictionary, or a model without its rows.
    """
    if not isinstance(model, StructuredSGPR):
        raise ValueError(
            f"model must be an interdomain.models.StructuredSGPR, found {type(model).__name__}; "
            "pass one, of a subset of the rows if there are many. For other likelihoods call "
            "fit_collapsed with num_inducing."
        )
    return pursue(
        model,
        integer(
            "num_inducing",
            num_inducing,
            at_least=int(model.inducing_variable.num_inducing),
            remedy="it counts those that the model has, and they stay",
        ),
        growth=number("growth", growth, above=1),
        refit=refit,
        steps=integer("steps", steps, at_least=0),
        max_candidates=integer("max_candidates", max_candidates, at_least=1),
        least_gain=number("least_gain", least_gain, at_least=0),
        fill=fill,
        progress=progress,
    )


def refit(model: Any, steps: int) -> None:
    """Train all parameters of a model whose features will soon be others: nothing is compiled."""
    with operation_by_operation():
        fit_quietly(model, steps=steps, progress=False)
