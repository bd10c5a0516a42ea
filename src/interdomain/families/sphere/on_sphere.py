"""What inducing variables of zonal kernels share: inputs lifted to the sphere, and eigenvalues."""

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
    """Inducing variables on the sphere that inputs are on, or lifted to.

    :ivar dimension: The dimension d of the space around it.
    """

    kernels = (ZonalKernel,)
    fitting_kernels = "SphericalMatern52, GlobeMatern52, ArcCosine or another ZonalKernel"
    dimension: int

    def num_columns(self, kernel: ZonalKernel) -> int | None:
        """One fewer than the sphere's space has dimensions, if the inputs are lifted to it."""
        return num_columns(kernel, kernel.lift.num_columns(self.dimension))

    def domain(self, kernel: ZonalKernel) -> Domain | None:
        """That of the inputs: latitudes end at the poles."""
        return kernel.lift.domain()

    def radial_and_unit(self, kernel: ZonalKernel, X: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """The kernel's radial factors ``[batch..., N]`` and the unit vectors ``[batch..., N, d]``.

        :raises ValueError: If the number of columns does not fit the dimension, or not even the
            rank of X is known; or for NumPy arrays that are not on the kernel's sphere.
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
        """:raises ValueError: If another set, of which the covariance is asked, is on another."""
        if self.dimension != other.dimension:
            raise ValueError(
                f"iv_v has dimension {self.dimension}, but iv_u has {other.dimension}; both must "
                "live on the sphere of the kernel's inputs."
            )


def inverse_eigenvalues(
    kernel: ZonalKernel, eigenvalues: tf.Tensor, *, squared: bool = True
) -> tf.Tensor:
    """``1 / (variance lambda_l)``, for the eigenvalues lambda_l of some degrees.

    An eigenvalue that underflows leaves features of no effect, not NaN. One whose square does, of
    which the gradient to it is made, has no gradient.

    :param squared: Whether the squares of the result have to be numbers, too: it is then bounded.
    """
    bounded = tf.maximum(eigenvalues, least_eigenvalue(eigenvalues.dtype))
    inverse = 1 / (kernel.variance * bounded)
    if squared:
        return inverse
    tiny = float(np.finfo(eigenvalues.dtype.as_numpy_dtype).tiny)
    return inverse * tf.stop_gradient(bounded / tf.maximum(eigenvalues, tiny**0.8))
