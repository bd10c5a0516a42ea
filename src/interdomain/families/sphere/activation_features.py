"""Activation features: hidden units of a neural network as inducing variables."""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from ..._arguments import Array, filled_matrix, integer, refusal
from ...core.clustering import k_means
from ...core.family import with_jitter
from ...linalg import Full, StructuredOperator
from .growth import lifted_rows
from .kernel import ZonalKernel, check_zonal
from .mathematics.activations import Activation, resolve_activation
from .mathematics.dimensions import num_harmonics, validate_dimension
from .mathematics.zonal_series import level_multiplicities, zonal_series
from .on_sphere import OnSphere, inverse_eigenvalues


class ActivationFeatures(OnSphere):
    """Projections of f on the hidden units ``sigma(z^T x)`` of a network, for zonal kernels.

    ``u_m = <f, phi_m>`` in the RKHS of the kernel (Dutordoir et al. 2021; Tiao et al. 2023, eqs. 6
    and 7). phi_m is the unit with direction z_m, times the kernel's radial factor. It is a sum over
    the degrees up to ``max_degree`` that both the activation and the kernel have:

        Kuf[m, n] = r^p sum_l a_l N(d, l) P_l(z_m^T x_n / r),
        Kuu[m, n] = sum_l a_l^2 / lambda_l N(d, l) P_l(z_m^T z_n) / variance,

    with the coefficients a_l of the activation and the eigenvalues lambda_l of the kernel. So phi
    is a hidden unit of a network, smoothed by the cut at ``max_degree``. Both sums end at the same
    degree. The complete activation in Kuf and a finite sum in Kuu would be an invalid prior with
    negative variances.

    The units cannot represent the kernel's degrees that the activation lacks, or degrees above
    ``max_degree``. :func:`interdomain.diagnostics.spectrum` shows the variance of these degrees.
    :class:`interdomain.models.OrthogonalSVGP` recovers it with a second set of inducing variables.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> kernel = idm.kernels.ArcCosine(weight_variances=np.ones(2))
    >>> units = idm.inducing_variables.ActivationFeatures.from_data(kernel, X, 10, "relu", 6)
    >>> units.Z.shape  # the last column multiplies the bias
    TensorShape([10, 3])
    >>> points = gpflow.inducing_variables.InducingPoints(X[:5])
    >>> model = idm.models.OrthogonalSVGP(kernel, gpflow.likelihoods.Gaussian(), units, points)
    >>> model.q_mu.shape, model.q_mu_orthogonal.shape
    (TensorShape([10, 1]), TensorShape([5, 1]))

    Only the directions of Z matter; all lengths are initially one. A gradient is orthogonal to z,
    so the steps of an optimiser make z slightly longer and never shorter.

    :param Z: The directions of the units, ``[M, d]``. For lifted inputs, d is the number of input
        columns (after ``active_dims``) plus one, and the last entry multiplies the bias. For inputs
        on a sphere, d is the dimension of the space around it.
    :param activation: "relu", "softplus" or "erf"; an activation with a sharpness such as
        ``Softplus(sharpness=3.0)``; or any function of a tensor. Its coefficients are then computed
        by quadrature, to 1e-15 if it has no kinks except at zero.
    :param max_degree: The highest degree of the sums.
    :raises ValueError: If Z is not a matrix of finite, nonzero rows with d >= 2; if the activation
        is unknown; or if there are more units than harmonics of the degrees.
    """

    relative_jitter = True

    def __init__(
        self,
        Z: TensorType,
        activation: str | Activation | Callable[[tf.Tensor], tf.Tensor],
        max_degree: int,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self.activation = resolve_activation(activation)
        self.max_degree = integer("max_degree", max_degree, at_least=0)
        values: Array = filled_matrix("Z", Z, "[M, d]").astype(gpflow.default_float())
        validate_dimension(values.shape[1])
        lengths = np.linalg.norm(values, axis=1, keepdims=True)
        if np.any(lengths == 0):
            remedy = "pass Z without them"
            rule = "have no rows of zeros, which have no direction"
            raise refusal("Z", rule, np.count_nonzero(lengths == 0), remedy)
        self.Z = Z if isinstance(Z, gpflow.Parameter) else gpflow.Parameter(values / lengths)
        self.dimension = int(self.Z.shape[-1])
        degrees = self.activation.nonzero_degrees(self.dimension, self.max_degree)
        self._validate_rank(degrees, "the activation has")

    @classmethod
    def from_data(
        cls,
        kernel: ZonalKernel,
        X: TensorType,
        num_inducing: int,
        activation: str | Activation | Callable[[tf.Tensor], tf.Tensor],
        max_degree: int,
        *,
        seed: int = 0,
        name: str | None = None,
    ) -> ActivationFeatures:
        """Make units whose directions are k-means centres of the data on the sphere.

        :param kernel: The kernel; its weight and bias variances map X ``[N, D]`` to the sphere.
        :raises ValueError: If the kernel is not zonal or X has too few rows; also as for the class.
        """
        check_zonal(kernel)
        X = filled_matrix("X", X, "[N, D]").astype(gpflow.default_float())
        Z = k_means(lifted_rows(kernel, X, None)[0], num_inducing, seed=seed)
        return cls(Z, activation, max_degree, name=name)

    @classmethod
    def random(
        cls,
        input_dim: int,
        num_inducing: int,
        activation: str | Activation | Callable[[tf.Tensor], tf.Tensor],
        max_degree: int,
        *,
        seed: int = 0,
        name: str | None = None,
    ) -> ActivationFeatures:
        """Make units with random directions, uniformly distributed on the sphere.

        :param input_dim: The dimension d - 1 of the sphere. For lifted inputs, this is the number D
            of input columns of the kernel (after ``active_dims``); on the globe, it is 2.
        :raises ValueError: As for the class.
        """
        input_dim = integer("input_dim", input_dim, at_least=1)
        num_inducing = integer("num_inducing", num_inducing, at_least=1)
        seed = integer("seed", seed, at_least=0)
        directions = np.random.default_rng(seed).normal(size=(num_inducing, input_dim + 1))
        return cls(directions, activation, max_degree, name=name)

    @property
    def num_inducing(self) -> int:
        return int(self.Z.shape[0])

    @property
    def directions(self) -> tf.Tensor:
        """The directions of the units as unit vectors, ``[M, d]``."""
        return tf.math.l2_normalize(self.Z, axis=-1, epsilon=0.0)

    def degrees(self, kernel: ZonalKernel) -> tuple[int, ...]:
        """The degrees up to ``max_degree`` that both the activation and the kernel have; a
        ValueError if they have fewer harmonics than there are units."""
        carried = set(kernel.nonzero_degrees(self.dimension, self.max_degree))
        unit_degrees = self.activation.nonzero_degrees(self.dimension, self.max_degree)
        degrees = tuple(degree for degree in unit_degrees if degree in carried)
        self._validate_rank(degrees, f"the activation has in common with {type(kernel).__name__}")
        return degrees

    def Kuf(self, kernel: ZonalKernel, X: TensorType) -> tf.Tensor:
        """The features ``r^p sum_l a_l N(d, l) P_l(z^T x / r)``, with p the radial power."""
        scale, unit = self.radial_and_unit(kernel, X)
        t = tf.tensordot(self.directions, unit, [[-1], [-1]])
        degrees = self.degrees(kernel)
        weights = np.zeros(degrees[-1] + 1)
        weights[list(degrees)] = self.activation.coefficients(self.dimension, degrees)
        weights *= level_multiplicities(self.dimension, len(weights))
        return zonal_series(t, tf.constant(weights, t.dtype), self.dimension) * scale

    def Kuu(self, kernel: ZonalKernel, *, jitter: float = 0.0) -> StructuredOperator:
        """The sums ``sum_l a_l^2 / lambda_l N(d, l) P_l(z^T z') / variance`` over degrees of Kuf.

        ``jitter`` is relative to the diagonal, which has the squared RKHS norms of the units: from
        less than one to more than 1e12.
        """
        return Full(with_jitter(self.inner_products(self, kernel), jitter, relative=True))

    def inner_products(self, other: ActivationFeatures, kernel: ZonalKernel) -> tf.Tensor:
        """The RKHS inner products ``<psi_k, phi_m>`` with the units of another set, ``[K, M]``.

        They are ``sum_l a_l b_l / lambda_l N(d, l) P_l(w_k^T z_m) / variance`` over the common
        degrees, with the coefficients a_l and b_l of the two activations.
        """
        common = set(other.degrees(kernel))
        degrees = tuple(degree for degree in self.degrees(kernel) if degree in common)
        directions = self.directions
        others = directions if other is self else other.directions
        t = tf.matmul(directions, others, transpose_b=True)
        if not degrees:
            return tf.zeros_like(t)
        products = self.activation.coefficients(self.dimension, degrees)
        products = products * other.activation.coefficients(self.dimension, degrees)
        products *= level_multiplicities(self.dimension, degrees[-1] + 1)[list(degrees)]
        eigenvalues = kernel.eigenvalues(self.dimension, degrees)
        inverse = inverse_eigenvalues(kernel, eigenvalues, squared=False)
        weights, places = tf.constant(products, inverse.dtype) * inverse, np.array(degrees)[:, None]
        weights = tf.scatter_nd(places, weights, [degrees[-1] + 1])
        return zonal_series(t, weights, self.dimension)

    def _validate_rank(self, degrees: tuple[int, ...], whose: str) -> None:
        rank = sum(num_harmonics(self.dimension, degree) for degree in degrees)
        if self.num_inducing > rank:
            raise ValueError(
                f"Z has {self.num_inducing} rows, but the degrees up to max_degree = "
                f"{self.max_degree} that {whose}, {list(degrees)}, have {rank} harmonics in "
                f"dimension {self.dimension}, and no more units can be linearly independent; pass "
                f"at most {rank} rows, or a higher max_degree."
            )
