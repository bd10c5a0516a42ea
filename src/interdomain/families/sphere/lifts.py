"""Maps of the inputs of a zonal kernel to a sphere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from ..._arguments import Array, refusal
from ...core.columns import checked_columns
from ...core.family import Domain
from .mathematics.globe import check_latitude_longitude, on_the_globe, warn_of_radians

LENGTH_TOLERANCE = 1e-4
"""The largest allowed difference between one and the length of a unit vector."""


class Lift:
    """A map of inputs to the sphere. The space around the sphere has ``num_added`` dimensions more
    than the inputs have columns."""

    num_added = 0

    def unit_vectors(self, X: tf.Tensor) -> tf.Tensor:
        """The unit vectors ``[..., N, d]`` of rows ``[..., N, D]``. By default, rows are divided by
        their lengths, because inducing points leave the sphere during training."""
        return tf.math.l2_normalize(X, axis=-1)

    def dimension(self, num_columns: int, name: str) -> int:
        """The dimension d for a number of columns; ``name`` is the argument with that number.

        :raises ValueError: If inputs cannot have this number of columns.
        """
        return num_columns + self.num_added

    def num_columns(self, dimension: int) -> int:
        """The number of input columns for the dimension d."""
        return dimension - self.num_added

    def coordinates(self, names: Sequence[str]) -> list[str]:
        """The names of the d coordinates, given the names of the columns."""
        return list(names)

    def validate(self, name: str, X: Array) -> None:
        """Check that rows ``[..., D]`` are valid inputs; a ValueError otherwise."""

    def warn(self, name: str, X: Array) -> None:
        """Warn of rows that are probably in another unit."""

    def domain(self) -> Domain | None:
        """The box that must contain the inputs; None if all inputs are valid."""
        return None


class Euclidean(Lift):
    """Inputs that the kernel scales and extends by a bias, the last coordinate."""

    num_added = 1

    def coordinates(self, names: Sequence[str]) -> list[str]:
        return [*names, "bias"]


class UnitVectors(Lift):
    """Inputs that are unit vectors."""

    def validate(self, name: str, X: Array) -> None:
        lengths = np.linalg.norm(np.asarray(X, float), axis=-1)
        wrong = np.count_nonzero(~(np.abs(lengths - 1) <= LENGTH_TOLERANCE))
        if wrong:
            raise ValueError(
                f"{name} must have rows of length 1 with inputs='unit_vectors', found lengths from "
                f"{np.min(lengths):.6g} to {np.max(lengths):.6g}, {wrong:,} of {lengths.size:,} "
                "off; pass X / np.linalg.norm(X, axis=-1, keepdims=True), or inputs='euclidean'."
            )


class Degrees(Lift):
    """Inputs that are latitudes and longitudes in degrees, on the sphere in three dimensions."""

    num_added = 1

    def unit_vectors(self, X: tf.Tensor) -> tf.Tensor:
        remedy = "select them with active_dims=[...]"
        return on_the_globe(checked_columns(X, 2, ", latitude and longitude in degrees", remedy))

    def dimension(self, num_columns: int, name: str) -> int:
        if num_columns != 2:
            remedy = "pass 2, and select them with active_dims=[...] if X has others"
            rule = "be 2, latitude and longitude, with inputs='degrees'"
            raise refusal(name, rule, num_columns, remedy)
        return 3

    def coordinates(self, names: Sequence[str]) -> list[str]:
        return ["x", "y", "z"]

    def validate(self, name: str, X: Array) -> None:
        check_latitude_longitude(name, X)

    def warn(self, name: str, X: Array) -> None:
        warn_of_radians(name, X)

    def domain(self) -> Domain | None:
        """The latitudes from pole to pole, with any longitude."""
        ends = np.array([90.0, np.inf])
        remedy = "pass latitude and longitude in degrees, in this order"
        return Domain(-ends, ends, True, remedy, continues=True)


LIFTS = {"euclidean": Euclidean(), "unit_vectors": UnitVectors(), "degrees": Degrees()}
"""The lifts, by the values of the argument ``inputs`` of zonal kernels."""
