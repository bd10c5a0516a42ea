"""Spherical harmonics as inducing variables (VISH)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from ..._arguments import check_num_inducing, filled_matrix, integer, refusal
from ...core.diagonals import DiagonalTerm
from ...core.finite_rank import base_of
from ...linalg import Diagonal, StructuredOperator
from .acted_harmonics import ActedHarmonics
from .growth import HarmonicDictionary, columns_by_scale, grown_chains
from .kernel import ZonalKernel, check_zonal
from .mathematics.dimensions import (
    chains_of_degrees,
    num_harmonics,
    validate_chains,
    validate_degrees,
    validate_dimension,
)
from .mathematics.harmonic_products import chosen_harmonics, product_order
from .mathematics.harmonics import spherical_harmonics
from .mathematics.zonal_series import cosines, zonal_matrix, zonal_series
from .on_sphere import inverse_eigenvalues


class SphericalHarmonics(ActedHarmonics):
    """Projections of f on spherical harmonics, for zonal kernels.

    ``u_m = <f, phi_m>`` in the RKHS of the kernel, with phi_m an orthonormal harmonic times the
    kernel's radial factor (Dutordoir et al. 2020, eq. 6). Then ``Kuf[m, n] = phi_m(x_n)``, which
    does not depend on the kernel's variance or lengthscale. Kuu is diagonal, ``1 / (variance
    lambda_l)``. ``gpflow.models.SVGP`` and this library's models, such as
    :class:`interdomain.models.StructuredSGPR`, need no Cholesky factor of Kuu.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(2))
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=8)
    >>> harmonics.num_inducing
    81
    >>> type(idm.covariances.Kuu_operator(harmonics, kernel)).__name__
    'Diagonal'
    >>> prior = idm.kernels.FiniteRank(kernel, harmonics)
    >>> model = gpflow.models.SVGP(prior, gpflow.likelihoods.Gaussian(0.1), harmonics)
    >>> model.predict_f(np.zeros([5, 2]))[0].shape
    TensorShape([5, 1])

    With more than a few columns, a degree has too many harmonics, most of which are nearly zero on
    the data. So any set of single harmonics can be used instead of whole degrees. A chain of
    degrees, ``|k_2| <= k_3 <= ... <= k_d = l``, identifies a harmonic: its degrees in the first
    two, three, ... and all d coordinates of the sphere. For lifted inputs, the coordinates are the
    columns of X in ``column_order``, then the bias. A harmonic has the factor ``r_j^{k_j}``, where
    r_j is the norm of the first j coordinates. So harmonics with a high ``k_j`` are small if the
    columns with the smallest scale come first. Kuu stays diagonal, and only the chosen harmonics
    are computed. :meth:`for_data` chooses the harmonics with the most prior variance over the data,
    and orders the columns:

    >>> X = np.random.default_rng(0).normal(size=[500, 20])
    >>> kernel = idm.kernels.SphericalMatern52(weight_variances=[1.0, 1.0, *[1e-4] * 18])
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_data(kernel, X, 100)
    >>> harmonics.num_inducing, max(harmonics.degrees)
    (100, 8)

    :class:`~interdomain.kernels.FiniteRank` defines a prior of these harmonics only. With the
    kernel itself as prior, the bound counts the kernel's variance in other harmonics as noise.

    :param dimension: The dimension d of the space around the sphere: for lifted inputs, the number
        of input columns (after ``active_dims``) plus one; for unit vectors, their number of
        entries; for latitude and longitude, 3.
    :param degrees: The degrees l whose harmonics are all used, increasing. Each must have a nonzero
        eigenvalue under the kernel; :meth:`for_kernel` selects them.
    :param chains: Single harmonics instead of degrees, integers ``[M, d - 1]``: a row ``k_2, ...,
        k_d`` for each harmonic, with ``k_2 < 0`` for a sine instead of a cosine. Any set is
        allowed; Kuf omits other harmonics that the computation needs.
    :param column_order: The active columns that are coordinates 1, ..., d - 1, in this order: a
        permutation of 0, ..., d - 2, unchanged by default. For inputs on a sphere, it orders all
        coordinates but the last. Harmonics of a whole degree span the same space in any order.
    :ivar chains: The chain of each harmonic, in the order of ``Kuf``, ``[M, d - 1]``.
    :ivar degrees: All degrees that occur, increasing; ``multiplicities`` counts their harmonics.
    :ivar level_of_each: The position in ``degrees`` of the degree of each harmonic, ``[M]``.
    :ivar has_whole_degrees: Whether the harmonics were given by degrees. The products of a whole
        degree's harmonics at two points then sum to a function of the angle.
    :raises ValueError: If an argument is not as above, or there are too many harmonics.
    """

    def __init__(
        self,
        dimension: int,
        degrees: Sequence[int] | None = None,
        *,
        chains: Any = None,
        column_order: Sequence[int] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self.dimension = validate_dimension(dimension)
        self.has_whole_degrees = chains is None
        if chains is None:
            listed = validate_degrees(degrees)
            total = sum(num_harmonics(self.dimension, degree) for degree in listed)
            check_num_inducing("dimension, degrees", total, "harmonics")
            self.chains = chains_of_degrees(self.dimension, listed)
        elif degrees is None:
            self.chains = validate_chains(chains, self.dimension)
        else:
            raise ValueError("degrees must be None with chains, found both; pass one of them.")
        self.chains.setflags(write=False)
        present, self.level_of_each, counts = np.unique(
            np.abs(self.chains[:, -1]), return_inverse=True, return_counts=True
        )
        self.degrees, self.multiplicities = tuple(present.tolist()), tuple(counts.tolist())
        columns = list(range(self.dimension - 1))
        self.column_order = tuple(map(int, columns if column_order is None else column_order))
        if sorted(self.column_order) != columns:
            remedy = "pass each once, sorted by scale, the least first"
            rule = f"be a permutation of {len(columns)} columns"
            raise refusal("column_order", rule, column_order, remedy)

    @classmethod
    def for_kernel(
        cls,
        kernel: ZonalKernel,
        input_dim: int,
        max_degree: int | None = None,
        *,
        name: str | None = None,
    ) -> SphericalHarmonics:
        """Make all harmonics up to ``max_degree`` with nonzero eigenvalues under the kernel.

        :param input_dim: The number D of input columns of the kernel (after ``active_dims``); 2
            with ``inputs="degrees"``.
        :param max_degree: The highest degree, which has no default. :meth:`for_data` chooses a
            number of harmonics.
        :raises ValueError: If the kernel is not zonal or has other inputs; also as for the class.
        """
        check_zonal(kernel)
        remedy = "for a number of harmonics, call for_data(kernel, X, num_inducing)"
        max_degree = integer("max_degree", max_degree, at_least=0, remedy=remedy)
        dimension = kernel.lift.dimension(integer("input_dim", input_dim, at_least=1), "input_dim")
        return cls(dimension, kernel.nonzero_degrees(dimension, max_degree), name=name)

    @classmethod
    def for_data(
        cls,
        kernel: ZonalKernel,
        X: TensorType,
        num_inducing: int,
        *,
        max_degree: int | None = None,
        name: str | None = None,
    ) -> SphericalHarmonics:
        """Make the harmonics with the most prior variance over the data.

        The columns are ordered by their scale under the kernel, smallest first. The set of
        harmonics grows from degree 0. The candidates are one step above the set in one coordinate;
        the one with the largest ``variance lambda_l mean_n (r_n^p phi_m(x_n))^2`` is added. So the
        set reaches high degrees in important columns, without all harmonics of these degrees. The
        choice depends on the kernel's current parameters, mostly on ``weight_variances``, and not
        on targets; :func:`interdomain.diagnostics.harmonic_shares` shows the explained variance.

        :param kernel: The kernel, with parameters near their final values: first fit them to some
            rows, with few whole degrees or points.
        :param X: Inputs ``[N, D]``, with all columns, from which ``active_dims`` selects. If there
            are more than 2,000 rows, a fixed random sample of 2,000 is used.
        :param num_inducing: The largest number of harmonics. There are fewer if all others have
            less than 1e-12 of the prior variance over the rows, or degrees above ``max_degree``;
            also if, in float32, their eigenvalues are too small to be inverted.
        :param max_degree: The highest degree; None for no limit.
        :raises ValueError: If an argument is not as above, or the kernel has no degree up to
            ``max_degree``; also as for the class.
        """
        check_zonal(kernel)
        X = filled_matrix("X", X, "a matrix [N, D]")
        num_inducing = integer("num_inducing", num_inducing, at_least=1)
        if max_degree is not None:
            max_degree = integer("max_degree", max_degree, at_least=0)
        order = columns_by_scale(kernel, X)
        chains = grown_chains(kernel, X, order, num_inducing, max_degree)
        if not len(chains):
            remedy = "pass a higher one, or None"
            rule = f"reach a degree that {type(kernel).__name__} has"
            raise refusal("max_degree", rule, max_degree, remedy)
        chains = chains[product_order(chains)]
        return cls(len(order) + 1, chains=chains, column_order=order, name=name)

    def at(self, unit: TensorType, *, scale: TensorType | None = None) -> tf.Tensor:
        """The values of the harmonics at points of the sphere, ``[M, ..., N]``.

        :param unit: Unit vectors ``[..., N, d]`` as ``kernel.to_sphere`` returns them: the active
            columns of the kernel in their order, then the bias of lifted inputs.
        :param scale: A factor for all harmonics of a point, ``[..., N]``.
        """
        unit = tf.convert_to_tensor(unit)
        if self.column_order != tuple(range(self.dimension - 1)):
            unit = tf.gather(unit, [*self.column_order, self.dimension - 1], axis=-1)
        if self.has_whole_degrees:
            return spherical_harmonics(unit, self.degrees, scale=scale)
        return chosen_harmonics(unit, self.chains, scale=scale)

    @property
    def num_inducing(self) -> int:
        return len(self.chains)

    def Kuf(self, kernel: ZonalKernel, X: TensorType) -> tf.Tensor:
        """The features ``radius^p Y_m(x / radius)``, with p the kernel's radial power."""
        scale, unit = self.radial_and_unit(kernel, X)
        self._validate_degrees(kernel)
        return self.at(unit, scale=scale)

    def Kuu(self, kernel: ZonalKernel, *, jitter: float = 0.0) -> StructuredOperator:
        """The diagonal Kuu; ``jitter`` is not added, because a diagonal needs no factorisation."""
        return Diagonal(self.diagonal(kernel))

    def diagonal(self, kernel: ZonalKernel) -> tf.Tensor:
        """The diagonal ``1 / (variance lambda_l)`` of Kuu, ``[M]``; l is each harmonic's degree."""
        self._validate_degrees(kernel)
        eigenvalues = kernel.eigenvalues(self.dimension, self.degrees)
        levels = inverse_eigenvalues(kernel, eigenvalues)
        # This is one node of the graph; tf.repeat would be fifty.
        return tf.gather(levels, self.level_of_each)

    def explained(self, kernel: ZonalKernel, X: TensorType, X2: TensorType | None) -> tf.Tensor:
        """The prior covariance that the harmonics explain. For whole degrees, by the addition
        theorem, ``variance (r r')^p sum_l lambda_l N(d, l) P_l(cos of the angle)``.
        """
        if not self.has_whole_degrees:
            return super().explained(kernel, X, X2)
        weights = self._variance_shares(kernel)
        sphere = [self.radial_and_unit(kernel, rows) for rows in (X, X2) if rows is not None]
        return kernel.variance * zonal_matrix(
            lambda *units: zonal_series(cosines(*units), weights, self.dimension),
            *((scale[..., None], unit) for scale, unit in sphere),
        )

    def explained_terms(self, kernel: ZonalKernel) -> list[DiagonalTerm] | None:
        """The explained variance of whole degrees: squared radial factors times a constant."""
        if not self.has_whole_degrees:
            return None
        return [
            (
                lambda X: tf.square(self.radial_and_unit(kernel, X)[0]),
                lambda: kernel.variance * tf.reduce_sum(self._variance_shares(kernel)),
            )
        ]

    def _variance_shares(self, kernel: ZonalKernel) -> tf.Tensor:
        """The share of each degree of the harmonics in ``kappa(1)``, ``[max_degree + 1]``."""
        self._validate_degrees(kernel)
        shares = kernel.variance_shares(self.dimension, self.degrees[-1])
        return shares * np.isin(np.arange(self.degrees[-1] + 1), self.degrees)

    def _validate_degrees(self, kernel: ZonalKernel) -> None:
        nonzero = set(kernel.nonzero_degrees(self.dimension, self.degrees[-1]))
        missing = [degree for degree in self.degrees if degree not in nonzero]
        if missing:
            raise ValueError(
                f"degrees must have nonzero eigenvalues under {type(kernel).__name__} in dimension "
                f"{self.dimension}, found zero for {missing}; leave them out, as "
                "SphericalHarmonics.for_kernel(kernel, input_dim, max_degree) does."
            )

    def settings_of(self, kernel: Kernel) -> Any:
        """The settings of Kuf: the lift to the sphere, and the features of a finite-rank prior. The
        eigenvalues are not among them, so kernels with other eigenvalues can use the statistics."""
        base = base_of(kernel)
        ends = []
        while kernel is not base:
            ends.append(kernel.inducing_variable)
            kernel = kernel.kernel
        return {
            "sphere": [type(base.lift).__name__, type(base).to_sphere.__qualname__],
            "radial_power": base.radial_power,
            "active_dims": base.active_dims,
            "ends": ends,
        }

    def is_subset_of(self, others: SphericalHarmonics) -> bool:
        """Whether all harmonics are among ``others``, for whole degrees in any column order."""
        are_whole = self.has_whole_degrees and others.has_whole_degrees
        same = are_whole or self.column_order == others.column_order
        return same and set(map(tuple, self.chains)) <= set(map(tuple, others.chains))

    def dictionary(self, kernel: ZonalKernel) -> HarmonicDictionary:
        """The dictionary of all harmonics with positive eigenvalues under the kernel."""
        return HarmonicDictionary(self, kernel)
