"""The rows of a model and the features that the model has now, for passes over all rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from ..sphere._typing import Array
from .contributions import Contributions
from .rows import Rows, draw_rows

Warn = Callable[[Contributions, Array, Array], None]
"""A function that is called with the first rows that are read."""


class RowsProvider:
    """The rows of a model, including rows that were added or removed later.

    :param data: Rows; None if there are only sums of them.
    :param settings: The keyword arguments of :class:`.rows.Rows`.
    :param columns: The numbers of columns of X and of Y where the rows are not available.
    :param warn: What to do with the first rows that are read.
    :ivar columns: The numbers of columns of X and of Y.
    :ivar num_latents: The number of columns of the mean function; None for as many as Y has.
    """

    def __init__(
        self,
        data: Any,
        settings: Mapping[str, Any],
        *,
        columns: tuple[int, int] | None = None,
        warn: Warn | None = None,
    ) -> None:
        self._settings = dict(settings)
        self.num_latents: int | None = None
        self._warn = warn
        self._rows: tuple[tuple[Rows, int], ...] = ()
        self._contributions: Contributions | None = None
        self._version = 0
        if columns is None:
            rows = Rows(data, **self._settings)
            self._rows = ((rows, 1),)
            columns = rows.columns
        self.columns = columns

    def __getstate__(self) -> dict[str, Any]:
        """Rows without graphs: a copy of the model makes its own."""
        return {**self.__dict__, "_contributions": None}

    @property
    def rows_at_hand(self) -> bool:
        """Whether the rows are available, and not only statistics of them."""
        return bool(self._rows)

    @property
    def num_rows(self) -> int | None:
        """The number of rows, valid or not; None if it is known only after a pass."""
        sizes = [(rows.num_rows, sign) for rows, sign in self._rows]
        return sum(sign * (size or 0) for size, sign in sizes) if all(s for s, _ in sizes) else None

    @property
    def version(self) -> int:
        """A number that grows whenever the rows or the features change."""
        return self._version

    def contributions(
        self, kernel: Kernel, inducing_variable: InducingVariables, mean_function: MeanFunction
    ) -> Contributions:
        """The features of the model as it is now."""
        with tf.init_scope():  # the graph of the features is not part of the caller's
            known = self._contributions
            parts = kernel, inducing_variable, mean_function
            if known is not None and known.is_current(*parts):
                return known
            self._features_changed()
            num_columns, num_outputs = self.columns
            size = num_outputs if self.num_latents is None else self.num_latents
            self._contributions = self._made(*parts, num_columns, size)
            return self._contributions

    def share(self, contributions: Contributions) -> None:
        """Use features of another model with the same kernel, inducing variable and mean."""
        self._contributions = contributions

    def _features_changed(self) -> None:
        """Forget what belongs to the features before."""
        self._contributions = None
        self._version += 1

    def _made(self, *arguments: Any) -> Contributions:
        return Contributions(*arguments)

    def warn_of(self, contributions: Contributions, X: Array, Y: Array) -> None:
        """Warn about the first rows that are read, if necessary; later rows are not checked."""
        warn = self._warn
        self.warned()
        if warn is not None:
            warn(contributions, X, Y)

    def warned(self) -> None:
        """Do not warn about any rows from now on."""
        self._warn = None

    def pass_over(self, content: Any) -> Any:
        """The statistics of all rows, computed in a pass over them.

        The pass runs eagerly, even while the caller is traced. Gradient tapes of the caller are
        paused, because they would keep every batch.

        :param content: What is summed: of regression or of sites.
        """
        total: Any = None
        with tf.init_scope():
            for rows, sign in self._rows:
                part = self._accumulate(content, rows)
                if total is None:
                    total = part
                else:
                    total = total + part if sign > 0 else total - part
        assert total is not None, "callers have rows at hand"
        return total

    def pass_over_others(self, content: Any, rows: Rows) -> Any:
        """The statistics of other rows."""
        with tf.init_scope():
            return self._accumulate(content, rows)

    def _accumulate(self, content: Any, rows: Rows) -> Any:
        sums = content.begin()
        seconds = {"read": 0.0, "features": 0.0, "products": 0.0}
        done, start = 0, time.perf_counter()
        for X, Y in rows.batches(content.boxes):
            seconds["read"] += time.perf_counter() - start
            self.warn_of(content.features, X, Y)
            wrong = sums.add(X, Y, seconds)
            if wrong is not None:
                raise ValueError(
                    f"kernel: {wrong}, among rows {done} to {done + len(X) - 1}; check the "
                    "kernel's parameters and the scale of X."
                )
            done += len(X)
            if sums.is_full:
                sums.end_block()
            start = time.perf_counter()
        return sums.statistics(sums.end_block(), rows.num_skipped, seconds)

    def others(self, data: Any) -> Rows:
        """Other rows of the same kind.

        :raises ValueError: If they have other numbers of columns.
        """
        return Rows(data, columns=self.columns, **self._settings)

    def join(self, rows: Rows, sign: int) -> None:
        """Add rows (sign 1) or take rows away (sign -1)."""
        self._rows = (*self._rows, (rows, sign))
        self._version += 1

    def subset(self, size: int, seed: int) -> tuple[Array, Array]:
        """Rows drawn at random; see :func:`.rows.draw_rows`.

        :raises ValueError: If the rows are not available, or rows were taken away.
        """
        if not self.rows_at_hand or any(sign < 0 for _, sign in self._rows):
            raise ValueError(
                "data: rows can only be drawn from data that are all at hand; build the model "
                "from the rows themselves, without removed ones."
            )
        return draw_rows([rows for rows, _ in self._rows], size, seed)

    def sums_of(self, function: Callable[[Array, Array], Mapping[str, Array]]) -> dict[str, Array]:
        """Sums over all rows of what a function returns for a batch, as :meth:`Rows.sums_of`.

        :raises ValueError: If the rows are not available.
        """
        if not self.rows_at_hand:
            raise ValueError(
                "data: the model was built from SufficientStatistics, and its rows are needed; "
                "build it from the rows."
            )
        total: dict[str, Array] = {}
        for rows, sign in self._rows:
            for name, array in rows.sums_of(function).items():
                total[name] = total.get(name, np.zeros_like(array)) + sign * array
        return total
