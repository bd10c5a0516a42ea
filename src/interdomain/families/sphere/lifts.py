"""How the inputs of a zonal kernel become points of a sphere: one object for each way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from ..._arguments import Array, refusal
from ...core.columns import checked_columns
from ...core.family import Domain
from .mathematics.globe import check_latitude_longitude, on_the_globe, warn_of_radians

LENGTH_TOLERANCE = 1e-4
"""By so much the length of a unit vector may differ from one."""


class Lift:
    """What a zonal kernel asks about its inputs, which are ``num_added`` columns fewer than the
    sphere's space has dimensions."""

    num_added = 0

    def unit_vectors(self, X: tf.Tensor) -> tf.Tensor:
        """The points of the sphere ``[..., N, d]`` of rows ``[..., N, D]``: by default their
        directions, because points in training leave the sphere."""
        return tf.math.l2_normalize(X, axis=-1)

    def dimension(self, num_columns: int, name: str) -> int:
        """d, of inputs with so many columns, which an argument has by this name.

        :raises ValueError: If inputs of this kind have another number of columns.
        """
        return num_columns + self.num_added

    def num_columns(self, dimension: int) -> int:
        """How many columns inputs have on the sphere of this dimension."""
        return dimension - self.num_added

    def coordinates(self, names: Sequence[str]) -> list[str]:
        """The names of the d coordinates, from those of the columns."""
        return list(names)

    def validate(self, name: str, X: Array) -> None:
        """:raises ValueError: For rows ``[..., D]`` that cannot be meant."""

    def warn(self, name: str, X: Array) -> None:
        """Warn of rows that are hardly meant so."""

    def domain(self) -> Domain | None:
        """The box that inputs have to be in; None for any."""
        return None


class Euclidean(Lift):
    """Scaled, and with a bias as the last coordinate: by the kernel, whose parameters these are."""

    num_added = 1

    def coordinates(self, names: Sequence[str]) -> list[str]:
        return [*names, "bias"]


class UnitVectors(Lift):
    """Points of the sphere themselves."""

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
    """Latitude and longitude in degrees, on the sphere in three dimensions."""

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
        """Latitudes end at the poles."""
        ends = np.array([90.0, np.inf])
        return Domain(-ends, ends, True, "pass latitude and longitude in degrees, in this order")


LIFTS = {"euclidean": Euclidean(), "unit_vectors": UnitVectors(), "degrees": Degrees()}
"""By the name that the argument ``inputs`` has."""
