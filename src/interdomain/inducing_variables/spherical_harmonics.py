"""Spherical harmonics as inducing variables (VISH)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from check_shapes import Shape

from .._arguments import check_num_inducing, instance, integer
from ..kernels import ZonalKernel
from ..sphere import num_harmonics
from ..sphere.dimensions import validate_degrees, validate_dimension, validate_max_degree
from .base import InterDomainInducingVariables


class SphericalHarmonics(InterDomainInducingVariables):
    """The projections of f on the spherical harmonics of some degrees, for zonal kernels.

    ``u_m = <f, phi_m>`` in the RKHS of the kernel, phi_m being an orthonormal harmonic times the
    kernel's radial factor (Dutordoir et al. 2020, eq. 6). Then ``Kuf[m, n] = phi_m(x_n)``, which
    does not depend on the kernel's variance or lengthscale, and Kuu is diagonal:
    ``1 / (variance lambda_l)``: ``gpflow.models.SVGP``, this library's models and
    :class:`interdomain.models.StructuredSGPR` need no Cholesky factor of it. ``gpflow.models.SGPR``
    factorises every Kuu.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(2))
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=8)
    >>> harmonics.num_inducing
    81
    >>> type(idm.covariances.Kuu_operator(harmonics, kernel)).__name__
    'LinearOperatorDiag'
    >>> prior = idm.kernels.FiniteRank(kernel, harmonics)
    >>> model = gpflow.models.SVGP(prior, gpflow.likelihoods.Gaussian(0.1), harmonics)
    >>> model.predict_f(np.zeros([5, 2]))[0].shape
    TensorShape([5, 1])

    :class:`~interdomain.kernels.FiniteRank` makes a prior of the degrees that the harmonics have.
    With the kernel itself, the bound counts what is in higher degrees as noise.

    :param dimension: Dimension d of the space around the sphere: the number of input columns
        (after ``active_dims``) plus one.
    :param degrees: The degrees l of the harmonics, increasing. Every one must have a nonzero
        eigenvalue under the kernel; :meth:`for_kernel` picks those.
    :param allow_large: Whether to take so many that their covariances with 1,000 rows are above
        4 GiB, about 530,000 of them; or a degree above 23,000.
    :raises ValueError: If ``dimension`` < 2, ``degrees`` is not increasing, or there are too many.
    """

    def __init__(
        self,
        dimension: int,
        degrees: Sequence[int],
        *,
        allow_large: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self.dimension = validate_dimension(dimension)
        self._degrees = validate_degrees(degrees, allow_large=allow_large)
        argument = "dimension, degrees"
        check_num_inducing(argument, self.num_inducing, "harmonics", allow_large=allow_large)

    @classmethod
    def for_kernel(
        cls,
        kernel: ZonalKernel,
        input_dim: int,
        max_degree: int,
        *,
        allow_large: bool = False,
        name: str | None = None,
    ) -> SphericalHarmonics:
        """All harmonics up to ``max_degree`` that carry variance under the kernel.

        :param kernel: The zonal kernel they will be used with.
        :param input_dim: Number D of input columns the kernel sees (after ``active_dims``).
        :param max_degree: The highest degree.
        :param allow_large: As for the constructor.
        :raises ValueError: If the kernel is not zonal, ``input_dim`` < 1, ``max_degree`` < 0, or an
            eigenvalue is not a positive number; or as the constructor.

        What the kernel has in higher degrees is not warned of here: nothing is lost if it becomes
        :class:`~interdomain.kernels.FiniteRank`, and otherwise what it costs depends on the noise.
        :func:`interdomain.training.fit` says so afterwards.
        """
        remedy = (
            "spherical harmonics need one of interdomain.kernels.SphericalMatern32, ArcCosine, ..."
        )
        instance("kernel", kernel, ZonalKernel, "a ZonalKernel", remedy)
        dimension = integer("input_dim", input_dim, at_least=1) + 1
        max_degree = validate_max_degree(max_degree, allow_large=allow_large)
        degrees = kernel.nonzero_degrees(dimension, max_degree)
        try:
            harmonics = cls(dimension, degrees, allow_large=allow_large, name=name)
        except ValueError as error:
            message = str(error).removeprefix("dimension, degrees: ")
            raise ValueError(f"input_dim={input_dim}, max_degree={max_degree}: {message}") from None
        harmonics.validate_eigenvalues(kernel.eigenvalues(dimension, harmonics.degrees))
        return harmonics

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees of the harmonics, which stay as they are: what was computed with them, in a
        compiled function or as statistics of data, stays valid."""
        return self._degrees

    @property
    def multiplicities(self) -> tuple[int, ...]:
        """The number of harmonics of each degree."""
        return tuple(num_harmonics(self.dimension, degree) for degree in self.degrees)

    @property
    def has_whole_levels(self) -> bool:
        """Whether there are all harmonics of each degree, which then sum to a function of the angle
        alone."""
        return True

    @property
    def num_inducing(self) -> int:
        """The number M of harmonics."""
        return sum(self.multiplicities)

    @property
    def shape(self) -> Shape:
        """``(M, None, 1)``: X may have any number of columns; ``active_dims`` selects some of them.
        Those selected must be one fewer than ``dimension``, which ``Kuf`` checks."""
        return (self.num_inducing, None, 1)

    def validate_kernel(self, kernel: ZonalKernel) -> None:
        """Check that every degree carries variance under the kernel.

        :raises ValueError: If the eigenvalue of a degree is zero, with the degrees to leave out.
        """
        nonzero = set(kernel.nonzero_degrees(self.dimension, self.degrees[-1]))
        missing = [degree for degree in self.degrees if degree not in nonzero]
        if missing:
            raise ValueError(
                f"degrees must have nonzero eigenvalues under {type(kernel).__name__} in dimension "
                f"{self.dimension}, found zero for {missing}; leave them out, or build the "
                "inducing variable with SphericalHarmonics.for_kernel(kernel, input_dim, "
                "max_degree)."
            )

    def validate_eigenvalues(self, eigenvalues: tf.Tensor) -> None:
        """Check, where values are known (outside of compiled functions), that all are positive.

        :param eigenvalues: One per degree.
        :raises ValueError: If one has underflowed, or is lost in the error of a quadrature.
        """
        values = tf.get_static_value(eigenvalues)
        if values is None or np.all(values > 0):
            return
        degrees = [degree for degree, v in zip(self.degrees, values, strict=True) if not v > 0]
        raise ValueError(
            "degrees must have positive eigenvalues, found "
            f"{[float(v) for v in values if not v > 0]} for {degrees}, which are too small for the "
            "kernel's accuracy, or zero; pass a lower max_degree, a shorter lengthscale or, in a "
            "kernel of your own, override has_degree or eigenvalues."
        )
