"""The replicas of a ``tf.distribute`` strategy, each with its part of every batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import tensorflow as tf
from gpflow.keras import tf_keras

from .batches import Batch
from .checkpoints import CheckpointStore
from .results import WorkerLostError

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

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that writes checkpoints and shows progress."""
        if self.strategy is None:
            return True
        return bool(self.strategy.extended.should_checkpoint)

    def scope(self) -> AbstractContextManager[Any]:
        """Where variables are made for all replicas."""
        if self.strategy is None:
            return nullcontext()
        scope: AbstractContextManager[Any] = self.strategy.scope()
        return scope

    def check_optimizer(self, optimizer: Any) -> None:
        """:raises ValueError: If it was not made in the scope of the strategy, or is of Keras 3."""
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
        """:raises ValueError: If the model was not built in the scope of the strategy."""
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

    def start(self, store: CheckpointStore, resume: bool) -> int:
        """The step to go on from: the chief's, which the others read after it has started."""
        if self.is_chief:
            first_step = store.start(resume)
            self.wait()
            return first_step
        self.wait()
        return store.start(resume=True)

    def wait(self) -> None:
        """For the replicas of all processes."""
        if self.strategy is None:
            return

        def meet() -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([]))

        strategy = self.strategy
        tf.function(lambda: strategy.run(meet), autograph=False)()

    @contextmanager
    def losses_named(self, step: int, store: CheckpointStore) -> Iterator[None]:
        """:raises WorkerLostError: In place of what TensorFlow raises when a worker is lost."""
        try:
            yield
        except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError) as e:
            if self.strategy is None:
                raise
            reason = next(
                (line for line in str(e).splitlines() if "task" in line), type(e).__name__
            )
            raise WorkerLostError(step, store.latest, reason.strip()) from e

    def distribute(self, batch: Batch) -> tuple[Any, ...]:
        """The rows of a whole batch for each replica of this process: every R-th."""
        if self.strategy is None:
            return batch
        number = self.strategy.num_replicas_in_sync

        def part(context: Any) -> tuple[tf.Tensor, ...]:
            first = context.replica_id_in_sync_group
            return tuple(tensor[first::number] for tensor in batch)

        values: tuple[Any, ...] = self.strategy.experimental_distribute_values_from_function(part)
        return values

    def run(self, function: Callable[..., Any], batch: Sequence[Any]) -> Any:
        """Call a function with each replica's rows; what it returns is the same on all."""
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
        rows, weight = self._weighted(rows)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            value = loss(*rows) * weight if weight is not None else loss(*rows)
        gradients = tape.gradient(value, variables)
        if weight is None:
            return value, gradients
        context = tf.distribute.get_replica_context()
        present = [tf.convert_to_tensor(g) for g in gradients if g is not None]
        value, *present = context.all_reduce(tf.distribute.ReduceOp.SUM, [value, *present])
        summed = iter(present)
        return value, [None if g is None else next(summed) for g in gradients]

    def loss(self, loss: Loss, rows: Sequence[tf.Tensor]) -> tf.Tensor:
        """In a replica: the loss of the whole batch."""
        rows, weight = self._weighted(rows)
        if weight is None:
            return loss(*rows)
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, loss(*rows) * weight)

    def _weighted(self, rows: Sequence[tf.Tensor]) -> tuple[Sequence[tf.Tensor], tf.Tensor | None]:
        if self.strategy is None:
            return rows, None
        count = tf.shape(rows[0])[0]
        dtype = rows[0].dtype
        context = tf.distribute.get_replica_context()
        total = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.cast(count, dtype))
        # A replica without rows computes on one of zeros, which does not count.
        missing = tf.cast(tf.equal(count, 0), tf.int32)
        filled = [tf.pad(r, [[0, missing], *[[0, 0]] * (r.shape.rank - 1)]) for r in rows]
        return filled, tf.cast(count, dtype) / total
