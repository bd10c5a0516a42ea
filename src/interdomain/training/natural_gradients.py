"""Natural-gradient steps for the q's of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import gpflow
import tensorflow as tf
from gpflow.likelihoods import ScalarLikelihood

from ..linalg.natural_gradients import diagonal_step, full_step
from .step_sizes import NaturalGradient, StepSizes

Pair: TypeAlias = tuple[gpflow.Parameter, gpflow.Parameter]


class NaturalGradients:
    """
    Steps for pairs (q_mu ``[M, L]``, q_sqrt ``[L, M, M]``, or ``[M, L]`` for a diagonal q).

    :ivar variables: the unconstrained variables of q_mu and q_sqrt in turn.
    :ivar sizes: the step sizes, one for each pair.
    :ivar coupled: those of ``variables`` that are means of a diagonal q.
    :ivar alternate: whether the gradients of the other parameters are computed at the new q, in an
        evaluation of their own.
    """

    def __init__(self, pairs: Sequence[Pair], sizes: StepSizes, *, alternate: bool) -> None:
        self._pairs = tuple(pairs)
        self.sizes = sizes
        self.alternate = alternate
        self.variables = [p.unconstrained_variable for pair in self._pairs for p in pair]
        self.coupled = [
            q_mu.unconstrained_variable for q_mu, q_sqrt in self._pairs if _is_diagonal(q_sqrt)
        ]

    @property
    def num_pairs(self) -> int:
        """The number of q's."""
        return len(self._pairs)

    def describe(self) -> dict[str, Any]:
        """What must be the same for a resumed fit."""
        described = {"natural_gradient": self.sizes.describe()}
        return described | {"alternate": True} if self.alternate else described

    def moved(self, gradients: Sequence[tf.Tensor], sizes: tf.Tensor) -> list[tf.Tensor]:
        """
        The values of ``variables`` after a step; nothing is assigned.

        :param gradients: of the loss, with respect to ``variables``.
        :param sizes: the step sizes, ``[number of pairs]``.
        """
        values = []
        for i, (q_mu, q_sqrt) in enumerate(self._pairs):
            mean, mean_gradient = _constrained(q_mu, gradients[2 * i])
            root, root_gradient = _constrained(q_sqrt, gradients[2 * i + 1])
            size = tf.cast(sizes[i], root.dtype)
            if _is_diagonal(q_sqrt):
                mean, root = diagonal_step(mean, root, mean_gradient, root_gradient, size)
            else:
                transposed = tf.transpose(mean), root, tf.transpose(mean_gradient), root_gradient
                mean, root = full_step(*transposed, size)
                mean = tf.transpose(mean)
            values += [_unconstrained(q_mu, mean), _unconstrained(q_sqrt, root)]
        return values


def natural_gradients(
    model: Any, natural_gradient: NaturalGradient, *, own_optimizer: bool, alternate: bool
) -> NaturalGradients | None:
    """
    The natural gradients that a fit uses for a model.

    :param natural_gradient: None for the default: True if the user passed no optimizer (which would
        then update everything) and natural gradients suit the model (:func:`suits`).
    :param own_optimizer: whether the user passed an optimizer.
    :returns: None if natural gradients are not used.
    :raises ValueError: if ``natural_gradient`` is not a step size, or the model has no q.
    """
    if natural_gradient is None and not alternate:
        natural_gradient = not own_optimizer and suits(model)
    if natural_gradient is False:
        return None
    natural_gradient = True if natural_gradient is None else natural_gradient
    pairs = _pairs_of(model)
    diagonal = tuple(_is_diagonal(q_sqrt) for _, q_sqrt in pairs)
    return NaturalGradients(pairs, StepSizes(natural_gradient, diagonal), alternate=alternate)


def suits(model: Any) -> bool:
    """Whether natural gradients of the default sizes are safe: the q's are trainable, and each
    column of Y has one latent GP. With several (classes), they may diverge on minibatches of a
    hundred rows (``benchmarks/image_patches``)."""
    pairs = _found_pairs(model)
    trainable = all(parameter.trainable for pair in pairs for parameter in pair)
    likelihood = getattr(model, "likelihood", None)
    return bool(pairs) and trainable and isinstance(likelihood, ScalarLikelihood)


def _pairs_of(model: Any) -> list[Pair]:
    pairs = _found_pairs(model)
    if pairs:
        return pairs
    raise ValueError(
        f"natural_gradient: a {type(model).__name__} has neither variational_parameters nor q_mu "
        "and q_sqrt; leave natural_gradient out."
    )


def _found_pairs(model: Any) -> list[Pair]:
    if hasattr(model, "variational_parameters"):
        return [(q_mu, q_sqrt) for q_mu, q_sqrt in model.variational_parameters]
    if hasattr(model, "q_mu") and hasattr(model, "q_sqrt"):
        return [(model.q_mu, model.q_sqrt)]
    return []


def _is_diagonal(q_sqrt: gpflow.Parameter) -> bool:
    return len(q_sqrt.shape) == 2


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
