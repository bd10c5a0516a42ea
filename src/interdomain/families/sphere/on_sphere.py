"""The base class of inducing variables of zonal kernels, and inverse eigenvalues."""

from __future__ import annotations

import abc

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from ...core.columns import num_columns, with_columns
from ...core.family import Domain, InterDomainInducingVariables
from ...linalg.diagonal import least_eigenvalue
from .kernel import ZonalKernel, sphere_dimension


class OnSphere(InterDomainInducingVariables, abc.ABC):
    """Inducing variables on the sphere of a zonal kernel's inputs.

    :ivar dimension: The dimension d of the space around the sphere.
    """

    kernels = (ZonalKernel,)
    fitting_kernels = "SphericalMatern52, GlobeMatern52, ArcCosine or another ZonalKernel"
    dimension: int

    def num_columns(self, kernel: ZonalKernel) -> int | None:
        """The number of columns of X: d - 1 for lifted inputs and degrees, d for unit vectors."""
        return num_columns(kernel, kernel.lift.num_columns(self.dimension))

    def domain(self, kernel: ZonalKernel) -> Domain | None:
        """The domain of the inputs: for degrees, the latitudes from pole to pole."""
        return kernel.lift.domain()

    def radial_and_unit(self, kernel: ZonalKernel, X: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """The kernel's radial factors ``[batch..., N]`` and the unit vectors ``[batch..., N, d]``.

        :raises ValueError: If the number of columns does not fit, the rank of X is not known, or a
            NumPy array is not on the kernel's sphere.
        """
        seen = kernel.seen(X)
        if isinstance(X, np.ndarray) and tf.executing_eagerly():
            kernel.lift.validate("Xnew", seen.numpy())
        seen = with_columns(seen, kernel.lift.num_columns(self.dimension))
        scale, unit = kernel.to_scaled_sphere(seen)
        if sphere_dimension(unit) != self.dimension:
            raise ValueError(
                f"the kernel sees {seen.shape[-1]} columns of Xnew, but the inducing variable has "
                f"dimension {self.dimension}; dimension must be {unit.shape[-1]} here."
            )
        return scale[..., 0], unit

    def check_same_sphere(self, other: OnSphere) -> None:
        """Check that another inducing variable has the same d; a ValueError otherwise."""
        if self.dimension != other.dimension:
            raise ValueError(
                f"iv_v has dimension {self.dimension}, but iv_u has {other.dimension}; both must "
                "live on the sphere of the kernel's inputs."
            )


def inverse_eigenvalues(
    kernel: ZonalKernel, eigenvalues: tf.Tensor, *, squared: bool = True
) -> tf.Tensor:
    """The inverses ``1 / (variance lambda_l)`` for the eigenvalues lambda_l of some degrees.

    If an eigenvalue underflows, its features have no effect, instead of NaN. If the square of an
    eigenvalue underflows, its gradient is zero, because the gradient contains the square.

    :param squared: Whether the squares of the result must be finite; the result is then bounded.
    """
    bounded = tf.maximum(eigenvalues, least_eigenvalue(eigenvalues.dtype))
    inverse = 1 / (kernel.variance * bounded)
    if squared:
        return inverse
    tiny = float(np.finfo(eigenvalues.dtype.as_numpy_dtype).tiny)
    return inverse * tf.stop_gradient(bounded / tf.maximum(eigenvalues, tiny**0.8))
