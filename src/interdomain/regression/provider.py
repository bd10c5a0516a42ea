"""The rows of a model and the features that the model has now, for passes over all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from ..covariances.domains import Box
from ..sphere._typing import Array
from .features import Features
from .rows import Rows, draw_rows

Warn = Callable[[Features, Array, Array], None]
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
        self._features: Features | None = None
        self._version = 0
        if columns is None:
            rows = Rows(data, **self._settings)
            self._rows = ((rows, 1),)
            columns = rows.columns
        self.columns = columns

    def __getstate__(self) -> dict[str, Any]:
        """Rows without graphs: a copy of the model makes its own."""
        return {**self.__dict__, "_features": None}

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
    def batch_size(self) -> int | None:
        """The number of rows that are taken at a time; None if the rows are not available."""
        return self._rows[0][0].batch_size if self._rows else None

    @property
    def version(self) -> int:
        """A number that grows whenever the rows or the features change."""
        return self._version

    def features(
        self, kernel: Kernel, inducing_variable: InducingVariables, mean_function: MeanFunction
    ) -> Features:
        """The features of the model as it is now."""
        with tf.init_scope():  # the graph of the features is not part of the caller's
            known = self._features
            parts = kernel, inducing_variable, mean_function
            if known is not None and known.is_current(*parts):
                return known
            self._features_changed()
            num_columns, num_outputs = self.columns
            size = num_outputs if self.num_latents is None else self.num_latents
            self._features = self._made(*parts, num_columns, size)
            return self._features

    def share(self, features: Features) -> None:
        """Use features of another model with the same kernel, inducing variable and mean."""
        self._features = features

    def _features_changed(self) -> None:
        """Forget what belongs to the features before."""
        self._features = None
        self._version += 1

    def _made(self, *arguments: Any) -> Features:
        return Features(*arguments)

    def warn_of(self, features: Features, X: Array, Y: Array) -> None:
        """Warn about the first rows that are read, if necessary; later rows are not checked."""
        warn = self._warn
        self.warned()
        if warn is not None:
            warn(features, X, Y)

    def warned(self) -> None:
        """Do not warn about any rows from now on."""
        self._warn = None

    def total(self, take: Callable[[Rows], Any]) -> Any:
        """The sum of what ``take`` makes of the rows, and of those added or removed later."""
        found = [take(rows) for rows, _ in self._rows]
        total = found[0]
        for part, (_, sign) in zip(found[1:], self._rows[1:], strict=True):
            total = total + part if sign > 0 else total - part
        return total

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

    def sums_of(
        self,
        function: Callable[[Array, Array], Mapping[str, Array]],
        boxes: Sequence[Box] = (),
        others: Rows | None = None,
    ) -> dict[str, Array]:
        """Sums over all rows of named arrays that a function returns for a batch.

        :param boxes: Where the rows have to be.
        :param others: Rows to take in place of these.
        :raises ValueError: If the rows are not available.
        """
        signed = self._rows if others is None else ((others, 1),)
        if not signed:
            raise ValueError(
                "data: the model was built from SufficientStatistics, and its rows are needed; "
                "build it from the rows."
            )
        total: dict[str, Array] = {}
        for rows, sign in signed:
            for batch in rows.batches(boxes):
                for name, array in function(*batch).items():
                    total[name] = total.get(name, np.zeros_like(array)) + sign * array
        return total
