"""Chooses features for a model: trains input scales and chooses features in turn, on some rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np

from .._arguments import Array
from ..core.family import Block
from ..core.finite_rank import block_of
from .pursuit import LEAST_GAIN, MOST_CANDIDATES, Pursuit, arranged_dictionary, pursue

_ROWS = 20_000  # to choose features by, at most, with the rows that are held out
_MOST_HELD_OUT = 2_000

# Features that a pursuit begins with: those of most prior variance; half of all, if these are few,
# so that the data choose the others.
_BEGINNING = 50

_TURN_SIZE = 256  # features that scales are trained with, at most: every step computes them again
_TURN_STEPS = 25
_ROUND_STEPS = 6
_TURN_CANDIDATES = 2_000
_CANDIDATES_EACH = 10  # for each feature wanted: of more candidates, more fit the noise

# Of the features wanted in a round of the final choice. Between turns every round counts: it trains
# the input scales.
_LEAST_SHARE = 0.15

_NO_GAIN_IS_ENOUGH = 1e12

# Of the log density of rows held out: if chosen features lose more, there are too few rows to
# choose by.
_NOTABLE_LOSS = 0.02


@dataclass(frozen=True)
class Choice:
    """How :func:`interdomain.fit` chose features, on some rows drawn at random.

    :ivar turns: the mean log density of held-out rows: that of the given model with its parameters
        trained; and that after a few features were chosen, and all parameters trained with them.
        These are gone on from, unless the second number is lower by 0.02 or more.
    :ivar pursuit: how the final features were chosen, with the input scales that are gone on from.
    """

    turns: tuple[float, float]
    pursuit: Pursuit

    def __str__(self) -> str:
        turns = ", ".join(f"{density:.4f}" for density in self.turns)
        return f"held out, by turns of features and scales: {turns}\n{self.pursuit}"


def choose_features(
    model: Any,
    num_inducing: int,
    make: Callable[[tuple[Array, Array]], Any],
    train: Callable[[Any, int], Any],
    *,
    refit: Callable[[Any, int], Any] | None = None,
    growth: float = 1.5,
    subset_size: int,
    subset_steps: int,
    seed: int,
    progress: bool,
) -> tuple[Choice, tuple[str, ...], Any]:
    """Train the input scales, and replace the model's features by chosen ones.

    :param model: a model with a few features of an orthogonal dictionary to start from.
    :param make: makes a model of rows (X, Y) that shares its parameters with this one.
    :param train: trains all parameters of such a model for a number of steps.
    :param refit: the same between the rounds of a pursuit; None for no training there.
    :param growth: the factor by which the number of features grows in a round of the final choice.
    :return: what was done; the names of the feature parameters that are now frozen; and the model
        of some rows that has the chosen features.
    :raises ValueError: for features that belong to no dictionary, or a model without its rows.
    """
    X, Y = rows = model.draw(_ROWS, seed=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    count = min(len(X) // 6, _MOST_HELD_OUT)
    few = order[count:][:subset_size]
    subset = make((X[few], Y[few]))
    arranged_dictionary(subset)  # refused before anything is trained
    # Of fewer than six rows none can be spared.
    apart = order[:count] if count else order
    held_out, start = (X[apart], Y[apart]), (model.inducing_variable, model.kernel)
    variables = [parameter.unconstrained_variable for parameter in model.parameters]

    def density() -> float:
        return float(np.mean(np.asarray(subset.predict_log_density(held_out))))

    def after_rounds(of: Any, steps: int) -> Callable[[], None] | None:
        return None if refit is None else functools.partial(refit, of, steps)

    # Input scales are trained on few rows, with features that are chosen with them.
    train(subset, subset_steps)
    before = density()
    _begin(subset, start, num_inducing)
    block = subset.inducing_variable, subset.kernel
    values = [variable.numpy() for variable in variables]
    pursue(
        subset,
        max(min(num_inducing, _TURN_SIZE), int(subset.inducing_variable.num_inducing)),
        growth=2.0,
        train=after_rounds(subset, _TURN_STEPS // 5),
        max_candidates=min(_TURN_CANDIDATES, _CANDIDATES_EACH * num_inducing),
        fill=False,
        progress=progress,
    )
    train(subset, _TURN_STEPS)
    after = density()
    # Or features that the data choose are worse than those of most prior variance.
    helps = after > before - _NOTABLE_LOSS
    if helps:
        block = subset.inducing_variable, subset.kernel
    else:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
    frozen = tuple(n for n, p in model.feature_parameters.items() if p.trainable)
    for parameter in model.feature_parameters.values():
        gpflow.set_trainable(parameter, False)
    some = make(rows)
    some.inducing_variable, some.kernel = block
    pursuit = pursue(
        some,
        num_inducing,
        growth=growth,
        train=after_rounds(some, _ROUND_STEPS),
        least_share=_LEAST_SHARE,
        max_candidates=min(MOST_CANDIDATES, _CANDIDATES_EACH * num_inducing),
        least_gain=LEAST_GAIN if helps else _NO_GAIN_IS_ENOUGH,
        progress=progress,
    )
    model.inducing_variable, model.kernel = some.inducing_variable, some.kernel
    return Choice((before, after), pursuit), frozen, some


def _begin(model: Any, start: Block, num_inducing: int) -> None:
    """Give a model the few features of most prior variance, of the dictionary of ``start``."""
    model.inducing_variable, model.kernel = start
    dictionary, X = arranged_dictionary(model)
    atoms = dictionary.likeliest(X, min(_BEGINNING, -(-num_inducing // 2)))
    within = np.cumsum(np.bincount(dictionary.owners(atoms))) <= num_inducing
    within[0] = True
    model.inducing_variable, model.kernel = block_of(dictionary, atoms[within])
