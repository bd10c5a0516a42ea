"""Sparse regression with the optimal q, which keeps the structure of Kuu: ``StructuredSGPR``."""

from __future__ import annotations

import functools
import os
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import InputData, MeanAndVariance, TensorData
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian
from gpflow.mean_functions import MeanFunction, Zero
from gpflow.models.training_mixins import InternalDataTrainingLossMixin
from gpflow.models.util import InducingPointsLike, inducingpoint_wrapper
from gpflow.posteriors import PrecomputeCacheType

from .._arguments import check_real_type, choice, integer
from ..covariances import Kuu_operator
from ..distributed import Workers
from ..kernels._kernel_arguments import single_output
from ..posteriors import CollapsedPosterior
from ..sphere._typing import Array
from ..streaming import SufficientStatistics
from ..streaming.contributions import Contributions
from ..streaming.in_memory import RowsInMemory
from ..streaming.provider import StatisticsProvider
from ._gaussian import gaussian
from .collapsed import Collapsed, DataSums, bound, collapse, optimal_q
from .one_pass import validate_inducing_variable, validate_mean_function
from .residuals import Residuals
from .scales import Parts, warn_of_data


class StructuredSGPR(gpflow.models.GPModel, InternalDataTrainingLossMixin):
    """GPflow's ``SGPR`` with the structure of Kuu kept, and the data in its bound through sums over
    the rows alone.

    For regression with a Gaussian likelihood. q is optimal in closed form, so that only the
    hyperparameters are trained. ``gpflow.models.SGPR`` factorises Kuu whatever it is, and solves
    with the factor for every row at every step. Here spherical harmonics need no factorisation of
    Kuu and no jitter, sums of kernels one for each block; and where the features do not depend on
    what is trained, one pass over the rows is enough. Bound, predictions and gradients are those
    of ``SGPR`` (Titsias 2009) otherwise.

    >>> import numpy as np, interdomain as idm
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> Y = np.sin(5 * X)
    >>> kernel = idm.kernels.SphericalMatern52()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 1, max_degree=10)
    >>> prior = idm.kernels.FiniteRank(kernel, harmonics)
    >>> model = idm.models.StructuredSGPR((X, Y), prior, harmonics, noise_variance=0.1)
    >>> fitted = idm.training.fit_sgpr(model, progress=False)
    >>> mean, variance = model.predict_f(np.array([[0.3]]))
    >>> print(f"prediction {mean[0, 0]:.1f}, truth {np.sin(1.5):.1f}")
    prediction 1.0, truth 1.0

    For data that do not fit into memory as well. The sums over the rows,
    :class:`interdomain.streaming.SufficientStatistics`, are taken a batch at a time: memory is
    O(batch_size M + M^2), whatever the number of rows.

    **When the data are read.** The features Kuf depend on some of the parameters, those in
    :attr:`feature_parameters`, found in the graph that computes them. While these keep their values
    the sums are valid, and nothing touches the data. When they change, the sums are taken again
    before anything uses them. So:

    * For :class:`~interdomain.inducing_variables.SphericalHarmonics` they are the kernel's
      ``weight_variances`` and ``bias_variance`` (Dutordoir et al. 2020, section 4.3). Freeze
      these, and after one pass every step of an optimiser costs O(M^3), for any number of rows.
      :func:`interdomain.training.fit_sgpr` does this.
    * For :class:`~interdomain.inducing_variables.IntervalFourierFeatures`, also several of them in
      a sum, there are none: the data are read once, whatever is trained. That holds for rows inside
      of the interval, so rows outside are refused (an SVGP takes them, and warns).
    * Where a feature parameter is trainable (points, activation features, patches; or weight
      variances), each evaluation is one pass over the data, each gradient a second one, in which
      every batch of features is computed again instead of kept. The gradients are exact.

    **Several machines.** With a ``strategy`` every worker builds the same model, outside of the
    strategy's scope, and calls the same methods in the same order. Each reads its own part of the
    rows; the sums travel, exactly, and are added in the same order everywhere, so that every worker
    has the same statistics to the last bit. Feature parameters cannot be trained on all rows then.

    Every pass has to read the same rows, in any order: their number and a checksum are compared. A
    ``tf.saved_model`` cannot hold this model; it can hold :meth:`to_svgp` and :meth:`posterior`.

    :param data: (X ``[N, D]``, Y ``[N, P]``) as arrays, memory-mapped arrays or anything of that
        shape that can be sliced; a ``tf.data.Dataset`` of batches (X, Y) that ends; such data in
        parts, :class:`~interdomain.streaming.Shards`; or
        :class:`~interdomain.streaming.SufficientStatistics` of rows that are not at hand. The same
        on all workers: they share arrays in consecutive rows, and the parts of shards.
    :param kernel: A kernel of one output.
    :param inducing_variable: Any inducing variable the kernel has covariances with, or points
        ``[M, D]``.
    :param mean_function: Zero by default. Parameters of a constant or linear mean need no pass.
    :param noise_variance: Initial noise variance, 1 by default.
    :param likelihood: A Gaussian likelihood in place of ``noise_variance``; its variance is one
        parameter.
    :param batch_size: Rows to take at a time; by default so many that products run at full speed
        (between 256 and 8,192). A Dataset is cut into such batches.
    :param on_invalid: What to do with rows that have NaN or infinite numbers: "raise" an
        :class:`~interdomain.streaming.InvalidRowsError` that lists them, or "skip" them
        (``statistics.num_skipped`` counts them). Rows outside of the interval of Fourier features
        raise it in either case.
    :param checkpoint_path: A file in which a pass with frozen feature parameters keeps what is done
        (every minute, when it is interrupted and when it ends). A model of the same features and
        data that finds it goes on from there, and arrives at the same bits. Rows that are done are
        read again, to compare their checksum, but their features are not computed again. Of data
        in parts, or shared by workers, it is a folder with a file for each part: what a worker had
        done before it died, any worker can use that sees the folder (but if arrays are shared by
        another number of workers, the parts are others).
    :param progress: Show a progress bar in passes that take more than a second; of the chief only.
    :param strategy: A ``tf.distribute`` strategy whose workers share the rows.
    :warns UserWarning: In the first pass, or where a subset is drawn, of the first rows that are
        read: for columns of X or Y far from standardised, as :func:`interdomain.training.fit`.
    :raises ValueError: For arguments that are wrong or do not go together; in a pass, for rows that
        are not those of the first one, not finite, or outside of the interval of Fourier features.
    :raises RuntimeError: In a pass, for a part of the data that cannot be read.
    """

    def __init__(
        self,
        data: Any,
        kernel: Kernel,
        inducing_variable: InducingPointsLike,
        *,
        mean_function: MeanFunction | None = None,
        noise_variance: TensorData | None = None,
        likelihood: Gaussian | None = None,
        batch_size: int | None = None,
        on_invalid: str = "raise",
        checkpoint_path: str | os.PathLike[str] | None = None,
        progress: bool = True,
        strategy: tf.distribute.Strategy | None = None,
    ) -> None:
        if tf.distribute.has_strategy():
            raise ValueError(
                "strategy: StructuredSGPR shares sums among workers, not variables; build it and "
                "its parts outside of strategy.scope(), on every worker, and pass strategy."
            )
        if isinstance(inducing_variable, (np.ndarray, tf.Tensor, tf.Variable, gpflow.Parameter)):
            inducing_variable = inducingpoint_wrapper(inducing_variable)
        validate_inducing_variable("inducing_variable", inducing_variable)
        single_output("kernel", kernel, "the columns of Y share the kernel, and are independent")
        validate_mean_function(mean_function)
        choice("on_invalid", on_invalid, ("raise", "skip"))
        if batch_size is not None:
            batch_size = integer("batch_size", batch_size, at_least=1)
        if isinstance(data, (tuple, list)) and len(data) == 2:
            for name, array in zip("XY", data, strict=True):
                check_real_type(f"data: {name}", array)
        likelihood = gaussian(noise_variance, likelihood)
        provider = StatisticsProvider(
            data,
            int(inducing_variable.num_inducing),
            batch_size=batch_size,
            on_invalid=on_invalid,
            checkpoint_path=checkpoint_path,
            progress=progress,
            workers=Workers(strategy),
            warn=functools.partial(_warn_of_rows, likelihood),
        )
        num_outputs = provider.num_outputs
        mean_function = Zero(num_outputs) if mean_function is None else mean_function
        super().__init__(kernel, likelihood, mean_function, num_latent_gps=num_outputs)
        self.inducing_variable: InducingVariables = inducing_variable
        self._provider = provider

    @property
    def statistics(self) -> SufficientStatistics:
        """The statistics of all rows, for the present values of :attr:`feature_parameters`; in a
        pass over the data, if they have changed."""
        return self._provider.statistics(self._features)

    @property
    def num_data(self) -> int:
        """The number N of rows, without those that were skipped."""
        return self.statistics.num_rows

    @property
    def num_columns(self) -> int:
        """The number D of columns of X."""
        return self._features.num_columns

    @property
    def feature_parameters(self) -> dict[str, gpflow.Parameter | tf.Variable]:
        """What the features depend on, by name; when one changes, the data are read again."""
        return dict(self._features.parameters)

    @property
    def _features(self) -> Contributions:
        return self._provider.contributions(self.kernel, self.inducing_variable, self.mean_function)

    def _traced_state(self) -> Any:
        """What a compiled bound has built in besides attributes: the features, and which rows."""
        return self._features, self._provider.version

    @property
    def batch_size(self) -> int:
        """How many rows are taken at a time."""
        return self._provider.batch_size

    @property
    def checkpoint_path(self) -> str | os.PathLike[str] | None:
        """Where a pass keeps what is done, if anywhere; can be set."""
        return self._provider.path

    @checkpoint_path.setter
    def checkpoint_path(self, path: str | os.PathLike[str] | None) -> None:
        self._provider.path = path

    def accumulate(self, data: Any) -> SufficientStatistics:
        """The statistics of other rows, for the same features; the model stays as it is.

        :param data: As for the constructor, with the same columns.
        """
        return self._provider.accumulate(self._features, data)

    def extend(self, data: Any) -> None:
        """Add rows, reading only these.

        Functions that were compiled before and need gradients of the features must be compiled
        again: they say so.

        :param data: As for the constructor, with the same columns.
        """
        self._provider.change(self._features, data, 1)

    def remove(self, data: Any) -> None:
        """Take rows away, reading only these.

        :param data: Rows that are among the model's, with the same columns.
        :raises ValueError: If they are more than the model has, or what would be left could not be
            sums over rows; other rows that the model never had cannot be told.
        """
        self._provider.change(self._features, data, -1)

    @property
    def workers(self) -> Workers:
        """The processes that share the rows."""
        return self._provider.workers

    @property
    def keeps_parts(self) -> bool:
        """Whether :attr:`checkpoint_path` is a folder with a file for each part of the rows."""
        return self._provider.in_parts

    def broadcast_parameters(self) -> None:
        """Give the parameters of every worker the chief's values, for workers whose processors
        round differently."""
        variables = [parameter.unconstrained_variable for parameter in self.parameters]
        with self.workers.losses_named("the exchange of parameters"):
            shared = self.workers.share(
                lambda: {str(k): v.numpy() for k, v in enumerate(variables)}
            )
            chief, *_ = shared
        if self.workers.index > 0:
            for k, variable in enumerate(variables):
                variable.assign(chief[str(k)])

    def draw(self, size: int, *, seed: int = 0) -> tuple[Array, Array]:
        """Rows (X, Y) drawn at random from those of all workers, the same on each.

        :raises ValueError: If the rows are not at hand, or some were taken away.
        """
        return self._provider.subset(size, seed)

    def subset_model(
        self,
        size: int,
        *,
        seed: int = 0,
        inducing_variable: InducingPointsLike | None = None,
        kernel: Kernel | None = None,
    ) -> StructuredSGPR:
        """A model of ``size`` rows drawn at random, from those of all workers and the same on
        each, that shares all parameters with this one.

        The rows are copied. Where feature parameters are trained, a compiled step computes the
        features of all of them at once and keeps them for the gradient, if these are at most 2^24
        numbers (128 MB); of more it takes two passes, as of other models.

        The input scales of a zonal kernel show in few harmonics of low degree, before many that
        depend on them are chosen::

            few = SphericalHarmonics.for_kernel(kernel, input_dim, max_degree=2)
            fit(model.subset_model(3_000, inducing_variable=few))

        :param inducing_variable: Other features than this model's, for the subset.
        :param kernel: Another kernel than this model's, for the subset: one that shares parameters
            with it, such as one of a finite rank. Parameters that it does not share are its own.
        :raises ValueError: If the rows are not at hand, or some were taken away, or some that were
            drawn are outside of the interval of Fourier features.
        """
        rows = self._provider.subset(size, seed)
        return self.model_of(rows, inducing_variable=inducing_variable, kernel=kernel)

    def model_of(
        self,
        rows: tuple[Array, Array],
        *,
        inducing_variable: InducingPointsLike | None = None,
        kernel: Kernel | None = None,
    ) -> StructuredSGPR:
        """As :meth:`subset_model`, of rows (X, Y) that were drawn already; they are not copied."""
        X, Y = rows
        own = inducing_variable is None and kernel is None
        model = StructuredSGPR(
            (X, Y),
            self.kernel if kernel is None else kernel,
            self.inducing_variable if inducing_variable is None else inducing_variable,
            mean_function=self.mean_function,
            likelihood=self.likelihood,
            progress=False,
        )
        model._provider.keep_in_memory(RowsInMemory(X, Y), self._features if own else None)
        features = model._features
        features.check(X, "rows of X, drawn at random,")
        self._provider.warn_of(features, X, Y)
        model._provider.warned()
        return model

    def residuals(self) -> Residuals:
        """What the model leaves of Y at present, to compare features with that it does not have.

        :raises ValueError: In a pass over the rows, if they are not at hand.
        """
        _, collapsed = self._collapsed()
        mean, root = optimal_q(collapsed, self._noise_variance())
        weights = tf.cast(collapsed.root.solve(mean, adjoint=True), gpflow.default_float())
        half = collapsed.root.solve(root, adjoint=True).numpy()
        noise_variance = float(self._noise_variance().numpy())
        return Residuals(self._provider, self._features, weights, half, noise_variance)

    @inherit_check_shapes
    def maximum_log_likelihood_objective(self) -> tf.Tensor:
        return self.elbo()

    @check_shapes(
        "return: []",
    )
    def elbo(self) -> tf.Tensor:
        """The collapsed lower bound on the log marginal likelihood (Titsias 2009, eq. 9)."""
        sums, collapsed = self._collapsed()
        value = bound(collapsed, sums, self._noise_variance())
        return tf.cast(value, gpflow.default_float())

    def _collapsed(self) -> tuple[DataSums, Collapsed]:
        features = self._features
        gram, diagonal, num_rows = self._provider.sums(features)
        sums = DataSums.from_gram(
            gram,
            tf.cast(features.mean.weights(), tf.float64),
            features.num_outputs,
            tf.reduce_sum(tf.cast(features.diagonal_factors(), tf.float64) * diagonal),
            num_rows,
            gram_gradient=bool(features.trainable()),
            charged=features.charged,
        )
        kuu = Kuu_operator(
            self.inducing_variable, self.kernel, jitter=gpflow.config.default_jitter()
        )
        return sums, collapse(kuu, sums)

    def _noise_variance(self) -> tf.Tensor:
        somewhere = tf.zeros([1, 1], gpflow.default_float())
        return tf.cast(tf.reshape(self.likelihood.variance_at(somewhere), []), tf.float64)

    def _whitened_q(self) -> tuple[tf.Tensor, tf.Tensor]:
        mean, root = optimal_q(self._collapsed()[1], self._noise_variance())
        dtype = gpflow.default_float()
        return tf.cast(mean, dtype), tf.cast(root, dtype)[None]

    @check_shapes(
        "return: [M, P]",
    )
    def whitened_mean(self) -> tf.Tensor:
        """The mean of the optimal q, of variables that are independent and of variance one in the
        prior: how much each feature explains."""
        return self._whitened_q()[0]

    @check_shapes(
        "return[0]: [M, P]",
        "return[1]: [M, M]",
    )
    def compute_qu(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean and covariance of the optimal q(u); the covariance is that of every output."""
        _, collapsed = self._collapsed()
        mean, root = optimal_q(collapsed, self._noise_variance())
        mean, root = collapsed.root.matmul(mean), collapsed.root.matmul(root)
        dtype = gpflow.default_float()
        return tf.cast(mean, dtype), tf.cast(tf.matmul(root, root, transpose_b=True), dtype)

    @inherit_check_shapes
    def predict_f(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Mean and (co)variance of f at new points, everything computed anew.

        :meth:`posterior` keeps what does not depend on the points.
        """
        posterior = self.posterior(PrecomputeCacheType.NOCACHE)
        return posterior.fused_predict_f(Xnew, full_cov, full_output_cov)

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

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> Any:
        """What checkpoints hold. A SavedModel would be written, and then fail where it is served:
        the sums are looked up in this process.

        :raises ValueError: For a SavedModel.
        """
        if save_type == "savedmodel":
            raise ValueError(
                "StructuredSGPR cannot be in a SavedModel: its functions look up sums that are in "
                "this process. Save model.to_svgp(), or a function of model.posterior(), which "
                "hold what predictions need."
            )
        return super()._trackable_children(save_type, **kwargs)

    def to_svgp(self) -> gpflow.models.SVGP:
        """A stock ``gpflow.models.SVGP`` with the optimal q, whitened, to serve predictions from or
        to train further with minibatches. It holds no data, and shares the kernel, the likelihood,
        the mean function and the inducing variable with this model."""
        q_mu, q_sqrt = self._whitened_q()
        num_outputs = self.num_latent_gps
        return gpflow.models.SVGP(
            self.kernel,
            self.likelihood,
            self.inducing_variable,
            mean_function=self.mean_function,
            num_latent_gps=num_outputs,
            q_mu=q_mu,
            q_sqrt=tf.tile(q_sqrt, [num_outputs, 1, 1]),
            whiten=True,
            num_data=self.num_data,
        )


def _warn_of_rows(likelihood: Gaussian, features: Contributions, X: Any, Y: Any) -> None:
    """Of the first rows that are read."""
    # Rows outside of an interval are refused in the pass: nothing is to be said of them here.
    warn_of_data(Parts(features.kernel, likelihood, features.mean_function, None), X, Y)
