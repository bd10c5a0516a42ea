"""``VecchiaSGPR``: sparse regression, with nearest neighbours for the residuals of the features."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import RegressionData, TensorData
from gpflow.kernels import Kernel
from gpflow.kernels.base import ActiveDims
from gpflow.likelihoods import Gaussian, StudentT
from gpflow.mean_functions import MeanFunction
from gpflow.models.util import InducingPointsLike
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType
from gpflow.utilities.model_utils import assert_params_false

from ..._arguments import Array, IntArray, choice, integer, short
from ..._tracing import unconverted
from ...core.pairs import structure_of
from ...core.structures import dense_entries
from ...sums.features import Features
from ...sums.passes import statistics_of
from ...sums.row_batches import Rows, RowsInBatches
from ...sums.row_weights import with_weights
from ...sums.statistics import SufficientStatistics
from ..collapsed import CollapsedModel
from ..noise import in_units_of, noise_variance_of
from ..structured_sgpr.model import StructuredSGPR
from .local_kernel import LocalKernel
from .merging import checked_merge
from .parts import Block, NoFeatures, NoKernel, UsedParts, features_or, require_values
from .posterior import NeighbourPosterior
from .reweighting import ExpectedWeights, reweight, weights_of_new_rows
from .rows import OrderedRows, as_floats
from .starts import first_kernel
from .student_t import bound_of_weights, log_density
from .whitening import WhitenedFeatures

_OF_PREDICTIONS = 4
"""The default number of neighbours in predictions, divided by the number in training."""


class VecchiaSGPR(CollapsedModel):
    """Regression with features of any family, and a local GP on neighbours for their residuals.

    ``y = Kfu Kuu^{-1} u + g(x) + noise``: the features are a prior of finite rank
    (:class:`~interdomain.kernels.FiniteRank`), and g is a local GP. Vecchia's approximation
    replaces the joint density of the rows: in a random order, each row is conditioned on the
    ``num_neighbours`` nearest of the rows before it (Vecchia 1988; Datta et al. 2016; Katzfuss and
    Guinness 2021). Rows whitened by their neighbours are independent, and the collapsed regression
    of :class:`StructuredSGPR` applies to them. One pass takes O(N m^3 + N M m + N M^2) for m
    neighbours and M features. Training the features' kernel then needs no data. Without features,
    the model is a nearest-neighbour GP, and the exact GP if all previous rows are neighbours.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=[400, 2])
    >>> Y = X[:, :1] + np.sin(20 * X[:, 1:]) + 0.05 * rng.normal(size=[400, 1])
    >>> model = idm.models.VecchiaSGPR((X, Y), num_neighbours=10)
    >>> fitted = idm.fit(model, progress=False)
    >>> mean, variance = model.predict_y(np.array([[0.5, 0.3]]))
    >>> bool(abs(mean[0, 0] - 0.5 - np.sin(6)) < 4 * variance[0, 0] ** 0.5)
    True

    **The local kernel is chosen.** Without a ``local_kernel``, :func:`interdomain.fit` compares
    Matern12, Matern32, Matern52 and :class:`~interdomain.kernels.TwoScales`, each with a
    lengthscale for each column. The result's ``local_kernels`` reports the comparison, and later
    fits use the chosen kernel. A given kernel is not replaced, only trained. Lengthscales,
    variance and noise start from the data, so that the units of X and Y do not matter.

    **Neighbours** are searched with the lengthscales that the local kernel has when the model is
    built. If lengthscales change, :meth:`search` finds the neighbours again; ``fit`` calls it.
    Distances are Euclidean, in coordinates divided by the lengthscales. At fixed neighbours, the
    log marginal likelihood, :meth:`elbo`, has gradients with respect to all parameters. A gradient
    may store at most 2^27 numbers (1 GiB) for all rows.

    **Merged rows.** Rows at one place have the same f, and would be each other's nearest rows. They
    become one row: their weighted mean, with the noise of a mean. Evidence and predictions are
    exactly those of all rows. Nearby rows are merged as well, if f varies little between them.

    **Parts.** :func:`interdomain.fit` selects features, neighbours or both (:attr:`parts`), by the
    evidence with Schwarz's penalty for the kernels' parameters. Features and the number of
    neighbours stay as they were built, and :meth:`use` selects other parts.

    **Predictions** condition on the nearest of all rows, by default four times as many as in
    training, which improves predictions of smooth functions. After its turns,
    :func:`interdomain.fit` predicts rows from their nearest other rows, and fits the variance and
    the noise to the errors. With Gaussian noise, both are multiplied by one factor. With
    ``full_cov``, the joint covariance is that of the errors of these predictions, with the
    variances of ``predict_f`` on its diagonal.

    :param data: (X ``[N, D]``, Y ``[N, P]``), arrays or memory-mapped arrays. Outputs share all
        kernels and the noise.
    :param kernel: A kernel of finite rank, of one output; None for no features.
    :param inducing_variable: The features of the kernel; None for no features.
    :param local_kernel: The kernel of g: a stationary kernel of GPflow, or TwoScales. It may have a
        lengthscale for each column. None for the kernel that ``fit`` chooses; until then it is a
        Matern32 with lengthscales from the standard deviations of the columns.
    :param num_neighbours: The largest number m of neighbours. With 0 there is no local part, and
        the model is a StructuredSGPR.
    :param num_prediction_neighbours: The number of rows that predictions condition on; by default
        four times ``num_neighbours``. The memory of a batch grows with its square.
    :param local_inputs: "euclidean", or "degrees" for columns of latitude and longitude: neighbours
        are then nearest by great-circle distance, and lengthscales are chords of a globe of radius
        1.
    :param local_columns: The columns of X that a chosen local kernel uses, such as ``[0, 1]`` if
        the third has groups; all by default. A given kernel has ``active_dims``.
    :param noise_variance: The initial noise variance; by default a tenth of the variance of Y. Its
        lower bound is a millionth of the variance of Y.
    :param noise_weights: A positive number w for each row, ``[N]``: the noise variance of row n is
        ``s / w_n`` with ``s = likelihood.variance``. For known noise variances v pass ``1 / v`` and
        ``noise_variance=1.0``, and freeze ``likelihood.variance``. None for ones.
    :param merge: The rule for merging rows. "off": no rows. "exact": rows at one place. "auto":
        also nearby rows, if half of the rows or fewer remain; f then varies within a merged row by
        at most a tenth of the merged row's noise variance. A number: nearby rows whose distances
        from their mean, in lengthscales, do not exceed this radius.
    :param mean_function: Zero by default.
    :param likelihood: A Gaussian, as for :class:`StructuredSGPR`, or a
        ``gpflow.likelihoods.StudentT`` of one scale for targets with outliers. Student-t noise is a
        mixture of Gaussian noises ``s / lambda_n``. All outputs of a row share the weight
        ``lambda_n ~ Gamma(nu / 2, nu / 2)``. :meth:`elbo` is then a bound, for independent q of f
        and of the weights. The degrees of freedom, ``likelihood.df``, become a parameter above
        2.01, which is trained unless ``gpflow.set_trainable`` fixes it.
    :param batch_size: The number of rows in a batch; by default so many that 32 MB hold them.
    :param seed: The seed of the random order of the rows.
    :param progress: Whether passes that take more than a second show a progress bar.
    :raises ValueError: For arguments that are wrong or do not fit together; for rows whose
        distances in lengthscales overflow; in a pass, if the noise is too small for repeated rows.
    :ivar arrays: The rows X and Y, in the random order of the model.
    :ivar local_kernel: The given kernel, or the kernel that the last fit chose.
    :ivar local_inputs: "euclidean" or "degrees".
    :ivar chooses_kernel: Whether the next fit chooses the local kernel.
    """

    takes_weights = True

    def __init__(
        self,
        data: Any,
        kernel: Kernel | None = None,
        inducing_variable: InducingPointsLike | None = None,
        *,
        local_kernel: Kernel | None = None,
        num_neighbours: int = 30,
        num_prediction_neighbours: int | None = None,
        local_inputs: str = "euclidean",
        local_columns: ActiveDims | None = None,
        noise_variance: TensorData | None = None,
        noise_weights: Any = None,
        merge: str | float = "auto",
        mean_function: MeanFunction | None = None,
        likelihood: Gaussian | StudentT | None = None,
        batch_size: int | None = None,
        seed: int = 0,
        progress: bool = True,
    ) -> None:
        self._nothing = NoKernel(), NoFeatures()
        self._used, self._summed = UsedParts("both"), "both"
        self._num_neighbours = integer("num_neighbours", num_neighbours, at_least=0)
        require_values(kernel=kernel, local_kernel=local_kernel)
        kernel, inducing_variable = features_or(self._nothing, kernel, inducing_variable)
        if not isinstance(data, (tuple, list)):
            raise ValueError(
                f"data must be arrays (X, Y), in which neighbours are found, found a "
                f"{type(data).__name__}; pass arrays, memory-mapped ones if they are large."
            )
        rng = np.random.default_rng(integer("seed", seed, at_least=0))
        merge = checked_merge(merge)
        likelihood = in_units_of(
            data[1], noise_variance, likelihood, num_neighbours=self._num_neighbours
        )
        super().__init__(
            with_weights(data, noise_weights),
            kernel,
            likelihood,
            inducing_variable,
            mean_function,
            batch_size=batch_size,
            progress=progress,
        )
        if num_prediction_neighbours is not None:
            integer("num_prediction_neighbours", num_prediction_neighbours, at_least=1)
        self._given_for_predictions = num_prediction_neighbours
        self._batch_size, self._progress = batch_size, progress
        X, Y, given_weights = as_floats(self._rows_at_hand)
        order = rng.permutation(len(X))
        X, Y = X[order], Y[order]
        if given_weights is not None:
            given_weights = given_weights[order]
        self._ordered = OrderedRows(X, Y, given_weights, merge)
        self._expected = ExpectedWeights(np.ones(len(X)))
        self._weighed = self._expected.values
        self.chooses_kernel, self.local_inputs = local_kernel is None, local_inputs
        if local_kernel is not None and local_columns is not None:
            raise ValueError(
                f"local_columns must be None with a local_kernel, found {short(local_columns)}; "
                "pass the kernel with active_dims."
            )
        if local_kernel is None:
            local_kernel = first_kernel(X, Y, local_inputs, local_columns)
        self.local_kernel = local_kernel
        self.local.check(X)
        self.search(num_neighbours)

    @property
    def arrays(self) -> tuple[Array, Array]:
        """The rows X ``[N, D]`` and Y ``[N, P]``, in the random order of the model."""
        return self._ordered.X, self._ordered.Y

    @property
    def noise_weights(self) -> Array | None:
        """The noise weights of the rows, ``[N]``, in the order of :attr:`arrays`; None for ones."""
        return self._ordered.given_weights

    @property
    def ordered(self) -> OrderedRows:
        """The rows in the order of :attr:`arrays`, with their merged rows and neighbours."""
        return self._ordered

    @property
    def local(self) -> LocalKernel:
        """The local kernel with the coordinates in which distances are measured."""
        return LocalKernel(self.local_kernel, self.local_inputs)

    @property
    def num_neighbours(self) -> int:
        """The largest number m of neighbours."""
        return self._num_neighbours

    @property
    def num_prediction_neighbours(self) -> int:
        """The number of rows that predictions condition on."""
        return self._given_for_predictions or _OF_PREDICTIONS * self._num_neighbours

    def _entries(self, inducing_variable: Any, kernel: Kernel) -> int:
        """The number of entries of the sums over rows; with neighbours the sums are dense."""
        if self._num_neighbours:
            return dense_entries(int(inducing_variable.num_inducing))
        return super()._entries(inducing_variable, kernel)

    def _warn_of_scales(self, X: Array, Y: Array) -> None:
        """Warn of scales only without neighbours: otherwise :func:`interdomain.fit` warns."""
        if not self._num_neighbours:
            super()._warn_of_scales(X, Y)

    @property
    def all_parts(self) -> tuple[str, ...]:
        """The values that :attr:`parts` can have: "features", "neighbours" and "both", if the model
        was built with features and neighbours. "features" does not support Student-t noise."""
        if self.inducing_variable is self._nothing[1]:
            return ("neighbours",)
        if self.has_student_t_noise:
            return ("neighbours", "both")
        return ("features", "neighbours", "both") if self._num_neighbours else ("features",)

    @property
    def parts(self) -> str:
        """The parts that the evidence and predictions use: "features", "neighbours" or "both".

        The model uses all parts that it was built with, until :meth:`use` selects others.
        """
        return self._used.name if self._used.name in self.all_parts else self.all_parts[-1]

    @property
    def has_features(self) -> bool:
        """Whether the model uses features."""
        return self.parts != "neighbours"

    @property
    def has_neighbours(self) -> bool:
        """Whether the model uses neighbours."""
        return self.parts != "features" and self._num_neighbours > 0

    def use(self, parts: str) -> None:
        """Select the parts that the evidence and predictions use. The other part stays in the
        model, with its parameters. :func:`interdomain.fit` calls this method, too.

        :param parts: "features", "neighbours" or "both".
        :raises ValueError: If the model was built without the selected parts.
        """
        self._used.name = choice("parts", parts, self.all_parts, "build the model with both")
        if self.has_features and self._ordered.has_merged_nearby:
            self.search()  # features may vary between rows that were merged without them

    def search(self, num_neighbours: int | None = None) -> None:
        """Find the neighbours of all rows, for the present lengthscales of the local kernel.

        :param num_neighbours: A new number of neighbours; None for the present number.
        :raises ValueError: For 0, if the model cannot use features alone: see :attr:`all_parts`.
        """
        if num_neighbours is not None:
            least = 0 if "features" in self.all_parts else 1
            remedy = "a model without features, or with Student-t noise, needs neighbours"
            number = integer("num_neighbours", num_neighbours, at_least=least, remedy=remedy)
            self._num_neighbours, self._built_features = number, None
        self.search_rows()
        self._replace_sums()

    def search_rows(self, *, near: bool = True) -> None:
        """Merge rows and find their neighbours for the present parameters.

        :param near: Whether nearby rows may be merged.
        """
        noise = float(noise_variance_of(self.likelihood))
        self._ordered.search(self.local, noise, self._variations_beside, near=near)

    def _variations_beside(self, X: Array, X2: Array) -> Array:
        """The mean squares ``[n]`` of the differences of f minus g between rows X and X2."""
        mean = self.mean_function
        variations: Array = np.mean(np.square(mean(X) - mean(X2)), axis=1)
        if self.has_features:
            parts = (self.kernel(X, full_cov=False), self.kernel(X2, full_cov=False))
            variations = variations + parts[0] + parts[1] - 2 * np.diag(self.kernel(X, X2))
        return variations

    @property
    def has_student_t_noise(self) -> bool:
        """Whether the noise is a Student-t, so that each row has its own weight."""
        return isinstance(self.likelihood, StudentT)

    @property
    def expected_weights(self) -> Array:
        """The means of the weights lambda of rows under q, ``[N]``, in the order of :attr:`arrays`;
        ones for Gaussian noise."""
        return self._expected.values

    def weigh(self, expected_weights: Array) -> None:
        """Replace :attr:`expected_weights`, ``[N]``."""
        self._expected.values = self._weighed = np.asarray(expected_weights, np.float64)
        self._ordered.weigh(self._weighed)
        self._replace_sums()

    def reweight(self, passes: int = 100, *, tolerance: float = 1e-6) -> None:
        """Find the weights of rows with Student-t noise, at the present parameters.

        A pass predicts f at all rows and computes the optimal weights for these predictions. The
        passes are coordinate ascent: each raises the bound :meth:`elbo` if all rows are neighbours
        of each other. :func:`interdomain.fit` makes such passes, and trains the parameters.

        :param passes: The largest number of passes.
        :param tolerance: The largest relative change of a weight after which passes end.
        :raises ValueError: If the noise is Gaussian, which has no weights.
        """
        reweight(self, passes, tolerance)

    def extend(self, data: tuple[Any, Any], noise_weights: Any = None) -> None:
        """Add rows at the end of the order, at the present parameters.

        The sums over the new rows, given their neighbours among all rows, are added to the present
        sums. If a new row is at the place of a present row, all sums are computed again.

        :param data: (X ``[n, D]``, Y ``[n, P]``), with the columns of the present rows.
        :param noise_weights: The noise weights of the new rows, ``[n]``; None for ones.
        """
        statistics, rows = self.statistics, self._further_rows(data, noise_weights)
        X, Y, given = as_floats(rows)
        self.local.check(X)
        expected = np.ones(len(X))
        if self.has_student_t_noise:
            expected = weights_of_new_rows(self, X, Y, given)
        before = self._ordered.merged
        weights = expected if self.has_student_t_noise else None
        self._ordered = self._ordered.extended(X, Y, given, weights, self.local)
        self._expected.values = np.concatenate([self.expected_weights, expected])
        self._weighed = self._expected.values
        self._source = self._rows_of(self._ordered.parts)
        first, merged = len(before.X), self._ordered.merged
        added: RowsInBatches = rows
        if self.has_neighbours:
            added = self._rows(np.arange(first, len(merged.X)))
        # A new row at the place of another changes the merged row, and rows conditioned on it.
        changed = self.has_neighbours and not np.array_equal(merged.weights[:first], before.weights)
        self._replace_sums(None if changed else statistics + statistics_of(added, self._features))

    def _traced_state(self) -> Any:
        """The features and the merged rows, which a compiled bound contains."""
        return super()._traced_state(), self._ordered.merged

    def _replace_sums(self, statistics: SufficientStatistics | None = None) -> None:
        """Replace the sums by the sums over the present rows, for the parts that are used."""
        self._summed = self.parts
        self._sums.replace(self._rows(), statistics)

    def _rows(self, which: IntArray | None = None) -> RowsInBatches:
        """The rows, or the merged rows ``which``, with their neighbours if the model uses any."""
        if not self.has_neighbours:
            rows: Rows = self._rows_of(self._ordered.parts)
            return rows
        kernel, inducing_variable = self._block()
        structure = structure_of(inducing_variable, kernel)
        row_entries = structure.row_entries if structure else int(inducing_variable.num_inducing)
        return self._ordered.batches(
            self._num_neighbours,
            which,
            row_entries=row_entries,
            batch_size=self._batch_size,
            progress=self._progress,
        )

    @property
    def num_data(self) -> int:
        """The number N of rows."""
        return len(self.arrays[0])

    @property
    def _features(self) -> Features:
        # Other parts were selected, or a checkpoint has restored the parts or the weights of rows.
        if self._expected.values is not self._weighed:
            with tf.init_scope():
                self.weigh(self._expected.values)
        if self._summed != self.parts:
            with tf.init_scope():
                self._replace_sums()
        return super()._features

    def _block(self) -> Block:
        """The kernel and the features; an empty block if the model uses no features."""
        return (self.kernel, self.inducing_variable) if self.has_features else self._nothing

    def _feature_parts(self) -> tuple[tf.Module, ...]:
        local = (self.local_kernel, self.likelihood) if self.has_neighbours else ()
        return (*self._block(), self.mean_function, *local)

    def _make_features(self) -> Features:
        if not self.has_neighbours:
            return super()._make_features()
        return WhitenedFeatures(
            *self._block(),
            self.mean_function,
            self.num_columns,
            self.num_latent_gps,
            local=self.local,
            likelihood=self.likelihood,
            num_neighbours=self._num_neighbours,
        )

    def _noise_variance(self) -> tf.Tensor:
        """The noise variance, which is one for whitened rows."""
        return tf.ones([], tf.float64) if self.has_neighbours else super()._noise_variance()

    def model_of(self, rows: tuple[Array, ...], kind: Any = StructuredSGPR, **changes: Any) -> Any:
        """Make a model of the given rows, by default a StructuredSGPR, which has no neighbours."""
        model = super().model_of(rows, kind, **changes)
        model._built_features = None  # the features of this model are whitened
        return model

    def _elbo(self, *, refuse: bool = True) -> tf.Tensor:
        """The bound on the merged rows, plus the log density of the rows given the merged rows."""
        value, within = super()._elbo(refuse=refuse), self._ordered.merged.within
        if self.has_student_t_noise:
            df, outputs = self.likelihood.df, self.num_latent_gps
            value += tf.cast(bound_of_weights(self.expected_weights, df, outputs), value.dtype)
        if not self.has_neighbours or not within.rows:
            return value
        noise = noise_variance_of(self.likelihood)
        return value + tf.cast(within.log_density(noise, self.num_latent_gps), value.dtype)

    def weights(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The mean ``[M, P]`` and a root ``[M, M]`` of the covariance of the features' weights."""
        if self.has_features:
            return super().weights()
        return tf.zeros([0, self.num_latent_gps], tf.float64), tf.zeros([0, 0], tf.float64)

    def _mean_of_weights(self) -> Array:
        return super()._mean_of_weights() if self.has_features else self.weights()[0].numpy()

    @unconverted
    def posterior(
        self,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
    ) -> AbstractPosterior:
        """The posterior, for fast predictions: see ``gpflow.models.SGPR.posterior``."""
        if not self.has_neighbours:
            return super().posterior(precompute_cache)
        return self.posterior_of_neighbours(self.num_prediction_neighbours, precompute_cache)

    def posterior_of_neighbours(
        self,
        number: int,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
    ) -> NeighbourPosterior:
        """The posterior that conditions each new row on its ``number`` nearest rows."""
        features = self._features
        assert isinstance(features, WhitenedFeatures)
        nearest = partial(self._ordered.neighbours.nearest, number=number)
        rows = self._ordered.merged
        return NeighbourPosterior(features, nearest, rows, self.weights, precompute_cache)

    @inherit_check_shapes
    def predict_log_density(
        self, data: RegressionData, full_cov: bool = False, full_output_cov: bool = False
    ) -> tf.Tensor:
        """The log predictive density of new rows. With Student-t noise it is joint over the outputs
        of a row, which share a weight. A quadrature accurate to rounding integrates it out."""
        if not self.has_student_t_noise:
            return super().predict_log_density(data, full_cov, full_output_cov)
        assert_params_false(
            self.predict_log_density, full_cov=full_cov, full_output_cov=full_output_cov
        )
        X, Y = data
        likelihood, moments = self.likelihood, self.predict_f(X)
        return log_density(*moments, likelihood.scale, likelihood.df, tf.convert_to_tensor(Y))

    def check_rows(self, X: Array) -> None:
        """Check new rows before predictions.

        :raises ValueError: For rows with another number of columns than the model's rows, and for
            rows that the local kernel does not accept.
        """
        if self.has_neighbours:
            self.local.check_new(X, self.num_columns)
