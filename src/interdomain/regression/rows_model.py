"""What models have in common whose q follows from sums over rows: rows and predictions."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import InputData, MeanAndVariance, RegressionData, TensorData
from gpflow.functions import Function
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian, Likelihood
from gpflow.mean_functions import MeanFunction, Zero
from gpflow.models.training_mixins import InternalDataTrainingLossMixin
from gpflow.models.util import InducingPointsLike, inducingpoint_wrapper
from gpflow.posteriors import PrecomputeCacheType

from .._arguments import Array, number
from .._targets import densities_of, takes_missing, targets_type
from .._tracing import unconverted
from ..core.inputs import check_inputs, validate_inducing_variable, validate_mean_function
from ..core.parameters import single_output
from ..posteriors import CollapsedPosterior
from .features import Features
from .provider import RowsProvider
from .scales import Parts, warn_of_data
from .sums import SufficientStatistics


class RowsModel(gpflow.models.GPModel, InternalDataTrainingLossMixin, abc.ABC):
    """A sparse model whose whitened q is computed from sums over rows that a provider reads.

    A subclass implements :meth:`_whitened_q`.

    :param why: Why the kernel may have one output only.
    :param num_latents: From the number of columns of Y to that of latent GPs.
    :param rows: See :class:`interdomain.regression.Rows`.
    :cvar recipe: The function of :mod:`interdomain.training` that trains such models.
    """

    recipe: ClassVar[str]
    inducing_variable: InducingVariables

    def __init__(
        self,
        data: Any,
        kernel: Kernel,
        likelihood: Likelihood,
        inducing_variable: InducingPointsLike,
        mean_function: MeanFunction | None,
        *,
        why: str,
        num_latents: Callable[[int], int],
        **rows: Any,
    ) -> None:
        if tf.distribute.has_strategy():
            raise ValueError(
                f"strategy: {type(self).__name__} has no variables to mirror; build it and its "
                "parts outside of strategy.scope(), and add the statistics of all workers with "
                "interdomain.distributed.all_reduce."
            )
        if isinstance(inducing_variable, (np.ndarray, tf.Tensor, tf.Variable, gpflow.Parameter)):
            inducing_variable = inducingpoint_wrapper(inducing_variable)
        validate_inducing_variable("inducing_variable", inducing_variable)
        single_output("kernel", kernel, why)
        validate_mean_function(mean_function)
        self._warn_of = _WarnOnce()
        provider = RowsProvider(
            data,
            num_latents,
            callback=self._warn_of,
            num_inducing=int(inducing_variable.num_inducing),
            missing=takes_missing(likelihood),
            **rows,
        )
        number = provider.num_latents
        mean_function = Zero(number) if mean_function is None else mean_function
        self._warn_of.parts = Parts(kernel, likelihood, mean_function, None)
        super().__init__(kernel, likelihood, mean_function, num_latent_gps=number)
        self.inducing_variable, self._provider = inducing_variable, provider
        if not isinstance(data, SufficientStatistics):  # which say themselves what they are of
            check_inputs(self, self.num_columns)

    @property
    def needs_recipe(self) -> bool:
        """Whether the :attr:`recipe` has to train the model, as gradients of its loss alone are not
        enough."""
        return True

    @property
    def num_columns(self) -> int:
        """The number D of columns of X."""
        return self._provider.columns[0]

    @property
    def feature_parameters(self) -> dict[str, gpflow.Parameter | tf.Variable]:
        """The parameters that the features depend on, by name. When one of them changes, the sums
        over rows are no longer valid, and the data are read again."""
        return dict(self._features.parameters)

    @property
    def _features(self) -> Features:
        return self._provider.features(self.kernel, self.inducing_variable, self.mean_function)

    @property
    def features_checksum(self) -> int:
        """A number that tells features from others, whatever the values of their parameters."""
        return self._features.checksum()

    @property
    def batch_size(self) -> int | None:
        """The number of rows that are taken at a time; None if there are only sums of them."""
        return self._provider.batch_size

    def draw(self, size: int, *, seed: int = 0) -> tuple[Array, Array]:
        """Draw random rows (X, Y), without replacement.

        :raises ValueError: If the model holds statistics without their rows, or rows were removed.
        """
        return self._provider.subset(size, seed)

    @abc.abstractmethod
    def _whitened_q(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean ``[M, P]`` and roots ``[P, M, M]``, or one for all ``[1, M, M]``."""

    @check_shapes(
        "return: [M, P]",
    )
    def whitened_mean(self) -> tf.Tensor:
        """The mean of q of the whitened variables: how much each feature explains.

        In the prior, these variables are independent and of variance one.
        """
        return self._whitened_q()[0]

    @inherit_check_shapes
    @unconverted
    def predict_f(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Mean and (co)variance of f at new points, with everything computed again at each call.

        :meth:`posterior` caches what does not depend on the points.
        """
        posterior = self.posterior(PrecomputeCacheType.NOCACHE)
        return posterior.fused_predict_f(Xnew, full_cov, full_output_cov)

    @inherit_check_shapes
    def predict_log_density(
        self, data: RegressionData, full_cov: bool = False, full_output_cov: bool = False
    ) -> tf.Tensor:
        """As GPflow's, with Y converted to what the likelihood takes."""
        X, Y = data
        Y = tf.cast(Y, targets_type(self.likelihood))
        return super().predict_log_density((X, Y), full_cov, full_output_cov)

    @unconverted
    def posterior(
        self,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
    ) -> CollapsedPosterior:
        """The posterior, for fast predictions: see ``gpflow.models.SGPR.posterior``."""
        return CollapsedPosterior(
            self.kernel,
            self.inducing_variable,
            self._whitened_q,
            mean_function=self.mean_function,
            precompute_cache=precompute_cache,
        )

    def to_svgp(self) -> gpflow.models.SVGP:
        """Make a stock ``gpflow.models.SVGP`` with the present q, whitened.

        It can serve predictions, or be trained further with minibatches. It holds no data, and
        shares the kernel, the likelihood, the mean function and the inducing variable with this
        model.
        """
        q_mu, q_sqrt = self._whitened_q()
        num_latents = self.num_latent_gps
        return gpflow.models.SVGP(
            self.kernel,
            self.likelihood,
            self.inducing_variable,
            mean_function=self.mean_function,
            num_latent_gps=num_latents,
            q_mu=q_mu,
            q_sqrt=tf.tile(q_sqrt, [num_latents // q_sqrt.shape[0], 1, 1]),
            whiten=True,
            num_data=self.num_data,
        )

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> Any:
        """What checkpoints hold. A SavedModel would be written, and then fail where it is served:
        the sums are looked up in this process.

        :raises ValueError: For a SavedModel.
        """
        if save_type == "savedmodel":
            raise ValueError(
                f"{type(self).__name__} cannot be in a SavedModel: its functions look up sums that "
                "are in this process. Save model.to_svgp(), or a function of model.posterior(), "
                "which hold what predictions need."
            )
        return super()._trackable_children(save_type, **kwargs)

    @property
    @abc.abstractmethod
    def num_data(self) -> int:
        """The number N of rows, without those that were skipped."""


class _WarnOnce:
    """Warns of the first rows that are read, if they are far from standardised."""

    parts: Parts | None = None  # without features: rows outside of an interval are refused

    def __call__(self, X: Array, Y: Array) -> None:
        parts, self.parts = self.parts, None
        if parts is not None:
            warn_of_data(parts, X, Y)


# The Gaussian likelihood of a model with q in closed form, from its arguments.


def gaussian(noise_variance: TensorData | None, likelihood: Gaussian | None) -> Gaussian:
    """One of one noise variance, which is 1 by default.

    :raises ValueError: If both are given, the densities are not those of GPflow's Gaussian, for
        which the optimal q has a closed form, or the noise is something else.
    """
    if likelihood is None:
        if noise_variance is None:
            return Gaussian(1.0)
        if not isinstance(noise_variance, (tf.Variable, gpflow.Parameter)):
            least = gpflow.config.default_likelihood_positive_minimum()
            noise_variance = number("noise_variance", noise_variance, above=least)
        return Gaussian(noise_variance)
    if noise_variance is not None:
        raise ValueError(
            f"noise_variance: found {noise_variance!r} beside a likelihood, which has its own; "
            "pass one of the two."
        )
    if densities_of(likelihood) is not Gaussian:
        own = " with densities of its own" * isinstance(likelihood, Gaussian)
        raise ValueError(
            "likelihood must be gpflow.likelihoods.Gaussian or have its densities, for which q has "
            f"a closed form, found {type(likelihood).__name__}{own}; pass it to "
            "interdomain.models.DualSVGP, which fit_collapsed trains and whose to_svgp() "
            "minibatches go on with, or to gpflow.models.SVGP."
        )
    noise = likelihood.scale if likelihood.variance is None else likelihood.variance
    other = None
    if isinstance(noise, Function):
        other = f"a {type(noise).__name__} of X"
    elif int(tf.size(noise)) != 1:
        other = f"{int(tf.size(noise))} variances, one for each column of Y"
    if other is not None:
        raise ValueError(
            f"likelihood: its noise is {other}, and the sums over the data hold for one noise "
            "variance; pass Gaussian(variance), or use interdomain.models.DualSVGP or "
            "gpflow.models.SVGP."
        )
    return likelihood
