"""Fourier features of a Matern process on an interval: Hensman et al. 2018."""

from __future__ import annotations

import gpflow
import numpy as np
from gpflow.base import TensorType

from .._arguments import Array, check_num_inducing, finite_array, integer, number
from .base import InterDomainInducingVariables


class IntervalFourierFeatures(InterDomainInducingVariables):
    """Projections of a Matern process on sines and cosines over an interval.

    ``u = <f, phi>`` in the RKHS of a Matern-1/2, 3/2 or 5/2 kernel on [lower, upper], for
    ``phi = 1, cos(w_m (x - lower)), sin(w_m (x - lower))``, ``w_m = 2 pi m / (upper - lower)``,
    m = 1, ..., num_frequencies, in this order (Hensman, Durrande and Solin, *Variational Fourier
    features for Gaussian processes*, 2018, sections 3 and 4). ``Kuf`` is phi; inside the interval
    it depends on no parameter of the kernel. ``Kuu`` is a diagonal plus a matrix of rank 1, 2 or 3.
    :func:`interdomain.covariances.Kuu_operator` keeps this structure: in ``gpflow.models.SVGP`` and
    :class:`interdomain.models.StructuredSGPR` the factorisation of Kuu does not grow with M.
    ``gpflow.models.SGPR`` factorises Kuu as a dense matrix.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.linspace(0, 10, 500)[:, None]
    >>> features = idm.inducing_variables.IntervalFourierFeatures(-2, 12, num_frequencies=30)
    >>> features.num_inducing
    61
    >>> kernel = gpflow.kernels.Matern32()
    >>> type(idm.covariances.Kuu_operator(features, kernel)).__name__
    'LinearOperatorLowRankUpdate'
    >>> model = idm.models.StructuredSGPR((X, np.sin(X)), kernel, features, noise_variance=0.1)
    >>> model.feature_parameters  # none: one pass over the data serves the whole training
    {}
    >>> fitted = idm.training.fit_sgpr(model, steps=5, progress=False)
    >>> fitted.frozen, fitted.subset
    ((), None)

    These features are for kernels of one column. For several columns, use a sum of kernels on one
    column each (``active_dims``), with one of these for each in a
    :class:`interdomain.inducing_variables.SumInducingVariables`. Choose an interval somewhat longer
    than the data, so that f need not be periodic on it. Predictions may be anywhere: outside the
    interval, the model knows f only through its value and derivatives at the end, and the features
    decay over a lengthscale. For rows of the data outside the interval, an SVGP warns;
    ``StructuredSGPR`` refuses them, as its one pass could not serve all lengthscales.

    :param lower: The lower end of the interval.
    :param upper: The upper end of the interval.
    :param num_frequencies: The number of sines, which is also the number of cosines.
    :param allow_large: Whether to allow so many that their covariances with 1,000 rows take more
        than 4 GiB.
    :ivar length: The length of the interval.
    :ivar angular_frequencies: The angular frequencies w_m, ``[num_frequencies]``, in radians per
        unit of x.
    :raises ValueError: If the interval is empty or not finite, or the number is negative or too
        large.
    """

    def __init__(
        self,
        lower: float,
        upper: float,
        num_frequencies: int,
        *,
        allow_large: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        ends = number("lower", lower), number("upper", upper)
        if not ends[0] < ends[1]:
            raise ValueError(
                f"upper must be above lower = {ends[0]}, found {ends[1]}; pass the ends in order."
            )
        count = integer("num_frequencies", num_frequencies, at_least=0)
        size = 2 * count + 1
        check_num_inducing("num_frequencies", size, "features", allow_large=allow_large)
        self.lower, self.upper = ends
        self.length, self.num_frequencies = ends[1] - ends[0], count
        self.angular_frequencies: Array = 2 * np.pi * np.arange(1, count + 1) / self.length
        self.angular_frequencies.setflags(write=False)

    @classmethod
    def from_data(
        cls,
        X: TensorType,
        num_frequencies: int,
        *,
        margin: float = 0.25,
        allow_large: bool = False,
    ) -> IntervalFourierFeatures:
        """Make features on an interval around the data.

        :param X: One column, ``[N, 1]`` or ``[N]``.
        :param margin: How far the interval extends beyond the data on either side, as a multiple of
            the range of the data. At the ends of the data the features leave about 15% of the
            variance of a Matern-3/2 process unexplained if the margin is one lengthscale, 1.5% for
            two, 0.4% for two and a half. A narrow margin makes training choose shorter
            lengthscales.
        :param allow_large: As for the constructor.
        :raises ValueError: If X has several columns, is not finite or does not vary, or the margin
            is negative.
        """
        values = finite_array("X", X, (1, 2), "one column [N, 1]")
        if values.ndim == 2 and values.shape[1] != 1 or not values.size:
            raise ValueError(
                f"X must be one column [N, 1], found shape {values.shape}; pass one with a row or "
                "more."
            )
        margin = number("margin", margin, at_least=0)
        lower, upper = float(np.min(values)), float(np.max(values))
        if lower == upper:
            raise ValueError(
                f"X must vary, found {lower} in every row; pass a column that varies, or lower and "
                "upper to the constructor."
            )
        reach = margin * (upper - lower)
        return cls(lower - reach, upper + reach, num_frequencies, allow_large=allow_large)

    @property
    def num_inducing(self) -> int:
        """The number ``M = 2 num_frequencies + 1`` of features."""
        return 2 * self.num_frequencies + 1

    def are_among(self, others: IntervalFourierFeatures) -> bool:
        """Whether these are waves of the same interval."""
        same = (self.lower, self.upper) == (others.lower, others.upper)
        return same and self.num_frequencies <= others.num_frequencies

    def validate_kernel(self, kernel: gpflow.kernels.Stationary) -> None:
        """:raises ValueError: If the kernel has several lengthscales."""
        if kernel.lengthscales.shape.rank:
            raise ValueError(
                f"kernel.lengthscales must be one number, found shape {kernel.lengthscales.shape}; "
                "pass a sum of kernels on one column each, with SumInducingVariables, as these "
                "features are for one column."
            )
