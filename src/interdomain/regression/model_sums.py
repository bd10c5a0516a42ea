"""The sums of a model's rows, taken again whenever the model's features change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gpflow
import tensorflow as tf

from ..sphere._typing import Array
from .features import Features
from .provider import RowsProvider, Warn
from .sums import SufficientStatistics, differing_parameter, statistics_of

MOST_NUMBERS = 2**27
"""Of the features that a gradient keeps: 1 GiB in float64."""

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
        columns = None if known is None else known.columns
        super().__init__(data, settings, columns=columns, warn=warn)
        self._known, self._verified = known, False
        self._in_memory: list[tuple[Array, Array, int]] | None = None

    @property
    def has_statistics(self) -> bool:
        """Whether the statistics have been taken, or were given."""
        return self._known is not None

    def _features_changed(self) -> None:
        super()._features_changed()
        self._verified, self._in_memory = False, None

    def _made(self, *arguments: Any) -> Features:
        try:
            return super()._made(*arguments)
        except ValueError as error:
            if self.rows_at_hand:
                raise
            raise ValueError(
                "data: the model is not for the statistics, which have {} columns of X and {} of "
                "Y: {}".format(*self.columns, error)
            ) from error

    def statistics(self, features: Features) -> SufficientStatistics:
        """The statistics of all rows for the present values of the features' parameters.

        :raises ValueError: If the statistics belong to other features and there are no rows.
        """
        known = self._known
        if known is not None:
            with tf.init_scope():  # values, also while the caller is traced
                if self._verified:
                    difference = self._difference(features.values())
                else:
                    difference = known.difference(features)
                    self._verified = difference is None
            if difference is None:
                return known
            if not self.rows_at_hand:
                raise ValueError(
                    "data: the model was built from SufficientStatistics, which belong to other "
                    f"features than its own: {difference}. Give the features' parameters the "
                    "values the statistics were computed with, or build the model from the rows."
                )
        found: SufficientStatistics = self.total(lambda rows: self._taken(features, rows))
        return self._keep(found)

    def _taken(self, features: Features, rows: Any) -> SufficientStatistics:
        return statistics_of(rows, features, lambda X, Y: self.warn_of(features, X, Y))

    def _keep(self, statistics: SufficientStatistics) -> SufficientStatistics:
        self._known, self._verified = statistics, True
        return statistics

    def _difference(self, values: Mapping[str, Array]) -> str | None:
        assert self._known is not None
        return differing_parameter(self._known.parameters, values, gpflow.default_float())

    def accumulate(self, features: Features, data: Any) -> SufficientStatistics:
        """The statistics of other rows, for the same features."""
        return self._taken(features, self.others(data))

    def change(self, features: Features, data: Any, sign: int) -> None:
        """Add rows (sign 1) or take rows away (sign -1), reading only these rows."""
        rows = self.others(data)
        statistics = self.statistics(features)
        other = self._taken(features, rows)
        try:
            changed = statistics + other if sign > 0 else statistics - other
        except ValueError as error:
            raise ValueError(f"data: {str(error).removeprefix('other: ')}") from error
        self._keep(changed)
        self.join(rows, sign)
        self._in_memory = None

    def sums(self, features: Features) -> dict[str, tf.Tensor]:
        """The sums of :meth:`Features.sums` over all rows, with gradients to the features'
        parameters that are trainable.

        In a compiled function the values of the features' parameters are compared at every call.

        :raises ValueError: If a trainable parameter needs a gradient and the rows are not in
            memory.
        """
        trainable = features.trainable()
        if trainable and not self.rows_at_hand:
            raise ValueError(
                f"data: the features depend on {', '.join(trainable)}, trainable, and the model "
                "was built from SufficientStatistics; freeze these with "
                "gpflow.set_trainable(parameter, False), or build the model from the rows."
            )
        if trainable and self._are_in_memory(features):
            return self._of_rows_in_memory(features)
        # Also while a graph is made: in the caller's hands, with a bar and with clear errors.
        known = self.statistics(features).sums
        if tf.executing_eagerly():
            sums = {name: tf.constant(array) for name, array in known.items()}
        else:
            sums = self._looked_up(features, known)
        return self._without_gradients(sums, features) if trainable else sums

    def _are_in_memory(self, features: Features) -> bool:
        """Whether the features of all rows can be kept; the rows are read if they can."""
        sizes = [rows.num_rows for rows, _ in self._rows]
        if sum(size or 0 for size in sizes) * features.num_stacked > MOST_NUMBERS:
            return False
        if self._in_memory is None:
            with tf.init_scope():
                parts = [(rows.in_memory(features.boxes), sign) for rows, sign in self._rows]
                found = [(*part, sign) for part, sign in parts if part is not None]
                if len(found) < len(parts):
                    return False
                self.warn_of(features, *found[0][:2])
            self._in_memory = found
        return True

    def _of_rows_in_memory(self, features: Features) -> dict[str, tf.Tensor]:
        """The sums and their gradient in one graph without loops; the features are kept from one to
        the other. They are not finite if a feature is not."""
        assert self._in_memory is not None
        dtype, guard = gpflow.default_float(), self._guard(features)
        total: dict[str, tf.Tensor] = {}
        for X, Y, sign in self._in_memory:

            def rows(X: Array = X, Y: Array = Y) -> tuple[Array, Array]:
                guard()
                return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)

            # No constants: graphs would hold copies of the rows.
            inputs, targets = tf.numpy_function(rows, [], [dtype, dtype])
            sums = features.sums(
                tf.ensure_shape(inputs, X.shape), tf.ensure_shape(targets, Y.shape)
            )
            for name, tensor in sums.items():
                total[name] = total[name] + sign * tensor if name in total else tensor
        return total

    def _guard(self, features: Features) -> Callable[[], None]:
        """A function that raises once the model has other features than now, or other rows."""
        version = self._version

        def guard() -> None:
            if self._features is not features or version != self._version:
                raise RuntimeError(
                    "the rows or the parameters of the model are others than when this function "
                    "was compiled; compile it again (call fit or training_loss_closure again)."
                )

        return guard

    def _looked_up(self, features: Features, known: Mapping[str, Array]) -> dict[str, tf.Tensor]:
        """The sums of the statistics that there are when the graph is run."""
        names, guard = list(features.parameters), self._guard(features)

        def look_up(*values: Array) -> list[Array]:
            guard()
            difference = self._difference(dict(zip(names, values, strict=True)))
            if difference is not None:
                raise RuntimeError(
                    f"the sums over the rows belong to other features: {difference}. Evaluate "
                    "model.statistics, which takes the sums again, and then call this function."
                )
            assert self._known is not None
            return list(self._known.sums.values())

        values = [tf.convert_to_tensor(p) for p in features.parameters.values()]
        found = tf.numpy_function(look_up, values, [tf.float64] * len(known))
        return {
            name: tf.ensure_shape(tensor, array.shape)
            for (name, array), tensor in zip(known.items(), found, strict=True)
        }

    def _without_gradients(
        self, sums: Mapping[str, tf.Tensor], features: Features
    ) -> dict[str, tf.Tensor]:
        """The sums, whose gradient is an error."""
        names = ", ".join(features.trainable())

        def refuse(*upstream: tf.Tensor) -> None:
            raise ValueError(_OUT_OF_MEMORY.format(names, MOST_NUMBERS))

        @tf.custom_gradient
        def attached(*_: tf.Tensor) -> Any:
            return [tf.identity(tensor) for tensor in sums.values()], refuse

        variables = [tf.convert_to_tensor(p) for p in features.trainable().values()]
        return dict(zip(sums, attached(*variables), strict=True))
