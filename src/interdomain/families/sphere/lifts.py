"""How the inputs of a zonal kernel become points of a sphere: one object for each way."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from ..._arguments import Array
from ...core.columns import of_columns
from ...core.parameters import positive_parameter
from .mathematics.globe import check_latitude_longitude, on_the_globe, warn_of_radians

if TYPE_CHECKING:
    from .kernel import ZonalKernel

LENGTH_TOLERANCE = 1e-4
"""By so much the length of a unit vector may differ from one."""


class Lift(abc.ABC):
    """What a zonal kernel asks about its inputs. Parameters are the kernel's own."""

    rule: str
    """The dimension of the sphere's space, in words."""

    def make_parameters(
        self,
        kernel: ZonalKernel,
        weight_variances: TensorType | None,
        bias_variance: TensorType | None,
    ) -> None:
        """Give the kernel its parameters of the inputs; here none.

        :raises ValueError: If they are wrong, or given where there are none.
        """
        given = {"weight_variances": weight_variances, "bias_variance": bias_variance}
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"{name} must not be given with inputs={kernel.inputs!r}, which are on the "
                    f"sphere as they are, found one; leave {name} out and pass a lengthscale, or "
                    "pass inputs='euclidean'."
                )

    def parameters(self, kernel: ZonalKernel) -> dict[str, Any]:
        """Arguments for the constructor of another kernel with the same inputs."""
        return {"inputs": kernel.inputs}

    def lengths(self, kernel: ZonalKernel) -> Array | None:
        """How far apart inputs are for the kernel, in each column; None if no scale is wrong."""
        return None

    def default_lengthscale(self, num_columns: int | None) -> float:
        """In radians, shorter on spheres of higher dimension; None if there is no telling it."""
        if num_columns is None:
            return 0.5
        return float(np.sqrt(2 / (self.dimension(num_columns, "active_dims") - 1)))

    @abc.abstractmethod
    def to_sphere(self, kernel: ZonalKernel, X: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """Radii ``[..., N, 1]`` and unit vectors ``[..., N, d]``."""

    @abc.abstractmethod
    def dimension(self, num_columns: int, name: str) -> int:
        """d, of inputs with so many columns.

        :param name: Of the argument, for the message.
        :raises ValueError: If there is no such sphere.
        """

    @abc.abstractmethod
    def num_columns(self, dimension: int) -> int:
        """How many columns inputs have on the sphere of this dimension."""

    @abc.abstractmethod
    def coordinates(self, names: Sequence[str]) -> list[str]:
        """The names of the d coordinates, from those of the columns."""

    def validate(self, name: str, X: Array) -> None:
        """:raises ValueError: For rows ``[..., D]`` that cannot be meant."""
        return None

    def warn(self, name: str, X: Array) -> None:
        """Warn of rows that are hardly meant so."""
        return None

    def domain(self) -> tuple[Array, Array, bool, str] | None:
        """The box that inputs have to be in, as ``core.family.Domain``; None for any."""
        return None


class Euclidean(Lift):
    """Scaled, and with a bias as the last coordinate."""

    rule = "the number of columns plus one"

    def make_parameters(
        self,
        kernel: ZonalKernel,
        weight_variances: TensorType | None,
        bias_variance: TensorType | None,
    ) -> None:
        weight_variances = 1.0 if weight_variances is None else weight_variances
        bias_variance = 1.0 if bias_variance is None else bias_variance
        remedy = "scale the columns with weight_variances=[...]"
        kernel.bias_variance = positive_parameter("bias_variance", bias_variance, remedy=remedy)
        remedy = "pass a number, or one for each column"
        kernel.weight_variances = positive_parameter(
            "weight_variances", weight_variances, remedy=remedy, per_column=True
        )

    def parameters(self, kernel: ZonalKernel) -> dict[str, Any]:
        return {
            "weight_variances": kernel.weight_variances,
            "bias_variance": kernel.bias_variance,
        }

    def lengths(self, kernel: ZonalKernel) -> Array | None:
        """What makes the weighted column as large as the bias."""
        ratio = kernel.bias_variance.numpy() / kernel.weight_variances.numpy()
        return np.asarray(np.sqrt(ratio), float)

    def to_sphere(self, kernel: ZonalKernel, X: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        num_weights = kernel.weight_variances.shape[0] if kernel.ard else None
        remedy = "pass X with those columns, or weight_variances as a scalar or one per column"
        X = of_columns(X, num_weights, ", one for each entry of weight_variances", remedy)
        scaled = X * tf.sqrt(kernel.weight_variances)
        bias = tf.sqrt(kernel.bias_variance) * tf.ones_like(X[..., :1])
        lifted = tf.concat([scaled, bias], axis=-1)
        radius = tf.sqrt(tf.reduce_sum(tf.square(lifted), axis=-1, keepdims=True))
        return radius, lifted / radius

    def dimension(self, num_columns: int, name: str) -> int:
        return num_columns + 1

    def num_columns(self, dimension: int) -> int:
        return dimension - 1

    def coordinates(self, names: Sequence[str]) -> list[str]:
        return [*names, "bias"]


class UnitVectors(Lift):
    """Points of the sphere themselves."""

    rule = "the number of columns of the unit vectors"

    def to_sphere(self, kernel: ZonalKernel, X: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """Points in training leave the sphere: their directions are taken."""
        X = tf.convert_to_tensor(X)
        return tf.ones_like(X[..., :1]), tf.math.l2_normalize(X, axis=-1)

    def dimension(self, num_columns: int, name: str) -> int:
        if num_columns < 2:
            raise ValueError(
                f"{name} must be 2 or more for unit vectors, found {num_columns}; pass the number "
                "of their entries, 3 on the globe."
            )
        return num_columns

    def num_columns(self, dimension: int) -> int:
        return dimension

    def coordinates(self, names: Sequence[str]) -> list[str]:
        return list(names)

    def validate(self, name: str, X: Array) -> None:
        lengths = np.linalg.norm(np.asarray(X, float), axis=-1)
        if not np.all(np.isfinite(lengths)):
            raise ValueError(
                f"{name} must be finite, found NaN or infinite entries; pass the rows without them."
            )
        wrong = int(np.count_nonzero(np.abs(lengths - 1) > LENGTH_TOLERANCE))
        if wrong:
            raise ValueError(
                f"{name} must have rows of length 1 with inputs='unit_vectors', found lengths from "
                f"{np.min(lengths):.6g} to {np.max(lengths):.6g}, {wrong:,} of {lengths.size:,} "
                "off; pass X / np.linalg.norm(X, axis=-1, keepdims=True), or inputs='euclidean'."
            )


class Degrees(Lift):
    """Latitude and longitude in degrees, on the sphere in three dimensions."""

    rule = "3 for latitude and longitude"

    def default_lengthscale(self, num_columns: int | None) -> float:
        return 0.5

    def to_sphere(self, kernel: ZonalKernel, X: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        remedy = "select them with active_dims=[...]"
        X = of_columns(X, 2, ", latitude and longitude in degrees", remedy)
        unit = on_the_globe(X)
        return tf.ones_like(unit[..., :1]), unit

    def dimension(self, num_columns: int, name: str) -> int:
        if num_columns != 2:
            raise ValueError(
                f"{name} must be 2, latitude and longitude, with inputs='degrees', found "
                f"{num_columns}; pass 2, and select them with active_dims=[...] if X has others."
            )
        return 3

    def num_columns(self, dimension: int) -> int:
        return 2

    def coordinates(self, names: Sequence[str]) -> list[str]:
        return ["x", "y", "z"]

    def validate(self, name: str, X: Array) -> None:
        check_latitude_longitude(name, X)

    def warn(self, name: str, X: Array) -> None:
        warn_of_radians(name, X)

    def domain(self) -> tuple[Array, Array, bool, str] | None:
        ends = np.array([90.0, np.inf])
        remedy = "pass latitude and longitude in degrees, in this order"
        return -ends, ends, True, remedy


LIFTS: dict[str, Lift] = {
    "euclidean": Euclidean(),
    "unit_vectors": UnitVectors(),
    "degrees": Degrees(),
}
"""By the name that the argument ``inputs`` has."""
