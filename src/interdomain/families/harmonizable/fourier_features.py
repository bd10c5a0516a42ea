"""Fourier transforms of a harmonizable process as inducing variables: Shen et al. 2019."""

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

    ``u = int f(x + centre) exp(-2 pi i w^T x) dx``, for a
    :class:`interdomain.kernels.HarmonizableComponent`, whose sample functions have such a
    transform (Shen, Heinonen and Kaski 2019, eqs. 29 to 36). For a
    :class:`interdomain.kernels.HarmonizableMixture`, one set for each component, or one for all,
    ``u = int f(x) exp(-2 pi i w^T x) dx`` (their section 4.3): the covariances are sums of those of
    the components, turned by the phases of their centres. :meth:`for_kernel` makes both.

    The paper's complex features at w and -w are the two real ones at w, whose order here is all
    real parts, then all imaginary ones. At w = 0 there is no imaginary part. Each variable is
    divided by its standard deviation, so that ``Kuu`` has a diagonal of ones whatever the units.

    >>> import numpy as np, interdomain as idm
    >>> component = idm.kernels.HarmonizableComponent([[1.0], [3.0]], centre=2.0)
    >>> features = idm.inducing_variables.HarmonizableFourierFeatures([[0.0], [1.0], [3.0]])
    >>> features.num_inducing  # at zero there is no imaginary part
    5
    >>> kernel = idm.kernels.HarmonizableMixture([component, component])
    >>> Features = idm.inducing_variables.HarmonizableFourierFeatures
    >>> blocks = Features.for_kernel(kernel, num_frequencies=3)
    >>> type(blocks).__name__, len(blocks.inducing_variables)
    ('SumInducingVariables', 2)
    >>> Features.for_kernel(kernel, num_frequencies=6, per_component=False).num_inducing
    12

    :param frequencies: ``[m, D]``, in cycles per unit of x, trainable.
    :ivar with_imaginary_part: Which frequencies have an imaginary part: all except zero. Training
        does not move a zero: its gradient is zero by symmetry, and rounding errors in it are not
        passed on.
    :raises ValueError: If it is not a finite matrix, or two frequencies are equal or negatives of
        each other, whose variables are the same but for a sign.
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
        """Make features at the frequencies that say most about the process.

        The frequencies are chosen one after the other, under the present kernel: the next is the
        one at which the transform of f has most variance left, given those chosen before. (The
        integral of the variance that is left, over all frequencies, is what is not known of f on
        average over its window.)

        :param num_frequencies: The number of frequencies of a set, each with one or two variables.
        :param per_component: Whether a mixture gets one set for each component, or one for all.
        :return: :class:`SumInducingVariables` of the sets for components.
        :raises ValueError: If num_frequencies is not positive or above the rank of the transform,
            or the kernel is neither.
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
        """The real parts, then the imaginary ones, each over its standard deviation (eq. 35)."""
        w = self.validate_kernel(kernel)
        X = tf.convert_to_tensor(X)
        rows = as_rows(X)
        terms = []
        for part in _components(kernel):
            covariances = fourier_covariance(part.tensors(), w, part.centred(rows))
            terms.append(_turned(kernel, part, w, covariances))
        # The whole matrix for its diagonal: rounded otherwise, a small variance would not be the
        # one that the correlations have.
        variances = fourier_variances(_covariances(kernel, w))
        columns = self._kept_rows(tf.add_n(terms) * tf.math.rsqrt(variances)[:, None])
        return tf.reshape(columns, tf.concat([tf.shape(columns)[:1], tf.shape(X)[:-1]], axis=0))

    def Kuu(self, kernel: Harmonizable, *, jitter: float = 0.0) -> StructuredOperator:
        """Correlations, which the generalized spectral density at w and -w gives (eq. 36)."""
        matrix = _covariances(kernel, self.validate_kernel(kernel))
        inverse = tf.math.rsqrt(fourier_variances(matrix))
        rows = self._kept_rows(inverse[:, None] * matrix * inverse)
        return Full(with_jitter(self._kept_rows(tf.linalg.matrix_transpose(rows)), jitter))

    def _kept_rows(self, rows: tf.Tensor) -> tf.Tensor:
        """The rows of real parts and, but for w = 0, of imaginary ones; of all ``[2m, n]``."""
        count, kept = int(self.frequencies.shape[0]), self.with_imaginary_part
        if len(kept) == count:
            return rows
        return tf.gather(rows, [*range(count), *(count + k for k in kept)])

    def validate_kernel(self, kernel: Harmonizable) -> tf.Tensor:
        """The frequencies as a tensor, after a check that they fit the kernel.

        :raises ValueError: If they do not have the kernel's number of columns.
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
    """:raises NotImplementedError: If one has no Fourier transform in closed form."""
    parts = kernel.kernels if isinstance(kernel, HarmonizableMixture) else [kernel]
    for part in parts:
        part.validate_transform()
    return parts


def _turned(
    kernel: Harmonizable, part: HarmonizableComponent, w: tf.Tensor, rows: tf.Tensor
) -> tf.Tensor:
    """What is about the centre of a component of a mixture, ``[2m, n]``, about zero; that of a
    component alone stays about its centre."""
    return rows if part is kernel else turned(rows, w, part.centre)


def _covariances(kernel: Harmonizable, w: tf.Tensor) -> tf.Tensor:
    """Of real and imaginary parts, ``[2m, 2m]``."""
    matrices = []
    for part in _components(kernel):
        rows = _turned(kernel, part, w, fourier_matrix(part.tensors(), w))
        matrices.append(_turned(kernel, part, w, tf.linalg.matrix_transpose(rows)))
    return tf.add_n(matrices)


def _select_frequencies(kernel: Harmonizable, num_frequencies: int) -> Array:
    """Frequencies ``[m, D]``, picked one by one where most of the transform's variance is left."""
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
                "transforms at other frequencies are known from these; pass fewer."
            )
        chosen.append(int(np.argmax(left)))
        for row in (chosen[-1], count + chosen[-1]):
            if residual[row, row] > _RELATIVE_NUGGET:
                column = residual[:, row] / np.sqrt(residual[row, row])
                residual = residual - np.outer(column, column)
    return np.asarray(candidates[chosen])


def _candidates(kernel: Harmonizable) -> Array:
    """A box about each frequency of the kernel, as wide as its density, in the half space that
    holds one of w and -w; and zero."""
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
