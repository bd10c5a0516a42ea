"""The data of each step: all rows at once, minibatches of arrays, or batches of a Dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from .._tracing import map_dataset
from ..models.targets import check_targets, targets_type

Batch = tuple[tf.Tensor, ...]
Description = dict[str, Any]


class Batches(ABC):
    """
    The batches of the steps 0, 1, 2, ...

    :cvar exact: whether every batch holds all of the data.
    :cvar sharded: whether a batch is already divided among the replicas of a strategy.
    """

    exact: bool
    sharded = False
    first: tuple[AnyNDArray, AnyNDArray] | None = None
    """The first batch, if it was passed to the function of :meth:`tell_first`."""
    _told: Callable[[AnyNDArray, AnyNDArray], None] | None = None

    @abstractmethod
    def batch(self, step: int) -> Batch:
        """The batch of ``step``: (X ``[B, D]``, Y ``[B, P]``), or () when the model holds it."""

    @abstractmethod
    def signature(self) -> Sequence[tf.TensorSpec]:
        """The shapes and types of every batch, with any number of rows."""

    def columns(self) -> tuple[int | None, int | None]:
        """The numbers of columns of X and Y; None where they are not known."""
        found = [spec.shape[1] if spec.shape.rank == 2 else None for spec in self.signature()]
        num_inputs, num_outputs = found or (None, None)
        return num_inputs, num_outputs

    def tell_first(self, told: Callable[[AnyNDArray, AnyNDArray], None]) -> None:
        """Call a function with X and Y of the first batch that a step takes, if the data come only
        in batches. No batch is read just for this."""
        self._told = told

    @abstractmethod
    def describe(self) -> Description:
        """What must be the same for a resumed fit to see the same batches."""

    def arrays(self) -> tuple[Any, Any] | None:
        """X and Y, if all rows are available; otherwise None."""
        return None


class InternalData(Batches):
    """No batches: the model holds its data."""

    exact = True

    def __init__(self, data: Any) -> None:
        self._data = data

    def batch(self, step: int) -> Batch:
        """An empty tuple: the model holds its data."""
        return ()

    def signature(self) -> Sequence[tf.TensorSpec]:
        """No arguments."""
        return ()

    def arrays(self) -> tuple[Any, Any] | None:
        """The model's data, if they are a pair; otherwise None."""
        pair = isinstance(self._data, (tuple, list)) and len(self._data) == 2
        return tuple(self._data) if pair else None

    def columns(self) -> tuple[int | None, int | None]:
        """The numbers of columns, if the model's data are a pair."""
        shapes = [np.shape(part) for part in self.arrays() or ((), ())]
        of_x, of_y = (shape[1] if len(shape) == 2 else None for shape in shapes)
        return of_x, of_y

    def describe(self) -> Description:
        """A constant: the model's data cannot change between runs."""
        return {"source": "held by the model"}


class FullArrays(Batches):
    """Batches that are all of X ``[N, D]`` and Y ``[N, P]`` at every step."""

    exact = True

    def __init__(self, X: AnyNDArray, Y: AnyNDArray) -> None:
        self._arrays = (X, Y)
        self._batch = (tf.convert_to_tensor(X), tf.convert_to_tensor(Y))

    def batch(self, step: int) -> Batch:
        """All rows."""
        return self._batch

    def arrays(self) -> tuple[Any, Any] | None:
        """X and Y as they were given."""
        return self._arrays

    def signature(self) -> Sequence[tf.TensorSpec]:
        """X and Y of any number of rows."""
        return tuple(_any_rows(array, array.dtype) for array in self._arrays)

    def describe(self) -> Description:
        """The shapes and types of the arrays."""
        return _describe_arrays(self._arrays)


class MinibatchedArrays(Batches):
    """
    Batches of ``batch_size`` rows, drawn without replacement within an epoch. The last
    ``N % batch_size`` rows of an epoch's order are left out, so that all batches weigh the same.

    The arrays stay as they are, in a file if they are mapped to one; batches are converted.

    The order depends on the seed and the step only, so that a resumed fit needs no state for it.
    """

    exact = False

    def __init__(
        self, X: AnyNDArray, Y: AnyNDArray, batch_size: int, seed: int, likelihood: Any = None
    ) -> None:
        self._arrays = (X, Y)
        self._types = model_types(likelihood, Y.dtype)
        self._batch_size = batch_size
        self._seed = seed
        self._batches_per_epoch = len(X) // batch_size
        self._epoch = -1
        self._order: AnyNDArray = np.arange(0)

    def batch(self, step: int) -> Batch:
        """The rows at the step's position in the order of its epoch."""
        epoch, position = divmod(step, self._batches_per_epoch)
        if epoch != self._epoch:
            self._order = np.random.default_rng((self._seed, epoch)).permutation(
                len(self._arrays[0])
            )
            self._epoch = epoch
        rows = self._order[position * self._batch_size : (position + 1) * self._batch_size]
        return tuple(
            tf.convert_to_tensor(array[rows].astype(dtype, copy=False))
            for array, dtype in zip(self._arrays, self._types, strict=True)
        )

    def arrays(self) -> tuple[Any, Any] | None:
        """X and Y as they were given."""
        return self._arrays

    def signature(self) -> Sequence[tf.TensorSpec]:
        """X and Y of any number of rows."""
        return tuple(
            _any_rows(array, dtype) for array, dtype in zip(self._arrays, self._types, strict=True)
        )

    def describe(self) -> Description:
        """The arrays, the batch size and the seed."""
        order = {"batch_size": self._batch_size, "seed": self._seed}
        return _describe_arrays(self._arrays) | order


class DatasetBatches(Batches):
    """
    The batches of a ``tf.data.Dataset`` in its own order; when they end, they start again. A
    resumed fit skips the batches before its step.

    Under a strategy, tf.data splits each batch among the replicas, or the files among the workers,
    as the Dataset's ``auto_shard_policy`` says.
    """

    exact = False
    sharded = True

    def __init__(
        self, dataset: tf.data.Dataset, strategy: tf.distribute.Strategy | None, likelihood: Any
    ) -> None:
        self._dataset, self._likelihood = _converted(dataset, likelihood), likelihood
        self._strategy = strategy
        self._iterator: Any = None
        self._next = 0

    def batch(self, step: int) -> Batch:
        """The batch of this step, or the part of it for each replica of this process."""
        if self._iterator is None or step != self._next:
            rest = self._dataset.skip(step)
            if self._strategy is not None:
                rest = self._strategy.experimental_distribute_dataset(rest)
            self._iterator = iter(rest)
        self._next = step + 1
        batch = _next_of(self._iterator)
        if isinstance(self._likelihood, Likelihood):
            check_targets(self._likelihood, self._as_array(batch[1]))
        if self._told is not None:
            told, self._told = self._told, None
            X, Y = (self._as_array(part) for part in batch)
            self.first = X, Y
            told(X, Y)
        return batch

    def _as_array(self, part: Any) -> AnyNDArray:
        """The rows of this process's replicas."""
        if self._strategy is None:
            return np.asarray(part)
        parts = self._strategy.experimental_local_results(part)
        return np.concatenate([np.asarray(rows) for rows in parts])

    def signature(self) -> Sequence[tf.TensorSpec]:
        """The shapes and types of the Dataset's elements, with any number of rows."""
        return tuple(
            tf.TensorSpec(None if spec.shape.rank is None else [None, *spec.shape[1:]], spec.dtype)
            for spec in self._dataset.element_spec
        )

    def describe(self) -> Description:
        """The types of the elements; their contents would be known only after reading them."""
        return {"source": "Dataset", "elements": str(self._dataset.element_spec)}


def _next_of(iterator: Any) -> Batch:
    try:
        X, Y = next(iterator)
    except StopIteration:
        raise ValueError("data: the Dataset is empty; pass one with some batches.") from None
    return X, Y


def _converted(dataset: tf.data.Dataset, likelihood: Any) -> tf.data.Dataset:
    """In the types of the model, again and again."""
    of_x, of_y = model_types(likelihood, dataset.element_spec[1].dtype)

    def convert(X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.cast(X, of_x), tf.cast(Y, of_y)

    return map_dataset(dataset, convert).repeat()


def model_types(likelihood: Any, of_targets: Any) -> tuple[Any, Any]:
    """What X and Y are converted to: see :func:`targets_type`.

    :param of_targets: The type of Y.
    """
    return gpflow.default_float(), targets_type(likelihood, of_targets).as_numpy_dtype


def _any_rows(array: AnyNDArray, dtype: Any) -> tf.TensorSpec:
    return tf.TensorSpec([None, *array.shape[1:]], dtype)


def _describe_arrays(arrays: Sequence[AnyNDArray]) -> Description:
    return {
        "source": "arrays",
        "shapes": [list(array.shape) for array in arrays],
        "dtypes": [str(array.dtype) for array in arrays],
    }
