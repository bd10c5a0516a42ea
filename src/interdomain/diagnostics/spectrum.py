"""Compares the coefficients of an activation and a kernel on the sphere, level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from .._arguments import Array, instance, integer
from ..families.sphere.kernel import ZonalKernel
from ..families.sphere.mathematics.activations import Activation, resolve_activation
from ..families.sphere.mathematics.dimensions import (
    num_harmonics,
    validate_dimension,
)
from ..plotting.axes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_REACH = 40
"""Up to this degree at least, and to twice ``max_degree``, the series of the norm is followed."""

NOTABLE_SHARE = 1e-3
"""Shares of the prior variance below this one are not worth a warning."""

# The series of 1/l diverges; the exponent is that of a finite range of degrees, and errs by a few
# hundredths where the decay is algebraic.
_SLOWEST_CONVERGENT_EXPONENT = -1.2


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The coefficients of a kernel and of an activation, as :func:`spectrum` compares them.

    The arrays have one entry for each of the degrees 0 to ``max_degree``, ``[max_degree + 1]``. The
    shares are fractions of the prior variance on the sphere; ``represented_share``,
    ``missing_share`` and ``truncated_share`` add up to one.

    :ivar kernel: What the kernel is called.
    :ivar activation: What the activation is called.
    :ivar dimension: The dimension d of the space around the sphere.
    :ivar max_degree: The highest degree of the features.
    :ivar kernel_roots: ``sqrt(lambda_l)`` of the kernel's kappa; zero where it has no such degree.
    :ivar activation_coefficients: ``|a_l|``; zero where the activation has no such degree.
    :ivar variance_shares: ``N(d, l) lambda_l``, as a share of the prior variance.
    :ivar norm_terms: ``a_l^2 N(d, l) / lambda_l`` for the degrees that both have, zero for the
        others. Divided by the kernel's variance, they add up to the diagonal of Kuu: the squared
        RKHS norm of a unit (Tiao et al. 2023, eq. 7). Infinite where an eigenvalue underflows.
    :ivar missing: The degrees that the kernel has and the activation lacks.
    :ivar unused: The degrees that the activation has and the kernel lacks.
    :ivar represented_share: What the features can represent at most, if there are enough of them.
    :ivar missing_share: What is in the degrees ``missing``.
    :ivar truncated_share: What is in degrees above ``max_degree``.
    :ivar recoverable_share: The part of ``truncated_share`` in degrees up to ``reach`` that the
        activation has: what features up to this degree would represent in addition.
    :ivar reach: The degree up to which the series of the norm was followed.
    :ivar diverging: Whether the terms of the norm do not decay (see :func:`spectrum`).
    """

    kernel: str
    activation: str
    dimension: int
    max_degree: int
    kernel_roots: Array = field(repr=False)
    activation_coefficients: Array = field(repr=False)
    variance_shares: Array = field(repr=False)
    norm_terms: Array = field(repr=False)
    missing: tuple[int, ...]
    unused: tuple[int, ...]
    represented_share: float
    missing_share: float
    truncated_share: float
    recoverable_share: float
    reach: int
    diverging: bool

    @property
    def warnings(self) -> tuple[str, ...]:
        """In words, what is wrong with the combination; empty if nothing is."""
        return tuple(_warnings(self))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw both spectra (Tiao et al. 2023, Figure 2; ``max_degree`` is 35 there).

        The square roots of the kernel's eigenvalues and the absolute coefficients of the activation
        at each level, on a logarithmic scale; missing levels are marked.

        :param ax: Where to draw; a new figure by default.
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

    ``Spectrum.warnings`` names what :class:`interdomain.inducing_variables.ActivationFeatures` of
    this activation will suffer from under this kernel:

    - missing levels: the kernel has degrees that the activation lacks ("spectra mismatch"). Their
      variance is left unexplained by any number of units;
    - a diverging RKHS norm: the unit itself, not truncated, is no function of the RKHS. Kuu grows
      without limit with ``max_degree``, and a given number of units explains less and less;
    - truncation: the variance above ``max_degree``.

    Whether a norm diverges is judged by the exponent of l with which its terms decay between
    ``reach / 2`` and ``reach``, ``reach`` being ``max(2 max_degree, 40)``. This tells what happens
    when ``max_degree`` is raised that far; if the decay is algebraic, it also holds for the whole
    series. A series that begins to grow only further up is not detected: that of softplus under a
    squared exponential kernel with a small lengthscale always diverges in the end, but until then
    its terms are negligible.

    Eigenvalues that a kernel finds by quadrature (the default of ``ZonalKernel``) have an absolute
    accuracy of about 1e-15. The shares are right, but where eigenvalues are smaller, the terms of
    the norm are dominated by rounding, as they would be when the features are computed.

    All numbers are for the kernel's present parameters. For a named smooth activation the first
    call in a dimension takes some seconds, because its coefficients are computed in extended
    precision.

    :param kernel: The kernel.
    :param activation: A name, an activation of :mod:`interdomain.sphere`, or any function of a
        tensor, as for ``ActivationFeatures``.
    :param dimension: The dimension d of the space around the sphere: the number of input columns
        that the kernel sees, plus one. If the inputs are unit vectors, it is their number of
        columns, and for latitude and longitude it is 3.
    :param max_degree: The highest degree of the features.
    :raises ValueError: If the kernel is not zonal or does not fit the dimension, the activation is
        unknown, ``dimension`` < 2, or ``max_degree`` is not an integer of 0 or more.
    """
    activation = resolve_activation(activation)
    _validate(kernel, dimension, max_degree)
    max_degree = int(max_degree)
    reach = max(2 * max_degree, LEAST_REACH)
    counts = np.array([float(num_harmonics(dimension, degree)) for degree in range(reach + 1)])

    carried = kernel.nonzero_degrees(dimension, reach)
    eigenvalues = np.zeros(reach + 1)
    eigenvalues[list(carried)] = kernel.eigenvalues(dimension, carried).numpy()
    of_unit = activation.nonzero_degrees(dimension, reach)
    coefficients = np.zeros(reach + 1)
    if of_unit:
        coefficients[list(of_unit)] = np.abs(activation.coefficients(dimension, of_unit))

    shares = counts * np.maximum(eigenvalues, 0)
    is_common = np.isin(np.arange(reach + 1), sorted(set(carried) & set(of_unit)))
    log_terms = _log_norm_terms(coefficients, counts, eigenvalues, is_common)
    kept, degrees = slice(max_degree + 1), set(range(max_degree + 1))
    missing = tuple(sorted(degrees & set(carried) - set(of_unit)))
    return Spectrum(
        kernel=type(kernel).__name__,
        activation=repr(activation),
        dimension=int(dimension),
        max_degree=max_degree,
        kernel_roots=np.sqrt(np.maximum(eigenvalues[kept], 0)),
        activation_coefficients=coefficients[kept],
        variance_shares=shares[kept],
        norm_terms=np.exp(log_terms[kept]),
        missing=missing,
        unused=tuple(sorted(degrees & set(of_unit) - set(carried))),
        represented_share=float(np.sum(shares[kept][is_common[kept]])),
        missing_share=float(np.sum(shares[list(missing)])),
        truncated_share=max(0.0, 1.0 - float(np.sum(shares[kept]))),
        recoverable_share=float(np.sum(shares[max_degree + 1 :][is_common[max_degree + 1 :]])),
        reach=reach,
        diverging=_diverges(log_terms),
    )


def _validate(kernel: ZonalKernel, dimension: int, max_degree: int) -> None:
    remedy = "pass one of interdomain.kernels.ArcCosine, SphericalMatern52, ..."
    instance("kernel", kernel, ZonalKernel, "a ZonalKernel", remedy)
    validate_dimension(dimension)
    needed = kernel.lift.dimension(kernel.lift.num_columns(dimension), "dimension")
    if needed != dimension:
        raise ValueError(f"dimension must be {kernel.lift.rule}, found {dimension}; pass {needed}.")
    if kernel.ard and dimension != kernel.weight_variances.shape[0] + 1:
        columns = kernel.weight_variances.shape[0]
        raise ValueError(
            f"dimension must be the number of input columns plus one: found {dimension}, but the "
            f"kernel has weight_variances for {columns} columns; pass {columns + 1}."
        )
    integer("max_degree", max_degree, at_least=0)


def _log_norm_terms(
    coefficients: Array, counts: Array, eigenvalues: Array, is_common: NDArray[np.bool_]
) -> Array:
    """``log(a_l^2 N(d, l) / lambda_l)``: squares and quotients of what is left of 1e-300 would
    underflow. Minus infinity where there is no term, infinity where lambda_l is lost."""
    terms = np.full(len(counts), -np.inf)
    is_term = is_common & (coefficients > 0)
    terms[is_term & (eigenvalues <= 0)] = np.inf
    regular = is_term & (eigenvalues > 0)
    terms[regular] = 2 * np.log(coefficients[regular]) + np.log(counts[regular])
    terms[regular] -= np.log(eigenvalues[regular])
    return terms


def _diverges(log_terms: Array) -> bool:
    """Whether the terms of the upper half of the degrees decay no faster than 1/l."""
    degrees = np.arange(len(log_terms))
    considered = (degrees > len(log_terms) // 2) & (log_terms > -np.inf)
    terms = log_terms[considered]
    if len(terms) < 2:  # a polynomial, or coefficients below what rounding leaves of them
        return False
    if np.any(np.isinf(terms)):
        return True
    exponent = np.polyfit(np.log(degrees[considered]), terms, 1)[0]
    return bool(exponent > _SLOWEST_CONVERGENT_EXPONENT)


def _warnings(found: Spectrum) -> Iterator[str]:
    orthogonal = "OrthogonalSVGP with points as orthogonal inducing variables"
    if found.missing_share > NOTABLE_SHARE:
        yield (
            f"Missing levels: {found.activation} lacks {_listed(found.missing)} of {found.kernel}, "
            f"with {_percent(found.missing_share)} of the prior variance, which no number of units "
            "explains. Take a kernel without these degrees, such as ArcCosine() for ReLU and "
            f"softplus, or {orthogonal}, which can explain it."
        )
    if found.diverging:
        yield (
            f"Diverging RKHS norm: up to degree {found.reach}, the terms a_l^2 N(d, l) / lambda_l "
            f"of {found.activation} under {found.kernel} do not decay faster than 1/l. Kuu grows "
            "with max_degree, and a given number of units explains less. Take a smoother "
            "activation, a rougher kernel, or a low max_degree."
        )
    if found.truncated_share > NOTABLE_SHARE:
        yield (
            f"Truncation: {_percent(found.truncated_share)} of the prior variance is in degrees "
            f"above max_degree = {found.max_degree}, {_percent(found.recoverable_share)} in those "
            f"up to {found.reach} that {found.activation} has. A higher max_degree brings the "
            f"latter within reach of the units; {orthogonal} can explain both."
        )


def _listed(degrees: tuple[int, ...]) -> str:
    text = ", ".join(map(str, degrees[:4])) + ", ..." * (len(degrees) > 4)
    return f"the degrees {text}" if len(degrees) > 1 else f"the degree {text}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:.4g}%"
