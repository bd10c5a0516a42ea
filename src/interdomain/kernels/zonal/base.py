"""Zonal kernels: data are lifted to a sphere, where the kernel depends on the angle alone."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from functools import partial

import gpflow
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels.base import ActiveDims

from ...sphere import funk_hecke_coefficients, num_harmonics, zonal_series
from ...sphere.dimensions import validate_max_degree
from .._columns import select_columns, with_columns
from .._diagonals import DiagonalTerm, diagonal_terms, whole_diagonal
from .._parameters import positive_parameter


class ZonalKernel(gpflow.kernels.Kernel, metaclass=abc.ABCMeta):
    """A kernel on R^D that is zonal on the sphere S^{d-1} around the lifted data, d = D + 1.

    An input x is scaled and given a bias, ``x~ = (sqrt(weight_variances) x, sqrt(bias_variance))``,
    and split into its radius r and its direction on the sphere. Then

        K(x, x') = variance (r r')^radial_power kappa(cos of the angle between x~ and x~'),

    with ``kappa(1) = 1`` (Dutordoir et al. 2020, section 3.1). kappa has the eigenfunctions of
    every zonal kernel, the spherical harmonics, and eigenvalues of its own: kappa(t) is the sum of
    ``lambda_l N(d, l) P_l(t)``.

    To define a kernel, implement :meth:`shape_function`. If its eigenvalues are known, override
    :meth:`eigenvalues`; by default they are found by quadrature, to an *absolute* accuracy of
    about 1e-15. If some are zero, override :meth:`has_degree`.

    :param variance: Positive scalar; ``K(x, x) = variance r^(2 radial_power)``.
    :param weight_variances: Positive, scalar or one per input column ``[D]``: large values let the
        kernel vary faster along a column.
    :param bias_variance: Positive scalar; larger values bring the inputs closer together on the
        sphere.
    :param max_degree: If given, the sum over degrees ends here. The kernel then has finite rank:
        the harmonics up to this degree as inducing variables lose nothing (Qff = Kff), and rough
        kernels cost no accuracy to what they leave out. It is the model of the experiments of
        Dutordoir et al. 2020, a Bayesian linear model, with a linear model's confidence where it
        has no data. The eigenvalues stay as they are, so kappa(1) falls below one.
    :param active_dims: Columns of X to use; all by default.
    :param allow_large: Whether to take a ``max_degree`` whose eigenvalues need more than 4 GiB.
    :raises ValueError: If a parameter is not finite and positive or has another shape,
        ``weight_variances`` does not fit ``active_dims``, or ``max_degree`` is negative or too
        large.
    """

    radial_power: float = 1.0
    """The power of r r' in the kernel."""

    kinks: tuple[float, ...] = ()
    """Values of t in (-1, 1) where the shape function is not smooth, for the quadrature."""

    def __init__(
        self,
        *,
        variance: TensorType = 1.0,
        weight_variances: TensorType = 1.0,
        bias_variance: TensorType = 1.0,
        max_degree: int | None = None,
        active_dims: ActiveDims | None = None,
        allow_large: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        remedy = "pass one number"
        self.variance = positive_parameter("variance", variance, remedy=remedy)
        remedy = "scale the columns with weight_variances=[...]"
        self.bias_variance = positive_parameter("bias_variance", bias_variance, remedy=remedy)
        remedy = "pass a number, or one for each column"
        self.weight_variances = positive_parameter(
            "weight_variances", weight_variances, remedy=remedy, per_column=True
        )
        self._validate_ard_active_dims(self.weight_variances)
        if max_degree is not None:
            max_degree = validate_max_degree(max_degree, allow_large=allow_large)
        self.max_degree = max_degree

    @property
    def ard(self) -> bool:
        """Whether each input column has a weight variance of its own."""
        return bool(self.weight_variances.shape.rank > 0)

    @abc.abstractmethod
    @check_shapes(
        "t: [any...]",
        "return: [any...]",
    )
    def shape_function(self, t: TensorType) -> tf.Tensor:
        """kappa at inner products t in [-1, 1] of unit vectors; any shape, kappa(1) = 1."""

    @check_shapes(
        "return: [L]",
    )
    def eigenvalues(self, dimension: int, degrees: Sequence[int]) -> tf.Tensor:
        """The eigenvalues lambda_l of kappa (the variance excluded), ``[len(degrees)]``.

        :param dimension: Dimension d = D + 1 of the space around the sphere.
        :param degrees: The degrees l.
        """
        dtype = self.variance.dtype
        return funk_hecke_coefficients(
            self.shape_function, dimension, degrees, breaks=self.kinks, dtype=dtype
        )

    def has_degree(self, dimension: int, degree: int) -> bool:
        """Whether the eigenvalue of a degree is not zero, known from the formula."""
        return True

    def nonzero_degrees(self, dimension: int, max_degree: int) -> tuple[int, ...]:
        """The degrees up to ``max_degree`` that carry variance."""
        last = max_degree if self.max_degree is None else min(max_degree, self.max_degree)
        return tuple(degree for degree in range(last + 1) if self.has_degree(dimension, degree))

    @check_shapes(
        "return: [L]",
    )
    def variance_shares(self, dimension: int, max_degree: int) -> tf.Tensor:
        """The share ``N(d, l) lambda_l`` of ``kappa(1)`` of the full kernel that each degree up to
        ``max_degree`` carries, ``[max_degree + 1]``."""
        degrees = self.nonzero_degrees(dimension, max_degree)
        multiplicities = [num_harmonics(dimension, degree) for degree in degrees]
        eigenvalues = self.eigenvalues(dimension, degrees)
        shares = tf.constant(multiplicities, eigenvalues.dtype) * eigenvalues
        return tf.scatter_nd([[degree] for degree in degrees], shares, [max_degree + 1])

    def shape_in_dimension(self, t: tf.Tensor, dimension: int) -> tf.Tensor:
        """kappa on S^{d-1}, of the full kernel; the same for every d unless a subclass says not."""
        return self.shape_function(t)

    def _kappa_of_pairs(self, unit: tf.Tensor, unit2: tf.Tensor | None = None) -> tf.Tensor:
        """kappa of all pairs of unit vectors; of each batch with itself, if there are no others."""
        t = _cosines(unit, unit2)
        of_any_dimension = type(self).shape_in_dimension is ZonalKernel.shape_in_dimension
        if self.max_degree is None and of_any_dimension:
            return self.shape_function(t)
        dimension = sphere_dimension(unit)
        if self.max_degree is None:
            return self.shape_in_dimension(t, dimension)
        return zonal_series(t, self.variance_shares(dimension, self.max_degree), dimension)

    @check_shapes(
        "X: [batch..., N, D]",
        "return[0]: [batch..., N, 1]",
        "return[1]: [batch..., N, E]",
    )
    def to_sphere(self, X: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """Lift inputs, already sliced to ``active_dims``, to radii and unit vectors.

        :return: radius ``[..., N, 1]`` and unit vectors ``[..., N, D + 1]``.
        :raises ValueError: If the number of columns is not that of ``weight_variances``.
        """
        num_weights = self.weight_variances.shape[0] if self.ard else None
        X = with_columns(X, num_weights)
        if X.shape[-1] not in (None, num_weights) and self.ard:
            raise ValueError(
                f"X must have {num_weights} columns, one for each entry of weight_variances, found "
                f"{X.shape[-1]}; pass X with those columns, or weight_variances as a scalar or "
                "with one entry per column."
            )
        scaled = X * tf.sqrt(self.weight_variances)
        bias = tf.sqrt(self.bias_variance) * tf.ones_like(X[..., :1])
        lifted = tf.concat([scaled, bias], axis=-1)
        radius = tf.sqrt(tf.reduce_sum(tf.square(lifted), axis=-1, keepdims=True))
        return radius, lifted / radius

    def radial_factor(self, radius: tf.Tensor, power: float) -> tf.Tensor:
        """``radius ** power``, without an operation for the powers zero and one."""
        if power == 0:
            return tf.ones_like(radius)
        return radius if power == 1 else radius**power

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        radius, unit = self.to_sphere(select_columns(self, X))
        scale = self.radial_factor(radius, self.radial_power)
        if X2 is None:
            kappa = self._kappa_of_pairs(unit)
            scales = tf.matmul(scale, scale, transpose_b=True)
        else:
            radius2, unit2 = self.to_sphere(select_columns(self, X2))
            kappa = self._kappa_of_pairs(unit, unit2)
            scale2 = self.radial_factor(radius2, self.radial_power)
            scales = _products(scale, scale2)
        return self.variance * scales * kappa

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        radius, unit = self.to_sphere(select_columns(self, X))
        variance = self.variance * self.radial_factor(radius[..., 0], 2 * self.radial_power)
        if self.max_degree is None:
            return variance
        return variance * tf.reduce_sum(
            self.variance_shares(sphere_dimension(unit), self.max_degree)
        )


@diagonal_terms.register(ZonalKernel)
def diagonal_terms_zonal(kernel: ZonalKernel, num_columns: int) -> list[DiagonalTerm]:
    """The squared radii times the variance; unless a subclass computes something else."""
    if type(kernel).K_diag is not ZonalKernel.K_diag:
        return whole_diagonal(kernel)
    return [(partial(_squared_radii, kernel), partial(_diagonal_factor, kernel, num_columns))]


def _squared_radii(kernel: ZonalKernel, X: tf.Tensor) -> tf.Tensor:
    radius, _ = kernel.to_sphere(select_columns(kernel, X))
    return kernel.radial_factor(radius[:, 0], 2 * kernel.radial_power)


def _diagonal_factor(kernel: ZonalKernel, num_columns: int) -> tf.Tensor:
    if kernel.max_degree is None:
        return tf.convert_to_tensor(kernel.variance)
    one_row = select_columns(kernel, tf.zeros([1, num_columns], kernel.variance.dtype))
    shares = kernel.variance_shares(one_row.shape[-1] + 1, kernel.max_degree)
    return kernel.variance * tf.reduce_sum(shares)


def sphere_dimension(unit: tf.Tensor) -> int:
    """The dimension d of the space that unit vectors ``[..., d]`` are in.

    :raises ValueError: If the number of columns of X, and so d, is not known.
    """
    dimension = unit.shape[-1]
    if dimension is None:
        raise ValueError(
            "X must have a known number of columns, found none; pass it through "
            "tf.ensure_shape(X, [None, D])."
        )
    return int(dimension)


def _cosines(unit: tf.Tensor, unit2: tf.Tensor | None = None) -> tf.Tensor:
    if unit2 is not None:
        return _products(unit, unit2)
    t = tf.matmul(unit, unit, transpose_b=True)
    # Exactly one: at one some shape functions have a root, which would turn a rounding error of
    # 1e-16 into one of 1e-8, and a diverging slope.
    return tf.linalg.set_diag(t, tf.ones_like(t[..., 0]))


def _products(rows: tf.Tensor, rows2: tf.Tensor) -> tf.Tensor:
    """The inner products of all pairs of rows."""
    if rows.shape.rank == rows2.shape.rank == 2:  # a tenth of the operations
        return tf.matmul(rows, rows2, transpose_b=True)
    return tf.tensordot(rows, rows2, [[-1], [-1]])
