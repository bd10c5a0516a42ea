"""The statistics of a model's rows, computed again whenever the model's features change."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from ..distributed import Workers
from ..sphere._typing import Array
from .compensated import Sums
from .contributions import Contributions
from .gram_sums import GramContent
from .graphs import SignedSources, StreamedGradients, streamed_sums, with_shapes
from .identity import differing_parameter, mismatch
from .in_memory import RowsInMemory
from .known_sums import Arrays, KnownSums, Tensors
from .rows_provider import RowsProvider, Warn
from .statistics import SufficientStatistics


class StatisticsProvider(RowsProvider):
    """The rows of a model, and their sums for the features that the model has now.

    :param data: Rows; or statistics, if the rows are not available.

    The other parameters are those of :class:`RowsProvider`.
    """

    def __init__(
        self,
        data: Any,
        num_inducing: int,
        *,
        batch_size: int | None,
        on_invalid: str,
        checkpoint_path: str | os.PathLike[str] | None,
        progress: bool,
        workers: Workers,
        warn: Warn | None = None,
    ) -> None:
        known = data if isinstance(data, SufficientStatistics) else None
        columns = (
            None if known is None else (int(known.identity.probes.shape[1]), known.num_outputs)
        )
        super().__init__(
            data,
            num_inducing,
            columns=columns,
            batch_size=batch_size,
            on_invalid=on_invalid,
            checkpoint_path=checkpoint_path,
            progress=progress,
            workers=workers,
            warn=warn,
        )
        self._in_memory: RowsInMemory | None = None
        self._known = KnownSums()
        self._gradients = StreamedGradients()
        if known is not None:
            self._known.keep(known)
        self._verified = self._wrote_file = False

    def __getstate__(self) -> dict[str, Any]:
        """Rows and sums, without graphs: a copy of the model makes its own."""
        own = {"_known": KnownSums(self._known.statistics), "_gradients": StreamedGradients()}
        return {**super().__getstate__(), **own}

    @property
    def num_outputs(self) -> int:
        """The columns of Y."""
        return self.columns[1]

    def keep_in_memory(self, rows: RowsInMemory, contributions: Contributions | None) -> None:
        """Compute the sums in the graphs that use them, while no rows come or go.

        :param rows: All rows of this provider.
        :param contributions: Features of the same model, to be used here as well; None to make own.
        """
        self._in_memory, self._contributions = rows, contributions

    def _sources(self) -> SignedSources:
        """All sources that this worker reads."""
        return [(source, sign) for rows, sign in self._rows for _, source in rows.sources()]

    def _features_changed(self) -> None:
        super()._features_changed()
        self._known.forget_tensors()
        self._gradients.forget()
        self._verified = False

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
            return self._statistics_of(contributions)

    def _statistics_of(self, contributions: Contributions) -> SufficientStatistics:
        known = self._known.statistics
        if known is not None:
            if not self._verified:
                difference = mismatch(known.identity, contributions)
                self._verified = difference is None
            else:
                difference = self._differing(known.identity.parameters, contributions.values())
            if difference is None:
                return known
            self._check_rows_at_hand(difference)
        path, fresh = self.path, False
        if contributions.trainable():
            path = None  # every evaluation is then a pass
        elif path is not None:
            # A file that this provider has written is of features that the model no longer has.
            fresh, self._wrote_file = self._wrote_file, True

        def told(X: Array, Y: Array) -> None:
            self.warn_of(contributions, X, Y)

        statistics = self.pass_over(GramContent(contributions), path, fresh=fresh, told=told)
        self._keep(statistics)
        return statistics

    def _keep(self, statistics: SufficientStatistics) -> None:
        self._known.keep(statistics)
        self._verified = True

    def _differing(self, known: Mapping[str, Array], values: Mapping[str, Array]) -> str | None:
        return differing_parameter(known, values, gpflow.default_float())

    def _check_rows_at_hand(self, difference: str) -> None:
        if not self.rows_at_hand:
            raise ValueError(
                "data: the model was built from SufficientStatistics, which belong to other "
                f"features than its own: {difference}. Give the features' parameters the values "
                "the statistics were computed with, or build the model from the rows."
            )

    def accumulate(self, contributions: Contributions, data: Any) -> SufficientStatistics:
        """The statistics of other rows, for the same features."""
        return self.pass_over_others(GramContent(contributions), self.others(data))

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
        self._gradients.forget()

    def sums(self, contributions: Contributions) -> Tensors:
        """The matrix ``[K, K]``, the diagonal's terms ``[T]`` and the number of rows, in float64,
        with gradients to the features' parameters that are trainable.

        In a compiled function the values of the features' parameters are compared at every call.

        :raises ValueError: If a trainable parameter needs a gradient and there are no rows.
        """
        trainable = contributions.trainable()
        if trainable and not self.rows_at_hand:
            raise ValueError(
                f"data: the features depend on {', '.join(trainable)}, trainable, and the model "
                "was built from SufficientStatistics; freeze these with "
                "gpflow.set_trainable(parameter, False), or build the model from the rows."
            )
        if trainable and self.workers.number > 1:
            raise ValueError(
                f"strategy: the features depend on {', '.join(trainable)}, trainable, and their "
                "gradients are not summed over workers; freeze these with gpflow.set_trainable("
                "parameter, False), or train them on a subset (training.fit_sgpr does)."
            )
        # Also while a graph is made: in the caller's hands, with a bar and with clear errors.
        self.statistics(contributions)
        in_memory, eager = self._in_memory, tf.executing_eagerly()
        if trainable and not eager and in_memory is not None and in_memory.fit(contributions):
            return in_memory.sums(contributions, self._guard(contributions))
        if eager:
            gram, diagonal, num_rows = self._known.tensors()
        else:
            gram, diagonal, num_rows = self._in_graph(contributions, bool(trainable))
        if trainable:
            gram, diagonal = self._gradients.attached(
                contributions, self._sources, self._version, gram, diagonal
            )
        return gram, diagonal, num_rows

    def _guard(self, contributions: Contributions) -> Callable[..., None]:
        """A function that raises once the model has other features than now, or other rows."""
        version = self._version

        def guard(*, same_rows: bool = True) -> None:
            _check(self._contributions is contributions)
            _check(version == self._version or not same_rows)

        return guard

    def _in_graph(self, contributions: Contributions, needs_gradients: bool) -> Tensors:
        version, names = self._version, list(contributions.parameters)
        guard = self._guard(contributions)

        def look_up(*values: Array) -> tuple[bool, Array, Array, Array]:
            guard(same_rows=needs_gradients)
            present = dict(zip(names, values, strict=True))
            difference = None
            for parameters, sums in self._known:
                difference = self._differing(parameters, present)
                if difference is None:
                    return (True, *sums)
            assert difference is not None
            self._check_rows_at_hand(difference)
            _check(version == self._version and self.workers.number == 1)
            return False, np.zeros((0, 0)), np.zeros(0), np.zeros(())

        def keep(total: Sums, *values: Array) -> Arrays:
            sums = total.gram.value, total.diagonal.value, np.asarray(float(total.num_rows))
            self._known.remember(dict(zip(names, values, strict=True)), sums)
            return sums

        values = [tf.convert_to_tensor(p) for p in contributions.parameters.values()]
        found, *sums = tf.numpy_function(look_up, values, [tf.bool, *[tf.float64] * 3])
        if not self.rows_at_hand or self.workers.number > 1:
            return with_shapes(contributions, *sums)
        result: Tensors = tf.cond(
            found,
            lambda: with_shapes(contributions, *sums),
            lambda: with_shapes(
                contributions, *streamed_sums(contributions, self._sources(), keep, values)
            ),
        )
        return result


def _check(current: bool) -> None:
    if not current:
        raise RuntimeError(
            "the rows or the parameters of the model are others than when this function was "
            "compiled; compile it again (call fit or training_loss_closure again)."
        )
