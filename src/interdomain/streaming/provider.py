"""Statistics that are always those of the present features: kept while they are, made anew when
they are not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from .._tracing import compiled, python_errors
from ..placement import Workers
from ..sphere._typing import Array
from .accumulation import Told
from .features import StreamedFeatures
from .graphs import SignedSources, streamed_gradients, streamed_sums, with_shapes
from .identity import differing_parameter, mismatch
from .rows import PassSettings, Rows, draw
from .sources import resolve_batch_size
from .statistics import SufficientStatistics
from .sums import Sums

Tensors = tuple[tf.Tensor, tf.Tensor, tf.Tensor]
Arrays = tuple[Array, Array, Array]


class StatisticsProvider:
    """The rows of a model, and their sums for its present features.

    :param data: Rows, or statistics of rows that are not at hand.
    :param batch_size: Rows to take at a time; None for as many as are fast.
    :param on_invalid: "raise" or "skip", for rows that are not finite.
    :param checkpoint_path: Where a pass keeps what is done, if anywhere (``path``).
    :param progress: Whether long passes show a progress bar.
    :param workers: Those that share the rows.
    :param warn: Called once, with the features and the rows X and Y of the first batch that is
        read; of several workers, by the chief.
    :raises ValueError: For data or settings that are none.
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
        warn: Callable[[StreamedFeatures, Array, Array], None] | None = None,
    ) -> None:
        if on_invalid not in ("raise", "skip"):
            raise ValueError(f"on_invalid: found {on_invalid!r}; pass 'raise' or 'skip'.")
        self.batch_size = resolve_batch_size(batch_size, num_inducing)
        self.workers = workers
        self._settings = PassSettings(self.batch_size, on_invalid, progress, workers)
        self.path = checkpoint_path
        self._warn = warn if workers.is_chief else None
        self._rows: tuple[tuple[Rows, int], ...] = ()
        self._statistics: SufficientStatistics | None = None
        self._rows_at_hand = not isinstance(data, SufficientStatistics)
        if isinstance(data, SufficientStatistics):
            self._statistics = data
            self._columns = int(data.identity.probes.shape[1]), data.num_outputs
        else:
            rows = Rows(data, self._settings)
            self._rows = ((rows, 1),)
            self._columns = rows.columns
        self._verified = self._wrote_file = False
        self._version = 0
        self._forget_graphs()

    def _forget_graphs(self) -> None:
        self._features: StreamedFeatures | None = None
        self._tensors: Tensors | None = None
        self._gradients: tuple[Any, Callable[..., Any]] | None = None
        self._recent: tuple[Mapping[str, Array], Arrays] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Rows and sums, without graphs: a copy of the model makes its own."""
        of_graphs = ("_features", "_tensors", "_gradients", "_recent")
        return {**self.__dict__, **dict.fromkeys(of_graphs)}

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
        """Grows whenever rows or features become others."""
        return self._version

    def _sources(self) -> SignedSources:
        """All that this worker reads."""
        return [(source, sign) for rows, sign in self._rows for _, source in rows.sources()]

    def features(
        self, kernel: Kernel, inducing_variable: InducingVariables, mean_function: MeanFunction
    ) -> StreamedFeatures:
        """The features of the model as it is now."""
        with tf.init_scope():  # the graph of the features is not part of the caller's
            return self._features_of(kernel, inducing_variable, mean_function)

    def _features_of(
        self, kernel: Kernel, inducing_variable: InducingVariables, mean_function: MeanFunction
    ) -> StreamedFeatures:
        features = self._features
        if features is None or not features.is_current(kernel, inducing_variable, mean_function):
            self._forget_graphs()
            self._version += 1
            self._verified = False
            parts = kernel, inducing_variable, mean_function
            try:
                features = self._features = StreamedFeatures(*parts, *self._columns)
            except ValueError as error:
                if self._rows_at_hand:
                    raise
                raise ValueError(
                    "data: the model is not for the statistics, which have {} columns of X "
                    "('probes') and {} of Y ('num_outputs'): {}".format(*self._columns, error)
                ) from error
        return features

    def statistics(self, features: StreamedFeatures) -> SufficientStatistics:
        """The statistics of all rows for the present values of the features' parameters.

        :raises ValueError: If they are of other features and the rows are not at hand.
        """
        # Eagerly, also while the caller is traced, and with its gradient tapes paused: they would
        # keep every batch.
        with tf.init_scope():
            return self._statistics_of(features)

    def _statistics_of(self, features: StreamedFeatures) -> SufficientStatistics:
        known = self._statistics
        if known is not None:
            if not self._verified:
                difference = mismatch(known.identity, features)
                self._verified = difference is None
            else:
                difference = self._differing(known.identity.parameters, features.values())
            if difference is None:
                return known
            self._check_rows_at_hand(difference)
        statistics: SufficientStatistics | None = None
        for rows, sign in self._rows:
            if statistics is None:
                statistics = self._first_statistics(features, rows)
            else:
                part = self._accumulate(features, rows)
                statistics = statistics + part if sign > 0 else statistics - part
        assert statistics is not None
        self._keep(statistics)
        return statistics

    def _first_statistics(self, features: StreamedFeatures, rows: Rows) -> SufficientStatistics:
        """With a file, except while the features are trained: each evaluation is then a pass."""

        def told(X: Array, Y: Array) -> None:
            self.warn_of(features, X, Y)

        if self.path is None or features.trainable():
            return self._accumulate(features, rows, told=told)
        # What this provider wrote is of features that it has left.
        fresh, self._wrote_file = self._wrote_file, True
        return self._accumulate(features, rows, self.path, fresh=fresh, told=told)

    def warn_of(self, features: StreamedFeatures, X: Array, Y: Array) -> None:
        """Say what is wrong with the first rows that are read, and nothing of others."""
        warn = self._warn
        self.warned()
        if warn is not None:
            warn(features, X, Y)

    def warned(self) -> None:
        """Nothing is to be said of any rows."""
        self._warn = None

    def _accumulate(
        self,
        features: StreamedFeatures,
        rows: Rows,
        path: str | os.PathLike[str] | None = None,
        *,
        fresh: bool = False,
        told: Told | None = None,
    ) -> SufficientStatistics:
        with tf.init_scope():
            return rows.accumulate(features, path, fresh=fresh, told=told)

    def _keep(self, statistics: SufficientStatistics) -> None:
        self._statistics, self._verified = statistics, True
        self._tensors = self._recent = None

    def _differing(self, known: Mapping[str, Array], values: Mapping[str, Array]) -> str | None:
        return differing_parameter(known, values, gpflow.default_float())

    def _check_rows_at_hand(self, difference: str) -> None:
        if not self._rows_at_hand:
            raise ValueError(
                "data: the model was built from SufficientStatistics, which belong to other "
                f"features than its own: {difference}. Give the features' parameters the values "
                "the statistics were computed with, or build the model from the rows."
            )

    def accumulate(self, features: StreamedFeatures, data: Any) -> SufficientStatistics:
        """The statistics of other rows, for the same features."""
        return self._accumulate(features, Rows(data, self._settings, self._columns))

    def change(self, features: StreamedFeatures, data: Any, sign: int) -> None:
        """Add rows (1) or take rows away (-1), reading only these."""
        rows = Rows(data, self._settings, self._columns)
        statistics, other = self.statistics(features), self._accumulate(features, rows)
        try:
            changed = statistics + other if sign > 0 else statistics - other
        except ValueError as error:
            raise ValueError(f"data: {str(error).removeprefix('other: ')}") from error
        self._keep(changed)
        self._rows = (*self._rows, (rows, sign))
        self._version += 1
        self._gradients = None

    def subset(self, size: int, seed: int) -> tuple[Array, Array]:
        """Rows at random, as :func:`draw`.

        :raises ValueError: If there are no rows at hand, or rows were taken away.
        """
        if not self._rows_at_hand or any(sign < 0 for _, sign in self._rows):
            raise ValueError(
                "data: rows can only be drawn from data that are all at hand; build the model "
                "from the rows themselves, without removed ones."
            )
        return draw([rows for rows, _ in self._rows], size, seed, self.workers)

    def sums(self, features: StreamedFeatures) -> Tensors:
        """The matrix ``[K, K]``, the diagonal's terms ``[T]`` and the number of rows, in float64,
        with gradients to the features' parameters that are trainable.

        In a compiled function the values of the features' parameters are compared at every call.

        :raises ValueError: If a trainable parameter needs a gradient and the rows are not at hand.
        """
        trainable = features.trainable()
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
                "parameter, False), or train them on a subset (training.fit_out_of_core does)."
            )
        # Also while a graph is made: in the caller's hands, with a bar and with clear errors.
        statistics = self.statistics(features)
        if tf.executing_eagerly():
            gram, diagonal, num_rows = self._as_tensors(statistics)
        else:
            gram, diagonal, num_rows = self._in_graph(features, bool(trainable))
        if trainable:
            gram, diagonal = self._with_gradients(features, gram, diagonal)
        return gram, diagonal, num_rows

    def _as_tensors(self, statistics: SufficientStatistics) -> Tensors:
        if self._tensors is None:
            self._tensors = (
                tf.constant(statistics.gram.value),
                tf.constant(statistics.diagonal.value),
                tf.constant(float(statistics.num_rows), tf.float64),
            )
        return self._tensors

    def _in_graph(self, features: StreamedFeatures, needs_gradients: bool) -> Tensors:
        version, names = self._version, list(features.parameters)

        def check(current: bool) -> None:
            if not current:
                raise RuntimeError(
                    "the rows or the parameters of the model are others than when this function "
                    "was compiled; compile it again (call fit or training_loss_closure again)."
                )

        def look_up(*values: Array) -> tuple[bool, Array, Array, Array]:
            check(self._features is features)
            check(version == self._version or not needs_gradients)
            present = dict(zip(names, values, strict=True))
            difference = None
            for parameters, sums in self._known():
                difference = self._differing(parameters, present)
                if difference is None:
                    return (True, *sums)
            assert difference is not None
            self._check_rows_at_hand(difference)
            check(version == self._version and self.workers.number == 1)
            return False, np.zeros((0, 0)), np.zeros(0), np.zeros(())

        def keep(total: Sums, *values: Array) -> Arrays:
            sums = total.gram.value, total.diagonal.value, np.asarray(float(total.num_rows))
            self._recent = dict(zip(names, values, strict=True)), sums
            return sums

        values = [tf.convert_to_tensor(p) for p in features.parameters.values()]
        found, *sums = tf.numpy_function(look_up, values, [tf.bool, *[tf.float64] * 3])
        if not self._rows_at_hand or self.workers.number > 1:
            return with_shapes(features, *sums)
        result: Tensors = tf.cond(
            found,
            lambda: with_shapes(features, *sums),
            lambda: with_shapes(features, *streamed_sums(features, self._sources(), keep, values)),
        )
        return result

    def _known(self) -> Iterator[tuple[Mapping[str, Array], Arrays]]:
        """What sums there are, with the values of the parameters they belong to."""
        assert self._statistics is not None
        tensors = self._as_tensors(self._statistics)
        gram, diagonal, num_rows = (np.asarray(tensor) for tensor in tensors)
        yield self._statistics.identity.parameters, (gram, diagonal, num_rows)
        if self._recent is not None:
            yield self._recent

    def _with_gradients(
        self, features: StreamedFeatures, gram: tf.Tensor, diagonal: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        key = (self._version, *features.trainable())
        if self._gradients is None or self._gradients[0] != key:
            sources = self._sources()
            # Traced once, also where gradients are taken eagerly.
            gradients = compiled(lambda *upstream: streamed_gradients(features, sources, *upstream))
            self._gradients = key, gradients
        compiled_gradients = self._gradients[1]

        def streamed(*upstream: tf.Tensor) -> Any:
            with python_errors():
                return compiled_gradients(*upstream)

        @tf.custom_gradient
        def attach(*_: tf.Tensor) -> Any:
            return (tf.identity(gram), tf.identity(diagonal)), streamed

        gram, diagonal = attach(*[tf.convert_to_tensor(v) for v in features.variables])
        return gram, diagonal
