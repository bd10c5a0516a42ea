"""Fourier features of a box: inducing variables of periodized kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from ..._arguments import (
    Array,
    IntArray,
    check_num_inducing,
    different_rows,
    instance,
    refusal,
    short,
    warn,
)
from ...core.acting import as_seen
from ...core.columns import seen_columns
from ...core.diagonals import DiagonalTerm, constant_term
from ...core.dictionaries import Dictionary, others_than
from ...core.domains import check_box
from ...core.family import Block, Domain, InterDomainInducingVariables
from ...core.functionals import LinearFunctional, Places
from ...core.wave_functionals import acted_values
from ...linalg import Diagonal, StructuredOperator
from ...linalg.box_ends import slack_of
from ...linalg.wave_tables import MOST_COLUMNS, BoxWaves
from ...sums.waves import Waves
from .functions import frequencies_of, functions_of, num_functions
from .periodized import Periodized

NEGLIGIBLE_SHARE = 1e-12
"""The smallest share of the prior variance of a wave that is selected."""


class BoxFourierFeatures(InterDomainInducingVariables):
    """Projections of f on the sines and cosines of a box, for periodized kernels.

    The features suit :class:`~interdomain.kernels.Periodized` kernels of one to four columns.

    ``u_m = <f, phi_m>`` in the RKHS of the kernel. The phi_m are orthonormal waves of the box. A
    wave has one factor for each column: ``1 / sqrt(P)``, ``sqrt(2 / P) cos(2 pi j (x - lower) /
    P)`` or the sine, with ``P = upper - lower``. Then ``Kuf = phi_m(x)``, which **depends on no
    parameter of the kernel**. Kuu is diagonal, ``1 / S(2 pi j / P)``, with S the spectral density
    of the base kernel. ``gpflow.models.SGPR`` factorises Kuu, ``gpflow.models.SVGP`` does not.
    :class:`interdomain.models.StructuredSGPR` trains all parameters after one pass over the data.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[1000, 2])
    >>> base = gpflow.kernels.Matern32(lengthscales=[0.2, 0.3])
    >>> kernel = idm.kernels.Periodized.from_data(base, X)
    >>> features = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, 300)
    >>> features.num_inducing
    297
    >>> type(idm.covariances.Kuu_operator(features, kernel)).__name__
    'Diagonal'

    The features and the kernel repeat outside the box. Rows outside give a warning, and models
    refuse data there, unless :meth:`.Periodized.cycle` made the kernel.

    :param lower: The lower end of the box: a number for one column, or ``[D]``.
    :param upper: The upper end of the box.
    :param frequencies: Integer vectors j ``[J, D]``, 0 or more: the numbers of periods of a wave in
        each column. A frequency with k nonzero entries has ``2**k`` features.
    :ivar lower: The lower end of the box, ``[D]``; ``upper`` is the upper end, ``[D]``.
    :ivar functions: The number of each feature's function in each column, ``[M, D]``: 0 for the
        constant, ``2 j - 1`` for the cosine and ``2 j`` for the sine of j periods. The rows are in
        the order of the features.
    :raises ValueError: If the box is empty or not finite, the frequencies are negative or not all
        different, or there are too many features.
    """

    kernels = (Periodized,)
    fitting_kernels = "Periodized.from_data(kernel, X) of a stationary kernel"

    def __init__(
        self, lower: TensorType, upper: TensorType, frequencies: Any, *, name: str | None = None
    ) -> None:
        super().__init__(name=name)
        self.lower, self.upper = check_box(lower, upper)
        width = len(self.lower)
        rule = f"a matrix [J, {width}], one column of integers for each of the box"
        remedy = "pass whole numbers of periods, such as those of kernel.largest_frequencies"
        self.frequencies = different_rows("frequencies", frequencies, rule, width, remedy)
        if np.any(self.frequencies < 0):
            raise refusal("frequencies", "be 0 or more", short(self.frequencies.ravel()), remedy)
        count = int(np.sum(num_functions(self.frequencies)))
        check_num_inducing("frequencies", count, "features")
        self.functions = functions_of(self.frequencies)

    @classmethod
    def for_kernel(
        cls, kernel: Periodized, num_inducing: int, *, name: str | None = None
    ) -> BoxFourierFeatures:
        """Make features at the frequencies of largest spectral density of a kernel.

        :param kernel: The kernel of the model, or of its :class:`~interdomain.kernels.FiniteRank`
            prior. The features have its box; its current parameters determine the frequencies.
        :param num_inducing: The largest number of features.
        :raises ValueError: If the kernel is of another class, or there are too many features.
        """
        remedy = "pass interdomain.kernels.Periodized(base_kernel, lower, upper)"
        instance("kernel", kernel, Periodized, "a Periodized kernel", remedy)
        frequencies = kernel.largest_frequencies(num_inducing)
        return cls(kernel.lower, kernel.upper, frequencies, name=name)

    @property
    def num_inducing(self) -> int:
        return len(self.functions)

    def is_subset_of(self, others: BoxFourierFeatures) -> bool:
        """Whether all waves are among ``others``, and the boxes are the same."""
        known = set(map(tuple, others.frequencies.tolist()))
        return self._has_box_of(others) and known.issuperset(map(tuple, self.frequencies.tolist()))

    def domain(self, kernel: Periodized) -> Domain | None:
        """The box, outside which the prior repeats; None for a cycle."""
        if kernel.is_cycle:
            return None
        remedy = "make the kernel with a wider one, by Periodized.from_data(base_kernel, X)"
        return Domain(self.lower, self.upper, repeats=True, remedy=remedy)

    def Kuf(self, kernel: Periodized, X: TensorType) -> tf.Tensor:
        """The waves at X; they depend on no parameter. Rows outside the box give a warning, but not
        for a cycle."""
        return kernel.waves(self._rows(kernel, X), self.functions)

    def acted_Kuf(
        self, kernel: Periodized, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        """The waves that slopes, means and blurs make of the features, with their factors."""
        seen, selected = as_seen(functional, kernel, places)

        def waves(functions: IntArray) -> tf.Tensor:
            return kernel.waves(self._rows(kernel, places.inputs), functions)

        return acted_values(seen, self.functions, kernel.periods, selected, waves)

    def _rows(self, kernel: Periodized, X: TensorType) -> tf.Tensor:
        """The kernel's columns of X. Rows outside the box give a warning, but not for a cycle."""
        self.validate_kernel(kernel)
        X = kernel.seen(X)
        if kernel.is_cycle:
            return X
        # The values of X are known only outside of compiled functions.
        values = tf.get_static_value(X) if tf.executing_eagerly() else None
        if values is not None:
            slack = slack_of(kernel.lower, kernel.upper, values.dtype)
            below, above = values < kernel.lower - slack, values > kernel.upper + slack
            outside = np.any(below | above, axis=-1)
            if np.any(outside):
                warn(
                    f"Xnew: {np.count_nonzero(outside)} of {outside.size} rows are outside of the "
                    f"box from {kernel.lower} to {kernel.upper}; the prior and the predictions "
                    "repeat there; make the kernel with a wider box."
                )
        return X

    def structure(self, kernel: Periodized) -> Waves | None:
        """The waves of a box of up to three columns; None for more columns."""
        self.validate_kernel(kernel)
        columns = seen_columns(kernel, kernel.num_columns)
        if columns is None or len(columns) > MOST_COLUMNS:
            return None
        return Waves(BoxWaves(columns, self.lower, kernel.periods, self.functions))

    def Kuu(self, kernel: Periodized, *, jitter: float = 0.0) -> StructuredOperator:
        """The diagonal ``1 / S(w_m)`` of Poisson's summation formula; S is computed once for each
        frequency. ``jitter`` is not added, because nothing is factorised.

        If a density underflows relative to that of the constant, its features have no effect.
        """
        self.validate_kernel(kernel)
        frequencies, places = np.unique(frequencies_of(self.functions), axis=0, return_inverse=True)
        zero = np.zeros([1, kernel.num_columns], np.int64)
        densities = kernel.spectral_density(np.concatenate([zero, frequencies]))
        greatest = tf.stop_gradient(densities[0])
        least = 1e4 * float(np.sqrt(np.finfo(densities.dtype.as_numpy_dtype).tiny))
        shares = tf.maximum(densities[1:] / greatest, least)  # the gradient has their squares
        return Diagonal(tf.gather(1 / shares / greatest, places.reshape(-1)))

    def explained_terms(self, kernel: Periodized) -> list[DiagonalTerm]:
        """The prior variance of the waves together, which is the same at all rows, as one term."""
        self.validate_kernel(kernel)
        return [constant_term(lambda: kernel.explained_variance(self.frequencies))]

    def dictionary(self, kernel: Periodized) -> WaveDictionary:
        """The dictionary of all waves of the box, from which features are chosen."""
        return WaveDictionary(self, kernel)

    def validate_kernel(self, kernel: Periodized) -> None:
        """Check that the kernel has the box of the features; a ValueError otherwise."""
        if not self._has_box_of(kernel):
            remedy = "build the features with BoxFourierFeatures.for_kernel(kernel, num_inducing)"
            rule = f"have the features' box, from {self.lower} to {self.upper}"
            raise refusal("kernel", rule, f"one from {kernel.lower} to {kernel.upper}", remedy)

    def _has_box_of(self, other: Periodized | BoxFourierFeatures) -> bool:
        pairs = (self.lower, other.lower), (self.upper, other.upper)
        return all(np.array_equal(*pair) for pair in pairs)


@dataclass(frozen=True, eq=False)
class WaveDictionary(Dictionary):
    """The waves of a box. An atom is an integer frequency, with up to ``2^D`` features."""

    waves: BoxFourierFeatures
    kernel: Periodized

    @property
    def atoms(self) -> IntArray:
        return self.waves.frequencies

    def likeliest(self, X: Array, count: int) -> IntArray:
        """The frequencies of largest density, for any rows in the box."""
        frequencies = self.kernel.largest_frequencies(count)
        total = np.prod(self.kernel.periods) * float(self.kernel.total_variance())
        shares = np.asarray(self.kernel.spectral_density(frequencies), float) / total
        return np.asarray(frequencies[shares >= NEGLIGIBLE_SHARE])

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """The frequencies with one period more in one column."""
        width = atoms.shape[1]
        around = (atoms[:, None] + np.eye(width, dtype=np.int64)).reshape([-1, width])
        return others_than(atoms, around)[:limit]

    def features(self, atoms: IntArray) -> Block:
        return type(self.waves)(self.waves.lower, self.waves.upper, atoms), self.kernel

    def owners(self, atoms: IntArray) -> IntArray:
        rows = {frequency: row for row, frequency in enumerate(map(tuple, atoms.tolist()))}
        frequencies = frequencies_of(functions_of(atoms))
        return np.array([rows[tuple(frequency)] for frequency in frequencies.tolist()])
