"""The base class of models whose q follows from sums over rows: rows and predictions."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import InputData, MeanAndVariance, RegressionData
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from gpflow.mean_functions import MeanFunction, Zero
from gpflow.models.training_mixins import InternalDataTrainingLossMixin
from gpflow.models.util import InducingPointsLike, inducingpoint_wrapper
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType

from .._arguments import Array, check_size, instance
from .._targets import takes_missing, targets_type
from .._tracing import unconverted
from ..core.descriptions import checksum_of_rows
from ..core.functional_rows import acted_mean
from ..core.inputs import check_inputs, validate_inducing_variable
from ..core.pairs import structure_of
from ..core.parameters import single_output
from ..core.structures import dense_entries
from ..sums.features import Features
from ..sums.protocol import Latents, Q, q_of_posterior
from ..sums.row_batches import Rows
from ..sums.statistics import SufficientStatistics
from ..training.scales import warn_of_scales


class RowsModel(gpflow.models.GPModel, InternalDataTrainingLossMixin, abc.ABC):
    """A sparse model whose whitened q is computed from sums over rows.

    A subclass implements :meth:`latents`.

    :param num_latents: A function from the number of columns of Y to the number of latent GPs.
    :param batch_size: The number of rows in a batch; not used for statistics.
    :param progress: Whether passes show a progress bar.
    :cvar takes_weights: Whether rows may have weights, as a third part (X, Y, w).
    """

    takes_weights: ClassVar[bool] = False
    inducing_variable: InducingVariables

    def __init__(
        self,
        data: Any,
        kernel: Kernel,
        likelihood: Likelihood,
        inducing_variable: InducingPointsLike,
        mean_function: MeanFunction | None,
        *,
        num_latents: Callable[[int], int],
        batch_size: int | None = None,
        progress: bool = True,
    ) -> None:
        if tf.distribute.has_strategy():
            raise ValueError(
                f"strategy: {type(self).__name__} has no variables to mirror; build it and its "
                "parts outside of strategy.scope(), and add the statistics of all workers with "
                "SufficientStatistics.all_reduce."
            )
        if isinstance(inducing_variable, (np.ndarray, tf.Tensor, tf.Variable, gpflow.Parameter)):
            inducing_variable = inducingpoint_wrapper(inducing_variable)
        validate_inducing_variable("inducing_variable", inducing_variable)
        single_output("kernel", kernel, "latent GPs share the kernel, and are independent")
        size = int(inducing_variable.num_inducing)
        what = f"the precision of {size:,} features and its factor"
        check_size("inducing_variable", what, self._entries(inducing_variable, kernel))
        self._rows_of = functools.partial(
            Rows,
            batch_size=batch_size,
            progress=progress,
            num_inducing=size,
            missing=takes_missing(likelihood),
            weighted=self.takes_weights,
        )
        is_read = isinstance(data, (SufficientStatistics, Rows))
        source = data if is_read else self._rows_of(data)
        self._source = source if isinstance(source, Rows) else None
        self._columns: tuple[int, int] = source.columns
        number = num_latents(self._columns[1])
        if mean_function is None:
            mean_function = Zero(number)
        remedy = "pass one of gpflow.mean_functions"
        instance("mean_function", mean_function, Callable, "a function of X", remedy)
        mean_function = acted_mean(mean_function, kernel)
        super().__init__(kernel, likelihood, mean_function, num_latent_gps=number)
        self.inducing_variable = inducing_variable
        self._built_features: Features | None = None
        if self._source is not None:  # statistics are checked when they are used
            check_inputs(self, self.num_columns)
        if not is_read:  # another model has checked its rows
            X, Y, *_ = source.sample
            if np.any(finite := source.finite(X, Y)):
                self._warn_of_scales(X[finite], Y[finite])

    def _entries(self, inducing_variable: InducingVariables, kernel: Kernel) -> int:
        """The number of entries of the sums over rows and of a posterior, in memory."""
        if (structure := structure_of(inducing_variable, kernel)) is not None:
            return structure.entries
        return dense_entries(int(inducing_variable.num_inducing))

    def _warn_of_scales(self, X: Array, Y: Array) -> None:
        """Warn of columns whose scales are far from those of the prior."""
        warn_of_scales(self, X, Y)

    def __getstate__(self) -> dict[str, Any]:
        """The state of the model without graphs: a copy of the model makes its own graphs."""
        return {**self.__dict__, "_built_features": None}

    @property
    def num_columns(self) -> int:
        """The number D of columns of X."""
        return self._columns[0]

    @property
    def num_rows(self) -> int | None:
        """The number of rows; None if only a pass can count them."""
        return None if self._source is None else self._source.num_rows

    @property
    def rows_of_a_prediction(self) -> int | None:
        """The best number of rows in a batch of predictions; None for the default."""
        return self._features.sums.rows_of_a_prediction

    @property
    def feature_parameters(self) -> dict[str, gpflow.Parameter | tf.Variable]:
        """The parameters that the features depend on, by name. If one of them changes, the sums
        over rows are no longer valid, and the data are read again."""
        return dict(self._features.parameters)

    @property
    def _features(self) -> Features:
        """The features for the present parts of the model."""
        with tf.init_scope():  # apart from the graph of the caller
            known = self._built_features
            if known is None or not known.is_current(*self._feature_parts()):
                known = self._built_features = self._make_features()
            return known

    def _feature_parts(self) -> tuple[tf.Module, ...]:
        """The modules that the features are built from."""
        return self.kernel, self.inducing_variable, self.mean_function

    def _make_features(self) -> Features:
        parts = self.kernel, self.inducing_variable, self.mean_function
        return Features(*parts, self.num_columns, self.num_latent_gps)

    def described_rows(self) -> dict[str, int]:
        """Checksums of the features and the rows, by name, which checkpoints store and compare. The
        values of parameters do not change them. Only a sample of the rows is used: the first
        batch of a Dataset or a function."""
        return {"features": self._features.checksum(), "rows": self._rows_checksum()}

    def _rows_checksum(self) -> int:
        return checksum_of_rows(self._rows_at_hand.sample)

    @property
    def _rows_at_hand(self) -> Rows:
        """:raises ValueError: If the model holds statistics without their rows."""
        if self._source is None:
            raise ValueError(
                "data: the model was built from SufficientStatistics, and its rows are needed; "
                "build it from the rows."
            )
        return self._source

    def draw(self, size: int, *, seed: int = 0) -> tuple[Array, ...]:
        """Draw ``size`` random rows (X, Y) without replacement; (X, Y, w) if rows have weights.

        :raises ValueError: If the model holds statistics without their rows.
        """
        return self._rows_at_hand.draw(size, seed)

    def model_of(self, rows: tuple[Array, ...], kind: Any = None, **changes: Any) -> Any:
        """Make a model of other rows that shares all parameters with this model.

        For a zonal kernel, first find the input scales with a few harmonics of low degree. Then
        choose many harmonics, which depend on these scales::

            few = SphericalHarmonics.for_kernel(kernel, input_dim, max_degree=2)
            fit(model.model_of(model.draw(3_000), inducing_variable=few))

        :param rows: (X, Y), or (X, Y, w) with weights, such as from :meth:`draw`; not copied.
        :param kind: The class of the new model; by default the class of this model.
        :param changes: Arguments that change, such as ``inducing_variable`` or ``kernel``.
            Parameters of another kernel that are not shared are trained for these rows.
        """
        shared = {
            "kernel": self.kernel,
            "likelihood": self.likelihood,
            "inducing_variable": self.inducing_variable,
            "mean_function": self.mean_function,
        }
        kind, data = kind or type(self), self._rows_of(rows, batch_size=None, progress=False)
        model = kind(data, **(shared | changes))
        if not changes.keys() & shared.keys():
            model._built_features = self._features
        return model

    def replace_features(self, inducing_variable: InducingVariables, kernel: Kernel) -> None:
        """Replace the features of the model, and the kernel that they belong to."""
        self.inducing_variable, self.kernel = inducing_variable, kernel

    @abc.abstractmethod
    def latents(self) -> Latents:
        """The collapsed posteriors that determine q: one for all latent GPs, or one for each."""

    def _whitened_q(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The whitened q in the default float: the mean ``[M, P]``, and roots of the covariances
        ``[P, M, M]``, or ``[1, M, M]`` for one root in common."""
        return q_of_posterior(self.latents)

    def q(self) -> Q:
        """The posterior of the weights of the features, for the present parameters.

        :raises tf.errors.InvalidArgumentError: If a matrix cannot be factorised.
        """
        return self._features.sums.q(self.latents())

    def check_spacing(self) -> None:
        """Warn if the features are too coarse or too fine for the present lengthscales."""
        self._features.sums.check_spacing()

    @check_shapes(
        "return: [M, P]",
    )
    def whitened_mean(self) -> tf.Tensor:
        """The mean of q of the whitened variables. Its squares show how much each feature explains.

        In the prior, these variables are independent with variance one.
        """
        return self._whitened_q()[0]

    @inherit_check_shapes
    @unconverted
    def predict_f(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """The mean and (co)variance of f at new points. Each call computes everything again.

        :meth:`posterior` caches all that does not depend on the points.
        """
        posterior = self.posterior(PrecomputeCacheType.NOCACHE)
        return posterior.fused_predict_f(Xnew, full_cov, full_output_cov)

    @inherit_check_shapes
    def predict_log_density(
        self, data: RegressionData, full_cov: bool = False, full_output_cov: bool = False
    ) -> tf.Tensor:
        """The log predictive density, as in GPflow, with Y converted to the likelihood's type."""
        X, Y = data
        Y = tf.cast(Y, targets_type(self.likelihood))
        return super().predict_log_density((X, Y), full_cov, full_output_cov)

    @unconverted
    def posterior(
        self,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
    ) -> AbstractPosterior:
        """The posterior, for fast predictions: see ``gpflow.models.SGPR.posterior``."""
        return self._features.sums.posterior(self.latents, precompute_cache)

    def predictions_of_many(self) -> Callable[..., MeanAndVariance] | None:
        """A function of X ``[n, D]`` that returns mean and variance of f, ``[n, P]``, without
        gradients; None if there is none. For many rows it is faster than the posterior."""
        return self._features.sums.predictions_of_many(self.latents())

    @property
    @abc.abstractmethod
    def num_data(self) -> int:
        """The number N of rows."""
