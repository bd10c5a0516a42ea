"""The data of each step: all rows at once, minibatches of arrays, or batches of a Dataset."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from .._arguments import check_squares
from .._targets import check_targets, targets_type
from .._tracing import unconverted
from ..core.descriptions import checksum_of_rows
from .scales import warn_of_data

Batch = tuple[tf.Tensor, ...]


class Batches:
    """The batch of each step 0, 1, 2, ...: all rows of (X ``[N, D]``, Y ``[N, P]``) at every step.

    :param arrays: the rows; None if they are not known.
    :param types: the types for X and Y; () if the model holds the rows: a batch is ().
    :cvar exact: whether every batch holds all of the data.
    :ivar specs: the shapes and types of every batch, with any number of rows.
    :ivar described: the settings that must be equal for a resumed fit to get the same batches.
    """

    exact = True

    def __init__(self, arrays: tuple[Any, Any] | None, types: Sequence[Any] = ()) -> None:
        self.arrays, self._types = arrays, tuple(types)
        typed = list(zip(arrays or (), types, strict=False))
        self.specs = tuple(tf.TensorSpec([None, *a.shape[1:]], dtype) for a, dtype in typed)
        shapes = [f"{array.dtype} {list(array.shape)}" for array, _ in typed]
        self.described: dict[str, Any] = {"data": str(shapes)}

    @property
    def columns(self) -> list[int | None]:
        """The numbers of columns of X and Y; None if a number is not known."""
        shapes = [tf.TensorShape(part.shape) for part in self.arrays or self.specs]
        return [shape[1] if shape.rank == 2 else None for shape in shapes] or [None, None]

    def batch(self, step: int) -> Batch:
        """The batch of a step: X and Y, or () if the model holds them."""
        return self._all

    @functools.cached_property
    def _all(self) -> Batch:
        return self._tensors(self.arrays or ())

    def _tensors(self, arrays: Sequence[AnyNDArray]) -> Batch:
        return tuple(
            tf.convert_to_tensor(array.astype(dtype, copy=False))
            for array, dtype in zip(arrays, self._types, strict=False)
        )


class Minibatches(Batches):
    """Batches of ``batch_size`` rows, drawn without replacement within an epoch. The last
    ``N % batch_size`` rows of an epoch's order are left out, so all batches have the same weight.

    The arrays stay as they are, in a file if they are memory-mapped; only batches are converted.
    The order depends on the seed and the step only, so a resumed fit needs no state for it.
    """

    exact = False

    def __init__(
        self, arrays: tuple[Any, Any], types: Sequence[Any], batch_size: int, seed: int
    ) -> None:
        super().__init__(arrays, types)
        self._rows, self._batch_size, self._seed = arrays, batch_size, seed
        self._epoch, self._order = -1, np.arange(0)
        rows = checksum_of_rows(arrays)
        self.described |= {"rows": rows, "batch_size": batch_size, "seed": seed}

    def batch(self, step: int) -> Batch:
        """The rows at the step's position in the order of its epoch."""
        num_rows, size = len(self._rows[0]), self._batch_size
        epoch, position = divmod(step, num_rows // size)
        if epoch != self._epoch:
            self._order = np.random.default_rng((self._seed, epoch)).permutation(num_rows)
            self._epoch = epoch
        rows = self._order[position * size : (position + 1) * size]
        return self._tensors([array[rows] for array in self._rows])


class DatasetBatches(Batches):
    """The batches of a ``tf.data.Dataset`` in its own order; after the last batch they start again.
    A resumed fit skips the batches before its step.

    :ivar arrays: the first batch that a step used; None before.
    """

    exact = False

    def __init__(self, dataset: tf.data.Dataset, model: Any) -> None:
        super().__init__(None)
        likelihood = getattr(model, "likelihood", None)
        types = types_of(likelihood, dataset.element_spec[1].dtype)

        def convert(X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return tf.cast(X, types[0]), tf.cast(Y, types[1])

        self._dataset = dataset.map(unconverted(convert)).repeat()
        self._model, self._likelihood = model, likelihood
        self._iterator: Any = None
        self._next = -1
        self.specs = tuple(
            tf.TensorSpec(None if spec.shape.rank is None else [None, *spec.shape[1:]], spec.dtype)
            for spec in self._dataset.element_spec
        )
        # No checksum of rows: reading a batch for it may change the batches that follow.
        number = dataset.cardinality().numpy()
        self.described = {"data": f"{self._dataset.element_spec}, {number} batches"}

    def batch(self, step: int) -> Batch:
        """The batch of this step."""
        if step != self._next:
            self._iterator = iter(self._dataset.skip(step))
        self._next = step + 1
        try:
            X, Y = next(self._iterator)
        except StopIteration:
            raise ValueError("data: the Dataset is empty; pass one with some batches.") from None
        check_squares("data: X", X.numpy(), gpflow.default_float())
        if isinstance(self._likelihood, Likelihood):
            check_targets(self._likelihood, Y.numpy())
        if self.arrays is None:
            self.arrays = X.numpy(), Y.numpy()
            warn_of_data(self._model, *self.arrays)
        return X, Y


def types_of(likelihood: Any, target_type: Any) -> tuple[Any, Any]:
    """The types that X and Y are converted to; Y's by :func:`targets_type`."""
    return gpflow.default_float(), targets_type(likelihood, target_type).as_numpy_dtype
