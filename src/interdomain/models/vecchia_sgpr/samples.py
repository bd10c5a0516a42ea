"""The rows that train a :class:`interdomain.models.VecchiaSGPR`: checks, warnings and samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import gpflow
import numpy as np
from gpflow.kernels import Matern32

from ..._arguments import Array, IntArray, filled_matrix, warn
from ...training.scales import warn_of_data
from ..noise import least_noise_variance
from .conditionals import Given
from .model import VecchiaSGPR
from .rows import Sample

_HEAVY = 16.0
"""The mean fourth power, in squares of the mean square (3 for a Gaussian), above which rare rows
hold much of the variation. A sample of 256 rows gives a mean square to a quarter at this value."""

_NEAREST = 5
"""The number of nearest rows whose mean is compared with a row, to find rare rows."""

_FAR_OFF = 1e3
"""The distance from Y to the mean function, in deviations of Y, above which rounding hides Y."""

_OWN = 1 / 3
"""The largest share of nearest rows at a row's own place; a larger share gives a warning."""

_THINNINGS = (1, 8, 64)
"""The thinnings: rows are conditioned on the nearest of all rows, of an eighth, and of a 64th of
the rows. The nearest of all rows say little about larger gaps between rows."""

_NEW_ROWS_LOOKED_AT = 2_000


def _residuals(model: VecchiaSGPR, explained: Callable[[Array], Any]) -> Array:
    """The merged Y minus the values that features and mean explain, ``[G, P]`` in float64."""
    merged = model.ordered.merged
    return np.asarray(merged.Y - np.asarray(explained(merged.X)), np.float64)


def check_offset(model: VecchiaSGPR, residuals: Array) -> None:
    """:raises ValueError: If Y is so far from the mean function that its variation is lost."""
    most = min(_FAR_OFF, 0.1 / np.sqrt(np.finfo(gpflow.default_float()).eps))
    least = np.sqrt(least_noise_variance(model.likelihood))
    distances = np.abs(residuals.mean(axis=0))
    deviations = np.maximum(residuals.std(axis=0), least)
    column = int(np.argmax(distances / deviations))
    if distances[column] > most * deviations[column]:
        raise ValueError(
            f"data: Y is {distances[column]:.3g} away from the mean function, more than {most:,.0f}"
            f" times its deviation {residuals.std(axis=0)[column]:.3g}; pass "
            "mean_function=gpflow.mean_functions.Constant(Y.mean(axis=0)), or "
            "(Y - Y.mean(axis=0)) / Y.std(axis=0)."
        )


def warn_of_rows(model: VecchiaSGPR) -> None:
    """Warn of columns and targets that are far from the scales of untrained parameters. Also warn
    if more than a third of the nearest rows of a row are at its own place."""
    (X, Y), local = model.arrays, model.local
    local.warn(X)
    kernels = [] if model.all_parts == ("neighbours",) else [model.kernel]
    kernel, variance = local.kernel, float(local.kernel.variance.numpy())
    if kernel.variance.trainable:  # it starts from the targets
        variance = float(np.var(Y)) or variance
    if kernel.lengthscales.trainable or local.inputs == "degrees":
        kernels.append(gpflow.kernels.Constant(variance))
    else:
        kernels.append(Matern32(variance, kernel.lengthscales.numpy()))
        kernels[-1].active_dims = kernel.active_dims
    kernel = kernels[0] if len(kernels) == 1 else gpflow.kernels.Sum(kernels)
    parts = {"likelihood": model.likelihood, "mean_function": model.mean_function}
    warn_of_data(SimpleNamespace(kernel=kernel, **parts), X, Y)
    search, number = model.ordered.neighbours, model.num_neighbours
    if number < len(search.points) and search.share_at_own_place(number) > _OWN:
        places = len(np.unique(search.points, axis=0))
        warn(
            f"data: {len(X):,} rows are at {places:,} distinct places. Many of the {number} "
            "nearest rows of a row are at its own place, and say nothing of the function between "
            "places; pass merge='exact', or features (kernel and inducing_variable)."
        )


class Samples:
    """Samples of a model's rows with their neighbours and residuals.

    :param explained: A function that returns the values that features and mean explain at rows X.
    :param predict_at: Rows ``[n, D]`` at which the model will predict. To compare kernels, rows are
        then conditioned on rows that are as far away as the rows of the model are from
        ``predict_at``.
    :ivar mean_square: The mean square of the residuals of all rows.
    """

    def __init__(
        self, model: VecchiaSGPR, explained: Callable[[Array], Any], predict_at: Any = None
    ) -> None:
        self._model, self.explained, merged = model, explained, model.ordered.merged
        residuals = _residuals(model, explained)
        check_offset(model, residuals)
        counts, num_outputs = np.bincount(merged.groups), residuals.shape[1]
        if model.has_student_t_noise:  # rare rows have small weights
            counts = np.bincount(merged.groups, model.expected_weights)
        squares = counts @ np.square(residuals) + merged.within.squares / num_outputs
        self.mean_square = float(np.mean(squares)) / float(np.sum(counts))
        self._chances = merged, self._new_chances(residuals)
        self._new: Array | None = None
        if predict_at is not None:
            new = filled_matrix("options: predict_at", predict_at, "a matrix [n, D] of new rows")
            model.local.check_new(new, model.num_columns)
            some = new[:: -(-len(new) // _NEW_ROWS_LOOKED_AT)]
            self._new = model.local.points(some.astype(merged.X.dtype))

    def _new_chances(self, residuals: Array) -> Array | None:
        """The probability to draw each merged row, ``[G]``; None for a uniform sample, as under
        Student-t noise, whose rare rows have small weights."""
        is_uniform = self._model.has_student_t_noise
        return None if is_uniform else chances_of_rows(self._model, residuals)

    @property
    def chances(self) -> Array | None:
        """The probability to draw each of the present merged rows: see :func:`chances_of_rows`. A
        search may change the merged rows."""
        merged = self._model.ordered.merged
        if self._chances[0] is not merged:
            residuals = _residuals(self._model, self.explained)
            self._chances = merged, self._new_chances(residuals)
        return self._chances[1]

    @property
    def levels(self) -> tuple[int, ...]:
        """The thinnings that leave enough rows for the neighbours."""
        size, number = len(self._model.ordered.merged.X), self._model.num_neighbours
        return tuple(t for t in _THINNINGS if t == 1 or size // t >= 2 * (number + 1))

    @property
    def levels_compared(self) -> tuple[int, ...]:
        """The thinnings at which kernels are compared: 0 stands for the distances of the rows at
        which the model will predict."""
        return self.levels if self._new is None else (0,)

    def draw(
        self, number: int, seed: int, levels: Sequence[int] = (1,), neighbours: int | None = None
    ) -> tuple[Array, ...]:
        """Draw random rows with their neighbours: see :class:`.Given`.

        :param number: The number of rows for each level.
        :param levels: Thinnings, as :attr:`levels`.
        :param neighbours: The number of neighbours; by default as many as in training.
        """
        size = self._model.num_neighbours if neighbours is None else neighbours
        parts = [self.given(self._sample(number, seed, level, size)) for level in levels]
        within = parts[0].within
        joined = [np.concatenate(several) for several in zip(*(p[:-1] for p in parts), strict=True)]
        joined[2] /= len(parts)
        return *joined, within

    def draw_apart(
        self, number: int, seed: int, neighbours: int, batch_size: int
    ) -> Iterator[tuple[Array, ...]]:
        """Draw random rows with the nearest of all other rows, before or after them in the order.
        With ``predict_at``, the neighbours are as far away as the rows of the model are from
        ``predict_at``. Batches have equal sizes."""
        ordered = self._model.ordered
        rows, shares = ordered.draw(number, seed + 1, self.chances)
        order = np.random.default_rng(seed).permutation(len(rows))
        size = min(batch_size, len(rows))
        for start in range(0, len(rows) - size + 1, size):
            some = order[start : start + size]
            search = ordered.neighbours
            if self._new is None:
                nearest = search.beyond_own(rows[some], neighbours)
            else:
                nearest = self._as_far(search, rows[some], neighbours, seed + start)
            weights = shares[some] * len(rows) / size
            yield tuple(self.given(ordered.sample(rows[some], weights, nearest)))

    def _sample(self, number: int, seed: int, level: int, neighbours: int) -> Sample:
        ordered = self._model.ordered
        search, size = ordered.neighbours, len(ordered.merged.X)
        if level == 1:
            # Many rows are drawn from the last third: one tree then has all of their neighbours.
            is_uniform = self.chances is None and size > 6 * number
            rows, shares = ordered.draw(
                number, seed, self.chances, 2 * size // 3 if is_uniform else 0
            )
            nearest = search.before(rows, neighbours)
        elif level:
            first = size // level
            rows, shares = ordered.draw(number, seed, self.chances, first)
            nearest = search.among_first(first, rows, neighbours)
        else:
            rows, shares = ordered.draw(number, seed, self.chances)
            nearest = self._as_far(search, rows, neighbours, seed)
        return ordered.sample(rows, shares, nearest)

    def _as_far(self, search: Any, rows: IntArray, number: int, seed: int) -> IntArray:
        """The nearest rows at least as far from each row as a random new row is from all rows."""
        assert self._new is not None
        near = search.nearest(self._new, 1)[:, 0]
        new = self._new / search.lengthscales
        distances = np.linalg.norm(new - search.points[near], axis=1)
        drawn = np.random.default_rng(seed).choice(distances, len(rows))
        nearest: IntArray = search.beyond(drawn, rows, number)
        return nearest

    def given(self, sample: Sample) -> Given:
        """The rows of a sample with their residuals."""
        model, merged = self._model, self._model.ordered.merged
        known, places = sample.places >= 0, np.maximum(sample.places, 0)
        residuals = np.asarray(sample.Y - np.asarray(self.explained(sample.X)), np.float64)
        each = 1 / len(merged.X)
        unit = np.log(np.var(model.arrays[1]) or 1.0) / 2
        within = np.array([merged.within.rows * each, merged.within.squares * each, unit])
        points = model.local.points(sample.X)[places]
        weights = sample.noise_weights[places]
        own = model.ordered.given_weights_of_merged[sample.rows]
        return Given(points, known, sample.shares, residuals[places], weights, own, within)


def chances_of_rows(model: VecchiaSGPR, residuals: Array) -> Array | None:
    """The probability to draw each merged row into a sample, ``[G]``; None if all are equal.

    If rare rows hold much of the variation, a uniform sample may miss them. Half of a sample is
    then uniform. The other half is proportional to squares of residuals, and of their differences
    from the mean of the nearest rows. Squares are used if few rows have most of their sum.

    :param residuals: The residuals of the merged rows, ``[G, P]``.
    """
    search = model.ordered.neighbours
    near = search.nearest(search.points * search.lengthscales, _NEAREST)
    concentrated = []
    for differences in (residuals - residuals.mean(axis=0), residuals - residuals[near].mean(1)):
        squares = np.sum(np.square(differences), axis=1)
        if len(squares) * np.sum(np.square(squares)) > _HEAVY * np.sum(squares) ** 2:
            concentrated.append(squares / np.sum(squares))
    if not concentrated:
        return None
    chances: Array = (1 / len(residuals) + np.mean(concentrated, axis=0)) / 2
    return chances
