"""Values of f at fixed places, where all rows are: stations, meters, sensors."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from ..._arguments import IntArray, as_integers, filled_matrix, refusal, short
from ..._tracing import unconverted
from ...core.family import InterDomainInducingVariables, with_jitter
from ...core.functional_covariances import point_covariances
from ...core.functionals import LinearFunctional, Places
from ...core.product_rule import columns_seen
from ...linalg import Full


class FixedPlaces(InterDomainInducingVariables):
    """Values of f at fixed places, such as stations, where all rows are.

    ``u_m = f(z_m)``, as for ``gpflow.inducing_variables.InducingPoints``, with the same covariances
    ``Kuf = K(Z, X)`` and ``Kuu = K(Z, Z)``. The places are not trained. If all rows are at the
    places, f at the rows is exactly the values u, whatever the kernel's parameters are. Sums over
    rows of products with splines of time then depend on no parameter of the kernel: see
    ``docs/guides/space_and_time.md``. Predictions can be made at any place.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).integers(5, size=[200, 2]).astype(float)
    >>> stations = idm.inducing_variables.FixedPlaces.from_data(X)
    >>> stations.num_inducing
    25

    :param places: The places, ``[M, d]``, finite and all different.
    :param columns: The column of X of each column of ``places``; the first d by default. The kernel
        must use no other columns.
    :raises ValueError: If an argument is not as above.
    """

    kernels = (Kernel,)

    def __init__(self, places: TensorType, columns: Any = None, *, name: str | None = None) -> None:
        super().__init__(name=name)
        self.places = filled_matrix("places", places, "a matrix [M, d]")
        width = self.places.shape[1]
        remedy = "pass the column of X of each column of places"
        chosen = range(width) if columns is None else as_integers("columns", columns, remedy)
        if len(chosen) != width or min(chosen) < 0 or len(set(chosen)) < width:
            rule = f"be {width} different integers of 0 or more, one for each column of places"
            raise refusal("columns", rule, short(list(chosen)), remedy)
        self.columns: IntArray = np.array(chosen)
        distinct, counts = np.unique(self.places, axis=0, return_counts=True)
        if len(distinct) < len(self.places):
            twice = short(distinct[np.argmax(counts)].tolist())
            raise refusal("places", "be different", f"{twice} twice", "pass each place once")

    @classmethod
    def from_data(cls, X: TensorType, columns: Any = None) -> FixedPlaces:
        """The distinct places of rows.

        :param X: ``[N, D]``, all rows of the data, with all columns.
        :param columns: The columns of X that say where a row is, such as ``[0, 1]``; all by
            default.
        """
        rows = filled_matrix("X", X, "a matrix [N, D]")
        chosen = range(rows.shape[1]) if columns is None else as_integers("columns", columns, "")
        if max(chosen) >= rows.shape[1] or min(chosen) < 0:
            rule = f"be columns of X, 0 to {rows.shape[1] - 1}"
            raise refusal("columns", rule, short(list(chosen)), "pass columns that X has")
        return cls(np.unique(rows[:, list(chosen)], axis=0), list(chosen))

    @property
    def num_inducing(self) -> int:
        return len(self.places)

    def points(self, kernel: Kernel, num_columns: int | None = None) -> tf.Tensor:
        """The places as rows of X with zeros in all other columns, ``[M, D]``.

        :param num_columns: D; by default as many as the places need.
        :raises ValueError: If the kernel uses other columns than the places have.
        """
        width = max(num_columns or 0, int(np.max(self.columns)) + 1)
        rows = np.zeros([len(self.places), width])
        rows[:, self.columns] = self.places
        points = tf.constant(rows, gpflow.default_float())
        others = np.setdiff1d(columns_seen(kernel, points), self.columns)
        if len(others):
            rule = f"use only columns {short(self.columns.tolist())} of X, which the places have"
            remedy = "pass active_dims to the kernel, or columns to the places"
            raise refusal("kernel", rule, f"columns {short(others.tolist())} too", remedy)
        return points

    @unconverted
    def Kuf(self, kernel: Kernel, X: TensorType) -> tf.Tensor:
        X = tf.convert_to_tensor(X)
        return kernel(self.points(kernel, X.shape[-1]), X)

    def Kuu(self, kernel: Kernel, *, jitter: float = 0.0) -> Full:
        return Full(with_jitter(kernel(self.points(kernel)), jitter))

    def acted_Kuf(
        self, kernel: Kernel, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        """The covariances of the values with a functional, in closed form if there is one."""
        points = self.points(kernel, int(places.inputs.shape[1]))
        return point_covariances(kernel, points, functional, places)

    def cardinal(self, kernel: Kernel, X: tf.Tensor) -> tf.Tensor:
        """The functions ``Kuu^{-1} Kuf`` at rows ``[n, D]`` that are at the places, ``[M, n]``: one
        at the own place and zero at all others. They depend on no parameter.

        :raises ValueError: If a row is at no place; not in a graph.
        """
        rows = tf.gather(X, self.columns, axis=1)
        places = tf.constant(self.places, X.dtype)
        same = tf.reduce_all(tf.equal(places[:, None], rows[None]), axis=2)
        if tf.executing_eagerly():
            missing = np.flatnonzero(~np.any(same.numpy(), axis=0))
            if len(missing):
                found = short(rows.numpy()[missing[0]].tolist())
                remedy = "pass FixedPlaces.from_data(X) with all rows, or other features of space"
                raise refusal("data: X", "be at the fixed places", f"a row at {found}", remedy)
        return tf.cast(same, X.dtype)

    def is_subset_of(self, others: FixedPlaces) -> bool:
        """Whether both have the same places and columns, in the same order. False for other
        subsets, which also stands for unknown."""
        same = np.array_equal(self.columns, others.columns)
        return same and np.array_equal(self.places, others.places)
