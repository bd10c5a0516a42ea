"""The statistics of a model's rows, computed again whenever the model's features change."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from ..distributed import Workers
from ..sphere._typing import Array
from .accumulation import Told
from .compensated import Sums
from .contributions import Contributions
from .graphs import SignedSources, StreamedGradients, streamed_sums, with_shapes
from .identity import differing_parameter, mismatch
from .in_memory import RowsInMemory
from .known_sums import Arrays, KnownSums, Tensors
from .rows import PassSettings, Rows, draw
from .sources import resolve_batch_size
from .statistics import SufficientStatistics


class StatisticsProvider:
    """The rows of a model, and their sums for the features that the model has now.

    :param data: Rows; or statistics, if the rows are not available.
    :param batch_size: The number of rows to read at a time; None chooses a fast number.
    :param on_invalid: What to do with rows that are not finite: "raise" or "skip".
    :param checkpoint_path: The file (or folder) in which a pass keeps its sums; None for no file.
        Also the attribute ``path``.
    :param progress: Whether long passes show a progress bar.
    :param workers: The workers that share the rows.
    :raises ValueError: If the data or a setting is not valid.
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
        warn: Callable[[Contributions, Array, Array], None] | None = None,
    ) -> None:
        if on_invalid not in ("raise", "skip"):
            raise ValueError(f"on_invalid: found {on_invalid!r}; pass 'raise' or 'skip'.")
        self.batch_size = resolve_batch_size(batch_size, num_inducing)
        self.workers = workers
        self._settings = PassSettings(self.batch_size, on_invalid, progress, workers)
        self.path = checkpoint_path
        self._warn = warn if workers.is_chief else None
        self._rows: tuple[tuple[Rows, int], ...] = ()
        self._in_memory: RowsInMemory | None = None
        self._known = KnownSums()
        self._gradients = StreamedGradients()
        self._rows_at_hand = not isinstance(data, SufficientStatistics)
        if isinstance(data, SufficientStatistics):
            self._known.keep(data)
            self._columns = int(data.identity.probes.shape[1]), data.num_outputs
        else:
            rows = Rows(data, self._settings)
            self._rows = ((rows, 1),)
            self._columns = rows.columns
        self._verified = self._wrote_file = False
        self._version = 0
        self._forget_graphs()

    def _forget_graphs(self) -> None:
        self._contributions: Contributions | None = None
        self._known.forget_tensors()
        self._gradients.forget()

    def __getstate__(self) -> dict[str, Any]:
        """Rows and sums, without graphs: a copy of the model makes its own."""
        own = {"_known": KnownSums(self._known.statistics), "_gradients": StreamedGradients()}
        return {**self.__dict__, "_contributions": None, **own}

    @property
    def num_outputs(self) -> int:
        """The columns of Y."""
        return self._columns[1]

    @property
    def in_parts(self) -> bool:
        """Whether ``path`` is a folder, with a file for each part of the rows."""
        return bool(self._rows) and self._rows[0][0].in_parts

    @property
    def version(self) -> int:
        """A number that grows whenever the rows or the features change."""
        return self._version

    def keep_in_memory(self, rows: RowsInMemory, contributions: Contributions | None) -> None:
        """Compute the sums in the graphs that use them, while no rows come or go.

        :param rows: All rows of this provider.
        :param contributions: Features of the same model, to be used here as well; None to make own.
        """
        self._in_memory, self._contributions = rows, contributions

    def _sources(self) -> SignedSources:
        """All sources that this worker reads."""
        return [(source, sign) for rows, sign in self._rows for _, source in rows.sources()]

    def contributions(
        self, kernel: Kernel, inducing_variable: InducingVariables, mean_function: MeanFunction
    ) -> Contributions:
        """The features of the model as it is now."""
        with tf.init_scope():  # the graph of the features is not part of the caller's
            return self._contributions_of(kernel, inducing_variable, mean_function)

    def _contributions_of(
        self, kernel: Kernel, inducing_variable: InducingVariables, mean_function: MeanFunction
    ) -> Contributions:
        contributions = self._contributions
        if contributions is None or not contributions.is_current(
            kernel, inducing_variable, mean_function
        ):
            self._forget_graphs()
            self._version += 1
            self._verified = False
            parts = kernel, inducing_variable, mean_function
            try:
                contributions = self._contributions = Contributions(*parts, *self._columns)
            except ValueError as error:
                if self._rows_at_hand:
                    raise
                raise ValueError(
                    "data: the model is not for the statistics, which have {} columns of X "
                    "('probes') and {} of Y ('num_outputs'): {}".format(*self._columns, error)
                ) from error
        return contributions

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
        statistics: SufficientStatistics | None = None
        for rows, sign in self._rows:
            if statistics is None:
                statistics = self._first_statistics(contributions, rows)
            else:
                part = self._accumulate(contributions, rows)
                statistics = statistics + part if sign > 0 else statistics - part
        assert statistics is not None
        self._keep(statistics)
        return statistics

    def _first_statistics(self, contributions: Contributions, rows: Rows) -> SufficientStatistics:
        """Use the file, but not while the features are trained: every evaluation is then a pass."""

        def told(X: Array, Y: Array) -> None:
            self.warn_of(contributions, X, Y)

        if self.path is None or contributions.trainable():
            return self._accumulate(contributions, rows, told=told)
        # A file that this provider has written belongs to features that the model no longer has.
        fresh, self._wrote_file = self._wrote_file, True
        return self._accumulate(contributions, rows, self.path, fresh=fresh, told=told)

    def warn_of(self, contributions: Contributions, X: Array, Y: Array) -> None:
        """Say what is wrong with the first rows that are read, and nothing of others."""
        warn = self._warn
        self.warned()
        if warn is not None:
            warn(contributions, X, Y)

    def warned(self) -> None:
        """Nothing is to be said of any rows."""
        self._warn = None

    def _accumulate(
        self,
        contributions: Contributions,
        rows: Rows,
        path: str | os.PathLike[str] | None = None,
        *,
        fresh: bool = False,
        told: Told | None = None,
    ) -> SufficientStatistics:
        with tf.init_scope():
            return rows.accumulate(contributions, path, fresh=fresh, told=told)

    def _keep(self, statistics: SufficientStatistics) -> None:
        self._known.keep(statistics)
        self._verified = True

    def _differing(self, known: Mapping[str, Array], values: Mapping[str, Array]) -> str | None:
        return differing_parameter(known, values, gpflow.default_float())

    def _check_rows_at_hand(self, difference: str) -> None:
        if not self._rows_at_hand:
            raise ValueError(
                "data: the model was built from SufficientStatistics, which belong to other "
                f"features than its own: {difference}. Give the features' parameters the values "
                "the statistics were computed with, or build the model from the rows."
            )

    def accumulate(self, contributions: Contributions, data: Any) -> SufficientStatistics:
        """The statistics of other rows, for the same features."""
        return self._accumulate(contributions, Rows(data, self._settings, self._columns))

    def change(self, contributions: Contributions, data: Any, sign: int) -> None:
        """Add rows (sign 1) or take rows away (sign -1), reading only these rows."""
        rows = Rows(data, self._settings, self._columns)
        statistics, other = self.statistics(contributions), self._accumulate(contributions, rows)
        try:
            changed = statistics + other if sign > 0 else statistics - other
        except ValueError as error:
            raise ValueError(f"data: {str(error).removeprefix('other: ')}") from error
        self._keep(changed)
        self._rows = (*self._rows, (rows, sign))
        self._in_memory = None
        self._version += 1
        self._gradients.forget()

    def subset(self, size: int, seed: int) -> tuple[Array, Array]:
        """Rows drawn at random; see :func:`draw`.

        :raises ValueError: If the rows are not available, or rows were taken away.
        """
        if not self._rows_at_hand or any(sign < 0 for _, sign in self._rows):
            raise ValueError(
                "data: rows can only be drawn from data that are all at hand; build the model "
                "from the rows themselves, without removed ones."
            )
        return draw([rows for rows, _ in self._rows], size, seed, self.workers)

    def sums_of(self, function: Callable[[Array, Array], Mapping[str, Array]]) -> dict[str, Array]:
        """Sums over all rows of what a function returns for a batch, as :meth:`Rows.sums_of`.

        :raises ValueError: If the rows are not available.
        """
        if not self._rows_at_hand:
            raise ValueError(
                "data: the model was built from SufficientStatistics, and its rows are needed; "
                "build it from the rows."
            )
        total: dict[str, Array] = {}
        for rows, sign in self._rows:
            for name, array in rows.sums_of(function).items():
                total[name] = total.get(name, np.zeros_like(array)) + sign * array
        return total

    def sums(self, contributions: Contributions) -> Tensors:
        """The matrix ``[K, K]``, the diagonal's terms ``[T]`` and the number of rows, in float64,
        with gradients to the features' parameters that are trainable.

        In a compiled function the values of the features' parameters are compared at every call.

        :raises ValueError: If a trainable parameter needs a gradient and there are no rows.
        """
        trainable = contributions.trainable()
        if trainable and not self._rows_at_hand:
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
        if not self._rows_at_hand or self.workers.number > 1:
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
