"""The linear functional that sums f over the weighted points of regions."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from .._arguments import Array, IntArray, finite_array, refusal, short
from ..linalg.chunks import map_rows
from .averages import MOST_ENTRIES
from .functionals import LinearFunctional, Places
from .slopes import Function


class Areas(LinearFunctional):
    """Weighted sums of f over the points of regions: means over districts, pixels or footprints.

    A row holds the number of its region in its first input; other inputs of the row are ignored.
    The features of a region are the weighted sum of the features at its points, computed once for
    all of its rows in a batch.

    :param points: The points of all regions, ``[Q, D]``, in the inputs of the prior.
    :param weights: The weight of each point, ``[Q]``. For an integral, pass the area of each
        point; None, the default, for the mean over the points of a region.
    :param regions: The number of each point's region, ``[Q]``, integers from 0; None for a single
        region.
    :raises ValueError: If a region has no points, or a number is not finite. Models raise it for
        rows whose number is that of no region.
    """

    def __init__(self, points: Any, weights: Any = None, regions: Any = None) -> None:
        values = finite_array("points", points, (2,), "a matrix [Q, D]")
        count = len(values)
        given = np.zeros(count) if regions is None else regions
        numbers = finite_array("regions", given, (1,), "a vector [Q]")
        counts = np.bincount(np.maximum(numbers, 0).astype(np.int64), minlength=1)
        remedy = "pass an integer from 0 for each point, with a point for each region"
        if len(numbers) != count or np.any(numbers != np.floor(numbers)) or np.any(numbers < 0):
            raise refusal("regions", f"be {count} integers from 0", short(regions), remedy)
        if not count or np.any(counts == 0):
            found = f"none for region {int(np.argmin(counts))}"
            raise refusal("points", "have a point in every region", found, remedy)
        if weights is None:
            weights = 1 / counts[numbers.astype(np.int64)]
        factors = finite_array("weights", weights, (1,), "a number for each point")
        if len(factors) != count:
            raise refusal("weights", f"have {count} numbers", len(factors), "pass one a point")
        order = np.argsort(numbers, kind="stable")
        self.points, self.weights = values[order], factors[order]
        self.ends: IntArray = np.concatenate([[0], np.cumsum(counts)])

    @property
    def num_regions(self) -> int:
        """The number R of regions."""
        return len(self.ends) - 1

    def act(self, function: Function, places: Places, size: int) -> tf.Tensor:
        """The weighted sums of a function. Regions that occur are computed once."""
        points, total = self.at_points(places.inputs)
        return total(map_rows(function, points, [], max(MOST_ENTRIES // size, 1)))

    def at_points(self, inputs: tf.Tensor) -> tuple[tf.Tensor, Function]:
        """The points ``[m, D]`` of the regions that occur in rows, and the function from values at
        these points ``[m, C]`` to weighted sums of the rows, ``[n, C]``."""
        regions, rows = tf.unique(self.numbers(inputs))
        starts, ends = tf.gather(self.ends[:-1], regions), tf.gather(self.ends[1:], regions)
        chosen = tf.ragged.range(starts, ends)
        points, weights = (
            tf.gather(tf.constant(part, inputs.dtype), chosen.flat_values)
            for part in (self.points, self.weights)
        )

        def total(values: tf.Tensor) -> tf.Tensor:
            weighted = values * tf.cast(weights, values.dtype)[:, None]
            ids, count = chosen.value_rowids(), tf.size(regions)
            return tf.gather(tf.math.unsorted_segment_sum(weighted, ids, count), rows)

        return points, total

    def numbers(self, inputs: tf.Tensor) -> tf.Tensor:
        """The region of each row, ``[n]``; outside of graphs, the numbers are checked."""
        if tf.executing_eagerly():
            self.validate("X", inputs.numpy(), inputs.numpy())
        return tf.cast(tf.round(inputs[:, 0]), tf.int64)

    def seen_by(self, columns: IntArray) -> LinearFunctional:
        return self

    def check(self, num_inputs: int) -> None:
        if self.points.shape[1] != num_inputs:
            count = self.points.shape[1]
            rule = f"have {count} inputs, as many as the points of Areas have columns"
            remedy = "do not count the last column of X, if it holds the number of the functional"
            raise refusal("X", rule, num_inputs, remedy)

    def validate(self, name: str, inputs: Array, columns: Array) -> None:
        numbers = inputs[:, 0]
        wrong = (numbers != np.round(numbers)) | (numbers < 0) | (numbers >= self.num_regions)
        if np.any(wrong):
            rule = f"have the number of a region, 0 to {self.num_regions - 1}, in its first input"
            raise refusal(name, rule, short(numbers[wrong][0]), "correct the rows with Areas")

    def needed(self, inputs: Array, columns: Array, *, centres: bool = False) -> list[Array]:
        """The corners of the smallest box around the region of each row."""
        regions = inputs[:, 0].astype(np.int64)
        extremes = np.minimum, np.maximum
        return [np.asarray(one.reduceat(self.points, self.ends[:-1])[regions]) for one in extremes]

    def concerned(self, inputs: Array) -> Array:
        regions = np.unique(inputs[:, 0]).astype(np.int64)
        within = [np.arange(*self.ends[region : region + 2]) for region in regions]
        points: Array = self.points[np.concatenate(within)] if within else self.points[:0]
        return points
