"""Which targets a likelihood knows: GPflow's own take any number, and mean something by it.

What is known of a class of GPflow's holds for subclasses that leave its densities alone. One with
densities of its own (a mask, a number that stands for what is missing) may mean anything.
"""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import (
    Bernoulli,
    Beta,
    Exponential,
    Gamma,
    Likelihood,
    MultiClass,
    Ordinal,
    Poisson,
    Softmax,
)
from gpflow.utilities import Dispatcher

from ..sphere._typing import Array


def densities_of(likelihood: Any) -> type[Likelihood] | None:
    """The class of GPflow's whose densities a likelihood has; None if it has some of its own.

    That is the first of GPflow's among its classes, if none of its methods is replaced, by the
    classes before it or in the instance.
    """
    kinds = type(likelihood).__mro__
    known = [number for number, kind in enumerate(kinds) if kind.__module__.startswith("gpflow.")]
    if not known or not isinstance(likelihood, Likelihood):
        return None
    first: type[Likelihood] = kinds[known[0]]
    scopes = (likelihood, *kinds[: known[0]])
    names = {name for scope in scopes for name in vars(scope) if not name.startswith("__")}
    return None if any(callable(getattr(first, name, None)) for name in names) else first


wrong_targets = Dispatcher("wrong_targets")
wrong_targets.__doc__ = """What a likelihood cannot mean by targets, for messages.

``wrong_targets(likelihood, Y)`` returns what Y must be, or None where all of Y is that.
"""


@wrong_targets.register(Likelihood, object)
def wrong_targets_none(likelihood: Likelihood, Y: Array) -> str | None:
    """Any number is known to be right."""
    return None


@wrong_targets.register(Bernoulli, object)
def wrong_targets_bernoulli(likelihood: Bernoulli, Y: Array) -> str | None:
    """GPflow takes whatever is not a one for a zero; labels of -1 and 1 mean the same by it."""
    right = np.all((Y == 0) | (Y == 1)) or np.all((Y == -1) | (Y == 1))
    return None if right else "0 or 1 (or -1 or 1)"


@wrong_targets.register(Poisson, object)
def wrong_targets_poisson(likelihood: Poisson, Y: Array) -> str | None:
    """Counts."""
    return None if np.all((Y >= 0) & (Y == np.round(Y))) else "counts: 0, 1, 2, ..."


@wrong_targets.register((Exponential, Gamma), object)
def wrong_targets_positive(likelihood: Exponential | Gamma, Y: Array) -> str | None:
    """Positive numbers."""
    return None if np.all(Y > 0) else "positive"


@wrong_targets.register(Beta, object)
def wrong_targets_beta(likelihood: Beta, Y: Array) -> str | None:
    """Shares."""
    return None if np.all((Y > 0) & (Y < 1)) else "between 0 and 1"


@wrong_targets.register((MultiClass, Softmax), object)
def wrong_targets_classes(likelihood: MultiClass | Softmax, Y: Array) -> str | None:
    """The numbers of the classes."""
    number = likelihood.latent_dim
    assert number is not None
    return _numbered(Y, number, "classes")


@wrong_targets.register(Ordinal, object)
def wrong_targets_ordinal(likelihood: Ordinal, Y: Array) -> str | None:
    """The numbers of the bins."""
    return _numbered(Y, int(likelihood.num_bins), "bins")


def _numbered(Y: Array, number: int, what: str) -> str | None:
    if np.all((Y >= 0) & (Y < number) & (Y == np.round(Y))):
        return None
    return f"one of the {number} {what}: 0, ..., {number - 1}"


def check_targets(likelihood: Likelihood, Y: Array) -> None:
    """:raises ValueError: For targets that the likelihood does not know."""
    wanted = wrong_targets(likelihood, Y)
    if wanted is not None:
        values = np.unique(Y)
        shown = ", ".join(f"{value:g}" for value in values[:2])
        if len(values) > 2:
            shown += f", ..., {values[-1]:g}"
        raise ValueError(
            f"data: Y must be {wanted} for {type(likelihood).__name__}, found {shown}; pass such "
            "targets, or another likelihood."
        )


def targets_type(likelihood: Likelihood) -> tf.DType:
    """What a likelihood takes targets as: Softmax takes integers only."""
    if isinstance(likelihood, Softmax):
        return tf.int64
    return tf.as_dtype(gpflow.default_float())
