"""The worker processes of a ``tf.distribute`` strategy, and how they exchange arrays."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf

from .._tracing import compiled
from ..sphere._typing import Array

_Integers = np.ndarray[Any, np.dtype[np.int64]]
_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)
_WORD = 8  # bytes of the numbers that travel


class WorkerLostError(RuntimeError):
    """The error when another process of the strategy has ended, or cannot be reached.

    :ivar checkpoint: the checkpoint from which to continue; None if nothing was saved.
    """

    def __init__(self, what: str, reason: str, checkpoint: str | None, remedy: str) -> None:
        super().__init__(f"{what} lost another worker ({reason}). {remedy}")
        self._arguments = (what, reason, checkpoint, remedy)
        self.checkpoint = checkpoint

    def __reduce__(self) -> tuple[type[WorkerLostError], tuple[str, str, str | None, str]]:
        return type(self), self._arguments


class Workers:
    """The processes that run one script together, under a strategy.

    All processes of a ``MultiWorkerMirroredStrategy`` must make the same calls in the same order.

    :param strategy: The strategy; None for this process alone.
    :raises ValueError: If it is not a strategy, or its workers do not all run the same steps.
    :ivar index: Which of the workers this process is; 0 is the chief.
    :ivar number: How many there are.
    """

    def __init__(self, strategy: tf.distribute.Strategy | None) -> None:
        known = strategy is None or hasattr(strategy, "extended")
        if not known or isinstance(strategy, tf.distribute.ParameterServerStrategy):
            raise ValueError(
                f"strategy: found {strategy!r}; pass a synchronous tf.distribute.Strategy, such as "
                "MirroredStrategy or MultiWorkerMirroredStrategy, or None."
            )
        self.strategy = strategy
        self.index, self.number, self._first_replica = 0, 1, 0
        if strategy is not None:
            ids = _local_replicas(strategy)
            self._first_replica = min(ids)
            self.index = self._first_replica // len(ids)
            self.number = strategy.num_replicas_in_sync // len(ids)

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that writes checkpoints and shows progress."""
        return self.strategy is None or bool(self.strategy.extended.should_checkpoint)

    def share(self, compute: Callable[[], Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
        """Yield on every worker what ``compute`` returned on each worker, in the order of workers.

        The arrays are sent unchanged, to the last bit. Every worker must iterate to the end.

        :raises RuntimeError: If ``compute`` failed on another worker. On the worker where it
            failed, its own error is raised.
        """
        if self.number == 1:
            yield dict(compute())
            return
        failure: Exception | None = None
        try:
            own = _packed(compute())
        except Exception as error:
            failure, own = error, f"{type(error).__name__}: {error}".encode()
        table = np.zeros((2, self.number), np.int64)
        table[:, self.index] = len(own), failure is not None
        lengths, failures = self._sum(table.ravel()).reshape(table.shape)
        failed = np.flatnonzero(failures)
        for index, length in enumerate(lengths):
            if len(failed) and index != failed[0]:
                continue  # only the first error is told
            data = self._from_worker(index, own, int(length))
            if len(failed):
                _raise_failure(failure, index, data.decode())
            yield _unpacked(data)

    def _from_worker(self, index: int, own: bytes, length: int) -> bytes:
        words = np.zeros(-(-length // _WORD), np.int64)
        if index == self.index:
            words.view(np.uint8)[:length] = np.frombuffer(own, np.uint8)
        return self._sum(words).tobytes()[:length]

    def _sum(self, words: _Integers) -> _Integers:
        """The sum over the workers of as many integers."""
        return np.asarray(self._sum_function(tf.constant(words)), np.int64)

    @functools.cached_property
    def _sum_function(self) -> Callable[[tf.Tensor], tf.Tensor]:
        assert self.strategy is not None
        strategy, first = self.strategy, self._first_replica

        def total(words: tf.Tensor) -> tf.Tensor:
            def of_replica() -> tf.Tensor:
                context = tf.distribute.get_replica_context()
                # One replica of each worker brings its numbers, the others zeros.
                counts = tf.cast(tf.equal(context.replica_id_in_sync_group, first), tf.int64)
                return context.all_reduce(tf.distribute.ReduceOp.SUM, counts * words)

            return strategy.experimental_local_results(strategy.run(of_replica))[0]

        function: Callable[[tf.Tensor], tf.Tensor]
        function = compiled(total, input_signature=[tf.TensorSpec([None], tf.int64)])
        return function

    @contextmanager
    def losses_named(
        self, what: str, checkpoint: Callable[[], str | None] = lambda: None, remedy: str = ""
    ) -> Iterator[None]:
        """:raises WorkerLostError: In place of what TensorFlow raises when a worker is lost.

        :param what: The subject of the message.
        :param checkpoint: A function that returns the checkpoint from which to continue, or None.
            It is called when a worker is lost.
        :param remedy: What to do if there is a checkpoint; "{}" stands for its path.
        """
        try:
            yield
        except _LOST as error:
            if self.strategy is None:
                raise
            kept = checkpoint()
            nothing = "Start all workers again; nothing was kept to go on from."
            reason = next(
                (line for line in str(error).splitlines() if "task" in line), type(error).__name__
            )
            raise WorkerLostError(
                what, reason.strip(), kept, nothing if kept is None else remedy.format(kept)
            ) from error

    def __deepcopy__(self, memo: dict[int, Any]) -> Workers:
        """There is one set of processes, however many copies a model has."""
        return self

    def __reduce__(self) -> Any:
        if self.strategy is None:
            return type(self), (None,)
        raise TypeError(
            "a model whose data are spread over the workers of a strategy cannot be pickled; save "
            "model.statistics and the parameters."
        )


def _local_replicas(strategy: tf.distribute.Strategy) -> list[int]:
    """The numbers of this process's replicas among all."""
    ids: list[int] = []

    def note(context: Any) -> tf.Tensor:
        ids.append(int(context.replica_id_in_sync_group))
        return tf.zeros([])

    strategy.experimental_distribute_values_from_function(note)
    return ids


def _raise_failure(own: Exception | None, index: int, message: str) -> NoReturn:
    if own is not None:
        raise own
    raise RuntimeError(f"worker {index} failed: {message}")


def _packed(arrays: Mapping[str, Array]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _unpacked(data: bytes) -> dict[str, Array]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return dict(archive)
