"""The rows of a model and the features that the model has now, for passes over all rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from ..distributed import Workers
from ..sphere._typing import Array
from .accumulation import Told
from .content import PassContent, Statistics
from .contributions import Contributions
from .rows import PassSettings, Rows, draw
from .sources import resolve_batch_size

Warn = Callable[[Contributions, Array, Array], None]
"""A function that is called with the first rows that are read."""


class RowsProvider:
    """The rows of a model, including rows that were added or removed later.

    :param data: Rows.
    :param columns: The numbers of columns of X and of Y where the rows are not available; None if
        they are.
    :param batch_size: The number of rows to read at a time; None chooses a fast number.
    :param on_invalid: What to do with rows that are not finite: "raise" or "skip".
    :param checkpoint_path: The file (or folder) in which a pass keeps its sums; None for no file.
        Also the attribute ``path``.
    :param progress: Whether long passes show a progress bar.
    :param workers: The workers that share the rows.
    :param missing: Whether NaN in Y stands for a value that is missing.
    :raises ValueError: If the data or a setting is not valid.
    :ivar columns: The numbers of columns of X and of Y.
    :ivar num_latents: The number of columns of the mean function; None for as many as Y has.
    """

    def __init__(
        self,
        data: Any,
        num_inducing: int,
        *,
        columns: tuple[int, int] | None = None,
        batch_size: int | None,
        on_invalid: str,
        checkpoint_path: str | os.PathLike[str] | None,
        progress: bool,
        workers: Workers,
        warn: Warn | None = None,
        missing: bool = False,
    ) -> None:
        if on_invalid not in ("raise", "skip"):
            raise ValueError(f"on_invalid: found {on_invalid!r}; pass 'raise' or 'skip'.")
        self.batch_size = resolve_batch_size(batch_size, num_inducing)
        self.workers = workers
        self.path = checkpoint_path
        self._settings = PassSettings(self.batch_size, on_invalid, progress, workers, missing)
        self.num_latents: int | None = None
        self._warn = warn if workers.is_chief else None
        self._rows: tuple[tuple[Rows, int], ...] = ()
        self._contributions: Contributions | None = None
        self._version = 0
        if columns is None:
            rows = Rows(data, self._settings)
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
        """The number of rows that this worker reads, valid or not; None if it is known only after a
        pass."""
        if any(rows.in_parts for rows, _ in self._rows):
            return None
        sizes = [(s.num_rows, sign) for rows, sign in self._rows for _, s in rows.sources()]
        return sum(sign * (size or 0) for size, sign in sizes) if all(s for s, _ in sizes) else None

    @property
    def in_parts(self) -> bool:
        """Whether ``path`` is a folder, with a file for each part of the rows."""
        return bool(self._rows) and self._rows[0][0].in_parts

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

    def pass_over(
        self,
        content: PassContent[Statistics],
        path: str | os.PathLike[str] | None = None,
        *,
        fresh: bool = False,
        told: Told | None = None,
    ) -> Statistics:
        """The statistics of all rows, computed in a pass over them.

        The pass runs eagerly, even while the caller is traced. Gradient tapes of the caller are
        paused, because they would keep every batch.

        :param path: Where the pass over the original rows keeps its sums.
        :param fresh: Whether to ignore an existing file there.
        :param told: Called with the rows of the first batch.
        """
        total: Statistics | None = None
        with tf.init_scope():
            for rows, sign in self._rows:
                if total is None:
                    total = rows.accumulate(content, path, fresh=fresh, told=told)
                else:
                    part = rows.accumulate(content, None, fresh=False)
                    total = total + part if sign > 0 else total - part
        assert total is not None, "callers have rows at hand"
        return total

    def pass_over_others(self, content: PassContent[Statistics], rows: Rows) -> Statistics:
        """The statistics of other rows."""
        with tf.init_scope():
            return rows.accumulate(content, None, fresh=False)

    def others(self, data: Any) -> Rows:
        """Other rows of the same kind.

        :raises ValueError: If they have other numbers of columns.
        """
        return Rows(data, self._settings, self.columns)

    def join(self, rows: Rows, sign: int) -> None:
        """Add rows (sign 1) or take rows away (sign -1)."""
        self._rows = (*self._rows, (rows, sign))
        self._version += 1

    def subset(self, size: int, seed: int) -> tuple[Array, Array]:
        """Rows drawn at random; see :func:`draw`.

        :raises ValueError: If the rows are not available, or rows were taken away.
        """
        if not self.rows_at_hand or any(sign < 0 for _, sign in self._rows):
            raise ValueError(
                "data: rows can only be drawn from data that are all at hand; build the model "
                "from the rows themselves, without removed ones."
            )
        return draw([rows for rows, _ in self._rows], size, seed, self.workers)

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
