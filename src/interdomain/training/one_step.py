"""One step of a fit from one batch: an optimizer's, natural gradients for q, or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from .replicas import Replicas
from .settings import Updates

Loss = Callable[..., tf.Tensor]
ValueAndGradients = tuple[tf.Tensor, list[tf.Tensor]]
Gradients = Callable[[Sequence[tf.Variable], Sequence[tf.Tensor]], ValueAndGradients]
"""A function of variables and the rows of a batch that returns the loss and its gradients."""
Move = Callable[[], list[tf.Tensor]]
"""A function that may change variables, and returns tensors."""
Update = Callable[[Move, Move], list[tf.Tensor]]
"""A function that calls the first move or, where there is to be no update, the second, which
returns tensors of the same types and changes nothing."""


def step_function(
    replicas: Replicas, updates: Updates, gradients_of: Gradients
) -> Callable[[tf.Tensor, Sequence[Any], Update], Any]:
    """
    A function for one update from one batch. It takes the sizes of the natural-gradient steps, the
    batch and an ``Update``.

    It returns the loss before the update, and whether all numbers were finite. An update with
    numbers that are not finite is still made, and the caller undoes it.

    Every replica computes the new values of q before any variable changes. They are assigned
    outside of the replicas, because the variables do not define how values of several replicas are
    combined.

    All means of a diagonal q move at once, each as if the others were fixed, but the data couple
    them: where many coordinates explain the same data, a step of any fixed size overshoots, further
    every time. So the loss of the same batch is evaluated at the new means. Along the step the loss
    is approximated by the parabola through both losses, with the slope at the first; if its minimum
    comes before the end of the step, the means go there.
    """
    variables, natural, in_q = updates.variables, updates.natural, updates.q_variables()
    alternate = natural is not None and natural.alternate and len(variables) > 0
    coupled = () if natural is None else natural.coupled
    with_q = () if alternate else variables
    # Those of the others that move after q, by gradients from before.
    later = with_q if coupled else ()

    def step(sizes: tf.Tensor, batch: Sequence[Any], update: Update) -> Any:
        value, [finite, *moved] = replicas.run(lambda *rows: first(sizes, rows, update), batch)
        q, rest = moved[: len(in_q)], moved[len(in_q) :]
        if coupled:
            q = shortened(value, q, rest[0], batch, update)
        for variable, new in zip(in_q, q, strict=True):
            variable.assign(new)
        if later or alternate:
            last = others if alternate else lambda *rows: apply(rest[1:], later)
            [also] = replicas.run(lambda *rows: update(lambda: last(*rows), stay), batch)
            finite = tf.logical_and(finite, also)
        return value, finite

    def first(
        sizes: tf.Tensor, rows: Sequence[tf.Tensor], update: Update
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """The loss and: whether all numbers are finite, q, the slope along the step of the coupled
        means, and gradients of what moves ``later``."""
        value, gradients = gradients_of([*with_q, *in_q], rows)
        of_others, of_q = gradients[: len(with_q)], gradients[len(with_q) :]

        def move() -> list[tf.Tensor]:
            q = [] if natural is None else natural.moved(of_q, sizes)
            finite = _all_finite([value, *gradients, *q])
            if coupled:
                slope = [
                    tf.reduce_sum(gradient * (new - variable))
                    for variable, gradient, new in zip(in_q, of_q, q, strict=True)
                    if _is_in(variable, coupled)
                ]
                return [finite, *q, tf.add_n(slope), *of_others]
            with tf.control_dependencies(q):
                [also] = apply(of_others, with_q)
            return [tf.logical_and(finite, also), *q]

        def unmoved() -> list[tf.Tensor]:
            q = [variable.read_value() for variable in in_q]
            return [*stay(), *q, *([tf.zeros_like(value), *of_others] if coupled else [])]

        return value, update(move, unmoved)

    def shortened(
        value: tf.Tensor,
        q: Sequence[tf.Tensor],
        slope: tf.Tensor,
        batch: Sequence[Any],
        update: Update,
    ) -> list[tf.Tensor]:
        old = [variable.read_value() for variable in in_q]
        for variable, new in zip(in_q, q, strict=True):
            if _is_in(variable, coupled):
                variable.assign(new)
        [after] = replicas.run(
            lambda *rows: update(lambda: [gradients_of([], rows)[0]], lambda: [value]), batch
        )
        curvature = 2 * (after - value - slope)
        share = tf.where(curvature > -slope, -slope / curvature, tf.ones_like(slope))
        share = tf.where(tf.math.is_finite(after), share, tf.zeros_like(slope))
        return [
            before + tf.cast(share, new.dtype) * (new - before)
            if _is_in(variable, coupled)
            else new
            for variable, before, new in zip(in_q, old, q, strict=True)
        ]

    def others(*rows: tf.Tensor) -> list[tf.Tensor]:
        value, gradients = gradients_of(variables, rows)
        [finite] = apply(gradients, variables)
        return [tf.logical_and(finite, _all_finite([value, *gradients]))]

    def stay() -> list[tf.Tensor]:
        return [tf.constant(True)]

    def apply(gradients: Sequence[tf.Tensor], variables: Sequence[tf.Variable]) -> list[tf.Tensor]:
        if not variables:
            return stay()
        pairs = list(zip(gradients, variables, strict=True))
        if replicas.strategy is None:
            updates.optimizer.apply_gradients(pairs)
        else:  # they are of the whole batch already
            updates.optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)
        return [_all_finite(variables)]

    return step


def _is_in(variable: tf.Variable, some: Sequence[tf.Variable]) -> bool:
    return any(variable is one for one in some)


def _all_finite(tensors: Sequence[tf.Tensor | tf.Variable]) -> tf.Tensor:
    return tf.reduce_all([tf.reduce_all(tf.math.is_finite(tensor)) for tensor in tensors])
