"""Gaussians and sinusoids, of which spectral kernels are made.

Parameters that stand for a positive-definite matrix ``[D, D]`` are a number (times the identity),
its diagonal ``[D]``, or the matrix; their shape says which.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import TensorType
from gpflow.kernels.base import ActiveDims, NormalizedActiveDims
from gpflow.utilities import positive
from gpflow.utilities.ops import square_distance

from ..._arguments import Array, finite_array, items, refusal
from ..._tracing import Function, compiled
from ...core.columns import WholeRows, checked_columns, kernel_method
from ...core.decomposed import DecomposedKernel


def as_definite(name: str, value: TensorType, dimension: int) -> Array:
    """A positive-definite matrix in one of its three forms; a ValueError for anything else."""
    form = f"a number, [{dimension}] or [{dimension}, {dimension}]"
    array = finite_array(name, value, (0, 1, 2), form)
    if any(size != dimension for size in array.shape):
        raise ValueError(f"{name} must be {form}, found shape {array.shape}; pass one of these.")
    symmetric = array.ndim < 2 or np.allclose(array, array.T, rtol=1e-10, atol=0)
    if not (symmetric and (smallest := smallest_eigenvalue(array)) > 0):
        found = f"{smallest:.3g} as its smallest eigenvalue" if symmetric else "another matrix"
        remedy = "pass positive numbers, or A A^T of an invertible A"
        raise refusal(name, "be symmetric and positive definite", found, remedy)
    return array


def smallest_eigenvalue(value: Array) -> float:
    """That of the matrix which a number, a diagonal or a matrix stands for."""
    return float(np.min(np.linalg.eigvalsh(value) if value.ndim == 2 else value))


def definite_parameter(value: Array, name: str) -> gpflow.Parameter:
    """A parameter that is positive definite for every value of its unconstrained variable."""
    if value.ndim < 2:
        return gpflow.Parameter(value, transform=positive(), name=name)
    root = tfp.bijectors.FillScaleTriL(diag_bijector=positive(), diag_shift=None)
    transform = tfp.bijectors.Chain([tfp.bijectors.CholeskyOuterProduct(), root])
    return gpflow.Parameter(value, transform=transform, name=name)


def once_per_shape(function: Function) -> Function:
    """Decorate a function that graphs call many times with tensors of the same shapes.

    Each shape is traced once, and graphs call the traced function. Eager calls are left as they
    are. The function must not use other tensors or variables than its arguments.
    """
    traced = compiled(function)

    @functools.wraps(function)
    def called(*arguments: Any) -> Any:
        return (function if tf.executing_eagerly() else traced)(*arguments)

    return called  # type: ignore[return-value]


@once_per_shape
def scaled_matrix(value: tf.Tensor, scales: tf.Tensor) -> tf.Tensor:
    """``diag(scales) M diag(scales)`` ``[D, D]``, for M in any of its forms and scales ``[D]``."""
    if value.shape.rank == 2:
        return scales[:, None] * value * scales
    return tf.linalg.diag(scales * value * scales)


def turns(points: tf.Tensor, frequencies: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Cosine and sine of ``2 pi w^T x``, for all pairs of rows ``[..., N, D]`` and ``[Q, D]``."""
    angle = 2 * math.pi * tf.linalg.matmul(points, frequencies, transpose_b=True)
    return tf.cos(angle), tf.sin(angle)


def normal_densities(points: tf.Tensor, means: tf.Tensor, covariance: tf.Tensor) -> tf.Tensor:
    """``N(w | mean, covariance)`` for all pairs of rows ``[n, D]`` and ``[k, D]``."""
    root = tf.linalg.cholesky(covariance)
    columns = (tf.linalg.triangular_solve(root, tf.transpose(rows)) for rows in (points, means))
    whitened = map(tf.transpose, columns)
    return tf.exp(log_normaliser(root) - square_distance(*whitened) / 2)


def log_normaliser(root: tf.Tensor) -> tf.Tensor:
    """The logarithm of the normal density with covariance ``L L^T`` at its mean, for each L."""
    scaled = math.sqrt(2 * math.pi) * tf.linalg.diag_part(root)
    return -tf.reduce_sum(tf.math.log(scaled), axis=-1)


# The base classes of spectral mixtures and of their components.


class MixtureComponent(WholeRows, metaclass=abc.ABCMeta):
    """Sums of products of waves, times a function of differences: by default a Gaussian."""

    dimension: int
    """The number D of columns the kernel works on."""

    @abc.abstractmethod
    def _waves(self, *inputs: TensorType) -> tuple[tf.Tensor, list[tuple[tf.Tensor, tf.Tensor]]]:
        """The precision of that function, over ``(2 pi)^2``, ``[D, D]``; and for each of the inputs
        its columns, up to a shift, and the waves there, ``[..., N, K]``."""

    @kernel_method
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        if X2 is None:
            precision, [(Y, waves)] = self._waves(X)
            product = tf.linalg.matmul(waves, waves, transpose_b=True)
            return self._lag_factor(Y, None, precision) * product
        precision, [(Y, waves), (Y2, waves2)] = self._waves(X, X2)
        # As GPflow orders them: the batches of the first before those of the second.
        return self._lag_factor(Y, Y2, precision) * tf.tensordot(waves, waves2, [[-1], [-1]])

    def _lag_factor(self, X: tf.Tensor, X2: tf.Tensor | None, precision: tf.Tensor) -> tf.Tensor:
        """The factor that depends on the differences t of inputs: ``exp(-2 pi^2 t^T M t)``."""
        root = tf.linalg.cholesky(precision)
        Y, Y2 = (None if rows is None else tf.matmul(rows, root) for rows in (X, X2))
        return tf.exp(-2 * math.pi**2 * square_distance(Y, Y2))

    def seen(self, X: TensorType) -> tf.Tensor:
        """The active columns.

        :raises ValueError: If they are not as many as the frequencies have.
        """
        why, remedy = ", as frequencies have", "pass those columns, or active_dims to the kernel"
        return checked_columns(super().seen(X), self.dimension, why, remedy)


Part = TypeVar("Part", bound=MixtureComponent)


class MixtureKernel(DecomposedKernel, Generic[Part], metaclass=abc.ABCMeta):
    """A sum of components of one kind, which hold the parameters.

    :param components: One or more; the same number of columns each.
    :raises ValueError: If they are others.
    """

    component_class: type[MixtureComponent]
    """The kind of component."""

    def __init__(self, components: Sequence[Part], *, name: str | None = None) -> None:
        super().__init__(name=name)
        parts = items("components", components, f"a list of {self.component_class.__name__}")
        for part in parts:
            if not isinstance(part, self.component_class):
                remedy = "add other kernels to the mixture with +"
                rule = f"be {self.component_class.__name__}"
                raise refusal("components", rule, type(part).__name__, remedy)
        dimensions = sorted({part.dimension for part in parts})
        if len(dimensions) != 1:
            remedy = "pass frequencies with the same columns"
            rule = "be one or more of the same number of columns"
            raise refusal("components", rule, dimensions or "none", remedy)
        self.components = parts

    @property
    def kernels(self) -> tuple[Part, ...]:
        """The components."""
        return tuple(self.components)

    @property
    def active_dims(self) -> NormalizedActiveDims:
        """The ``active_dims`` of the components; all columns if they differ."""
        dims = [part.active_dims for part in self.components]
        same = all(np.array_equal(dims[0], others) for others in dims)
        return dims[0] if same else slice(None)

    @active_dims.setter
    def active_dims(self, value: ActiveDims) -> None:
        for part in self.components:
            part.active_dims = value
