"""A comparison of the coefficients of an activation and a kernel on the sphere, by degree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from .._arguments import Array, integer
from ..families.sphere.kernel import ZonalKernel, check_zonal
from ..families.sphere.mathematics.activations import Activation, resolve_activation
from ..families.sphere.mathematics.dimensions import num_harmonics, validate_dimension
from ..plotting.axes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The coefficients of a kernel and of an activation, as :func:`spectrum` compares them.

    Printed, it is a sentence about the shares: fractions of the prior variance on the sphere, whose
    sum is one. The arrays have one entry for each of the degrees 0 to ``max_degree``.

    :ivar kernel: The name of the kernel.
    :ivar activation: The name of the activation.
    :ivar kernel_roots: ``sqrt(lambda_l)`` of the kernel's kappa; zero for degrees it does not have.
    :ivar activation_coefficients: ``|a_l|``; zero for degrees that the activation does not have.
    :ivar variance_shares: ``N(d, l) lambda_l``, as a share of the prior variance.
    :ivar norm_terms: ``a_l^2 N(d, l) / lambda_l`` for common degrees, zero for others. Their sum
        divided by the kernel's variance is the diagonal of Kuu: the squared RKHS norm of a unit
        (Tiao et al. 2023, eq. 7). Infinite if an eigenvalue underflows.
    :ivar missing: The degrees that the kernel has and the activation lacks.
    :ivar represented_share: The share that enough features represent.
    :ivar missing_share: The share of the ``missing`` degrees.
    :ivar truncated_share: The share of degrees above ``max_degree``.
    """

    kernel: str
    activation: str
    kernel_roots: Array = field(repr=False)
    activation_coefficients: Array = field(repr=False)
    variance_shares: Array = field(repr=False)
    norm_terms: Array = field(repr=False)
    missing: tuple[int, ...]
    represented_share: float
    missing_share: float
    truncated_share: float

    def __str__(self) -> str:
        lacks = f" ({', '.join(map(str, self.missing))})" if self.missing else ""
        return (
            f"{self.activation} represents {self.represented_share:.2%} of the prior variance of "
            f"{self.kernel} at most: {self.missing_share:.2%} is in degrees that it lacks{lacks}, "
            f"{self.truncated_share:.2%} above degree {len(self.kernel_roots) - 1}."
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the square roots of the kernel's eigenvalues and the activation's absolute
        coefficients by degree. Missing degrees are marked (Tiao et al. 2023, Figure 2).

        :param ax: The axes to draw in; a new figure by default.
        """
        ax = new_axes() if ax is None else ax
        roots, coefficients = self.kernel_roots, self.activation_coefficients
        for values, marker, label in (
            (roots, "o", rf"$\sqrt{{\lambda_\ell}}$ of {self.kernel}"),
            (coefficients, "s", rf"$|a_\ell|$ of {self.activation}"),
        ):
            carried = np.flatnonzero(values)
            ax.plot(carried, values[carried], marker, ms=4, label=label)
        if self.missing:
            missing = list(self.missing)
            label = f"missing: {self.missing_share:.2g} of the variance"
            ax.plot(missing, roots[missing], "o", ms=9, mfc="none", mec="C3", label=label)
        ax.locator_params(axis="x", integer=True)
        ax.set(xlabel=r"level $\ell$", ylabel="coefficient", yscale="log")
        ax.legend(fontsize="small")
        return ax


def spectrum(
    kernel: ZonalKernel,
    activation: str | Activation | Callable[[tf.Tensor], tf.Tensor],
    dimension: int,
    max_degree: int,
) -> Spectrum:
    """Compare a kernel's spectrum with that of an activation (Tiao et al. 2023, section 3).

    The report shows three problems of :class:`interdomain.inducing_variables.ActivationFeatures`
    with this activation under this kernel, with its present parameters:

    - missing degrees: the kernel has degrees that the activation lacks ("spectra mismatch"). No
      number of units explains their variance; points as orthogonal inducing variables
      (:class:`interdomain.models.OrthogonalSVGP`) can;
    - a diverging RKHS norm: ``norm_terms`` decay no faster than one over the degree. Kuu then grows
      without limit with ``max_degree``, and a given number of units explains less and less;
    - truncation: the variance of degrees above ``max_degree``, the ``truncated_share``.

    :param kernel: The kernel.
    :param activation: A name, an activation of :mod:`interdomain.sphere`, or any function of a
        tensor, as for ``ActivationFeatures``.
    :param dimension: The dimension d of the space around the sphere: the number of input columns
        that the kernel uses, plus one. For unit vectors it is the number of columns, and for
        latitude and longitude it is 3.
    :param max_degree: The highest degree of the features.
    :raises ValueError: If the kernel is not zonal or does not fit the dimension; if the activation
        is unknown, ``dimension`` < 2, or ``max_degree`` is not an integer of 0 or more.
    """
    activation = resolve_activation(activation)
    check_zonal(kernel)
    validate_dimension(dimension)
    columns = kernel.lift.num_columns(dimension)
    needed = kernel.lift.dimension(columns, "dimension")
    if kernel.ard:
        needed = int(kernel.weight_variances.shape[0]) + 1
    if needed != dimension:
        raise ValueError(
            f"dimension must be that of the kernel's sphere, found {dimension}; pass {needed}."
        )
    size = integer("max_degree", max_degree, at_least=0) + 1
    counts = np.array([float(num_harmonics(dimension, degree)) for degree in range(size)])
    carried = kernel.nonzero_degrees(dimension, max_degree)
    eigenvalues, coefficients = np.zeros(size), np.zeros(size)
    eigenvalues[list(carried)] = np.maximum(kernel.eigenvalues(dimension, carried), 0)
    nonzero = activation.nonzero_degrees(dimension, max_degree)
    if nonzero:
        coefficients[list(nonzero)] = np.abs(activation.coefficients(dimension, nonzero))
    common, missing = sorted(set(carried) & set(nonzero)), sorted(set(carried) - set(nonzero))
    roots, shares, norm_terms = np.sqrt(eigenvalues), counts * eigenvalues, np.zeros(size)
    with np.errstate(divide="ignore"):  # squares of small coefficients would underflow
        norm_terms[common] = counts[common] * (coefficients[common] / roots[common]) ** 2
    arrays = roots, coefficients, shares, norm_terms
    represented, left_out = (float(np.sum(shares[degrees])) for degrees in (common, missing))
    truncated = max(0.0, 1.0 - float(np.sum(shares)))
    names = type(kernel).__name__, repr(activation)
    return Spectrum(*names, *arrays, tuple(missing), represented, left_out, truncated)
