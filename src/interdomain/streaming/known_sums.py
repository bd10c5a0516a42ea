"""The sums that have been computed already, with the parameter values that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from ..sphere._typing import Array
from .statistics import SufficientStatistics

Tensors: TypeAlias = tuple[tf.Tensor, tf.Tensor, tf.Tensor]
Arrays: TypeAlias = tuple[Array, Array, Array]


class KnownSums:
    """
    Two sets of sums: those of the statistics, and those that a compiled function took last.

    :ivar statistics: the statistics taken (or given) last; None before there are any.
    """

    def __init__(self, statistics: SufficientStatistics | None = None) -> None:
        self.statistics = statistics
        self.forget_tensors()

    def keep(self, statistics: SufficientStatistics) -> None:
        """Replace the statistics, and forget everything else."""
        self.statistics = statistics
        self.forget_tensors()

    def forget_tensors(self) -> None:
        """Keep the statistics alone."""
        self._tensors: Tensors | None = None
        self._recent: tuple[Mapping[str, Array], Arrays] | None = None

    def remember(self, parameters: Mapping[str, Array], sums: Arrays) -> None:
        """Keep the sums that a compiled function took at these values of the parameters."""
        self._recent = parameters, sums

    def tensors(self) -> Tensors:
        """The matrix, the diagonal's terms and the number of rows of the statistics."""
        if self._tensors is None:
            assert self.statistics is not None
            self._tensors = (
                tf.constant(self.statistics.gram.value),
                tf.constant(self.statistics.diagonal.value),
                tf.constant(float(self.statistics.num_rows), tf.float64),
            )
        return self._tensors

    def __iter__(self) -> Iterator[tuple[Mapping[str, Array], Arrays]]:
        """Each set of sums after the values of the parameters that it belongs to."""
        assert self.statistics is not None
        gram, diagonal, num_rows = (np.asarray(tensor) for tensor in self.tensors())
        yield self.statistics.identity.parameters, (gram, diagonal, num_rows)
        if self._recent is not None:
            yield self._recent
