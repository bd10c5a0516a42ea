"""The statistics of a model's rows, computed again whenever the model's features change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf

from ..sphere._typing import Array
from .contributions import Contributions
from .gram_sums import GramContent
from .identity import differing_parameter, mismatch
from .in_memory import MOST_NUMBERS, sums_in_memory
from .rows_provider import RowsProvider, Warn
from .statistics import SufficientStatistics

Tensors: TypeAlias = tuple[tf.Tensor, tf.Tensor, tf.Tensor]

_OUT_OF_MEMORY = (
    "data: the features depend on {}, trainable, and their gradients need all rows in memory: "
    "arrays, with at most {:,} numbers of features. Call interdomain.training.fit_sgpr, which "
    "trains these on a subset; or freeze them with gpflow.set_trainable(parameter, False); or give "
    "all rows to gpflow.models.SVGP, in minibatches."
)


class StatisticsProvider(RowsProvider):
    """The rows of a model, and their sums for the features that the model has now.

    :param data: Rows; or statistics, if the rows are not available.

    The other parameters are those of :class:`RowsProvider`.
    """

    def __init__(self, data: Any, settings: Mapping[str, Any], warn: Warn | None = None) -> None:
        known = data if isinstance(data, SufficientStatistics) else None
        columns = (
            None if known is None else (int(known.identity.probes.shape[1]), known.num_outputs)
        )
        super().__init__(data, settings, columns=columns, warn=warn)
        self._known, self._verified = known, False
        self._tensors: Tensors | None = None
        self._in_memory: list[tuple[Array, Array, int]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Rows and sums, without graphs and tensors: a copy of the model makes its own."""
        return {**super().__getstate__(), "_tensors": None}

    @property
    def num_outputs(self) -> int:
        """The columns of Y."""
        return self.columns[1]

    @property
    def has_statistics(self) -> bool:
        """Whether the statistics have been taken, or were given."""
        return self._known is not None

    def _features_changed(self) -> None:
        super()._features_changed()
        self._verified, self._in_memory = False, None

    def _made(self, *arguments: Any) -> Contributions:
        try:
            return super()._made(*arguments)
        except ValueError as error:
            if self.rows_at_hand:
                raise
            raise ValueError(
                "data: the model is not for the statistics, which have {} columns of X "
                "('probes') and {} of Y ('num_outputs'): {}".format(*self.columns, error)
            ) from error

    def statistics(self, contributions: Contributions) -> SufficientStatistics:
        """The statistics of all rows for the present values of the features' parameters.

        :raises ValueError: If the statistics belong to other features and there are no rows.
        """
        # Eagerly, also while the caller is traced, and with its gradient tapes paused: they would
        # keep every batch.
        with tf.init_scope():
            known = self._known
            if known is not None:
                if self._verified:
                    difference = self._difference(contributions.values())
                else:
                    difference = mismatch(known.identity, contributions)
                    self._verified = difference is None
                if difference is None:
                    return known
                if not self.rows_at_hand:
                    raise ValueError(
                        "data: the model was built from SufficientStatistics, which belong to "
                        f"other features than its own: {difference}. Give the features' parameters "
                        "the values the statistics were computed with, or build the model from the "
                        "rows."
                    )
            return self._keep(self.pass_over(GramContent(contributions)))

    def _keep(self, statistics: SufficientStatistics) -> SufficientStatistics:
        self._known, self._verified, self._tensors = statistics, True, None
        return statistics

    def _difference(self, values: Mapping[str, Array]) -> str | None:
        assert self._known is not None
        known = self._known.identity.parameters
        return differing_parameter(known, values, gpflow.default_float())

    def accumulate(self, contributions: Contributions, data: Any) -> SufficientStatistics:
        """The statistics of other rows, for the same features."""
        statistics: SufficientStatistics
        statistics = self.pass_over_others(GramContent(contributions), self.others(data))
        return statistics

    def change(self, contributions: Contributions, data: Any, sign: int) -> None:
        """Add rows (sign 1) or take rows away (sign -1), reading only these rows."""
        rows = self.others(data)
        statistics = self.statistics(contributions)
        other = self.pass_over_others(GramContent(contributions), rows)
        try:
            changed = statistics + other if sign > 0 else statistics - other
        except ValueError as error:
            raise ValueError(f"data: {str(error).removeprefix('other: ')}") from error
        self._keep(changed)
        self.join(rows, sign)
        self._in_memory = None

    def sums(self, contributions: Contributions) -> Tensors:
        """The matrix ``[K, K]``, the diagonal's terms ``[T]`` and the number of rows, in float64,
        with gradients to the features' parameters that are trainable.

        In a compiled function the values of the features' parameters are compared at every call.

        :raises ValueError: If a trainable parameter needs a gradient and the rows are not in
            memory.
        """
        trainable = contributions.trainable()
        if trainable and not self.rows_at_hand:
            raise ValueError(
                f"data: the features depend on {', '.join(trainable)}, trainable, and the model "
                "was built from SufficientStatistics; freeze these with "
                "gpflow.set_trainable(parameter, False), or build the model from the rows."
            )
        if trainable and self._are_in_memory(contributions):
            assert self._in_memory is not None
            return sums_in_memory(self._in_memory, contributions, self._guard(contributions))
        # Also while a graph is made: in the caller's hands, with a bar and with clear errors.
        self.statistics(contributions)
        sums = self._constants() if tf.executing_eagerly() else self._looked_up(contributions)
        return self._without_gradients(sums, contributions) if trainable else sums

    def _are_in_memory(self, contributions: Contributions) -> bool:
        """Whether the features of all rows can be kept; the rows are read if they can."""
        sizes = [rows.num_rows for rows, _ in self._rows]
        if sum(size or 0 for size in sizes) * contributions.num_stacked > MOST_NUMBERS:
            return False
        if self._in_memory is None:
            with tf.init_scope():
                parts = [(rows.in_memory(contributions.boxes), sign) for rows, sign in self._rows]
                found = [(*part, sign) for part, sign in parts if part is not None]
                if len(found) < len(parts):
                    return False
                self.warn_of(contributions, *found[0][:2])
            self._in_memory = found
        return True

    def _guard(self, contributions: Contributions) -> Callable[[], None]:
        """A function that raises once the model has other features than now, or other rows."""
        version = self._version

        def guard() -> None:
            if self._contributions is not contributions or version != self._version:
                raise RuntimeError(
                    "the rows or the parameters of the model are others than when this function "
                    "was compiled; compile it again (call fit or training_loss_closure again)."
                )

        return guard

    def _constants(self) -> Tensors:
        """The sums of the statistics."""
        if self._tensors is None:
            assert self._known is not None
            gram, diagonal = self._known.gram.value, self._known.diagonal.value
            num_rows = tf.constant(float(self._known.num_rows), tf.float64)
            self._tensors = tf.constant(gram), tf.constant(diagonal), num_rows
        return self._tensors

    def _looked_up(self, contributions: Contributions) -> Tensors:
        """The sums of the statistics that there are when the graph is run."""
        names, guard = list(contributions.parameters), self._guard(contributions)

        def look_up(*values: Array) -> tuple[Array, ...]:
            guard()
            difference = self._difference(dict(zip(names, values, strict=True)))
            if difference is not None:
                raise RuntimeError(
                    f"the sums over the rows belong to other features: {difference}. Evaluate "
                    "model.statistics, which takes the sums again, and then call this function."
                )
            return tuple(np.asarray(tensor) for tensor in self._constants())

        values = [tf.convert_to_tensor(p) for p in contributions.parameters.values()]
        gram, diagonal, num_rows = tf.numpy_function(look_up, values, [tf.float64] * 3)
        return (
            tf.ensure_shape(gram, [contributions.num_stacked] * 2),
            tf.ensure_shape(diagonal, [contributions.num_terms]),
            tf.ensure_shape(num_rows, []),
        )

    def _without_gradients(self, sums: Tensors, contributions: Contributions) -> Tensors:
        """The sums, whose gradient is an error."""
        names = ", ".join(contributions.trainable())

        def refuse(*upstream: tf.Tensor) -> None:
            raise ValueError(_OUT_OF_MEMORY.format(names, MOST_NUMBERS))

        @tf.custom_gradient
        def attached(*_: tf.Tensor) -> Any:
            return (tf.identity(sums[0]), tf.identity(sums[1])), refuse

        variables = [tf.convert_to_tensor(p) for p in contributions.trainable().values()]
        gram, diagonal = attached(*variables)
        return gram, diagonal, sums[2]
