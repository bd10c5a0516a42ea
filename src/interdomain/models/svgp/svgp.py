"""``SVGP``: a sparse variational GP with a given q, whose bound factorises each Kuu once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import gpflow
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import RegressionData, TensorType
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from gpflow.mean_functions import MeanFunction
from gpflow.posteriors import PrecomputeCacheType

from ..._arguments import choice, instance, integer
from ..._tracing import unconverted
from ...core.functional_rows import acted_mean
from ...posteriors.marginals import outputs_of
from .log_concave import require_log_concave
from .q import Q, q_attribute


class SVGP(gpflow.models.SVGP):
    """A sparse variational GP with a given variational distribution q.

    Use it like a ``gpflow.models.SVGP``. The bound and its gradient take one factorisation of each
    Kuu; GPflow takes two. :class:`AdditiveSVGP`, :class:`HVGP` and :class:`OrthogonalSVGP` are
    SVGPs that make q from their arguments.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = idm.kernels.SphericalMatern32()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=3)
    >>> q = idm.models.JointQ(kernel, harmonics, q_diag=True)
    >>> model = idm.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), q, num_data=100)
    >>> model.predict_f(np.zeros([5, 2]))[0].shape
    TensorShape([5, 1])

    :param kernel: The kernel that q was made for.
    :param likelihood: Any likelihood of GPflow.
    :param q: A :class:`JointQ`, :class:`QPerBlock` or :class:`OrthogonalQ`.
    :param mean_function: The mean function, which is added to f.
    :param num_data: The number of rows of the whole data set, if minibatches are used.
    :param charge: The term that is subtracted from the bound for the prior variance r of each row
        that the inducing variables do not explain. "trace" subtracts ``r / (2 sigma^2)`` under
        Gaussian noise, as GPflow. "log" subtracts ``log(1 + r / sigma^2) / 2``, a tighter bound
        (Titsias 2025; Bui et al. 2025), in which q(f | u) has a share of the variance r. For other
        likelihoods the share is ``1 / (1 + beta r)``, where beta is minus the second derivative of
        the row's expected log-likelihood; or 1 if the bound is then higher. With "log", training
        does not raise the noise or the lengthscales to compensate for too few variables; a step
        takes longer. Predictions are made in the same way.

        The charge "log" requires a log-concave likelihood; for others its value can exceed the
        evidence. ``Gaussian``, ``Softmax``, ``Poisson``, ``Exponential``, ``Gamma`` with their
        default link, ``Bernoulli(invlink=tf.sigmoid)``, and ``SwitchedLikelihood`` of these are
        log-concave. ``Bernoulli`` with its default link is not: GPflow keeps probabilities above
        1e-3. Give your own likelihood an attribute ``log_concave = True`` if it is log-concave in
        all latent GPs together.
    :raises ValueError: If an argument has the wrong type; if ``num_data`` is not a positive
        integer; or if ``charge`` is "log" and the likelihood is not known to be log-concave.
    """

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Likelihood,
        q: Q,
        *,
        mean_function: MeanFunction | None = None,
        num_data: int | TensorType | None = None,
        charge: Literal["trace", "log"] = "trace",
    ) -> None:
        instance("q", q, Q, "a q of interdomain.models", "pass for example JointQ(kernel, Z)")
        instance("kernel", kernel, Kernel, "a GPflow kernel")
        instance("likelihood", likelihood, Likelihood, "a GPflow likelihood")
        if mean_function is not None:
            remedy = "pass one of gpflow.mean_functions"
            instance("mean_function", mean_function, Callable, "a function of X", remedy)
            mean_function = acted_mean(mean_function, kernel)
        if num_data is not None and not isinstance(num_data, (tf.Tensor, tf.Variable)):
            num_data = integer("num_data", num_data, at_least=1)
        gpflow.models.GPModel.__init__(self, kernel, likelihood, mean_function, q.num_latent_gps)
        self.q = q
        self.num_data = num_data
        self.charge = choice("charge", charge, ("trace", "log"))
        if charge == "log":
            require_log_concave(likelihood)

    inducing_variable = q_attribute("inducing_variable", "The inducing variables u of q.")
    q_mu = q_attribute("q_mu", "The mean of q, ``[M, L]``; with one q per block, a list of means.")
    q_sqrt = q_attribute(
        "q_sqrt", "The root of the covariance of q, ``[L, M, M]``; or a list of roots."
    )
    whiten = q_attribute("whiten", "Whether q is over the whitened variables.")
    variational_parameters = q_attribute(
        "variational_parameters", "The pairs (q_mu, q_sqrt) for ``NaturalGradient.minimize``."
    )

    @unconverted
    def posterior(
        self, precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR
    ) -> Any:
        """The posterior, for repeated predictions, with the caches of GPflow.

        :raises ValueError: If training has broken the invariance of a harmonic kernel.
        """
        return self.q.posterior(self.kernel, self.mean_function, precompute_cache)

    @unconverted
    def prior_kl(self) -> tf.Tensor:
        """The KL divergence of q from the prior. A whitened q needs no factorisation."""
        return self.q.prior_kl(self.kernel)

    @inherit_check_shapes
    def elbo(self, data: RegressionData) -> tf.Tensor:
        """The evidence lower bound, with one factorisation of each Kuu for all terms."""
        X, Y = data
        if self.charge == "log":
            expectations, kl = self._tighter_expectations(X, Y)
        else:
            mean, variance, kl = self.q.marginals_and_kl(self.kernel, X, self.mean_function)
            expectations = self.likelihood.variational_expectations(X, mean, variance, Y)
        scale = tf.cast(1.0, kl.dtype)
        if self.num_data is not None:
            scale = tf.cast(self.num_data, kl.dtype) / tf.cast(tf.shape(X)[0], kl.dtype)
        return tf.reduce_sum(expectations) * scale - kl

    def _tighter_expectations(self, X: TensorType, Y: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """The terms of rows for ``charge="log"``, and the KL divergence. With the prior variance r
        given u, q(f | u) has the variance v r for a share v. A term is an expected log density
        minus ``(v - 1 - log v) / 2`` for each latent GP.

        For log-concave likelihoods every v in (0, 1] gives a bound. Each row has its own v, so a
        minibatch estimates the bound without bias. Proof: let C be the covariance of all rows given
        u, whose diagonal is r. Let the multipliers ``beta_n >= 0`` maximise ``log det(I +
        diag(beta) C) - sum_n beta_n v_n r_n``, and let q(f | u) have the covariance ``(C^-1 +
        diag(beta))^-1``. At the maximum, its variances are at most ``v_n r_n``, and its KL
        divergence is half of the maximum. By Hadamard's inequality the maximum is at most that of
        ``sum_n log(1 + beta_n r_n) - beta_n v_n r_n``, which is ``sum_n v_n - 1 - log v_n``. The
        expectation of a concave function never rises with the variance, so the expectations at
        ``v_n r_n`` are at most those under this q. A single row whose expectation rises breaks the
        last step, for all rows.

        The share is ``1 / (1 + beta r)`` with ``beta = -2 dE/dr``, the best share under Gaussian
        noise, or 1 if the row's term is then higher. The choice uses separate expectations: Monte
        Carlo expectations in the bound are independent of it.
        """
        require_log_concave(self.likelihood)
        mean, variance, left, kl = self.q.latents_and_kl(self.kernel, X)

        def expectations(variance: tf.Tensor) -> tf.Tensor:
            shapes = {"full_cov": False, "full_output_cov": False}
            outputs = outputs_of(self.kernel, mean, variance, **shapes)
            moments = outputs[0] + self.mean_function(X), outputs[1]
            return self.likelihood.variational_expectations(X, *moments, Y)

        def charged(share: tf.Tensor) -> tf.Tensor:
            cost = tf.reduce_sum(share - 1 - tf.math.log(share), axis=-1) / 2
            return expectations(variance - (1 - share) * left) - cost

        with tf.GradientTape() as tape:
            tape.watch(variance)
            whole = expectations(variance)
        curvature = tf.nn.relu(-2 * tape.gradient(whole, variance))
        share = 1 / (1 + curvature * left)
        is_higher = tf.stop_gradient(charged(share) > whole)
        share = tf.where(is_higher[:, None], share, tf.ones_like(share))
        return charged(share), kl
