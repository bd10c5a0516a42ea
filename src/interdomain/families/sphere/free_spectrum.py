"""A zonal kernel with one trainable eigenvalue for each degree, instead of one lengthscale."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels.base import ActiveDims

from ..._arguments import finite_array, lacks, number, refusal
from .kernel import LENGTHSCALES, ZonalKernel, ZonalKernelOfDimension, check_zonal
from .mathematics.dimensions import num_harmonics, validate_degrees
from .mathematics.zonal_series import zonal_series


class FreeSpectrum(ZonalKernelOfDimension):
    """A zonal kernel of finitely many degrees, with trainable, positive, decreasing eigenvalues.

    The eigenvalues of the Matern kernels follow from one lengthscale. This kernel has one parameter
    for each degree: ``lambda_l = lambda_{l-1} ratios_l``, with ratios between zero and one, and
    ``lambda_0`` such that ``kappa(1) = sum_l N(d, l) lambda_l = 1``. So for all values of the
    parameters the kernel is positive semi-definite, and its eigenvalues decrease. The sum ends at
    the last degree: the harmonics of all its degrees represent the prior completely.

    Features do not depend on the ratios. After a fit with another zonal kernel, the ratios can be
    trained on the sufficient statistics of that fit, without another pass over the data:

    >>> import numpy as np, interdomain as idm
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> data = X, np.sin(9 * X) + 0.1 * np.cos(99 * X)
    >>> kernel = idm.kernels.SphericalMatern52()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 1, max_degree=8)
    >>> model = idm.models.StructuredSGPR(data, kernel, harmonics)
    >>> fitted = idm.fit(model, progress=False)
    >>> free = idm.kernels.FreeSpectrum.from_kernel(kernel, input_dim=1, max_degree=8)
    >>> free.ratios.shape
    TensorShape([8])
    >>> finer = idm.models.StructuredSGPR(
    ...     model.statistics, free, harmonics, noise_variance=model.likelihood.variance.numpy()
    ... )
    >>> fitted = idm.fit(finer, progress=False)  # reads no rows
    >>> bool(finer.elbo() > model.elbo())
    True

    The gain is small: on tabular data the kernel is hardly better than :class:`SphericalMatern52`
    with a trained lengthscale. Training it is cheap, but more degrees help more.

    :param ratios: The ratios ``lambda_l / lambda_{l-1}`` of consecutive degrees, ``[L]``, greater
        than zero and less than one. Ratios near the limit of one train slowly.
    :param degrees: The only degrees with variance, ``[L + 1]``, increasing; by default 0, ..., L.
    :param radial_power: The power of r r' in the kernel, as in :class:`SphericalMatern52`.
    :param variance: This and all further arguments are those of :class:`ZonalKernel`.
    :raises ValueError: As for :class:`ZonalKernel`; also if an argument is not as above.
    """

    @lacks("lengthscales", LENGTHSCALES)
    def __init__(
        self,
        ratios: TensorType,
        *,
        degrees: Sequence[int] | None = None,
        radial_power: float = 1.0,
        variance: TensorType = 1.0,
        weight_variances: TensorType | None = None,
        bias_variance: TensorType | None = None,
        inputs: str = "euclidean",
        active_dims: ActiveDims | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            variance=variance,
            weight_variances=weight_variances,
            bias_variance=bias_variance,
            inputs=inputs,
            active_dims=active_dims,
            name=name,
        )
        self.radial_power = number("radial_power", radial_power, at_least=0)
        values = finite_array("ratios", ratios, (1,), "a vector [L]")
        if not values.size:
            raise ValueError("ratios must be a vector [L], found none; pass two degrees or more.")
        if not np.all((values > 0) & (values < 1)):
            remedy = "pass eigenvalues divided by those of the degree before"
            raise refusal("ratios", "be greater than 0 and less than 1", values.tolist(), remedy)
        # The logistic function, as exp(-softplus(-x)): the gradient of TFP's Sigmoid is NaN for
        # large x, which an optimiser may reach if the best ratio is one.
        minus = tfp.bijectors.Scale(tf.constant(-1.0, gpflow.default_float()))
        chain = [tfp.bijectors.Exp(), minus, tfp.bijectors.Softplus(), minus]
        given = ratios if isinstance(ratios, (gpflow.Parameter, tf.Variable)) else values
        self.ratios = gpflow.Parameter(given, transform=tfp.bijectors.Chain(chain))
        size = self.ratios.shape[0] + 1
        self.degrees = validate_degrees(range(size) if degrees is None else degrees)
        if len(self.degrees) != size:
            remedy = "pass the first degree that carries variance as well"
            raise refusal("degrees", f"be {size}, one more than ratios", len(self.degrees), remedy)

    @classmethod
    def from_kernel(
        cls, kernel: ZonalKernel, input_dim: int, max_degree: int, *, name: str | None = None
    ) -> FreeSpectrum:
        """Make a kernel that is initially a copy of another kernel, cut off above ``max_degree``.

        It copies the eigenvalues, the input scales and the radial power. Its variance is that of
        the other kernel times the variance share of the degrees up to ``max_degree``. Degrees with
        eigenvalue zero are left out. The kernels share no parameters; a copy is trainable if its
        original is.

        :param input_dim: The number D of input columns of the kernel (after ``active_dims``).
        :raises ValueError: If the kernel is not zonal, or its eigenvalues are not positive and
            decreasing; or if fewer than two degrees up to ``max_degree`` have variance.
        """
        check_zonal(kernel)
        dimension = kernel.lift.dimension(input_dim, "input_dim")
        degrees = kernel.nonzero_degrees(dimension, max_degree)
        values = np.asarray(kernel.eigenvalues(dimension, degrees).numpy(), float)
        ratios = values[1:] / values[:-1]
        # An eigenvalue that exceeds the previous one by a rounding error counts as equal to it.
        if not (np.all(values > 0) and np.all(ratios <= 1 + 1e-9)):
            listed = dict(zip(degrees, values.tolist(), strict=True))
            raise ValueError(
                "kernel must have positive eigenvalues that decrease with the degree, found "
                f"{listed}; pass another kernel, or a lower max_degree where they are lost in "
                "rounding errors."
            )
        limits: Any = np.finfo(gpflow.default_float())
        counts = np.array([num_harmonics(dimension, degree) for degree in degrees], float)
        free = cls(
            np.clip(ratios, limits.tiny, 1 - 4 * limits.eps),
            degrees=degrees,
            variance=kernel.variance.numpy() * float(np.sum(counts * values)),
            inputs=kernel.inputs,
            weight_variances=getattr(kernel, "weight_variances", None),
            bias_variance=getattr(kernel, "bias_variance", None),
            radial_power=kernel.radial_power,
            active_dims=kernel.active_dims,
            name=name,
        )
        gpflow.set_trainable(free.variance, kernel.variance.trainable)
        return free

    def has_degree(self, dimension: int, degree: int) -> bool:
        return degree in self.degrees

    @inherit_check_shapes
    def eigenvalues(self, dimension: int, degrees: Sequence[int]) -> tf.Tensor:
        ratios = tf.cast(self.ratios, tf.float64)
        # If a ratio underflows, all higher degrees vanish, and the gradient has no NaN.
        logs = tf.math.log(tf.maximum(ratios, np.finfo(float).tiny))
        logs = tf.pad(tf.cumsum(logs), [[1, 0]])
        counts = [log(num_harmonics(dimension, degree)) for degree in self.degrees]
        values = tf.exp(logs - tf.reduce_logsumexp(logs + tf.constant(counts, tf.float64)))
        place = {degree: index for index, degree in enumerate(self.degrees)}
        values = tf.pad(values, [[0, 1]])
        values = tf.gather(values, [place.get(int(degree), len(place)) for degree in degrees])
        return tf.cast(values, self.variance.dtype)

    def shape_in_dimension(self, t: tf.Tensor, dimension: int) -> tf.Tensor:
        return zonal_series(t, self.variance_shares(dimension, self.degrees[-1]), dimension)
