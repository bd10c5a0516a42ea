"""Checks of targets Y against a likelihood, because GPflow's likelihoods accept any number.

The checks for a class of GPflow hold for subclasses that keep its densities. A subclass with its
own densities (a mask, a number that stands for a missing value) may accept any targets.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow import likelihoods
from gpflow.likelihoods import Likelihood, MultiClass, Softmax, SwitchedLikelihood

from ._arguments import Array, integer


def densities_of(likelihood: Any) -> type[Likelihood] | None:
    """The GPflow class whose densities a likelihood has: the first GPflow class in its method
    resolution order. None if an earlier class, or the instance, replaces one of its methods."""
    kinds = type(likelihood).__mro__
    known = [number for number, kind in enumerate(kinds) if kind.__module__.startswith("gpflow.")]
    if not known or not isinstance(likelihood, Likelihood):
        return None
    first: type[Likelihood] = kinds[known[0]]
    scopes = (likelihood, *kinds[: known[0]])
    names = {name for scope in scopes for name in vars(scope) if not name.startswith("__")}
    return None if any(callable(getattr(first, name, None)) for name in names) else first


def takes_missing(likelihood: Any) -> bool:
    """Whether NaN in Y stands for a missing value. A likelihood with its own densities declares it
    by an attribute ``allow_nan = True``."""
    return bool(getattr(likelihood, "allow_nan", False)) and densities_of(likelihood) is None


# The valid targets of each likelihood, and their name in messages.
_RANGES: Mapping[type[Likelihood], tuple[Callable[[Array], Any], str]] = {
    # GPflow reads every target other than 1 as 0, so labels -1 and 1 mean the same as 0 and 1.
    likelihoods.Bernoulli: (
        lambda Y: np.isin(Y, (0, 1) if np.min(Y, initial=0) >= 0 else (-1, 1)),
        "0 or 1 (or -1 or 1)",
    ),
    likelihoods.Beta: (lambda Y: (Y > 0) & (Y < 1), "between 0 and 1"),
    likelihoods.Exponential: (lambda Y: Y > 0, "positive"),
    likelihoods.Gamma: (lambda Y: Y > 0, "positive"),
    likelihoods.Poisson: (lambda Y: (Y >= 0) & (Y == np.round(Y)), "counts: 0, 1, 2, ..."),
}


def _wanted(likelihood: Likelihood, Y: Array) -> str | None:
    """The rule that Y breaks, for messages; None if Y is valid, or if no rule is known."""
    kind = densities_of(likelihood)
    if kind is None or not len(Y):
        return None
    if kind in _RANGES:
        right, words = _RANGES[kind]
        return None if np.all(right(Y)) else words
    if isinstance(likelihood, (MultiClass, Softmax)):
        return _numbered(Y, likelihood.latent_dim, "classes")
    if isinstance(likelihood, likelihoods.Ordinal):
        return _numbered(Y, likelihood.num_bins, "bins")
    if isinstance(likelihood, SwitchedLikelihood):
        wanted = _numbered(Y[:, -1], len(likelihood.likelihoods), "likelihoods")
        return wanted and f"{wanted}, in the last column,"
    return None


def _numbered(Y: Array, number: Any, what: str) -> str | None:
    if np.all((Y >= 0) & (Y < number) & (Y == np.round(Y))):
        return None
    return f"one of the {number} {what}: 0, ..., {number - 1}"


def check_targets(likelihood: Likelihood, Y: Array) -> None:
    """Check that the likelihood supports the targets; a ValueError otherwise."""
    Y = np.asarray(Y, np.float64)
    wanted = _wanted(likelihood, Y)
    if wanted is not None:
        values = np.unique(Y)
        shown = ", ".join(f"{value:g}" for value in values[:2])
        if len(values) > 2:
            shown += f", ..., {values[-1]:g}"
        raise ValueError(
            f"data: Y must be {wanted} for {type(likelihood).__name__}, found {shown}; pass such "
            "targets, or another likelihood."
        )


def _columns_of_targets(likelihood: Likelihood, num_latents: int | None) -> int | None:
    """The number of columns of Y for ``num_latents`` latent GPs; None if any number is valid."""
    if likelihood.observation_dim is not None:
        return int(likelihood.observation_dim)
    if densities_of(likelihood) is None:
        return None
    if isinstance(likelihood, (MultiClass, Softmax)):
        return 1
    if isinstance(likelihood, SwitchedLikelihood):
        members = {_columns_of_targets(member, num_latents) for member in likelihood.likelihoods}
        return None if num_latents is None or None in members else num_latents + 1
    return num_latents if isinstance(likelihood, likelihoods.ScalarLikelihood) else None


def check_number_of_targets(
    likelihood: Likelihood, num_latents: int | None, num_columns: int
) -> None:
    """Check that the likelihood supports the number of latent GPs (None if unknown) and the number
    of columns of Y; a ValueError otherwise."""
    kind, size = type(likelihood).__name__, likelihood.latent_dim
    if size is not None and num_latents not in (None, size):
        raise ValueError(
            f"num_latent_gps must be {size} for {kind}, found {num_latents}; build the model with "
            "that, or pass another likelihood."
        )
    expected = _columns_of_targets(likelihood, num_latents)
    if expected in (None, num_columns):
        return
    remedy = f"pass Y with {expected}, another likelihood, or a model with another num_latent_gps"
    if isinstance(likelihood, (MultiClass, Softmax)):
        remedy = "pass the numbers of the classes: of rows with a one, "
        remedy += "np.argmax(Y, axis=1)[:, None]"
    raise ValueError(
        f"data: Y has {num_columns} columns, but the model and its {kind} likelihood take "
        f"{expected}; {remedy}."
    )


def number_of_latents(
    likelihood: Likelihood, num_columns: int, num_latent_gps: int | None = None
) -> int:
    """The number of latent GPs of a model.

    :param num_columns: The number of columns of Y.
    :param num_latent_gps: The user's number, which is used if the likelihood allows it.
    :raises ValueError: If the likelihood requires another number, or does not support such a Y.
    """
    if num_latent_gps is not None:
        integer("num_latent_gps", num_latent_gps, at_least=1)
    number = num_latent_gps or likelihood.latent_dim
    if number is None:  # GPflow's rule: the column that chooses a likelihood has no latent GP
        number = max(1, num_columns - isinstance(likelihood, SwitchedLikelihood))
    check_number_of_targets(likelihood, number, num_columns)
    return int(number)


def targets_type(likelihood: Any, present: Any = None) -> tf.DType:
    """The type that Y is converted to: integers for Softmax, floats for other GPflow likelihoods.

    :param present: The type that Y has, or None. Integers are kept for a user's own likelihood that
        is derived from an abstract class, and for a model without a likelihood.
    """
    if isinstance(likelihood, Softmax):
        return tf.int64
    kinds = [kind for kind in type(likelihood).__mro__ if kind.__module__.startswith("gpflow.")]
    is_users = not isinstance(likelihood, Likelihood) or inspect.isabstract(kinds[0])
    if is_users and present is not None and tf.as_dtype(present).is_integer:
        return tf.as_dtype(present)
    return tf.as_dtype(gpflow.default_float())
