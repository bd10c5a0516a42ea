"""Sums of kernels with their blocks, and an AdditiveSVGP next to the joint SVGP it is to equal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from interdomain.inducing_variables import (
    HarmonicInducingPoints,
    HarmonizableFourierFeatures,
    SphericalHarmonics,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import (
    HarmonicKernel,
    HarmonizableComponent,
    HarmonizableMixture,
    SphericalMatern32,
)
from interdomain.models import SVGP, AdditiveSVGP
from interdomain.transforms import Negation, Rotation
from tests.conformance.dense_twin import DenseTwin, Oracle
from tests.conformance.helpers import assert_close, assert_same_objective, random_q

NUM_DATA = 11
Data = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Case:
    """``build`` makes a kernel and an inducing variable for inputs with three columns."""

    name: str
    build: Callable[[], tuple[Kernel, InducingVariables]]
    sizes: tuple[int, ...]


def points(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(*shape, 3)).astype(gpflow.default_float())


def matern(**arguments: Any) -> Kernel:
    return gpflow.kernels.Matern32(variance=1.4, **{"lengthscales": 1.2, **arguments})


def distinct() -> tuple[Kernel, InducingVariables]:
    kernel = HarmonicKernel(
        gpflow.kernels.SquaredExponential(lengthscales=[1.0, 1.5, 0.7]), [Negation(0), Negation(1)]
    )
    return kernel, HarmonicInducingPoints(points(4, 3))


def shared() -> tuple[Kernel, InducingVariables]:
    kernel = HarmonicKernel(matern(), Rotation(4))
    return kernel, HarmonicInducingPoints.for_kernel(kernel, points(4))


def complete() -> tuple[Kernel, InducingVariables]:
    """T = 3: the second part has twice as many variables."""
    kernel = HarmonicKernel(matern(), Rotation(3))
    return kernel, HarmonicInducingPoints.for_kernel(kernel, points(2, 3), complete=True)


def stock() -> tuple[Kernel, InducingVariables]:
    kernel = matern(lengthscales=0.6, active_dims=[0])
    kernel += gpflow.kernels.SquaredExponential(active_dims=[1, 2])
    kernel += gpflow.kernels.RationalQuadratic(variance=0.4)
    blocks = [InducingPoints(points(size, seed=size)) for size in (3, 5, 3)]
    return kernel, SumInducingVariables(blocks)


def mixed() -> tuple[Kernel, InducingVariables]:
    """A diagonal and two dense blocks."""
    first = SphericalMatern32(lengthscale=0.9, active_dims=[0, 2])
    harmonics = SphericalHarmonics.for_kernel(first, input_dim=2, max_degree=2)
    blocks = [harmonics, InducingPoints(points(4)), InducingPoints(points(4, seed=1))]
    kernel = first + matern() + matern(lengthscales=0.5, active_dims=[1])
    return kernel, SumInducingVariables(blocks)


def diagonal() -> tuple[Kernel, InducingVariables]:
    first = SphericalMatern32(lengthscale=0.9, active_dims=[0, 2])
    second = SphericalMatern32(variance=0.7, active_dims=[0, 1])
    blocks = [SphericalHarmonics.for_kernel(k, 2, max_degree=2) for k in (first, second)]
    return first + second, SumInducingVariables(blocks)


def nested() -> tuple[Kernel, InducingVariables]:
    harmonic = HarmonicKernel(matern(), Negation([0, 1]))
    blocks = [HarmonicInducingPoints(points(2, 3)), InducingPoints(points(5, seed=2))]
    other = gpflow.kernels.SquaredExponential(lengthscales=2.0)
    return harmonic + other, SumInducingVariables(blocks)


def mixture() -> tuple[Kernel, InducingVariables]:
    """A decomposed kernel whose summands have features of their own."""
    first = HarmonizableComponent([[0.3, -0.2]], envelope=0.1, lag=0.05, active_dims=[0, 2])
    second = HarmonizableComponent([[0.4, 0.2]], centre=0.5, envelope=0.2, active_dims=[1, 2])
    features = [
        HarmonizableFourierFeatures([[0.3, -0.2], [0.1, 0.5]]),
        HarmonizableFourierFeatures([[0.4, 0.2], [0.1, 0.1]]),
    ]
    return HarmonizableMixture([first, second]), SumInducingVariables(features)


def interval(kernels: Sequence[Kernel], counts: Sequence[int]) -> tuple[Kernel, InducingVariables]:
    blocks = [VariationalFourierFeatures(-3.0 - k, 3.5, count) for k, count in enumerate(counts)]
    return gpflow.kernels.Sum(kernels), SumInducingVariables(blocks)


def interval_equal() -> tuple[Kernel, InducingVariables]:
    """Three in one batch, of ranks 1, 2 and 3."""
    kernels = [
        gpflow.kernels.Matern12(variance=1.3, active_dims=[0]),
        gpflow.kernels.Matern32(lengthscales=0.8, active_dims=[1]),
        gpflow.kernels.Matern52(variance=0.6, active_dims=[2]),
    ]
    return interval(kernels, (3, 3, 3))


def interval_unequal() -> tuple[Kernel, InducingVariables]:
    kernels = [matern(active_dims=[0]), gpflow.kernels.Matern52(variance=0.6, active_dims=[2])]
    return interval(kernels, (2, 3))


CASES = [
    Case("distinct", distinct, (3, 3, 3, 3)),
    Case("shared", shared, (4, 4, 4)),
    Case("complete", complete, (3, 6)),
    Case("stock", stock, (3, 5, 3)),
    Case("mixed", mixed, (9, 4, 4)),
    Case("diagonal", diagonal, (9, 9)),
    Case("nested", nested, (3, 3, 5)),
    Case("mixture", mixture, (4, 4)),
    Case("interval-equal", interval_equal, (10, 10, 10)),
    Case("interval-unequal", interval_unequal, (8, 10)),
]
BY_NAME = {case.name: case for case in CASES}


def make_data(num_outputs: int = 1, num_data: int = NUM_DATA) -> Data:
    rng = np.random.default_rng(num_outputs)
    X = rng.normal(size=(num_data, 3))
    Y = np.sin(X @ rng.normal(size=(3, num_outputs))) + 0.1 * rng.normal(size=(num_data, 1))
    return X.astype(gpflow.default_float()), Y.astype(gpflow.default_float())


def make_q(
    sizes: Sequence[int], latent: int, q_diag: bool, q_shared: bool
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Means and roots of blocks; if q_shared, one root for all latent GPs."""
    rng = np.random.default_rng(5)
    means, roots = zip(*(random_q(rng, size, latent, q_diag) for size in sizes), strict=True)
    if q_shared:
        roots = tuple(root[:, :1] if q_diag else root[:1] for root in roots)
    return list(means), list(roots)


def linear(latent: int) -> gpflow.mean_functions.Linear:
    """A linear mean of its own for each latent GP: an argmax ignores a common scale and shift."""
    slopes = 0.1 * np.arange(1, 3 * latent + 1).reshape(3, latent)
    return gpflow.mean_functions.Linear(slopes, 0.3 * np.ones(latent))


def options_of(num_latent_gps: int, options: dict[str, Any]) -> dict[str, Any]:
    """The options of the models in these tests, with the given ones."""
    mean = {"mean_function": linear(num_latent_gps), "num_latent_gps": num_latent_gps}
    return {"num_data": 3 * NUM_DATA, **mean, **options}


def make_additive(
    case: Case, *, num_latent_gps: int = 1, random_q: bool = True, **options: Any
) -> AdditiveSVGP:
    kernel, inducing_variable = case.build()
    if random_q:
        forms = options.get("q_diag", False), options.get("q_shared", False)
        q_mu, q_sqrt = make_q(case.sizes, num_latent_gps, *forms)
        options |= {"q_mu": q_mu, "q_sqrt": q_sqrt}
    likelihood, options = gpflow.likelihoods.Gaussian(0.2), options_of(num_latent_gps, options)
    return AdditiveSVGP(kernel, likelihood, inducing_variable, **options)


class BlockSVGP(Oracle):
    """A stock SVGP whose q is block-diagonal. It shares every parameter with a model of several
    q's, which are its blocks: so gradients are those to the same variables."""

    def __init__(
        self,
        model: SVGP,
        inducing_variable: InducingVariables,
        q: Callable[[], Sequence[tuple[Any, Any]]],
    ) -> None:
        """:param q: Returns the mean and the root of each block."""
        self._q = q
        super().__init__(
            model.kernel,
            model.likelihood,
            inducing_variable,
            mean_function=model.mean_function,
            num_latent_gps=model.num_latent_gps,
            whiten=model.whiten,
            num_data=model.num_data,
        )

    def _init_variational_parameters(self, *_: Any) -> None:
        """There are none of its own."""

    @property
    def q_mu(self) -> tf.Tensor:
        return tf.concat([mean for mean, _ in self._q()], axis=0)

    @property
    def q_sqrt(self) -> tf.Tensor:
        roots = [tf.convert_to_tensor(root) for _, root in self._q()]
        if roots[0].shape.rank == 2:
            return tf.concat(roots, axis=0)
        blocks = [tf.linalg.LinearOperatorFullMatrix(root) for root in roots]
        return tf.linalg.LinearOperatorBlockDiag(blocks).to_dense()


def joint_svgp(model: AdditiveSVGP, sizes: Sequence[int]) -> BlockSVGP:
    """GPflow's own dense algebra: it is shown the whole Kuu and Kuf."""
    assert [mean.shape[0] for mean in model.q_mu] == list(sizes)
    twin = DenseTwin(model.inducing_variable)
    return BlockSVGP(model, twin, lambda: model.variational_parameters)


def assert_same_bound(model: SVGP, joint: BlockSVGP, data: tuple) -> None:
    """Check that the elbo and its gradients are equal."""
    assert_same_objective(
        lambda: model.elbo(data), lambda: joint.elbo(data), model.trainable_variables
    )


def mean_field_optimum(
    model: SVGP, inducing_variable: InducingVariables, sizes: Sequence[int], data: tuple
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Means and covariances of the q's for a Gaussian likelihood, not whitened.

    With ``W = K^{-1} Kuf`` and noise s, log of the posterior is quadratic: its precision is
    ``P = K^{-1} + W W^T / s``. The best mean of a product of Gaussians is that of the whole,
    ``P^{-1} W y / s``; the best covariances are the inverses of P's diagonal blocks.

    :param inducing_variable: All inducing variables as one, with a dense Kuu.
    """
    X, Y = data
    K = Kuu(inducing_variable, model.kernel).numpy()
    W = np.linalg.solve(K, Kuf(inducing_variable, model.kernel, X).numpy())
    noise = float(model.likelihood.variance.numpy())
    precision = np.linalg.inv(K) + W @ W.T / noise
    mean = np.linalg.solve(precision, W @ Y / noise)
    ends = np.cumsum(sizes)
    blocks = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    return [mean[b] for b in blocks], [np.linalg.inv(precision[b, b]) for b in blocks]


def assert_same_predictions(model: SVGP, joint: BlockSVGP, X: np.ndarray) -> None:
    """Check equal KL divergences and predictions, marginal and joint, cached and not."""
    with disable_check_shapes():  # it takes most of the time
        assert_close(model.prior_kl(), joint.prior_kl())
        posterior = model.posterior()
        for full_cov in (False, True):
            expected = joint.predict_f(X, full_cov=full_cov)
            for predict in (model.predict_f, posterior.predict_f):
                assert_close(predict(X, full_cov=full_cov), expected)
