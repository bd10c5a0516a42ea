"""Functions drawn from priors of orthonormal functions of columns: boxes, and effects of a table.

The kernel is ``sum_k v_k psi_k(x) psi_k(x')``, its eigenfunctions being products of functions of
single columns. A function of the prior is a sum of some of them, drawn by their variances, with
random weights; inducing variables, which are coefficients of some eigenfunctions, pick theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import gpflow
import numpy as np
import tensorflow as tf

from ..covariances.additive_features import prior_variances
from ..covariances.periodic_fourier_features import Kuu_diagonal
from ..inducing_variables import PeriodicFourierFeatures
from ..inducing_variables.additive_features import EffectFeatures
from ..kernels import Periodized
from ..kernels.additive.additive import EffectKernel
from ..kernels.additive.columns import Column
from ..kernels.additive.shapes import bounded_ratios
from ..sphere._typing import Array, IntArray
from .draws import Draws, as_array, as_float, constant
from .lattice import lattice_frequencies, of_mixture
from .priors import PriorSample, prior_sample, project


def functions_of_signed(frequencies: IntArray) -> IntArray:
    """The numbers of functions of columns: cosines for positive, sines for negative frequencies."""
    return np.where(frequencies > 0, 2 * frequencies - 1, -2 * frequencies)


def wave(turns: tf.Tensor, functions: IntArray) -> tf.Tensor:
    """One, root two times a cosine, or root two times a sine of whole turns.

    :param turns: ``[N]``.
    :param functions: Their numbers, ``[S, F]``.
    :return: ``[S, F, N]``.
    """
    frequencies = constant(((functions + 1) // 2).astype(float))[..., None]
    phases = constant(np.where((functions > 0) & (functions % 2 == 0), np.pi / 2, 0.0))[..., None]
    scales = constant(np.where(functions > 0, np.sqrt(2), 1.0))[..., None]
    turns -= tf.stop_gradient(tf.floor(turns))
    return scales * tf.cos(2 * np.pi * frequencies * turns - phases)


class Eigenfunctions(PriorSample):
    """``f(x) = sum_j w_j prod_i psi_ij(x_i)``, each of the factors one of a column's functions.

    :param columns: From X to the values that the functions are of, a tensor ``[N]`` for each.
    :param evaluate: The functions of each column: from values and numbers ``[S, F]`` to
        ``[S, F, N]``.
    :param functions: The numbers, ``[S, F, D]``.
    :param weights: ``[S, F]``.
    """

    def __init__(
        self,
        columns: Callable[[tf.Tensor], Sequence[tf.Tensor]],
        evaluate: Sequence[Callable[[tf.Tensor, IntArray], tf.Tensor]],
        functions: IntArray,
        weights: Array,
    ) -> None:
        self._columns, self._evaluate = columns, tuple(evaluate)
        self.functions, self.weights = functions, weights
        self._weights = constant(weights)

    @property
    def entries_per_row(self) -> int:
        return 3 * self.weights.size

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        products = tf.ones([1, 1, tf.shape(X)[0]], self._weights.dtype)
        columns = self._columns(X)
        for number, evaluate in enumerate(self._evaluate):
            products *= evaluate(columns[number], self.functions[..., number])
        return tf.reduce_sum(self._weights[..., None] * products, axis=1)

    def coefficients(self, functions: IntArray) -> Array:
        """Of some eigenfunctions, ``[S, M]``.

        :param functions: Their numbers, ``[M, D]``.
        """
        # Whatever is above those that are asked for is none of them.
        highest = np.max(functions, axis=0, initial=0) + 1
        radix = np.cumprod([1, *(highest + 1)[:-1]]).astype(np.int64)
        keys = np.minimum(self.functions, highest) @ radix[: functions.shape[1]]
        wanted = functions @ radix[: functions.shape[1]]
        order = np.argsort(wanted)
        places = np.minimum(np.searchsorted(wanted[order], keys), len(wanted) - 1)
        samples, features = np.nonzero(wanted[order][places] == keys)
        found = np.zeros([len(keys), len(wanted)])
        np.add.at(
            found,
            (samples, order[places[samples, features]]),
            self.weights[samples, features],
        )
        return found


@prior_sample.register(Periodized)
def prior_sample_periodized(kernel: Periodized, draws: Draws) -> PriorSample:
    """Random waves of the box."""
    size = math.prod(draws.shape)
    frequencies, variance = lattice_frequencies(kernel.base_kernel, kernel.periods, draws.rng, size)
    functions = functions_of_signed(frequencies).reshape(*draws.shape, kernel.num_columns)
    weights = draws.weights(*draws.shape) * math.sqrt(variance / draws.num_features)

    def columns(X: tf.Tensor) -> list[tf.Tensor]:
        rows = kernel.seen(X)
        lower, periods = (tf.constant(a, rows.dtype) for a in (kernel.lower, kernel.periods))
        turns: list[tf.Tensor] = tf.unstack((rows - lower) / periods, axis=1)
        return turns

    return Eigenfunctions(columns, [wave] * kernel.num_columns, functions, weights)


@project.register(PeriodicFourierFeatures, Periodized, Eigenfunctions)
def project_periodic(
    inducing_variable: PeriodicFourierFeatures, kernel: Periodized, sample: Eigenfunctions
) -> tf.Tensor:
    """The coefficients, times Kuu's diagonal."""
    root_of_volume = math.sqrt(math.prod(kernel.periods))
    found = sample.coefficients(inducing_variable.functions) * root_of_volume
    return constant(found) * Kuu_diagonal(inducing_variable, kernel)


@prior_sample.register(EffectKernel)
def prior_sample_effect(kernel: EffectKernel, draws: Draws) -> PriorSample:
    """Random products of functions of the effect's columns."""
    table, effect = kernel.parent, kernel.effect
    variance = as_float(kernel.total_variance())
    functions = np.zeros([*draws.shape, len(effect)], np.int64)
    for slot, number in enumerate(effect):
        column, place = table.columns[number], table.lengthscale_place(effect, number)
        if place is None:
            variances = column.level_variances
            shares = variances / np.sum(variances)
            functions[..., slot] = 1 + draws.rng.choice(len(shares), size=draws.shape, p=shares)
            variance *= float(np.sum(variances))
        else:
            ratio = bounded_ratios(table.kernel_class, table.ratios[place])
            square = np.square(as_array(ratio))[None]
            own, _ = of_mixture(
                table.kernel_class, square, draws.rng, math.prod(draws.shape), constant=False
            )
            functions[..., slot] = functions_of_signed(own).reshape(draws.shape)
    weights = draws.weights(*draws.shape) * math.sqrt(variance / draws.num_features)
    parts = [table.columns[number] for number in effect]

    def columns(X: tf.Tensor) -> list[tf.Tensor]:
        rows = table.seen(X)
        return [
            part.coordinates(rows[:, number]) for part, number in zip(parts, effect, strict=True)
        ]

    return Eigenfunctions(columns, [_functions_of(part) for part in parts], functions, weights)


def _functions_of(column: Column) -> Callable[[tf.Tensor, IntArray], tf.Tensor]:
    """The functions of a column of a table, by their numbers."""
    levels = column.num_levels
    if levels is None:
        return wave

    def of_levels(coordinates: tf.Tensor, functions: IntArray) -> tf.Tensor:
        values = tf.cast(column.functions(coordinates, levels), gpflow.default_float())
        return tf.gather(values, functions - 1)

    return of_levels


@project.register(EffectFeatures, EffectKernel, Eigenfunctions)
def project_effect(
    inducing_variable: EffectFeatures, kernel: EffectKernel, sample: Eigenfunctions
) -> tf.Tensor:
    """The coefficients, times Kuu's diagonal."""
    found = constant(sample.coefficients(inducing_variable.functions))
    return found / prior_variances(inducing_variable, kernel)
