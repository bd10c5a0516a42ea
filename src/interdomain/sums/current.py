"""The sums over the rows of a model for its features, computed again when the features change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from .._arguments import Array
from .._tracing import numpy_function
from .features import Features
from .passes import require_weights, statistics_of
from .row_batches import RowsInBatches
from .statistics import SufficientStatistics, differing_parameter

MOST_NUMBERS = 2**27
"""The largest number of feature values that a gradient stores: 1 GiB in float64."""


class CurrentSums:
    """The sums over the rows of a model, as arrays and as tensors with gradients.

    :param rows: The rows; None if they are not available.
    :param statistics: The statistics of the rows; None if they are not computed yet.
    """

    def __init__(self, rows: RowsInBatches | None, statistics: SufficientStatistics | None) -> None:
        self._rows, self._statistics = rows, statistics
        self._features: Features | None = None  # the features of the statistics
        self._row_data: tuple[Any, ...] | None = None  # features, and rows that were read for them

    def replace(self, rows: RowsInBatches | None, statistics: SufficientStatistics | None) -> None:
        """Use other rows. Functions compiled with the previous rows then raise an error."""
        self._rows, self._statistics = rows, statistics
        self._features = self._row_data = None

    def __getstate__(self) -> dict[str, Any]:
        """The state without graphs: a copy of the model makes its own graphs."""
        return {**self.__dict__, "_features": None, "_row_data": None}

    def statistics(self, features: Features) -> SufficientStatistics:
        """The statistics of all rows for the current values of the features' parameters.

        :raises ValueError: If the statistics belong to other features and there are no rows.
        """
        if self._statistics is not None:
            with tf.init_scope():  # values, also while the caller is traced
                known, values = self._statistics, features.values()
                if features is self._features:
                    difference = differing_parameter(known.parameters, values)
                else:
                    difference = known.difference(features.description(), values)
            if difference is None:
                self._features = features
                return known
            if self._rows is None:
                raise ValueError(
                    "data: the model was built from SufficientStatistics, which belong to other "
                    f"features than its own: {difference}. Give the features' parameters the "
                    "values the statistics were computed with, or build the model from the rows."
                )
        assert self._rows is not None
        self._statistics, self._features = statistics_of(self._rows, features), features
        return self._statistics

    def tensors(self, features: Features, *, known: bool = False) -> dict[str, tf.Tensor]:
        """The sums of :meth:`.Sums.in_graph` over all rows, with their "reference", ``[P]``, and
        "num_rows", ``[]``. They have gradients with respect to the features' trainable parameters.

        A compiled function compares the values of the features' parameters at every call.

        :param known: Whether to use the sums of the statistics, which have no gradients.
        :raises ValueError: If a trainable parameter needs a gradient and the rows are not in
            memory.
        """
        trainable = features.trainable()
        if trainable and self._rows is None:
            raise ValueError(
                f"data: the features depend on {', '.join(trainable)}, trainable, and the model "
                "was built from SufficientStatistics; freeze these with "
                "gpflow.set_trainable(parameter, False), or build the model from the rows."
            )
        rows = self._rows_in_memory(features) if trainable and not known else None
        if rows is not None:
            return self._with_gradients(features, *rows)
        # Also while a graph is traced: the pass runs now, with a bar and clear errors.
        arrays = _with_others(self.statistics(features), features)
        if tf.executing_eagerly():
            sums = {name: tf.constant(array) for name, array in arrays.items()}
        else:
            sums = self._looked_up(features, arrays)
        return _without_gradients(sums, trainable, known) if trainable else sums

    def _rows_in_memory(self, features: Features) -> tuple[Array, ...] | None:
        """The reference and all valid rows; None if the rows, or their features, do not fit into
        memory."""
        assert self._rows is not None
        if (self._rows.num_rows or 0) * features.numbers_per_row > MOST_NUMBERS:
            return None
        if self._row_data is None or self._row_data[0] is not features:
            with tf.init_scope():
                rows = self._rows.in_memory()
                if rows is None:
                    return None
                features.check(rows[0], "rows of X")
                self._row_data = features, features.reference(*rows[:2]), *rows
        return self._row_data[1:]

    def _looked_up(self, features: Features, known: Mapping[str, Array]) -> dict[str, tf.Tensor]:
        """The sums of the statistics that are current when the graph runs."""
        names = list(features.parameters)

        def look_up(*values: Array) -> list[Array]:
            difference: str | None = "other rows or parameters than when this was compiled"
            if self._statistics is not None and self._features is features:
                now = dict(zip(names, values, strict=True))
                difference = differing_parameter(self._statistics.parameters, now)
            if difference is not None:
                raise RuntimeError(
                    f"the sums over the rows belong to other features: {difference}. Evaluate "
                    "model.statistics, which takes the sums again, or compile it again."
                )
            arrays = self._statistics and _with_others(self._statistics, features)
            return list(arrays.values()) if arrays else []

        values = [tf.convert_to_tensor(p) for p in features.parameters.values()]
        sums = numpy_function(look_up, values, [tf.float64] * len(known))
        return {
            name: tf.ensure_shape(tensor, array.shape)
            for (name, array), tensor in zip(known.items(), sums, strict=True)
        }

    def _with_gradients(
        self, features: Features, reference: Array, X: Array, Y: Array, *places: Array
    ) -> dict[str, tf.Tensor]:
        """The sums over rows and their gradient in one graph without loops, which stores the
        features for the gradient. The sums are not finite if a feature is not finite."""
        dtype, these = gpflow.default_float(), self._rows
        assert these is not None

        def rows() -> tuple[Array, ...]:
            if self._rows is not these:
                raise RuntimeError("the rows are others than before; compile it again.")
            rest = features.less(X, Y, reference)
            return X.astype(dtype, copy=False), rest.astype(dtype, copy=False), *places

        # The rows are not constants: graphs would hold copies of them.
        types = [dtype, dtype, *(part.dtype for part in places)]
        tensors = zip(numpy_function(rows, [], types), (X, Y, *places), strict=True)
        sums = features.tensors(
            *(tf.ensure_shape(tensor, array.shape) for tensor, array in tensors)
        )
        require_weights(features, (X, Y, *places), sums)
        others = _others(these.count(), reference)
        return sums | {name: tf.constant(array) for name, array in others.items()}


def _with_others(statistics: SufficientStatistics, features: Features) -> dict[str, Array]:
    """The sums of the statistics, their reference, ``[P]``, and the number of rows, ``[]``."""
    reference = np.broadcast_to(statistics.reference, [features.num_outputs])
    return {**statistics.sums, **_others(statistics.num_rows, reference)}


def _others(num_rows: int, reference: Array) -> dict[str, Array]:
    """The reference and the number of rows by name, which the bound needs in addition to sums."""
    return {"reference": reference, "num_rows": np.array(num_rows, np.float64)}


def _without_gradients(
    sums: Mapping[str, tf.Tensor], trainable: Mapping[str, Any], known: bool
) -> dict[str, tf.Tensor]:
    """The sums, with a gradient for the features' parameters that raises an error; or that is NaN,
    if ``known``, so that gradients with respect to all other parameters exist."""

    def refuse(*upstream: tf.Tensor) -> list[tf.Tensor]:
        if known:
            return [v * np.nan for v in variables]
        raise ValueError(
            f"data: the features depend on {', '.join(trainable)}, trainable, and their gradients "
            f"need all rows in memory: arrays, with at most {MOST_NUMBERS:,} numbers of features. "
            "Call interdomain.fit, which trains these on a subset; or freeze them "
            "with gpflow.set_trainable(parameter, False); or give all rows to gpflow.models.SVGP, "
            "in minibatches."
        )

    @tf.custom_gradient
    def attached(*_: tf.Tensor) -> Any:
        return [tf.identity(tensor) for tensor in sums.values()], refuse

    variables = [tf.convert_to_tensor(p) for p in trainable.values()]
    return dict(zip(sums, attached(*variables), strict=True))
