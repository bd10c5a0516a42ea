"""Losses and gradients of batches that are divided among the replicas of a strategy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras

from .._arguments import Array
from .._tracing import compiled
from .batches import Batches
from .checkpoints import Checkpoints
from .losses import Loss, loss_and_gradients


class Replicas:
    """The loss and gradients of a batch whose rows are spread over replicas, as in custom training
    loops of https://www.tensorflow.org/guide/distributed_training.

    GPflow's loss on n of B rows estimates the loss on all B rows: its expected log likelihood is
    scaled up, its KL term and its priors are whole. The sum over the replicas, weighted by
    ``n / B``, is then the loss of the whole batch. This also holds for gradients, however unevenly
    the rows are spread.

    :param strategy: None for one device without a strategy.
    :ivar is_chief: whether this process writes checkpoints and shows progress.
    :ivar alone: whether there is no other process.
    """

    def __init__(self, strategy: tf.distribute.Strategy | None) -> None:
        self.strategy = strategy
        self.is_chief, self.alone = True, True
        if strategy is not None:
            self.is_chief = bool(strategy.extended.should_checkpoint)
            self.alone = strategy.num_replicas_in_sync == len(strategy.extended.worker_devices)

    @classmethod
    def of(cls, model: tf.Module) -> Replicas:
        """The replicas of the strategy in whose scope a model was built.

        :raises ValueError: if only a part of the model was built there.
        """
        known = [
            (getattr(variable, "distribute_strategy", None), variable.name)
            for variable in getattr(model, "variables", ())
        ]
        outside = [name for strategy, name in known if strategy is None]
        if len(outside) == len(known):
            return cls(None)
        if outside:
            raise ValueError(
                f"model: {len(outside)} of its {len(known)} variables were created outside of the "
                f"strategy's scope, such as {outside[0]}; build it, and what it is made of, under "
                "`with strategy.scope():`."
            )
        return cls(known[0][0])

    def check_optimizer(self, optimizer: Any) -> None:
        """Check that an optimizer of a strategy was built in its scope, and not with Keras 3."""
        inside = self.strategy.extended.variable_created_in_scope if self.strategy else None
        is_of_keras = isinstance(optimizer, tf_keras.optimizers.Optimizer)
        if inside and not (is_of_keras and all(map(inside, optimizer.variables))):
            raise ValueError(
                f"optimizer: found a {type(optimizer).__name__} that is not of tf_keras or was "
                "created outside of the strategy's scope; pass an instance of one of "
                "gpflow.keras.tf_keras.optimizers, built under `with strategy.scope():`."
            )

    def start(self, checkpoints: Checkpoints) -> None:
        """Restore or write the first checkpoint, on the chief before all other workers. An error of
        writing is thus raised before training.

        :raises ValueError: if the workers find checkpoints of different steps.
        :raises RuntimeError: if another worker cannot start.
        """
        failure: Exception | None = None
        for turn_of_chief in (True, False):
            try:
                if self.is_chief == turn_of_chief and not checkpoints.restore():
                    checkpoints.save(0)
            except Exception as error:
                failure = error
            (failed,) = self.mean([failure is not None])  # the others wait
            if failed:
                raise failure or RuntimeError("another worker cannot start: see its error.")
        (mean,) = self.mean([checkpoints.step])
        if mean != checkpoints.step:
            raise ValueError(
                f"checkpoint_dir: this worker finds a checkpoint of step {checkpoints.step}, "
                "another worker finds another step; pass one folder that all of them see."
            )

    def mean(self, numbers: Sequence[float]) -> Array:
        """The mean over the replicas of the numbers of each worker."""
        array = np.array(numbers, np.float64)
        if self.alone or self.strategy is None:
            return array
        return np.asarray(self._mean_of(tf.constant(array)))

    @functools.cached_property
    def _mean_of(self) -> Any:
        """The mean over replicas, as a function that is traced only once."""
        return compiled(lambda *given: self.run(_weighted_mean, (given, tf.constant(1)))[0])

    def batch(self, batches: Batches, step: int) -> tuple[Any, ...]:
        """The part of a step's batch for each replica of this process: every R-th row."""
        batch = batches.batch(step)
        if self.strategy is None:
            return batch
        number = self.strategy.num_replicas_in_sync

        def part(context: Any) -> tuple[tf.Tensor, ...]:
            first = context.replica_id_in_sync_group
            return tuple(tensor[first::number] for tensor in batch)

        values: tuple[Any, ...] = self.strategy.experimental_distribute_values_from_function(part)
        return values

    def run(self, function: Callable[..., Any], batch: Sequence[Any] = ()) -> Any:
        """Call a function with the rows of each replica; all replicas must return the same."""
        if self.strategy is None:
            return function(*batch)
        results = self.strategy.run(function, args=tuple(batch))
        return tf.nest.map_structure(
            lambda value: self.strategy.experimental_local_results(value)[0], results
        )

    def loss_and_gradients(
        self, loss: Loss, variables: Sequence[tf.Variable], rows: Sequence[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """The loss of the whole batch and its gradients, called in each replica with its rows."""
        value, gradients = loss_and_gradients(loss, variables, rows)
        if self.strategy is not None:
            value, *gradients = _weighted_mean([value, *gradients], tf.shape(rows[0])[0])
        return value, gradients


def _weighted_mean(tensors: Sequence[tf.Tensor], count: tf.Tensor) -> list[tf.Tensor]:
    """The means over the replicas, each weighted with ``count``, in one message."""
    dtype = tensors[0].dtype
    weight = tf.cast(count, dtype)
    # A replica without rows has the weight zero, and its numbers need not be finite.
    flat = [
        tf.math.multiply_no_nan(tf.reshape(tf.cast(tensor, dtype), [-1]), weight)
        for tensor in tensors
    ]
    context = tf.distribute.get_replica_context()
    sums = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.concat([weight[None], *flat], 0))
    parts = tf.split(sums[1:] / sums[0], [tf.size(part) for part in flat])
    return [
        tf.cast(tf.reshape(part, tf.shape(tensor)), tensor.dtype)
        for part, tensor in zip(parts, tensors, strict=True)
    ]
