"""The rows of a model, its features, and the sums over rows, taken again when features change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from .._arguments import Array
from ..core.domains import Box
from .features import Features
from .rows import Rows, draw_rows
from .sums import SufficientStatistics, differing_parameter, statistics_of

MOST_NUMBERS = 2**27
"""Of the features that a gradient keeps: 1 GiB in float64."""


class RowsProvider:
    """The rows of a model, including rows that were added or removed later, and sums over them.

    :param data: Rows; or their statistics, if the rows are not at hand.
    :param num_latents: From the number of columns of Y to that of columns of the mean function.
    :param settings: The other arguments of :class:`.rows.Rows`.
    :ivar columns: The numbers of columns of X and of Y.
    :ivar num_latents: The number of columns of the mean function.
    :ivar version: A number that grows whenever the rows or the features change.
    """

    def __init__(self, data: Any, num_latents: Callable[[int], int], **settings: Any) -> None:
        self._settings = settings
        self.version = 0
        self._rows: tuple[tuple[Rows, int], ...] = ()  # with 1, or -1 for those that were removed
        self._features: Features | None = None
        self._in_memory: list[tuple[Array, Array, int]] | None = None
        # The statistics that were taken last, and whether they are known to be of these features.
        self._known = data if isinstance(data, SufficientStatistics) else None
        self._verified = False
        if self._known is not None:
            self.columns = self._known.columns
        else:
            rows = Rows(data, **settings)
            self._rows, self.columns = ((rows, 1),), rows.columns
        self.num_latents = num_latents(self.columns[1])

    def __getstate__(self) -> dict[str, Any]:
        """Rows without graphs: a copy of the model makes its own."""
        return {**self.__dict__, "_features": None}

    @property
    def num_rows(self) -> int | None:
        """The number of rows, valid or not; None if it is known only after a pass."""
        sizes = [(rows.num_rows, sign) for rows, sign in self._rows]
        return sum(sign * (size or 0) for size, sign in sizes) if all(s for s, _ in sizes) else None

    @property
    def batch_size(self) -> int | None:
        """The number of rows that are taken at a time; None if the rows are not at hand."""
        return self._rows[0][0].batch_size if self._rows else None

    @property
    def has_statistics(self) -> bool:
        """Whether the statistics have been taken, or were given."""
        return self._known is not None

    def features(
        self, kernel: Kernel, inducing_variable: InducingVariables, mean_function: MeanFunction
    ) -> Features:
        """The features of the model as it is now."""
        with tf.init_scope():  # the graph of the features is not part of the caller's
            known = self._features
            parts = kernel, inducing_variable, mean_function
            if known is not None and known.is_current(*parts):
                return known
            self._features, self._in_memory, self._verified = None, None, False
            self.version += 1
            num_columns, num_outputs = self.columns
            try:
                self._features = Features(*parts, num_columns, self.num_latents)
            except ValueError as error:
                if self._rows:
                    raise
                raise ValueError(
                    f"data: the model is not for the statistics, which have {num_columns} columns "
                    f"of X and {num_outputs} of Y: {error}"
                ) from error
            return self._features

    def share(self, features: Features) -> None:
        """Use features of another model with the same kernel, inducing variable and mean."""
        self._features = features

    def others(self, data: Any) -> Rows:
        """Other rows of the same kind.

        :raises ValueError: If they have other numbers of columns.
        """
        return Rows(data, columns=self.columns, **self._settings)

    def join(self, rows: Rows, sign: int) -> None:
        """Add rows (sign 1) or take rows away (sign -1)."""
        if self._rows:  # new sums of these rows alone would not be those of the model
            self._rows = (*self._rows, (rows, sign))
        self._in_memory = None
        self.version += 1

    def subset(self, size: int, seed: int) -> tuple[Array, Array]:
        """Rows drawn at random; see :func:`.rows.draw_rows`.

        :raises ValueError: If the rows are not at hand, or rows were taken away.
        """
        if not self._rows or any(sign < 0 for _, sign in self._rows):
            raise ValueError(
                "data: rows can only be drawn from data that are all at hand; build the model "
                "from the rows themselves, without removed ones."
            )
        return draw_rows([rows for rows, _ in self._rows], size, seed)

    def sums_of(
        self,
        function: Callable[[Array, Array], Mapping[str, Array]],
        boxes: Sequence[Box] = (),
    ) -> dict[str, Array]:
        """Sums over all rows of named arrays that a function returns for a batch.

        :param boxes: Where the rows have to be.
        :raises ValueError: If the rows are not at hand.
        """
        if not self._rows:
            raise ValueError(
                "data: the model was built from SufficientStatistics, and its rows are needed; "
                "build it from the rows."
            )
        total: dict[str, Array] = {}
        for rows, sign in self._rows:
            for batch in rows.batches(boxes):
                for name, array in function(*batch).items():
                    if name not in total:
                        total[name] = np.zeros_like(array)
                    total[name] += sign * array
        return total

    def statistics(self, features: Features) -> SufficientStatistics:
        """The statistics of all rows for the present values of the features' parameters.

        :raises ValueError: If the statistics belong to other features and there are no rows.
        """
        known = self._known
        if known is not None:
            with tf.init_scope():  # values, also while the caller is traced
                if self._verified:
                    difference = differing_parameter(known.parameters, features.values())
                else:
                    difference = known.difference(features.description(), features.values())
                    self._verified = difference is None
            if difference is None:
                return known
            if not self._rows:
                raise ValueError(
                    "data: the model was built from SufficientStatistics, which belong to other "
                    f"features than its own: {difference}. Give the features' parameters the "
                    "values the statistics were computed with, or build the model from the rows."
                )
        parts = [(statistics_of(rows, features), sign) for rows, sign in self._rows]
        total = parts[0][0]  # of the rows that the model was made of
        for part, sign in parts[1:]:
            total = total + part if sign > 0 else total - part
        self._known, self._verified = total, True
        return total

    def accumulate(self, features: Features, data: Any) -> SufficientStatistics:
        """The statistics of other rows, for the same features."""
        return statistics_of(self.others(data), features)

    def change(self, features: Features, data: Any, sign: int) -> None:
        """Add rows (sign 1) or take rows away (sign -1), reading only these rows."""
        rows = self.others(data)
        statistics, other = self.statistics(features), statistics_of(rows, features)
        try:
            self._known = statistics + other if sign > 0 else statistics - other
        except ValueError as error:
            raise ValueError(f"data: {str(error).removeprefix('other: ')}") from error
        self.join(rows, sign)

    def sums(self, features: Features) -> dict[str, tf.Tensor]:
        """The sums of :meth:`Features.sums` over all rows, with gradients to the features'
        parameters that are trainable.

        In a compiled function the values of the features' parameters are compared at every call.

        :raises ValueError: If a trainable parameter needs a gradient and the rows are not in
            memory.
        """
        trainable = features.trainable()
        if trainable and not self._rows:
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
        return _without_gradients(sums, trainable) if trainable else sums

    def lacks_gradients(self, features: Features) -> bool:
        """Whether there are rows, but not in memory, where trainable features need them."""
        return bool(self._rows and features.trainable()) and not self._are_in_memory(features)

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
            self._in_memory = found
        return True

    def _of_rows_in_memory(self, features: Features) -> dict[str, tf.Tensor]:
        """The sums and their gradient in one graph without loops; the features are kept from one to
        the other. They are not finite if a feature is not."""
        assert self._in_memory is not None
        dtype, version = gpflow.default_float(), self.version
        total: dict[str, tf.Tensor] = {}
        for X, Y, sign in self._in_memory:

            def rows(X: Array = X, Y: Array = Y) -> tuple[Array, Array]:
                self._check_version(version)
                return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)

            # No constants: graphs would hold copies of the rows.
            inputs, targets = tf.numpy_function(rows, [], [dtype, dtype])
            sums = features.sums(
                tf.ensure_shape(inputs, X.shape), tf.ensure_shape(targets, Y.shape)
            )
            for name, tensor in sums.items():
                total[name] = total[name] + sign * tensor if name in total else tensor
        return total

    def _check_version(self, version: int) -> None:
        """:raises RuntimeError: If the model has other features than it had, or other rows."""
        if version != self.version:
            raise RuntimeError(
                "the rows or the parameters of the model are others than when this function was "
                "compiled; compile it again (call fit or training_loss_closure again)."
            )

    def _looked_up(self, features: Features, known: Mapping[str, Array]) -> dict[str, tf.Tensor]:
        """The sums of the statistics that there are when the graph is run."""
        names, version = list(features.parameters), self.version

        def look_up(*values: Array) -> list[Array]:
            self._check_version(version)
            assert self._known is not None
            now = dict(zip(names, values, strict=True))
            difference = differing_parameter(self._known.parameters, now)
            if difference is not None:
                raise RuntimeError(
                    f"the sums over the rows belong to other features: {difference}. Evaluate "
                    "model.statistics, which takes the sums again, and then call this function."
                )
            return list(self._known.sums.values())

        values = [tf.convert_to_tensor(p) for p in features.parameters.values()]
        found = tf.numpy_function(look_up, values, [tf.float64] * len(known))
        return {
            name: tf.ensure_shape(tensor, array.shape)
            for (name, array), tensor in zip(known.items(), found, strict=True)
        }


def _without_gradients(
    sums: Mapping[str, tf.Tensor], trainable: Mapping[str, Any]
) -> dict[str, tf.Tensor]:
    """The sums, whose gradient to the parameters of the features is an error."""

    def refuse(*upstream: tf.Tensor) -> None:
        raise ValueError(
            f"data: the features depend on {', '.join(trainable)}, trainable, and their gradients "
            f"need all rows in memory: arrays, with at most {MOST_NUMBERS:,} numbers of features. "
            "Call interdomain.training.fit_sgpr, which trains these on a subset; or freeze them "
            "with gpflow.set_trainable(parameter, False); or give all rows to gpflow.models.SVGP, "
            "in minibatches."
        )

    @tf.custom_gradient
    def attached(*_: tf.Tensor) -> Any:
        return [tf.identity(tensor) for tensor in sums.values()], refuse

    variables = [tf.convert_to_tensor(p) for p in trainable.values()]
    return dict(zip(sums, attached(*variables), strict=True))
