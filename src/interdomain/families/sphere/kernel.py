"""Zonal kernels: functions of the angle between inputs that are on a sphere, or lifted to one."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Sequence

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels.base import ActiveDims

from ..._arguments import Array, choice, instance, lacks, refusal
from ...core.columns import WholeRows, checked_columns, kernel_method
from ...core.diagonals import DiagonalTerm
from ...core.parameters import positive_parameter
from .lifts import LIFTS, Lift
from .mathematics.funk_hecke import funk_hecke_coefficients
from .mathematics.zonal_series import cosines, level_multiplicities, zonal_matrix

LENGTHSCALES = "pass weight_variances instead, 1 / l**2 for a lengthscale l of a column"
"""The remedy for ``lengthscales``, which stationary kernels of GPflow have."""


class ZonalKernel(WholeRows, metaclass=abc.ABCMeta):
    """The base class of zonal kernels: functions of the angle between inputs lifted to a sphere.

    The lift of an input x of D columns is ``x~ = (sqrt(weight_variances) x, sqrt(bias_variance))``.
    Let r be the length of x~; its direction is on the sphere S^{d-1}, with d = D + 1. Then

        K(x, x') = variance (r r')^radial_power kappa(cos of the angle between x~ and x~'),

    with ``kappa(1) = 1`` (Dutordoir et al., *Sparse Gaussian Processes with Spherical Harmonic
    Features*, 2020, section 3.1). Inputs that are already on a sphere need no lift, and r is one.
    With ``inputs="unit_vectors"``, they are the directions, and d = D. With ``inputs="degrees"``,
    they are latitudes and longitudes on the globe, and d = 3. The eigenfunctions of every zonal
    kernel are the spherical harmonics. Its eigenvalues lambda_l define ``kappa(t) = sum_l lambda_l
    N(d, l) P_l(t)``: N(d, l) harmonics have degree l, and P_l is a Gegenbauer polynomial.

    To define a kernel, implement :meth:`shape_function`. If its eigenvalues are known, override
    :meth:`eigenvalues`; by default they are computed by quadrature, to an *absolute* accuracy of
    about 1e-15. If some eigenvalues are zero, override :meth:`has_degree`.

    :param variance: Positive scalar; ``K(x, x) = variance r^(2 radial_power)``.
    :param weight_variances: Positive, a scalar or one number per input column ``[D]``: the kernel
        varies faster along columns with larger values. 1 by default; for lifted inputs only.
    :param bias_variance: Positive scalar; with larger values, inputs are closer together on the
        sphere. 1 by default; for lifted inputs only.
    :param inputs: The meaning of the columns of X: "euclidean" for columns to be lifted;
        "unit_vectors" for the entries of vectors of length one; "degrees" for latitude and
        longitude in degrees, in this order (``active_dims=[1, 0]`` swaps the columns).
    :param active_dims: The columns of X to use; all by default.
    :raises ValueError: If a parameter is not as above. Calls raise it for NumPy arrays with
        latitudes outside [-90, 90] or vectors whose length is not one; tensors are not checked.
    """

    weight_variances: gpflow.Parameter
    bias_variance: gpflow.Parameter

    radial_power: float = 1.0
    """The power of r r' in the kernel."""

    @lacks("lengthscales", LENGTHSCALES)
    def __init__(
        self,
        *,
        variance: TensorType = 1.0,
        weight_variances: TensorType | None = None,
        bias_variance: TensorType | None = None,
        inputs: str = "euclidean",
        active_dims: ActiveDims | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        self.variance = positive_parameter("variance", variance, remedy="pass one number")
        self.inputs = choice("inputs", inputs, tuple(LIFTS))
        if inputs == "euclidean":
            bias = 1.0 if bias_variance is None else bias_variance
            remedy = "scale the columns with weight_variances=[...]"
            self.bias_variance = positive_parameter("bias_variance", bias, remedy=remedy)
            weights = 1.0 if weight_variances is None else weight_variances
            remedy = "pass a number, or one for each column"
            self.weight_variances = positive_parameter(
                "weight_variances", weights, remedy=remedy, per_column=True
            )
            if self.ard:
                self._validate_ard_active_dims(self.weight_variances)
        elif weight_variances is not None or bias_variance is not None:
            raise ValueError(
                f"weight_variances, bias_variance must not be given with inputs={inputs!r}, which "
                "are on the sphere as they are; pass a lengthscale, or inputs='euclidean'."
            )

    @property
    def lift(self) -> Lift:
        """The map of inputs to the sphere."""
        return LIFTS[self.inputs]

    def scaled_parts(self) -> list[gpflow.kernels.Kernel]:
        """A list of this kernel alone, whose weights scale the columns of X."""
        return [self]

    def validate_rows(self, name: str, X: Array) -> None:
        """Check rows ``[..., D]`` of all columns of X; a ValueError if an input is not valid."""
        with contextlib.suppress(IndexError):  # for too few columns, the covariances raise an error
            self.lift.validate(name, X[..., self.active_dims])

    @property
    def ard(self) -> bool:
        """Whether each input column has a separate weight variance."""
        return self.inputs == "euclidean" and bool(self.weight_variances.shape.rank > 0)

    @abc.abstractmethod
    @check_shapes("t: [any...]", "return: [any...]")
    def shape_function(self, t: TensorType) -> tf.Tensor:
        """The function kappa at inner products t in [-1, 1], of any shape; kappa(1) = 1."""

    @check_shapes("return: [L]")
    def eigenvalues(self, dimension: int, degrees: Sequence[int]) -> tf.Tensor:
        """The eigenvalues lambda_l of kappa (without the variance), ``[len(degrees)]``.

        :param dimension: The dimension d of the space around the sphere, D + 1 for lifted inputs.
        """
        dtype = self.variance.dtype
        return funk_hecke_coefficients(self.shape_function, dimension, degrees, dtype=dtype)

    def has_degree(self, dimension: int, degree: int) -> bool:
        """Whether the eigenvalue of a degree is nonzero."""
        return True

    def nonzero_degrees(self, dimension: int, max_degree: int) -> tuple[int, ...]:
        """The degrees up to ``max_degree`` with nonzero eigenvalues."""
        degrees = range(max_degree + 1)
        return tuple(degree for degree in degrees if self.has_degree(dimension, degree))

    @check_shapes("return: [L]")
    def variance_shares(self, dimension: int, max_degree: int) -> tf.Tensor:
        """The share of each degree in ``kappa(1)``, ``N(d, l) lambda_l``, ``[max_degree + 1]``."""
        degrees = self.nonzero_degrees(dimension, max_degree)
        multiplicities = level_multiplicities(dimension, max_degree + 1)[list(degrees)]
        shares = self.eigenvalues(dimension, degrees) * multiplicities
        return tf.scatter_nd([[degree] for degree in degrees], shares, [max_degree + 1])

    def shape_in_dimension(self, t: tf.Tensor, dimension: int) -> tf.Tensor:
        """The function kappa on S^{d-1}; by default, it does not depend on d."""
        return self.shape_function(t)

    def _kappa_of_pairs(self, unit: tf.Tensor, unit2: tf.Tensor | None = None) -> tf.Tensor:
        """The values of kappa for all pairs of unit vectors of two arrays, or within each batch."""
        return self.shape_function(cosines(unit, unit2))

    @check_shapes(
        "X: [batch..., N, D]", "return[0]: [batch..., N, 1]", "return[1]: [batch..., N, E]"
    )
    def to_sphere(self, X: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """Radii ``[..., N, 1]`` and unit vectors ``[..., N, d]`` of inputs that are sliced to
        ``active_dims``.

        :raises ValueError: If the number of columns is wrong.
        """
        if self.inputs != "euclidean":
            unit = self.lift.unit_vectors(tf.convert_to_tensor(X))
            return tf.ones_like(unit[..., :1]), unit
        num_weights = self.weight_variances.shape[0] if self.ard else None
        remedy = "pass X with those columns, or weight_variances as a scalar or one per column"
        X = checked_columns(X, num_weights, ", one for each entry of weight_variances", remedy)
        bias = tf.sqrt(self.bias_variance) * tf.ones_like(X[..., :1])
        lifted = tf.concat([X * tf.sqrt(self.weight_variances), bias], axis=-1)
        radius = tf.sqrt(tf.reduce_sum(tf.square(lifted), axis=-1, keepdims=True))
        return radius, lifted / radius

    def lengths(self) -> Array | None:
        """The scale of each column: the value at which the weighted column equals the bias. None
        for inputs on the sphere, which have no scale."""
        if self.inputs != "euclidean":
            return None
        return np.asarray(tf.sqrt(self.bias_variance / self.weight_variances), float)

    def to_scaled_sphere(self, X: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """Radii to the power ``radial_power``, and the unit vectors of :meth:`to_sphere`."""
        radius, unit = self.to_sphere(X)
        if self.radial_power == 0:
            return tf.ones_like(radius), unit
        return (radius if self.radial_power == 1 else radius**self.radial_power), unit

    def _lifted(self, X: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """The active columns on the sphere. Only NumPy arrays are checked, because a training step
        may move inducing points over a pole."""
        columns = self.seen(X)
        if isinstance(X, np.ndarray) and tf.executing_eagerly():
            self.lift.validate("X", columns.numpy())
        return self.to_scaled_sphere(columns)

    @kernel_method
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        sphere = [self._lifted(rows) for rows in (X, X2) if rows is not None]
        return self.variance * zonal_matrix(self._kappa_of_pairs, *sphere)

    @kernel_method
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return self.variance * tf.square(self._lifted(X)[0][..., 0])

    def diagonal_terms(self) -> list[DiagonalTerm]:
        """The diagonal of K as one term: the variance times the squared radial factor of a row."""
        return [
            (
                lambda X: tf.square(self._lifted(tf.convert_to_tensor(X))[0][:, 0]),
                lambda: tf.convert_to_tensor(self.variance),
            )
        ]


class ZonalKernelOfDimension(ZonalKernel, metaclass=abc.ABCMeta):
    """A zonal kernel that is defined by a spectrum, so that kappa depends on the dimension."""

    @inherit_check_shapes
    def shape_function(self, t: TensorType, dimension: int | None = None) -> tf.Tensor:
        """The function kappa at inner products t on S^{d-1}.

        :param dimension: The dimension d of the space around the sphere: for lifted inputs, the
            number of columns plus one.
        :raises ValueError: If ``dimension`` is missing.
        """
        if dimension is None:
            remedy = "pass dimension=D + 1, for D input columns"
            rule = f"be given for the shape function of {type(self).__name__}, which depends on it"
            raise refusal("dimension", rule, "None", remedy)
        return self.shape_in_dimension(tf.convert_to_tensor(t), dimension)

    def _kappa_of_pairs(self, unit: tf.Tensor, unit2: tf.Tensor | None = None) -> tf.Tensor:
        return self.shape_in_dimension(cosines(unit, unit2), sphere_dimension(unit))


def check_zonal(kernel: ZonalKernel) -> None:
    """Check that a kernel is a :class:`ZonalKernel`; a ValueError otherwise."""
    remedy = "pass one of interdomain.kernels.SphericalMatern52, ArcCosine, ..."
    instance("kernel", kernel, ZonalKernel, "a ZonalKernel", remedy)


def sphere_dimension(unit: tf.Tensor) -> int:
    """The dimension d of the space of unit vectors ``[..., d]``.

    :raises ValueError: If d is not known, because the number of columns of X is not.
    """
    dimension = unit.shape[-1]
    if dimension is None:
        remedy = "pass it through tf.ensure_shape(X, [None, D])"
        raise refusal("X", "have a known number of columns", "none", remedy)
    return int(dimension)
