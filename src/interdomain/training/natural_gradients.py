"""Natural-gradient steps for the q's of a model, and the sizes of these steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import ScalarLikelihood

from .._arguments import Array, number, short
from ..linalg.natural_gradients import diagonal_step, full_step

Pair: TypeAlias = tuple[gpflow.Parameter, gpflow.Parameter]

NaturalGradient: TypeAlias = bool | float | Callable[[int], Any] | None
"""What ``fit`` takes: whether to take the default sizes, a constant, or a schedule."""

_REMEDY = "pass a number in (0, 1], True for the default, or a function of the number of steps"


class NaturalGradients:
    """Steps for pairs (q_mu ``[M, L]``, q_sqrt ``[L, M, M]``, or ``[M, L]`` for a diagonal q).

    :param given: the sizes as passed to ``fit``, neither None nor False.
    :ivar variables: the unconstrained variables of q_mu and q_sqrt in turn.
    :ivar coupled: for each of ``variables``, whether it is the mean of a diagonal q.
    :raises ValueError: if ``given`` is neither True, nor a number in (0, 1], nor a function whose
        first value is such a number.
    """

    def __init__(self, pairs: Sequence[Pair], given: NaturalGradient) -> None:
        self._pairs, self._given = tuple(pairs), given
        self.variables = [p.unconstrained_variable for pair in self._pairs for p in pair]
        self._diagonal = [len(q_sqrt.shape) == 2 for _, q_sqrt in self._pairs]
        self.coupled = [flag for diagonal in self._diagonal for flag in (diagonal, False)]
        self._constant = (
            None if given is True or callable(given) else number("natural_gradient", given)
        )
        self.sizes(0)

    def sizes(self, step: int) -> Array:
        """The sizes of the next steps after so many, ``[number of pairs]``.

        By default the size for a full q rises by equal factors to 0.1 in 20 steps, as that of
        Salimbeni, Eleftheriadis and Hensman (2018) does: the first gradients are those of a q, and
        of hyperparameters, that are soon left. For a diagonal q it falls: the data couple its
        coordinates, which all move at once, so that the noise of a minibatch adds up over them and
        sets a floor that no constant size leaves. Several q's move at once, each as if the others
        were fixed: n of them that explain the same overshoot with steps above about ``1 / n``.

        :raises ValueError: if one is not in (0, 1].
        """
        if self._given is True:
            most = min(0.1, 1 / len(self._pairs))
            rising = most * 0.01 ** (1 - min(step / 20, 1.0))
            falling = most / (1 + step / 300)
            return np.array([falling if diagonal else rising for diagonal in self._diagonal])
        value = self._given(step) if callable(self._given) else self._constant
        size = number("natural_gradient", value)
        if not 0 < size <= 1:
            where = f" at step {step}" if callable(self._given) else ""
            raise ValueError(
                f"natural_gradient: found a step size of {short(value)}{where}; {_REMEDY}."
            )
        return np.full(len(self._pairs), size)

    def describe(self) -> str:
        """What must be the same for a resumed fit: of a function of the user's, the name, the
        configuration if it has one, and the first value."""
        given: Any = self._given
        if not callable(given):
            return str(given)
        name = getattr(given, "__qualname__", type(given).__name__)
        configuration = given.get_config() if hasattr(given, "get_config") else {}
        return f"{name}, first {self.sizes(0)[0]:.8g}, {configuration}"

    def moved(self, gradients: Sequence[tf.Tensor], sizes: tf.Tensor) -> list[tf.Tensor]:
        """The values of ``variables`` after a step; nothing is assigned.

        :param gradients: of the loss, with respect to ``variables``.
        :param sizes: the step sizes, ``[number of pairs]``.
        """
        values = []
        for i, (q_mu, q_sqrt) in enumerate(self._pairs):
            mean, mean_gradient = _constrained(q_mu, gradients[2 * i])
            root, root_gradient = _constrained(q_sqrt, gradients[2 * i + 1])
            size = tf.cast(sizes[i], root.dtype)
            if self._diagonal[i]:
                mean, root = diagonal_step(mean, root, mean_gradient, root_gradient, size)
            else:
                transposed = tf.transpose(mean), root, tf.transpose(mean_gradient), root_gradient
                mean, root = full_step(*transposed, size)
                mean = tf.transpose(mean)
            values += [_unconstrained(q_mu, mean), _unconstrained(q_sqrt, root)]
        return values


def natural_gradients(
    model: Any, given: NaturalGradient, *, own_optimizer: bool
) -> NaturalGradients | None:
    """The natural gradients that a fit uses for a model.

    :param given: None for the default: True if the user passed no optimizer (which would then
        update everything) and natural gradients of the default sizes are safe. They are if the q's
        are trainable, and each column of Y has one latent GP. With several (classes), they may
        diverge on minibatches of a hundred rows (``benchmarks/image_patches``).
    :param own_optimizer: whether the user passed an optimizer.
    :returns: None if natural gradients are not used.
    :raises ValueError: if ``given`` is not a step size, or the model has no q.
    """
    pairs: list[Pair] = []
    if hasattr(model, "variational_parameters"):
        pairs = [(q_mu, q_sqrt) for q_mu, q_sqrt in model.variational_parameters]
    elif hasattr(model, "q_mu") and hasattr(model, "q_sqrt"):
        pairs = [(model.q_mu, model.q_sqrt)]
    if given is None:
        trainable = all(parameter.trainable for pair in pairs for parameter in pair)
        scalar = isinstance(getattr(model, "likelihood", None), ScalarLikelihood)
        given = bool(pairs) and trainable and scalar and not own_optimizer
    if given is False:
        return None
    if not pairs:
        raise ValueError(
            f"natural_gradient: a {type(model).__name__} has neither variational_parameters nor "
            "q_mu and q_sqrt; leave natural_gradient out."
        )
    return NaturalGradients(pairs, given)


def _constrained(parameter: gpflow.Parameter, gradient: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """A parameter's value, and the gradient with respect to it from that with respect to its
    unconstrained variable, by the chain rule of the inverse of its transform."""
    # A bijector would give back the unconstrained value of what it made, without a gradient.
    value = tf.identity(tf.convert_to_tensor(parameter))
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(value)
        unconstrained = _unconstrained(parameter, value)
    return value, tape.gradient(unconstrained, value, output_gradients=gradient)


def _unconstrained(parameter: gpflow.Parameter, value: tf.Tensor) -> tf.Tensor:
    transform: Any = parameter.transform
    return transform.inverse(value)
