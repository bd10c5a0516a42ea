"""What `attack` demands of a random model, whatever its numbers are.

Every check compares with dense algebra in float64 (for float32 with the same model in float64), and
returns the excess over its tolerance: at most one, if all is well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.config import Config, as_context

from benchmarks.attack.draws import Array, Draw, Pair

# Of rounding errors, in units of the float type's: what the sums and products of a draw take.
ULPS = 1e4
JITTER = 1e-6  # of gpflow, which the bounds have as well
GRADIENT_RTOL = 1e-4
UNDERFLOW = 1e-30  # what is smaller may be zero in float32
# Of finite differences; the nearest one counts. The long ones are for kernels with a slope at angle
# zero, whose value at a row's own angle is only known to the root of the rounding error.
STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
ROUNDING_STEP = 1e-4  # what the bound's rounding error is divided by in the tolerance

Check = Callable[["Built"], float]


class Built:
    """A draw in one float type, and the dense matrices of it in float64."""

    def __init__(self, draw: Draw, dtype: type) -> None:
        self.draw, self.dtype = draw, dtype
        self.context = lambda: as_context(Config(float=dtype, jitter=JITTER))
        with self.context(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            pair: Pair = draw.build()
            self.kernel, self.inducing_variable = pair
            self.X, self.Y = draw.X.astype(dtype), draw.Y.astype(dtype)
            self.K = _float64(self.kernel(self.X))
            self.diagonal = _float64(self.kernel(self.X, full_cov=False))
            self.Kuu = _float64(gpflow.covariances.Kuu(self.inducing_variable, self.kernel))
            self.Kuf = _float64(gpflow.covariances.Kuf(self.inducing_variable, self.kernel, self.X))
        self.ulp = float(np.finfo(dtype).eps)
        self.size = float(np.max(np.abs(self.diagonal), initial=UNDERFLOW))

    def sgpr(self) -> gpflow.models.SGPR:
        return gpflow.models.SGPR(
            (self.X, self.Y),
            self.kernel,
            self.inducing_variable,
            noise_variance=self.draw.noise_variance,
        )


def _float64(tensor: Any) -> Array:
    return np.asarray(tensor, dtype=np.float64)


def finite(built: Built) -> float:
    """All covariances are finite numbers."""
    matrices = (built.K, built.diagonal, built.Kuu, built.Kuf)
    return 0.0 if all(np.all(np.isfinite(matrix)) for matrix in matrices) else np.inf


def symmetric(built: Built) -> float:
    """K is symmetric, and its diagonal is what full_cov=False gives; no variance is negative."""
    asymmetry = np.max(np.abs(built.K - built.K.T))
    negative = -np.min(built.diagonal)
    rounding = ULPS * built.ulp * (1 + built.draw.squared_distance)
    tolerance = (rounding + _of_angles(built)) * built.size
    difference = np.max(np.abs(np.diag(built.K) - built.diagonal))
    of_difference = (_of_distances(built) + _of_angles(built)) * built.size
    return float(max(max(asymmetry, negative) / tolerance, difference / of_difference))


def _of_distances(built: Built) -> float:
    """What is left of a row's distance to itself: the root of the error of a a + b b - 2 a b, in
    which four products are rounded."""
    return float(np.sqrt(4 * built.ulp * (1 + built.draw.squared_distance)))


def _of_angles(built: Built) -> float:
    """What angles near zero, the arc cosines of rounded numbers, do to a kernel with a slope."""
    return float(10 * np.sqrt(built.ulp) * min(built.draw.slope, 1 / np.sqrt(built.ulp)))


def positive(built: Built) -> float:
    """K has no negative eigenvalue beyond rounding."""
    tolerance = ULPS * built.ulp * (1 + built.draw.squared_distance) + _of_angles(built)
    if built.draw.kink:  # rows that are twice there are not at distance zero
        tolerance += _of_distances(built)
    return float(-np.min(np.linalg.eigvalsh(built.K)) / (tolerance * built.size))


def below_prior(built: Built) -> float:
    """What the inducing variables explain of a variance is not more than the variance."""
    size = np.mean(np.diag(built.Kuu))
    jitter = max(JITTER, ULPS * built.ulp) * max(size, np.finfo(np.float64).tiny)
    root = np.linalg.cholesky(built.Kuu + jitter * np.eye(len(built.Kuu)))
    explained = np.sum(np.linalg.solve(root, built.Kuf) ** 2, axis=0)
    return float(np.max(explained - built.diagonal) / (_of_distances(built) * built.size))


def bound(built: Built) -> float:
    """The collapsed bound is finite and not above the log marginal likelihood."""
    with built.context():
        elbo = float(built.sgpr().elbo())
    noise = built.draw.noise_variance
    K = (built.K + built.K.T) / 2 + noise * np.eye(len(built.X))
    sign, log_determinant = np.linalg.slogdet(K)
    if sign <= 0:
        return 0.0  # `positive` tells
    fit = float(np.sum(built.Y * np.linalg.solve(K, built.Y)))
    exact = -(len(built.X) * np.log(2 * np.pi) + log_determinant + fit) / 2
    if not np.isfinite(elbo):
        return _lost(built)
    conditioning = 1 + built.size / noise
    tolerance = (JITTER + np.sqrt(built.ulp)) * (1 + abs(exact) + len(built.X)) * conditioning
    return float((elbo - exact) / tolerance)


def _lost(built: Built) -> float:
    """The excess of a bound that is not a number.

    :raises numpy.linalg.LinAlgError: If the signal is so strong that SGPR's second factor is lost.
    """
    rounding = float(np.sum(built.diagonal)) / built.draw.noise_variance * built.ulp
    if rounding > 1:
        raise np.linalg.LinAlgError(f"SGPR's I + A A' is rounded by {rounding:.2g}")
    return np.inf


def gradients(built: Built) -> float:
    """The bound's gradient along a random direction is that of finite differences.

    In float64, and where distances have digits enough that the bound's differences mean something.
    """
    if built.dtype is not np.float64 or _of_distances(built) > GRADIENT_RTOL:
        return 0.0
    with built.context():
        model = built.sgpr()
        # Points stay: where one meets a row, a Matern-1/2 kernel has a kink.
        variables = [*model.kernel.trainable_variables, *model.likelihood.trainable_variables]
        generator = np.random.default_rng(len(variables))
        directions = [generator.normal(size=v.shape) for v in variables]
        with tf.GradientTape() as tape:
            value = model.elbo()
        found = tape.gradient(value, variables)
        slope = sum(
            float(tf.reduce_sum(tf.convert_to_tensor(g) * d))
            for g, d in zip(found, directions, strict=True)
            if g is not None
        )
        if not np.isfinite(slope):
            return _lost(built)
        initial = [v.numpy() for v in variables]

        def at(step: float) -> float:
            for v, start, direction in zip(variables, initial, directions, strict=True):
                v.assign(start + step * direction)
            return float(model.elbo())

        differences = [(at(step) - at(-step)) / (2 * step) for step in STEPS]
        at(0.0)
    conditioning = len(built.X) * built.size / built.draw.noise_variance
    noise = built.ulp * (abs(float(value)) + conditioning) * ULPS / ROUNDING_STEP
    scale = GRADIENT_RTOL * (abs(slope) + 1) + noise
    nearest = min(abs(slope - difference) for difference in differences)
    return float(nearest / scale)


def predictions(built: Built) -> float:
    """Variances that an SVGP predicts are positive, and its bound is a number."""
    with built.context():
        generator = np.random.default_rng(1)
        count = int(built.inducing_variable.num_inducing)
        model = gpflow.models.SVGP(
            built.kernel,
            gpflow.likelihoods.Gaussian(built.draw.noise_variance),
            built.inducing_variable,
            q_mu=generator.normal(size=(count, 1)).astype(built.dtype),
            q_sqrt=0.1 * np.eye(count, dtype=built.dtype)[None],
        )
        mean, variance = model.predict_f(built.X)
        elbo = float(model.elbo((built.X, built.Y)))
    values = np.concatenate([_float64(mean), _float64(variance)])
    if not (np.all(np.isfinite(values)) and np.isfinite(elbo)):
        return np.inf
    return float(-np.min(variance) / (ULPS * built.ulp * built.size))


def agrees_with_float64(built: Built) -> float:
    """K in float32 is K in float64 of the same rows."""
    if built.dtype is np.float64:
        return 0.0
    rounded = replace(built.draw, X=built.X.astype(np.float64))
    difference = np.max(np.abs(built.K - Built(rounded, np.float64).K))
    return float(difference / (_of_distances(built) * built.size))


COVARIANCES: dict[str, Check] = {
    check.__name__: check
    for check in (finite, symmetric, positive, below_prior, agrees_with_float64)
}
MODELS: dict[str, Check] = {check.__name__: check for check in (bound, gradients, predictions)}
DIGITS_LEFT = 1e-3  # of distances, below which a stationary kernel can be checked


def faults(draw: Draw, dtype: type, *, models: bool) -> Iterator[tuple[str, float, str]]:
    """The checks with an excess above one: name, excess and what was raised, if anything was.

    "beyond": the float type has no digits left for the distances. "refused": a Cholesky
    decomposition failed, with an error or, as TensorFlow's does in float32, with NaN: the jitter is
    below the rounding errors of this Kuu.

    :param models: Whether models are made too, which takes most of the time.
    """
    ulp = float(np.finfo(dtype).eps)
    if draw.squared_distance * ulp > DIGITS_LEFT:
        yield "beyond", 0.0, ""
        return
    try:
        built = Built(draw, dtype)
    except ValueError as error:  # with a reason, such as eigenvalues that are zero
        yield "refused", 0.0, str(error)[:200]
        return
    except Exception as error:
        yield "build", np.inf, f"{type(error).__name__}: {error}"[:200]
        return
    if finite(built) > 1:
        largest = Built(draw, np.float64).size if dtype is np.float32 else 0.0
        too_large = largest > float(np.finfo(dtype).max) ** 0.99
        yield ("beyond" if too_large else "finite"), np.inf, ""
        return
    least = np.min(np.linalg.eigvalsh(built.Kuu)) + JITTER
    if least < 10 * len(built.Kuu) * ulp * np.max(np.abs(built.Kuu)):
        yield "refused", 0.0, "Kuu has no Cholesky factor with this jitter"
        models = False
    for name, check in {**COVARIANCES, **(MODELS if models else {})}.items():
        try:
            excess = check(built)
        except (tf.errors.InvalidArgumentError, np.linalg.LinAlgError) as error:
            yield "refused", 0.0, f"{name}: {type(error).__name__}: {error}"[:200]
            continue
        except Exception as error:
            yield name, np.inf, f"{type(error).__name__}: {error}"[:200]
            continue
        if not excess <= 1:
            yield name, excess, ""
