"""Fourier transforms of a harmonizable process as inducing variables: Shen et al. 2019."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import Shape
from gpflow.base import TensorType

from .._arguments import filled_matrix
from ..kernels import DecomposedKernel, HarmonizableComponent, HarmonizableMixture
from ..sphere._typing import Array
from ._frequency_selection import select_frequencies
from .base import InterDomainInducingVariables
from .sums import SumInducingVariables


class FourierFeatures(InterDomainInducingVariables):
    """Real and imaginary parts of the Fourier transform of f at some frequencies.

    ``u = int f(x + centre) exp(-2 pi i w^T x) dx``, for a
    :class:`interdomain.kernels.HarmonizableComponent`, whose sample functions have such a
    transform (Shen, Heinonen and Kaski 2019, eqs. 29 to 36). For a mixture, one set for each
    component: :meth:`for_kernel` makes them.

    The paper's complex features at w and -w are the two real ones at w, whose order here is all
    real parts, then all imaginary ones. At w = 0 there is no imaginary part. Each variable is
    divided by its standard deviation, so that ``Kuu`` has a diagonal of ones whatever the units.

    >>> import numpy as np, interdomain as idm
    >>> component = idm.kernels.HarmonizableComponent([[1.0], [3.0]], centre=2.0)
    >>> features = idm.inducing_variables.FourierFeatures([[0.0], [1.0], [3.0]])
    >>> features.num_inducing  # at zero there is no imaginary part
    5
    >>> kernel = idm.kernels.HarmonizableMixture([component, component])
    >>> blocks = idm.inducing_variables.FourierFeatures.for_kernel(kernel, num_frequencies=3)
    >>> type(blocks).__name__, len(blocks.inducing_variables)
    ('SumInducingVariables', 2)

    :param frequencies: ``[m, D]``, in cycles per unit of x, trainable.
    :raises ValueError: If it is not a finite matrix, or two frequencies are equal or negatives of
        each other, whose variables are the same but for a sign.
    """

    def __init__(self, frequencies: TensorType, *, name: str | None = None) -> None:
        super().__init__(name=name)
        values = filled_matrix("frequencies", frequencies, "a matrix [m, D]")
        _validate_distinct(values)
        self.frequencies = gpflow.Parameter(values, name="frequencies")
        self._with_imaginary = tuple(np.flatnonzero(np.any(values != 0, axis=1)).tolist())

    @classmethod
    def for_kernel(
        cls, kernel: HarmonizableComponent | HarmonizableMixture, num_frequencies: int
    ) -> FourierFeatures | SumInducingVariables:
        """Make features at the frequencies that say most about the process.

        The frequencies are chosen one after the other, under the present kernel: the next is the
        one at which the transform of f has most variance left, given those chosen before. (The
        integral of the variance that is left, over all frequencies, is what is not known of f on
        average over its window.)

        :param kernel: A component, or a mixture; a mixture gets one set for each component.
        :param num_frequencies: The number of frequencies for each component, each with one or two
            variables.
        :return: For a mixture, :class:`SumInducingVariables`.
        :raises ValueError: If num_frequencies is not positive, or the kernel is neither.
        """
        if isinstance(kernel, DecomposedKernel):
            return SumInducingVariables(
                [cls(select_frequencies(part, num_frequencies)) for part in kernel.kernels]
            )
        return cls(select_frequencies(kernel, num_frequencies))

    @property
    def with_imaginary_part(self) -> tuple[int, ...]:
        """Which frequencies have an imaginary part: all except zero. Training does not move a zero:
        its gradient is zero by symmetry, and rounding errors in it are not passed on."""
        return self._with_imaginary

    @property
    def num_inducing(self) -> int:
        """The number M of real variables."""
        return int(self.frequencies.shape[0]) + len(self.with_imaginary_part)

    @property
    def shape(self) -> Shape:
        """``(M, None, 1)``: X may have more columns, of which ``active_dims`` selects D."""
        return (self.num_inducing, None, 1)

    def validate_kernel(self, kernel: HarmonizableComponent) -> tf.Tensor:
        """The frequencies as a tensor, after a check that they fit the kernel.

        :raises ValueError: If they do not have the kernel's number of columns.
        """
        found = self.frequencies.shape[1]
        if found != kernel.dimension:
            raise ValueError(
                f"frequencies must have {kernel.dimension} columns, as the kernel's have, found "
                f"{found}; pass a matrix [m, {kernel.dimension}]."
            )
        frequencies = tf.convert_to_tensor(self.frequencies)
        is_trained = np.zeros([frequencies.shape[0], 1], dtype=bool)
        is_trained[list(self.with_imaginary_part)] = True
        return tf.where(is_trained, frequencies, tf.stop_gradient(frequencies))


def _validate_distinct(frequencies: Array) -> None:
    """:raises ValueError: If two are equal or negatives of each other."""
    scale = np.max(np.abs(frequencies))
    for first in range(len(frequencies)):
        for second in range(first):
            for sign, relation in ((1, "equal"), (-1, "negatives of each other")):
                difference = frequencies[first] - sign * frequencies[second]
                if np.all(np.abs(difference) <= 1e-10 * scale):
                    raise ValueError(
                        "frequencies must be distinct, and no two of them negatives of each other, "
                        f"found {frequencies[second].tolist()} and {frequencies[first].tolist()}, "
                        f"rows {second} and {first}, which are {relation}; pass one of the two, as "
                        "their inducing variables differ by a sign at most, and Kuu is singular."
                    )
