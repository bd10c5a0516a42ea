"""Layers with a joint q, with a q for each summand, and with orthogonal inducing variables."""

from __future__ import annotations

from typing import Any

from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from .._arguments import instance
from ..core.finite_rank import FiniteRank
from ..families.sphere.activation_features import ActivationFeatures
from ..families.sphere.kernel import ZonalKernel
from ..svgp.initial_q import WithBlocksOfQ, WithJointQ
from ..svgp.orthogonal import WithOrthogonalQ
from .layer import Layer


class StructuredLayer(WithJointQ, Layer):
    """A layer with any inducing variable of this library, or inducing points.

    It takes the place of ``gpflux.layers.GPLayer``, and makes use of the structure of Kuu. Outputs
    with the same kernel and inducing variables share one factorisation; with
    :class:`~interdomain.inducing_variables.SphericalHarmonics` nothing is factorised. Harmonics and
    activation features suit hidden layers, because they cover hidden outputs anywhere: they need no
    box.

    >>> import gpflow, gpflux, numpy as np, interdomain as idm
    >>> from interdomain import deep
    >>> def layer(outputs, mean_function=None):
    ...     kernel = idm.kernels.SphericalMatern52()
    ...     harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, 4)
    ...     prior = idm.kernels.FiniteRank(kernel, harmonics)
    ...     return deep.StructuredLayer(
    ...         prior, harmonics, num_data=100, mean_function=mean_function, num_latent_gps=outputs
    ...     )
    >>> layers = [layer(2, gpflow.mean_functions.Identity()), layer(1)]
    >>> model = gpflux.models.DeepGP(layers, gpflow.likelihoods.Gaussian())
    >>> model.predict_f(np.zeros([5, 2]))[0].shape
    TensorShape([5, 1])

    :param kernel: A kernel with one output; or ``gpflow.kernels.SharedIndependent``,
        ``SeparateIndependent`` or ``LinearCoregionalization``.
    :param inducing_variable: One for all latent GPs, or
        :class:`interdomain.inducing_variables.SeparateIndependentInducingVariables`.
    :param num_data: The number of rows of the data set.
    :param mean_function: Added to the outputs; zero by default. (The default of a GPLayer is the
        identity.)
    :param q_diag: Whether the covariance of q is diagonal.
    :param q_mu: Initial values ``[M, L]``; zeros by default.
    :param q_sqrt: Initial values ``[L, M, M]``, or ``[M, L]`` if ``q_diag``; the identity by
        default. Inner layers train from values near zero.
    :param allow_large: Whether to make a q_sqrt of more than 4 GiB.
    :param num_latent_gps: The number L of latent GPs with the same prior, 1 by default; a kernel of
        several outputs determines it.
    :param whiten: Whether q is over the whitened variables.
    :param num_samples: The number of samples that are drawn when the layer's distribution becomes a
        tensor, along a new first axis; None for a single sample without that axis.
    :param full_cov: Whether samples are joint over the rows.
    :param full_output_cov: Whether samples are joint over the outputs.
    :param name: Of the layer, as tf_keras and error messages show it.
    :raises ValueError: If the kernel, the inducing variable and the mean function do not fit each
        other (the message has the name of the layer), ``num_latent_gps`` is not that of a kernel of
        several outputs, or q_mu or q_sqrt do not fit.
    """


class ActivationLayer(StructuredLayer):
    """A layer with activation features, of which activated deep GPs are made.

    Its posterior mean is what a neural network with one hidden layer computes (Dutordoir et al.
    2021; Tiao et al. 2023, section 2.3): with x~ the input with its bias, and r the radius by which
    it is divided to lift it to the sphere,

        mean(x) = r^p W^T sigma(Z x~ / r),    W = Kuu^{-1} E[u],

    with M hidden units of directions Z, and output weights W. sigma is the activation, truncated at
    the degree ``max_degree`` of the features (see
    :class:`~interdomain.inducing_variables.ActivationFeatures` for the reason).

    >>> import numpy as np, interdomain as idm
    >>> from interdomain import deep
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> kernel = idm.kernels.ArcCosine()
    >>> units = idm.inducing_variables.ActivationFeatures.from_data(kernel, X, 10, "relu", 6)
    >>> deep.ActivationLayer(kernel, units, num_data=50).predict(X)[0].shape
    TensorShape([50, 1])

    :param kernel: A zonal kernel.
    :param inducing_variable: Activation features for it.
    :param finite_rank: Whether to replace the prior by the part of the kernel that the units
        explain (:class:`~interdomain.kernels.FiniteRank`), as in a Bayesian output layer. Inner
        layers then pass on what the network computes, without the variance that the units do not
        explain.

    All other arguments are those of :class:`StructuredLayer`.

    :raises ValueError: If the kernel is not zonal or the inducing variable is of another kind;
        and as StructuredLayer.
    """

    def __init__(
        self,
        kernel: ZonalKernel,
        inducing_variable: ActivationFeatures,
        num_data: int,
        mean_function: MeanFunction | None = None,
        *,
        finite_rank: bool = False,
        **options: Any,
    ) -> None:
        instance("kernel", kernel, ZonalKernel, "a ZonalKernel", "pass for example ArcCosine()")
        remedy = "pass those, or make a StructuredLayer of other inducing variables"
        kind = "ActivationFeatures"
        instance("inducing_variable", inducing_variable, ActivationFeatures, kind, remedy)
        prior = FiniteRank(kernel, inducing_variable) if finite_rank else kernel
        super().__init__(prior, inducing_variable, num_data, mean_function, **options)


class AdditiveLayer(WithBlocksOfQ, Layer):
    """A layer with ``f = sum_t f_t`` and a mean-field ``q(u) = prod_t q_t(u_t)``.

    It is to :class:`StructuredLayer` what :class:`interdomain.models.AdditiveSVGP` is to an SVGP:
    with T blocks of m variables a step costs T factorisations of size m. With a
    :class:`~interdomain.kernels.HarmonicKernel` it is a layer of harmonic variational blocks (Sun
    et al. 2021, section 4.2), and inside a :class:`ConvolutionalLayer` a layer of their deep
    convolutional GPs (section 5).

    :param kernel: A sum, as AdditiveSVGP takes it; for several outputs also one of GPflow's
        multi-output kernels.
    :param inducing_variable: The blocks.
    :param q_mu: Initial values ``[m_t, L]`` for each block; zeros by default.
    :param q_sqrt: Initial values ``[L, m_t, m_t]``, or ``[m_t, L]`` if ``q_diag``, for each block;
        the identity by default.

    All other arguments are those of :class:`StructuredLayer`.

    :raises ValueError: As StructuredLayer; and if the blocks do not match the summands.
    """


class OrthogonalLayer(WithOrthogonalQ, Layer):
    """A layer with a base u and orthogonal variables v'.

    It is to :class:`StructuredLayer` what :class:`interdomain.models.OrthogonalSVGP` is to an SVGP:
    ``q(u, v') = q(u) q(v')`` (Shi et al. 2020; Tiao et al. 2023, eqs. 8-12). The orthogonal
    variables, such as inducing points, recover what harmonics or activation features leave out of
    the kernel.

    :param inducing_variable: The base u.
    :param orthogonal_inducing_variable: v; with the base it needs a
        :func:`interdomain.covariances.Kvu`.
    :param variant: "solve": q(v') has a covariance of its own; "odvgp": the prior's.
    :param q_mu_orthogonal: Initial values ``[K, L]``; zeros by default.
    :param q_sqrt_orthogonal: Initial values ``[L, K, K]``, or ``[K, L]`` if ``q_diag``; the
        identity by default.

    All other arguments are those of :class:`StructuredLayer`.

    :raises ValueError: As StructuredLayer; and if there is no covariance between the two sets, or
        the variant is unknown.
    :warns UserWarning: If u determines some or all of the orthogonal variables.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        orthogonal_inducing_variable: InducingVariables,
        num_data: int,
        mean_function: MeanFunction | None = None,
        **options: Any,
    ) -> None:
        options["orthogonal_inducing_variable"] = orthogonal_inducing_variable
        super().__init__(kernel, inducing_variable, num_data, mean_function, **options)

    @property
    def input_dim(self) -> int | None:
        """The number of columns of the inputs, as either set of inducing variables has it."""
        known: int | None = super().input_dim
        if known is None and hasattr(self, "orthogonal_inducing_variable"):
            return self._input_dim_of(self.orthogonal_inducing_variable)
        return known
