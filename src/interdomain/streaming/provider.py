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

from ..sphere._typing import Array
from .accumulation import accumulate
from .features import StreamedFeatures
from .graphs import SignedSources, streamed_gradients, streamed_sums, with_shapes
from .identity import differing_parameter, mismatch
from .pass_files import PassFile
from .sources import RowSource, draw_rows, make_source, resolve_batch_size
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
    ) -> None:
        if on_invalid not in ("raise", "skip"):
            raise ValueError(f"on_invalid: found {on_invalid!r}; pass 'raise' or 'skip'.")
        self.batch_size = resolve_batch_size(batch_size, num_inducing)
        self._on_invalid, self._progress = on_invalid, progress
        self.path = checkpoint_path
        self._sources: SignedSources = ()
        self._statistics: SufficientStatistics | None = None
        self._rows_at_hand = not isinstance(data, SufficientStatistics)
        if isinstance(data, SufficientStatistics):
            self._statistics = data
            self._num_columns = int(data.identity.probes.shape[1])
            self.num_outputs = data.num_outputs
        else:
            source = self.source(data)
            self._sources = ((source, 1),)
            self._num_columns, self.num_outputs = source.num_columns, source.num_outputs
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

    def source(self, data: Any) -> RowSource:
        """Data as rows, with this provider's settings.

        :raises ValueError: If they have other columns than this provider's rows.
        """
        source = make_source(data, self.batch_size)
        if self._sources or self._statistics is not None:
            for name, columns, known in (
                ("X", source.num_columns, self._num_columns),
                ("Y", source.num_outputs, self.num_outputs),
            ):
                if columns != known:
                    raise ValueError(
                        f"data: {name} has {columns} columns, the model's has {known}; pass rows "
                        "of the same kind."
                    )
        return source

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
            features = self._features = StreamedFeatures(
                kernel, inducing_variable, mean_function, self._num_columns, self.num_outputs
            )
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
        for source, sign in self._sources:
            file = self._pass_file(features) if statistics is None else None
            part = self._accumulate(features, source, file)
            if statistics is None:
                statistics = part
            else:
                statistics = statistics + part if sign > 0 else statistics - part
        assert statistics is not None
        self._keep(statistics)
        return statistics

    def _pass_file(self, features: StreamedFeatures) -> PassFile | None:
        """None while the features are trained: each evaluation is then a pass of its own."""
        if self.path is None or features.trainable():
            return None
        # What this provider wrote is of features that it has left.
        file = PassFile(self.path, fresh=self._wrote_file)
        self._wrote_file = True
        return file

    def _accumulate(
        self, features: StreamedFeatures, source: RowSource, file: PassFile | None = None
    ) -> SufficientStatistics:
        with tf.init_scope():
            return accumulate(
                features, source, on_invalid=self._on_invalid, progress=self._progress, file=file
            )

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
        return self._accumulate(features, self.source(data))

    def change(self, features: StreamedFeatures, data: Any, sign: int) -> None:
        """Add rows (1) or take rows away (-1), reading only these."""
        source = self.source(data)
        statistics, other = self.statistics(features), self._accumulate(features, source)
        self._keep(statistics + other if sign > 0 else statistics - other)
        self._sources = (*self._sources, (source, sign))
        self._version += 1
        self._gradients = None

    def subset(self, size: int, seed: int) -> tuple[Array, Array]:
        """Rows at random, as :func:`draw_rows`.

        :raises ValueError: If there are no rows at hand, or rows were taken away.
        """
        if not self._rows_at_hand or any(sign < 0 for _, sign in self._sources):
            raise ValueError(
                "data: rows can only be drawn from data that are all at hand; build the model "
                "from the rows themselves, without removed ones."
            )
        return draw_rows([source for source, _ in self._sources], size, seed)

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
            check(version == self._version)
            return False, np.zeros((0, 0)), np.zeros(0), np.zeros(())

        def keep(total: Sums, *values: Array) -> Arrays:
            sums = total.gram.value, total.diagonal.value, np.asarray(float(total.num_rows))
            self._recent = dict(zip(names, values, strict=True)), sums
            return sums

        values = [tf.convert_to_tensor(p) for p in features.parameters.values()]
        found, *sums = tf.numpy_function(look_up, values, [tf.bool, *[tf.float64] * 3])
        if not self._rows_at_hand:
            return with_shapes(features, *sums)
        result: Tensors = tf.cond(
            found,
            lambda: with_shapes(features, *sums),
            lambda: with_shapes(features, *streamed_sums(features, self._sources, keep, values)),
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
            sources = self._sources
            # Traced once, also where gradients are taken eagerly.
            compiled = tf.function(
                lambda *upstream: streamed_gradients(features, sources, *upstream), autograph=False
            )
            self._gradients = key, compiled
        streamed = self._gradients[1]

        @tf.custom_gradient
        def attach(*_: tf.Tensor) -> Any:
            return (tf.identity(gram), tf.identity(diagonal)), streamed

        gram, diagonal = attach(*[tf.convert_to_tensor(v) for v in features.variables])
        return gram, diagonal
