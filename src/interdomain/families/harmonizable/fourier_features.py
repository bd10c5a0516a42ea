"""Fourier features of harmonizable kernels: Shen et al. 2019."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from scipy.stats import qmc

from ..._arguments import Array, filled_matrix, instance, integer, refusal
from ...core.columns import as_rows
from ...core.decomposed import DecomposedKernel
from ...core.family import InterDomainInducingVariables, with_jitter
from ...core.sums import SumInducingVariables
from ...linalg import Full, StructuredOperator
from .algebra import fourier_covariance, fourier_matrix, fourier_variances, turned
from .component import HarmonizableComponent
from .mixture import HarmonizableMixture

Harmonizable: TypeAlias = HarmonizableComponent | HarmonizableMixture

_CANDIDATES = 512
_WIDTH = 3.0
_RELATIVE_NUGGET = 1e-10


class HarmonizableFourierFeatures(InterDomainInducingVariables):
    """Real and imaginary parts of the Fourier transform of f at some frequencies.

    For a :class:`interdomain.kernels.HarmonizableComponent`, ``u = int f(x + centre) exp(-2 pi i
    w^T x) dx``; its sample functions have a Fourier transform (Shen, Heinonen and Kaski 2019, eqs.
    29 to 36). For a :class:`interdomain.kernels.HarmonizableMixture`, use a set of features for
    each component, or one set for all components: ``u = int f(x) exp(-2 pi i w^T x) dx`` (section
    4.3). Covariances of one set are sums over the components, times the phases of their centres.
    :meth:`for_kernel` builds both.

    The paper's complex features at w and -w are equivalent to the real and the imaginary part at w.
    All real parts come first, then the imaginary parts, without the one at w = 0. Each variable is
    divided by its standard deviation, so that ``Kuu`` has a diagonal of ones in all units.

    >>> import numpy as np, interdomain as idm
    >>> component = idm.kernels.HarmonizableComponent([[1.0], [3.0]], centre=2.0)
    >>> features = idm.inducing_variables.HarmonizableFourierFeatures([[0.0], [1.0], [3.0]])
    >>> features.num_inducing  # the imaginary part at zero is omitted
    5
    >>> kernel = idm.kernels.HarmonizableMixture([component, component])
    >>> Features = idm.inducing_variables.HarmonizableFourierFeatures
    >>> blocks = Features.for_kernel(kernel, num_frequencies=3)
    >>> type(blocks).__name__, len(blocks.inducing_variables)
    ('SumInducingVariables', 2)
    >>> Features.for_kernel(kernel, num_frequencies=6, per_component=False).num_inducing
    12

    :param frequencies: ``[m, D]``, in cycles per unit of x, trainable.
    :ivar with_imaginary_part: The indices of the frequencies with an imaginary part: all except
        zero. Training does not move a zero frequency: by symmetry its gradient is zero, and
        rounding errors of the gradient are discarded.
    :raises ValueError: If the frequencies are not a finite matrix, or if two of them are equal up
        to their sign, because their variables then are, too.
    """

    kernels = (HarmonizableComponent, HarmonizableMixture)

    def __init__(self, frequencies: TensorType, *, name: str | None = None) -> None:
        super().__init__(name=name)
        values = filled_matrix("frequencies", frequencies, "a matrix [m, D]")
        tolerance = 1e-10 * np.max(np.abs(values))
        for sign, relation in ((1, "equal"), (-1, "negatives of each other")):
            apart = np.max(np.abs(values[:, None] - sign * values), axis=2)
            pairs = np.argwhere(np.tril(apart <= tolerance, -1))
            if len(pairs):
                first, second = pairs[0]
                raise ValueError(
                    "frequencies must be distinct, and no two of them negatives of each other, "
                    f"found {values[second].tolist()} and {values[first].tolist()}, "
                    f"rows {second} and {first}, which are {relation}; pass one of the two, as "
                    "their inducing variables differ by a sign at most, and Kuu is singular."
                )
        self.frequencies = gpflow.Parameter(values, name="frequencies")
        self.with_imaginary_part = tuple(np.flatnonzero(np.any(values != 0, axis=1)).tolist())

    @classmethod
    def for_kernel(
        cls, kernel: Harmonizable, num_frequencies: int, *, per_component: bool = True
    ) -> HarmonizableFourierFeatures | SumInducingVariables:
        """Make features at the frequencies that explain most of the variance of the process.

        The frequencies are chosen one by one, under the current kernel. The next frequency is the
        one at which the transform of f has the largest variance, conditional on the chosen ones.
        The integral of this variance over all frequencies is the integral of the variance of f that
        the features do not explain.

        :param num_frequencies: The number of frequencies of a set, each with one or two variables.
        :param per_component: Whether a mixture gets one set for each component, or one for all.
        :return: The features; for several sets, a :class:`SumInducingVariables`.
        :raises ValueError: If num_frequencies is not positive or exceeds the rank of the transform,
            or the kernel is of another class.
        """
        if per_component and isinstance(kernel, DecomposedKernel):
            parts = [cls.for_kernel(part, num_frequencies) for part in kernel.kernels]
            return SumInducingVariables(parts)
        return cls(_select_frequencies(kernel, num_frequencies))

    @property
    def num_inducing(self) -> int:
        """The number M of real variables."""
        return int(self.frequencies.shape[0]) + len(self.with_imaginary_part)

    def Kuf(self, kernel: Harmonizable, X: TensorType) -> tf.Tensor:
        """The covariances of f with real, then imaginary parts, each standardised (eq. 35)."""
        w = self.validate_kernel(kernel)
        X = tf.convert_to_tensor(X)
        rows = as_rows(X)
        terms = []
        for part in _components(kernel):
            covariances = fourier_covariance(part.tensors(), w, part.centred(rows))
            terms.append(_turned(kernel, part, w, covariances))
        # The variances are from the whole matrix, so that small variances have the same rounding
        # errors as those in Kuu.
        variances = fourier_variances(_covariances(kernel, w))
        columns = self._kept_rows(tf.add_n(terms) * tf.math.rsqrt(variances)[:, None])
        return tf.reshape(columns, tf.concat([tf.shape(columns)[:1], tf.shape(X)[:-1]], axis=0))

    def Kuu(self, kernel: Harmonizable, *, jitter: float = 0.0) -> StructuredOperator:
        """The correlations, from the generalized spectral density at w and -w (eq. 36)."""
        matrix = _covariances(kernel, self.validate_kernel(kernel))
        inverse = tf.math.rsqrt(fourier_variances(matrix))
        rows = self._kept_rows(inverse[:, None] * matrix * inverse)
        return Full(with_jitter(self._kept_rows(tf.linalg.matrix_transpose(rows)), jitter))

    def _kept_rows(self, rows: tf.Tensor) -> tf.Tensor:
        """The rows ``[2m, n]`` of real and imaginary parts, without imaginary parts at w = 0."""
        count, kept = int(self.frequencies.shape[0]), self.with_imaginary_part
        if len(kept) == count:
            return rows
        return tf.gather(rows, [*range(count), *(count + k for k in kept)])

    def validate_kernel(self, kernel: Harmonizable) -> tf.Tensor:
        """The frequencies as a tensor, after a check that they fit the kernel.

        :raises ValueError: If the frequencies do not have the kernel's number of columns.
        :raises NotImplementedError: If a component has no Fourier transform in closed form.
        """
        columns, dimension = self.frequencies.shape[1], _components(kernel)[0].dimension
        if columns != dimension:
            remedy = f"pass a matrix [m, {dimension}]"
            rule = f"have {dimension} columns, as the kernel's have"
            raise refusal("frequencies", rule, columns, remedy)
        frequencies = tf.convert_to_tensor(self.frequencies)
        is_trained = np.zeros([frequencies.shape[0], 1], dtype=bool)
        is_trained[list(self.with_imaginary_part)] = True
        return tf.where(is_trained, frequencies, tf.stop_gradient(frequencies))


def _components(kernel: Harmonizable) -> Sequence[HarmonizableComponent]:
    """The components of a kernel, after a check that each has a Fourier transform."""
    parts = kernel.kernels if isinstance(kernel, HarmonizableMixture) else [kernel]
    for part in parts:
        part.validate_transform()
    return parts


def _turned(
    kernel: Harmonizable, part: HarmonizableComponent, w: tf.Tensor, rows: tf.Tensor
) -> tf.Tensor:
    """The rows ``[2m, n]`` of a component, for transforms about zero if it is part of a mixture. If
    the kernel is the component itself, its transform stays about its centre."""
    return rows if part is kernel else turned(rows, w, part.centre)


def _covariances(kernel: Harmonizable, w: tf.Tensor) -> tf.Tensor:
    """The covariances of the real and the imaginary parts, ``[2m, 2m]``."""
    matrices = []
    for part in _components(kernel):
        rows = _turned(kernel, part, w, fourier_matrix(part.tensors(), w))
        matrices.append(_turned(kernel, part, w, tf.linalg.matrix_transpose(rows)))
    return tf.add_n(matrices)


def _select_frequencies(kernel: Harmonizable, num_frequencies: int) -> Array:
    """Frequencies ``[m, D]``, chosen one by one by the largest conditional variance."""
    rule = "a HarmonizableMixture or a HarmonizableComponent, which have Fourier transforms"
    remedy = "pass HarmonizableMixture.from_data(X, Y, num_components, num_frequencies)"
    instance("kernel", kernel, HarmonizableFourierFeatures.kernels, rule, remedy)
    candidates = _candidates(kernel)
    count = len(candidates)
    num_frequencies = integer("num_frequencies", num_frequencies, at_least=1, at_most=count)
    w = tf.constant(candidates, gpflow.default_float())
    residual = _covariances(kernel, w).numpy()
    residual /= np.max(np.diag(residual))
    chosen: list[int] = []
    for _ in range(num_frequencies):
        variances = np.diag(residual)
        left = variances[:count] + variances[count:]
        left[chosen] = -np.inf
        if np.max(left) <= _RELATIVE_NUGGET:
            raise ValueError(
                f"num_frequencies must be at most {len(chosen)}, found {num_frequencies}: the "
                "transforms at these frequencies determine all others; pass fewer."
            )
        chosen.append(int(np.argmax(left)))
        for row in (chosen[-1], count + chosen[-1]):
            if residual[row, row] > _RELATIVE_NUGGET:
                column = residual[:, row] / np.sqrt(residual[row, row])
                residual = residual - np.outer(column, column)
    return np.asarray(candidates[chosen])


def _candidates(kernel: Harmonizable) -> Array:
    """Candidate frequencies: zero, and points in a box about each frequency of the kernel, as wide
    as its density. Only one of w and -w is a candidate."""
    boxes, parts = [], _components(kernel)
    dimension = parts[0].dimension
    per_centre = max(1, _CANDIDATES // sum(part.num_frequencies for part in parts))
    if dimension == 1:
        unit = np.linspace(-1, 1, per_centre + 1)[:, None]
    else:
        unit = 2 * qmc.Halton(dimension, scramble=False).random(per_centre) - 1
    for component in (part.tensors() for part in parts):
        deviations = np.sqrt(np.diag(component.excess + component.envelope / 4))
        boxes += [w + _WIDTH * deviations * unit for w in component.frequencies.numpy()]
    points = np.concatenate([np.zeros([1, dimension]), *boxes])
    leading = points[np.arange(len(points)), np.argmax(points != 0, axis=1)]
    points = np.where(leading[:, None] < 0, -points, points)
    scale = np.max(np.abs(points))
    return np.asarray(scale * np.unique((points / scale).round(12), axis=0))
