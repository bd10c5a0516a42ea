"""Losses and gradients of batches that are divided among the replicas of a strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras

from ..distributed import Workers
from ..sphere._typing import Array
from .batches import Batches
from .checkpoints import Checkpoints

Loss = Callable[..., tf.Tensor]


class Replicas:
    """
    The loss and gradients of a batch whose rows are spread over replicas.

    A loss of GPflow's on n of B rows is an estimate of the loss on all B: its expected log
    likelihood is scaled up, its KL term and its priors are whole. The sum over the replicas,
    weighted by ``n / B``, is then the loss of the whole batch, and so are its gradients, however
    unevenly the rows are spread.

    :param strategy: None for one device without a strategy.
    """

    def __init__(self, strategy: tf.distribute.Strategy | None) -> None:
        self.strategy = strategy
        self.workers = Workers(strategy)

    def scope(self) -> AbstractContextManager[Any]:
        """The scope in which variables are created for all replicas."""
        if self.strategy is None:
            return nullcontext()
        scope: AbstractContextManager[Any] = self.strategy.scope()
        return scope

    def check_optimizer(self, optimizer: Any) -> None:
        """Check that an optimizer works under the strategy.

        :raises ValueError: If it was not built in the scope of the strategy, or is from Keras 3.
        """
        if self.strategy is None or optimizer is None:
            return
        if not isinstance(optimizer, tf_keras.optimizers.Optimizer):
            raise ValueError(
                f"optimizer: a {type(optimizer).__name__} of Keras 3 does not work under a "
                "strategy; pass an instance of one of gpflow.keras.tf_keras.optimizers."
            )
        created_inside = self.strategy.extended.variable_created_in_scope
        if not all(created_inside(v) for v in optimizer.variables):
            raise ValueError(
                "optimizer: its variables were created outside of the strategy's scope; build it "
                "under `with strategy.scope():`."
            )

    def check_model(self, model: tf.Module) -> None:
        """Check that a model can be trained under the strategy.

        :raises ValueError: If it was not built in the scope of the strategy.
        """
        if self.strategy is None:
            return
        created_inside = self.strategy.extended.variable_created_in_scope
        outside = [v.name for v in model.variables if not created_inside(v)]
        if outside:
            raise ValueError(
                f"strategy: {len(outside)} of the model's {len(model.variables)} variables were "
                f"created outside of its scope, such as {outside[0]}; build the model, its kernel "
                "and its inducing variable under `with strategy.scope():`."
            )

    def start(self, store: Checkpoints) -> int:
        """Start or resume, and return the step to continue from. The chief reads its checkpoint or
        writes the first one, then the other workers read it.

        :raises ValueError: If the workers find checkpoints of different steps.
        """
        steps: dict[str, Array] = {}

        def begin(turn_of_chief: bool) -> dict[str, Array]:
            if self.workers.is_chief == turn_of_chief:
                if not store.restore():
                    store.save(0)
                steps["step"] = np.asarray(store.step)
            return steps

        with self.losses_named(0, store):
            list(self.workers.share(lambda: begin(True)))
            found = [int(one["step"]) for one in self.workers.share(lambda: begin(False))]
        if len(set(found)) > 1:
            raise ValueError(
                f"checkpoint_dir: the workers find checkpoints of the steps {found}; pass one "
                "folder that all of them see."
            )
        return found[0]

    def meet(self, step: int, store: Checkpoints) -> None:
        """Wait until all workers have called this, and the chief has written its checkpoint."""
        with self.losses_named(step, store):
            list(self.workers.share(dict))

    def losses_named(self, step: int, store: Checkpoints) -> AbstractContextManager[None]:
        """Name the worker that was lost.

        :raises WorkerLostError: In place of what TensorFlow raises when a worker is lost.
        """
        remedy = "Start all workers again with resume=True: they go on from {}."
        return self.workers.losses_named(f"step {step}", lambda: store.latest, remedy)

    def batch(self, batches: Batches, step: int) -> tuple[Any, ...]:
        """The part of a step's batch for each replica of this process: every R-th row of arrays;
        of a Dataset, what tf.data assigns to it."""
        batch = batches.batch(step)
        if self.strategy is None or batches.sharded:
            return batch
        number = self.strategy.num_replicas_in_sync

        def part(context: Any) -> tuple[tf.Tensor, ...]:
            first = context.replica_id_in_sync_group
            return tuple(tensor[first::number] for tensor in batch)

        values: tuple[Any, ...] = self.strategy.experimental_distribute_values_from_function(part)
        return values

    def run(self, function: Callable[..., Any], batch: Sequence[Any]) -> Any:
        """Call a function with the rows of each replica; it must return the same on all."""
        if self.strategy is None:
            return function(*batch)
        results = self.strategy.run(function, args=tuple(batch))
        return tf.nest.map_structure(
            lambda value: self.strategy.experimental_local_results(value)[0], results
        )

    def loss_and_gradients(
        self, loss: Loss, variables: Sequence[tf.Variable], rows: Sequence[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor | None]]:
        """
        In a replica: the loss of the whole batch and its gradients, from this replica's rows.

        :param loss: of the tensors of a batch.
        :return: a gradient of None where the loss does not depend on a variable.
        """
        rows, count = self._filled(rows)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            value = loss(*rows)
        gradients = tape.gradient(value, variables)
        if self.strategy is None:
            return value, gradients
        present = [tf.convert_to_tensor(g) for g in gradients if g is not None]
        value, *present = self._weighted_mean([value, *present], count)
        averaged = iter(present)
        return value, [None if g is None else next(averaged) for g in gradients]

    def loss(self, loss: Loss, rows: Sequence[tf.Tensor]) -> tf.Tensor:
        """In a replica: the loss of the whole batch."""
        rows, count = self._filled(rows)
        if self.strategy is None:
            return loss(*rows)
        return self._weighted_mean([loss(*rows)], count)[0]

    def _filled(self, rows: Sequence[tf.Tensor]) -> tuple[Sequence[tf.Tensor], tf.Tensor]:
        """The rows and their number; a replica without rows gets one row of zeros, whose weight is
        zero."""
        if self.strategy is None:
            return rows, tf.ones([])
        count = tf.shape(rows[0])[0]
        missing = tf.cast(tf.equal(count, 0), tf.int32)
        filled = [tf.pad(r, [[0, missing], *[[0, 0]] * (r.shape.rank - 1)]) for r in rows]
        return filled, count

    @staticmethod
    def _weighted_mean(tensors: Sequence[tf.Tensor], count: tf.Tensor) -> list[tf.Tensor]:
        """The means over the replicas, each weighted with ``count``, in one message."""
        dtype = tensors[0].dtype
        weight = tf.cast(count, dtype)
        # The loss of the row of zeros, whose weight is zero, may be NaN.
        flat = [
            tf.math.multiply_no_nan(tf.reshape(tf.cast(tensor, dtype), [-1]), weight)
            for tensor in tensors
        ]
        context = tf.distribute.get_replica_context()
        sums = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.concat([weight[None], *flat], 0))
        parts = tf.split(sums[1:] / sums[0], [tf.size(one) for one in flat])
        return [
            tf.cast(tf.reshape(part, tf.shape(tensor)), tensor.dtype)
            for part, tensor in zip(parts, tensors, strict=True)
        ]
