"""The choice of a model's features on some rows, which alternates with training of input scales."""

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

_ROWS, _MOST_HELD_OUT = 20_000, 2_000
"""The largest number of rows of the sample for the choice, and of its held-out rows."""

_BEGINNING = 50
"""The number of features of largest prior variance with which a pursuit starts. At most half of the
wanted features, so that the data choose the rest."""

_TURN_SIZE, _TURN_CANDIDATES = 256, 2_000
"""The largest number of features that are trained together with scales, and of their candidates.
Every training step computes these features again."""

_TURN_STEPS, _ROUND_STEPS = 25, 6

_CANDIDATES_EACH = 10
"""The number of candidates for each wanted feature; with more candidates, more fit the noise."""

_LEAST_SHARE = 0.15
"""The least share of wanted features that a round of the final choice must find. Between turns
there is no such limit, because every round trains the input scales."""

_NO_GAIN_IS_ENOUGH = 1e12

_NOTABLE_LOSS = 0.02
"""The loss of held-out log density, in nats per row, at which chosen features are rejected: the
rows are then too few for the choice."""


@dataclass(frozen=True)
class Choice:
    """A report of how :func:`interdomain.fit` chose features, on a random sample of rows.

    :ivar turns: The mean log density of held-out rows under two models: the given model with
        trained parameters; and a few chosen features, with all parameters trained with them. The
        second model is used, unless its density is lower by 0.02 or more.
    :ivar pursuit: The choice of the final features, with the input scales of the used model.
    """

    turns: tuple[float, float]
    pursuit: Pursuit

    def __str__(self) -> str:
        turns = ", ".join(f"{density:.4f}" for density in self.turns)
        return f"held out, by turns of features and scales: {turns}\n{self.pursuit}"


def choose_features(
    model: Any,
    num_inducing: int,
    make: Callable[[tuple[Array, ...]], Any],
    train: Callable[[Any, int], Any],
    *,
    refit: Callable[[Any, int], Any] | None = None,
    growth: float = 1.5,
    subset_size: int,
    subset_steps: int,
    seed: int,
    progress: bool,
) -> tuple[Choice, tuple[str, ...], Any]:
    """Train the input scales, and replace the model's features by chosen features.

    :param model: A model with a few features of an orthogonal dictionary to start from.
    :param make: Makes a model of sampled rows that shares the parameters of ``model``.
    :param train: Trains all parameters of a model made by ``make`` for a number of steps.
    :param refit: Like ``train``, between the rounds of a pursuit; None for no training there.
    :param growth: The factor by which the number of features grows in a round of the final choice.
    :return: The report; the names of the feature parameters that are now frozen; and the model of
        sampled rows that has the chosen features.
    :raises ValueError: If the features belong to no dictionary, or the model has no rows.
    """
    rows = model.draw(_ROWS, seed=seed)
    order = np.random.default_rng(seed).permutation(len(rows[0]))
    count = min(len(order) // 6, _MOST_HELD_OUT)
    few = order[count:][:subset_size]
    subset = make(tuple(part[few] for part in rows))
    arranged_dictionary(subset)  # raises an error, if any, before the training
    # With fewer than six rows, no rows are held out.
    apart = order[:count] if count else order
    held_out, start = tuple(part[apart] for part in rows), _block(model)
    variables = [parameter.unconstrained_variable for parameter in model.parameters]

    def density() -> float:
        return float(np.mean(subset.predict_log_density(held_out)))

    def after_rounds(trained: Any, steps: int) -> Callable[[], None] | None:
        return None if refit is None else functools.partial(refit, trained, steps)

    # Input scales are trained on few rows, together with features that are chosen for them.
    train(subset, subset_steps)
    before = density()
    _begin(subset, start, num_inducing)
    block, values = _block(subset), [variable.numpy() for variable in variables]
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
    # Otherwise the chosen features are worse than the features of largest prior variance.
    helps = after > before - _NOTABLE_LOSS
    if helps:
        block = _block(subset)
    else:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
    frozen = tuple(n for n, p in model.feature_parameters.items() if p.trainable)
    gpflow.set_trainable(list(model.feature_parameters.values()), False)
    some = make(rows)
    some.replace_features(*block)
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
    model.replace_features(*_block(some))
    return Choice((before, after), pursuit), frozen, some


def _begin(model: Any, start: Block, num_inducing: int) -> None:
    """Give a model the few features of largest prior variance of the dictionary of ``start``."""
    dictionary, X = arranged_dictionary(model, start)
    atoms = dictionary.likeliest(X, min(_BEGINNING, -(-num_inducing // 2)))
    within = np.cumsum(np.bincount(dictionary.owners(atoms))) <= num_inducing
    within[0] = True
    model.replace_features(*block_of(dictionary, atoms[within]))


def _block(model: Any) -> Block:
    return model.inducing_variable, model.kernel
