"""``DualSVGP``: a sparse model of any likelihood, whose q is computed and not trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gpflow
import numpy as np
import scipy.linalg
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from gpflow.mean_functions import MeanFunction
from gpflow.models.util import InducingPointsLike

from ..._arguments import Array, instance
from ..._targets import check_targets, number_of_latents
from ..._tracing import numpy_function, unconverted
from ...sums.features import Features
from ...sums.protocol import Latents
from ...sums.statistics import differing_parameter
from ..convertible import ConvertibleModel
from .row_sites import PassResult, SiteContributions
from .sites import Prior, Sites

_ROWS_OF_LEVEL = 10_000
"""The number of rows on which levels are searched, times the number of latent GPs."""


@dataclass
class _Remembered:
    """Results that a DualSVGP stores in one object, which is never replaced: compiled functions of
    the model would be traced again. They read nothing of the object.

    :ivar contributions: The :class:`.SiteContributions`, which computes the sites of rows.
    :ivar site_parameters: The values of the features' parameters for which the sites were computed.
    :ivar state: The parameters and sites at the last pass, with its ``result`` and ``features``.
    """

    contributions: SiteContributions | None = None
    site_parameters: dict[str, Array] = field(default_factory=dict)
    state: list[Array] = field(default_factory=list)
    result: PassResult | None = None
    features: Features | None = None


class DualSVGP(ConvertibleModel):
    """A sparse variational GP for any likelihood, whose q is computed in passes over the rows.

    Each row has a site: a Gaussian term in place of its likelihood. The prior times all sites is
    q, with a full covariance. A pass finds the sites that are tangent to the expected
    log-likelihoods at the present q; the q of these sites is a natural-gradient step of size one.
    A pass also computes the exact bound (Khan and Lin 2017; Adam, Chang, Khan and Solin 2021).
    Between passes the kernel's parameters are trained on sums over the sites, without data, at
    O(M^3) a step. Five to ten passes, without step sizes to choose, replace thousands of
    minibatches. The optimum is that of a ``gpflow.models.SVGP`` of equal parts.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> noise = np.random.default_rng(0).normal(size=X.shape)
    >>> Y = np.where(np.sin(5 * X) + 0.5 * noise > 0, 1.0, 0.0)
    >>> kernel = idm.kernels.SphericalMatern52()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 1, max_degree=10)
    >>> prior = idm.kernels.FiniteRank(kernel, harmonics)
    >>> likelihood = gpflow.likelihoods.Bernoulli()
    >>> model = idm.models.DualSVGP((X, Y), prior, likelihood, harmonics)
    >>> fitted = idm.fit(model, steps=5, progress=False)
    >>> probability, _ = model.predict_y(np.array([[0.3], [-0.3]]))
    >>> print(probability.numpy().round().ravel())
    [1. 0.]

    Before :func:`interdomain.fit`, q is the prior. The fit starts from sites that suit the data.

    **Features** may not depend on a trainable parameter: see :attr:`feature_parameters`. ``fit``
    trains such parameters on a subset and then freezes them. For harmonics they are
    ``weight_variances`` and ``bias_variance``; for inducing points, all of the kernel's parameters
    and the points. Waves of a box and additive features depend on no parameter.

    :param data: (X ``[N, D]``, Y ``[N, P]``): see :class:`StructuredSGPR`. NaN in Y is a missing
        value if your own likelihood leaves out such values and has an attribute ``allow_nan =
        True``.
    :param kernel: A kernel of one output, shared by the latent GPs.
    :param likelihood: Any likelihood of GPflow. If its expectations have no closed form, GPflow
        uses quadrature. Likelihoods that draw at random (Softmax) use the same draws in every pass.
        Newton's method trains the parameters of the likelihood between passes.
    :param inducing_variable: Any inducing variable that has covariances with the kernel, or points
        ``[M, D]``.
    :param mean_function: Zero by default. The parameters of constant and linear means are trained
        between passes, together with q.
    :param num_latent_gps: The number L of latent GPs. By default this is the likelihood's number,
        or one for each column of Y, without the column that selects a row's likelihood in
        ``SwitchedLikelihood``.
    :param batch_size: As for :class:`StructuredSGPR`, as is ``progress``.
    :raises ValueError: For arguments that are wrong or do not fit together; in a pass, for targets
        that the likelihood does not allow, and for rows as in :class:`StructuredSGPR`.
    """

    def __init__(
        self,
        data: Any,
        kernel: Kernel,
        likelihood: Likelihood,
        inducing_variable: InducingPointsLike,
        *,
        mean_function: MeanFunction | None = None,
        num_latent_gps: int | None = None,
        batch_size: int | None = None,
        progress: bool = True,
    ) -> None:
        instance("likelihood", likelihood, Likelihood, "a GPflow likelihood")
        super().__init__(
            data,
            kernel,
            likelihood,
            inducing_variable,
            mean_function,
            num_latents=lambda outputs: number_of_latents(likelihood, outputs, num_latent_gps),
            batch_size=batch_size,
            progress=progress,
        )
        _ = self._rows_at_hand  # an error for statistics: sites need rows
        self._sums_of_sites: tuple[tf.Variable, ...] = ()
        self._remembered = _Remembered()

    @property
    def num_data(self) -> int:
        """The number N of rows."""
        return self._rows_at_hand.count()

    def _traced_state(self) -> Any:
        """The features and the variables of the sites, which a compiled bound contains."""
        return self._features, self.site_variables()

    @property
    def sites(self) -> Sites:
        """The sums over the sites that determine q, as arrays; zero before the first step."""
        return Sites(*(variable.numpy() for variable in self.site_variables()))

    def assign_sites(self, sites: Sites) -> None:
        """Replace the sums over the sites, and thereby q, for the present features."""
        for variable, value in zip(self.site_variables(), sites, strict=True):
            variable.assign(value)

    def shrink_q(self, variance: float) -> None:
        """Set q to the prior with its covariance multiplied by ``variance``, to start from it.

        At a wide q, tangents to a likelihood have little curvature, and a step is too long.
        """
        none = Sites(*(np.zeros(shape) for shape in _shapes(self._features)))
        prior = self._features.sums.prior_gram(len(none.shifts) - self._features.num_inducing)
        precisions = none.precisions + (1 / variance - 1) * prior
        self.assign_sites(none._replace(precisions=precisions))

    def start(self, beyond: float = 0.0) -> bool:
        """Set the sites to tangents near the likelihood of each row, to start from them. The q of a
        row at which its site is tangent does not depend on other rows; see ``start.py``.

        :param beyond: The sites do not change if the best constant level of f is nearer to the
            prior mean than this number of prior standard deviations.
        :return: Whether the prior has to become wider to reach the level.
        :raises ValueError: For rows and targets that a pass refuses.
        """
        features, contributions = self._features, self._contributions()
        constant = getattr(self.mean_function, "b", getattr(self.mean_function, "c", None))
        learns_level = not features.mean.residual and getattr(constant, "trainable", False)
        learns = learns_level, bool(self.kernel.trainable_parameters)
        X, Y = self._rows_at_hand.draw(_ROWS_OF_LEVEL // self.num_latent_gps, 0)
        level, distance, is_far = contributions.level(X, Y, self.num_data, learns=learns)
        if distance < beyond:
            return False
        self.assign_sites(contributions.first_sites(self._rows_at_hand, level))
        return is_far

    def site_variables(self) -> tuple[tf.Variable, ...]:
        """The sums of :attr:`sites` as variables, which compiled functions read. They are reset if
        the number of features or the feature parameters have changed since the last pass."""
        features = self._features
        with tf.init_scope():
            known, values = self._sums_of_sites, features.values()
            if [tuple(v.shape) for v in known] != _shapes(features):
                known = tuple(tf.Variable(part, trainable=False) for part in self._first_sites())
            elif not differing_parameter(self._remembered.site_parameters, values):
                return known
            else:
                for variable, value in zip(known, self._first_sites(), strict=True):
                    variable.assign(value)
            self._sums_of_sites, self._remembered.site_parameters = known, values
        return known

    def _first_sites(self) -> Sites:
        """The initial sums over sites for new features: zeros."""
        return Sites(*(np.zeros(shape) for shape in _shapes(self._features)))

    def __getstate__(self) -> dict[str, Any]:
        remembered = replace(self._remembered, contributions=None, features=None)
        return {**super().__getstate__(), "_remembered": remembered}

    def _contributions(self) -> SiteContributions:
        features, known = self._features, self._remembered.contributions
        if known is None or not known.is_current(features, self.likelihood):
            known = SiteContributions(features, self.likelihood, self._columns[1])
            self._remembered.contributions = known
        return known

    def pass_over_data(self) -> PassResult:
        """The bound at the present q and parameters, and the sites that are tangent there.

        This takes a pass over the rows if anything has changed since the last pass.
        """
        state = [*(p.numpy() for p in self.parameters), *self.sites]
        last = self._remembered
        same = self._features is last.features and len(last.state) == len(state)
        result = last.result
        if result is None or not (same and all(map(np.array_equal, last.state, state))):
            result = self._pass()
            last.state, last.result, last.features = state, result, self._features
        return result

    def _pass(self) -> PassResult:
        return self._contributions().pass_over(self._rows_at_hand, self.q(), self.sites)

    def has_q(self) -> bool:
        """Whether the prior times the present sites is a Gaussian; sites of negative precision may
        outweigh the prior."""
        try:
            return self.q().is_finite()
        except tf.errors.InvalidArgumentError:
            return False

    def model_of(self, rows: tuple[Array, ...], kind: Any = None, **changes: Any) -> Any:
        model = super().model_of(rows, kind, num_latent_gps=self.num_latent_gps, **changes)
        model._remembered.contributions = self._contributions()
        return model

    def sites_of(self, X: Array, Y: Array) -> tuple[Array, Array]:
        """The precisions and shifts of the sites of rows at the present q, each ``[L, n]``.

        Negative precisions are set to zero, so that the prior times the sites is a Gaussian for any
        features.
        """
        check_targets(self.likelihood, Y)
        found = self._contributions().evaluate(X, Y, self.q())
        return found.precisions, found.shifts

    @check_shapes(
        "return: []",
    )
    @unconverted
    def elbo(self) -> tf.Tensor:
        """The evidence lower bound at the present q and parameters; see :meth:`pass_over_data`.

        The bound has no gradient. A compiled function makes the pass when it runs.
        """

        def value() -> Array:
            return np.asarray(self.pass_over_data().elbo, gpflow.default_float())

        if tf.executing_eagerly():
            return tf.constant(value())
        return tf.ensure_shape(numpy_function(value, [], gpflow.default_float()), [])

    @inherit_check_shapes
    @unconverted
    def maximum_log_likelihood_objective(self) -> tf.Tensor:
        """The log of the integral Z of the prior times the present sites, up to a constant.

        It is the objective of the kernel's parameters between passes. If the sites are tangent, its
        gradient equals the gradient of the bound.

        :raises ValueError: If features depend on a trainable parameter.
        """
        trainable = self._features.trainable()
        if trainable:
            raise ValueError(
                f"model: the features depend on {', '.join(trainable)}, trainable, and the sites "
                "belong to features; freeze these with gpflow.set_trainable(parameter, False), or "
                "train them on a subset first (interdomain.fit does)."
            )
        value = Prior(self._features).log_normaliser(self._site_tensors())
        return tf.cast(value, gpflow.default_float())

    @property
    def mean_is_residual(self) -> bool:
        """Whether the mean function is not zero, constant or linear. Its parameters are then not
        trained between passes."""
        return self._features.mean.residual

    def slopes_of_mean(self, variables: Sequence[tf.Variable]) -> tuple[Array, Array]:
        """The derivatives of log Z (:meth:`maximum_log_likelihood_objective`) by P parameters of
        the mean, ``[P]``, and minus the second derivatives, ``[P, P]``.

        :param variables: The variables of the parameters, in which the mean must be linear.
        """
        prior, sites = Prior(self._features), self._site_tensors()
        with tf.GradientTape(persistent=True) as tape:
            weights = tf.cast(self._features.mean.weights(), tf.float64)
            numbers = tf.reshape(tf.transpose(weights), [-1])
        zero = tf.UnconnectedGradients.ZERO
        parts = tape.jacobian(numbers, variables, zero, experimental_use_pfor=False)
        rows = [tf.reshape(tf.convert_to_tensor(part), [len(numbers), -1]) for part in parts]
        slopes, curvatures = zip(
            *(prior.slopes_of_mean(sites, number) for number in range(self.num_latent_gps)),
            strict=True,
        )
        jacobian = np.concatenate(rows, axis=1, dtype=np.float64)
        return (
            jacobian.T @ np.concatenate(slopes),
            jacobian.T @ scipy.linalg.block_diag(*curvatures) @ jacobian,
        )

    def _site_tensors(self) -> Sites:
        return Sites(*map(tf.convert_to_tensor, self.site_variables()))

    def latents(self) -> Latents:
        """Pairs of the collapsed posterior of each latent GP and a noise variance of one."""
        one = tf.ones([], tf.float64)
        return [(part, one) for part in Prior(self._features).latents(self._site_tensors())]


def _shapes(features: Features) -> list[tuple[int, ...]]:
    """The shapes of the sums in :class:`.Sites`."""
    size, latents = features.num_stacked, features.num_outputs
    gram = features.sums.gram_shape(size - features.num_inducing)
    return [(latents, *gram), (size, latents), (features.num_terms, latents)]
