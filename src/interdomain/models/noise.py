"""Gaussian and Student-t likelihoods of collapsed models, and their noise variances."""

from __future__ import annotations

import contextlib
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorData, TensorType
from gpflow.functions import Function
from gpflow.likelihoods import Gaussian, StudentT
from gpflow.utilities import positive

from .._arguments import real_array, refusal, short
from .._targets import densities_of
from ..core.columns import as_rows
from ..core.functional_rows import FunctionalRows, rows_of
from ..core.functionals import Places

LEAST_DEGREES = 2.01
"""The least degrees of freedom of a Student-t likelihood. At 2 its variance is infinite."""

_FLOOR, _FIRST_NOISE = 1e-6, 0.1
"""The lower bound and the initial value of the noise variance, as shares of the variance of Y."""


class NoiseByFunctional(Function):
    """The noise variance of rows, which depends on their functional.

    :param variances: A positive number for each functional, ``[F]``.
    :param rows: The functionals.
    :param least: The lower bound of the variances.
    """

    def __init__(self, variances: TensorData, rows: FunctionalRows, least: float) -> None:
        super().__init__()
        self.variances = gpflow.Parameter(variances, transform=positive(lower=least))
        self.rows = rows

    @inherit_check_shapes
    def __call__(self, X: TensorType) -> tf.Tensor:
        """The noise variances of rows, ``[batch..., N, 1]``."""
        X, variances = tf.convert_to_tensor(X), tf.convert_to_tensor(self.variances)

        def of_kind(number: int, places: Places) -> tf.Tensor:
            return tf.fill(tf.shape(places.inputs[:, :1]), variances[number])

        values = self.rows.by_kind(as_rows(X), of_kind)
        return tf.reshape(values, tf.concat([tf.shape(X)[:-1], [1]], axis=0))


def by_functional(noise_variance: TensorData | None, kernel: Any) -> Gaussian | None:
    """The Gaussian likelihood with a noise variance for each functional of a kernel; None for one
    noise variance.

    :raises ValueError: If there are not as many variances as functionals, or one is not positive.
    """
    if noise_variance is None or isinstance(noise_variance, (gpflow.Parameter, Function)):
        return None
    rule = "a number, or one for each functional of the kernel"
    variances = real_array("noise_variance", noise_variance, rule)
    if not variances.ndim or variances.size == 1:
        return None
    rows = rows_of(kernel)
    number = 1 if rows is None else len(rows.functionals)
    if (
        rows is None
        or variances.shape != (number,)
        or not np.all((variances > 0) & np.isfinite(variances))
    ):
        remedy = "pass a positive number for each functional of an interdomain.kernels.Functional"
        raise refusal("noise_variance", f"be {rule}, here {number}", short(variances), remedy)
    usual = gpflow.config.default_likelihood_positive_minimum()
    least = min(float(np.min(variances) / (1 + 1e-4)), usual)
    noise = NoiseByFunctional(variances, rows, least)
    return Gaussian(noise, variance_lower_bound=least)


def noise_by_functional(likelihood: Any) -> NoiseByFunctional | None:
    """The noise of a likelihood with a variance for each functional; None otherwise."""
    noise = getattr(likelihood, "variance", None)
    return noise if isinstance(noise, NoiseByFunctional) else None


def noise_variance_of(likelihood: Gaussian | StudentT) -> tf.Tensor:
    """The noise variance, ``[]`` in float64: the variance of a Gaussian likelihood, or the
    squared scale of a Student-t likelihood."""
    if isinstance(likelihood, StudentT):
        return tf.square(tf.cast(tf.reshape(likelihood.scale, []), tf.float64))
    somewhere = tf.zeros([1, 1], gpflow.default_float())
    return tf.cast(tf.reshape(likelihood.variance_at(somewhere), []), tf.float64)


def least_noise_variance(likelihood: Gaussian | StudentT) -> float:
    """The lower bound of :func:`noise_variance_of`."""
    if isinstance(likelihood, StudentT):
        return float(likelihood.scale_lower_bound) ** 2
    return float(likelihood.variance_lower_bound)


def _variance(noise_variance: Any, bound: float) -> Any:
    """A noise variance that GPflow's transform accepts. A number at its lower bound is multiplied
    by 1.0001.

    :raises ValueError: If the noise variance is below the bound, or not a finite number.
    """
    if isinstance(noise_variance, (gpflow.Parameter, Function)):
        return noise_variance
    array = real_array("noise_variance", noise_variance, "a number", "pass a positive number")
    if not np.all((array >= bound) & np.isfinite(array)):
        raise ValueError(
            f"noise_variance must be finite and {bound:g} or more, the lower bound of GPflow's "
            f"likelihoods, found {short(noise_variance)}; pass a larger one, or Y in larger units."
        )
    return np.maximum(array, bound * (1 + 1e-4))


def gaussian(
    noise_variance: TensorData | None, likelihood: Gaussian | None, floor: float | None = None
) -> Gaussian:
    """The Gaussian likelihood of a model whose q has a closed form, from the model's arguments. It
    has one noise variance, which is 1 by default.

    :param floor: The lower bound of the variance of a new likelihood; by default GPflow's. A
        smaller ``noise_variance`` lowers it.
    :raises ValueError: If both are given, or if the likelihood is not a Gaussian with one variance.
    """
    if likelihood is None:
        usual = gpflow.config.default_likelihood_positive_minimum()
        floor = usual if floor is None else floor
        variance = _variance(1.0 if noise_variance is None else noise_variance, min(floor, usual))
        if isinstance(variance, np.ndarray):
            floor = min(floor, float(np.min(variance)) / (1 + 1e-4))
        likelihood = Gaussian(variance, variance_lower_bound=floor)
    elif noise_variance is not None:
        raise ValueError(
            f"noise_variance: found {noise_variance!r} beside a likelihood, which has its own; "
            "pass one of the two."
        )
    is_own = densities_of(likelihood) is not Gaussian
    noise = None if is_own else likelihood.variance
    noise = likelihood.scale if noise is None and not is_own else noise
    if isinstance(noise, NoiseByFunctional):
        return likelihood
    if is_own or isinstance(noise, Function) or int(tf.size(noise)) != 1:
        what = f"{type(likelihood).__name__} with densities of its own" if is_own else "another"
        raise ValueError(
            "likelihood must be gpflow.likelihoods.Gaussian of one noise variance, for which q has "
            f"a closed form, found {what}; pass it to interdomain.models.DualSVGP, whose to_svgp() "
            "can be trained with minibatches, or to gpflow.models.SVGP."
        )
    return likelihood


def student_t(likelihood: StudentT) -> StudentT:
    """The Student-t likelihood, with one scale and with its degrees of freedom as a parameter. The
    parameter is trained unless ``gpflow.set_trainable(likelihood.df, False)`` fixes it.

    :raises ValueError: If the likelihood has densities of its own, a scale that depends on x, or
        too few degrees of freedom.
    """
    is_own = densities_of(likelihood) is not StudentT
    if is_own or isinstance(likelihood.scale, Function) or int(tf.size(likelihood.scale)) != 1:
        raise ValueError(
            "likelihood must be a gpflow.likelihoods.StudentT of one scale, found "
            f"{'densities of its own' if is_own else 'a scale that depends on x'}; pass "
            "gpflow.likelihoods.StudentT(), or give the likelihood to gpflow.models.SVGP."
        )
    if not isinstance(likelihood.df, gpflow.Parameter):
        rule = f"above {LEAST_DEGREES:g}, so that y has a variance"
        degrees = real_array("likelihood: df", likelihood.df, rule, "pass df=3.0")
        if degrees.size != 1 or not LEAST_DEGREES < degrees < np.inf:
            raise ValueError(f"likelihood: df must be {rule}, found {degrees}; pass df=3.0.")
        transform = positive(lower=LEAST_DEGREES)
        likelihood.df = gpflow.Parameter(degrees, transform=transform)
    return likelihood


def in_units_of(
    Y: Any,
    noise_variance: TensorData | None,
    likelihood: Gaussian | StudentT | None,
    *,
    num_neighbours: int,
) -> Gaussian | StudentT:
    """The likelihood of a model with neighbours, from the model's arguments.

    A new Gaussian starts from a tenth of the variance of Y, and its lower bound is a millionth of
    this variance: the units of Y do not matter.

    :param Y: The targets ``[N, P]``, which are not checked yet.
    :raises ValueError: As :func:`gaussian` and :func:`student_t`; for a Student-t with a noise
        variance or without neighbours.
    """
    if isinstance(likelihood, StudentT):
        if noise_variance is not None or not num_neighbours:
            what = "noise_variance" if num_neighbours else "num_neighbours"
            raise ValueError(
                f"{what}: found {noise_variance if num_neighbours else 0} beside a StudentT "
                "likelihood, which has a scale of its own and needs neighbours; leave it out."
            )
        return student_t(likelihood)
    variance = _variance_of(Y)
    if noise_variance is None and likelihood is None and variance is not None:
        noise_variance = _FIRST_NOISE * variance
    return gaussian(noise_variance, likelihood, None if variance is None else _FLOOR * variance)


def _variance_of(Y: Any) -> float | None:
    """The mean variance of the columns of Y; None if Y does not vary, or is not finite."""
    with contextlib.suppress(TypeError, ValueError):
        values = np.asarray(Y, np.float64)
        if values.size and np.all(np.isfinite(values)):
            variance = float(np.mean(np.var(values, axis=0)))
            if variance > (1e-12 * np.max(np.abs(values))) ** 2:
                return variance
    return None
