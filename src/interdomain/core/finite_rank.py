"""The kernel ``FiniteRank``: the part of a kernel that a set of features explains."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, MultioutputKernel, Sum
from gpflow.kernels.base import ActiveDims, NormalizedActiveDims

from .._arguments import IntArray, instance, refusal
from .columns import WholeRows, kernel_method, scaled_parts
from .decomposed import DecomposedInducingVariables, DecomposedKernel
from .diagonals import DiagonalTerm, explained_variances
from .dictionaries import Dictionary
from .family import Block, InterDomainInducingVariables, is_subset
from .functional_rows import rows_of
from .pairs import as_family, base_kernel
from .parameters import check_no_noise, single_output


class FiniteRank(WholeRows):
    """The finite-rank prior of a set of features: ``K(x, x') = Kfu Kuu^{-1} Kuf``.

    It is the part of a kernel that the features explain, and the prior of a Bayesian linear model
    with one weight for each feature. A sparse model with the same features is then exact
    (``Qff = Kff``): its bound has no penalty for what the features miss, and rough kernels cost no
    accuracy. The price is the uncertainty where there are no data: this prior has no uncertainty
    about functions that the features cannot represent.

    With spherical harmonics up to some degree it seems to be the model of the experiments of
    Dutordoir et al. 2020: the paper does not say so, but its figures agree with this prior alone.
    Any kernel and inducing variable with covariances can be used, such as harmonics, box features,
    points or patches. If Kuu is diagonal, ``gpflow.models.SVGP`` and this library's models need no
    factorisation of Kuu; ``gpflow.models.SGPR`` factorises every Kuu.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = idm.kernels.SphericalMatern52()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=4)
    >>> prior = idm.kernels.FiniteRank(kernel, harmonics)
    >>> model = gpflow.models.SVGP(prior, gpflow.likelihoods.Gaussian(0.1), harmonics)
    >>> X = np.ones([1, 2])
    >>> bool(prior(X, full_cov=False) < kernel(X, full_cov=False))
    True

    A model must have this kernel's ``inducing_variable``, or some of its features (harmonics of
    fewer degrees, fewer frequencies). ``gpflow.inducing_variables.InducingPoints`` may be at any
    points. GPflow's kernels of several outputs can wrap a FiniteRank like any other kernel. For a
    sum of kernels, make a FiniteRank of each summand.

    :param kernel: The kernel of the features: any kernel of one output. The FiniteRank has its
        parameters, and its ``active_dims`` select the columns.
    :param inducing_variable: An inducing variable with which the kernel has covariances.
    :raises ValueError: If ``kernel`` is not a kernel of one output or ``inducing_variable`` is not
        an inducing variable; if a part of the kernel is GPflow's ``White``; if they are a sum and
        its blocks of features; or if they have no covariances. The message names the kernels with
        which the features have covariances.
    """

    def __init__(
        self, kernel: Kernel, inducing_variable: InducingVariables, *, name: str | None = None
    ) -> None:
        kernel = single_output("kernel", kernel)
        check_no_noise("kernel", kernel)
        instance("inducing_variable", inducing_variable, InducingVariables, "an inducing variable")
        if rows_of(kernel) is not None:
            remedy = "pass Functional(FiniteRank(kernel, inducing_variable), functionals)"
            raise refusal("kernel", "be the kernel of f", type(kernel).__name__, remedy)
        is_sum = isinstance(kernel, (Sum, DecomposedKernel))
        has_blocks = isinstance(inducing_variable, DecomposedInducingVariables)
        fits_sum = not has_blocks and isinstance(kernel, getattr(inducing_variable, "kernels", ()))
        if is_sum and not (fits_sum or isinstance(inducing_variable, InducingPoints)):
            raise ValueError(
                f"kernel must not be a sum with a block of features for each summand, found "
                f"{type(kernel).__name__} with {type(inducing_variable).__name__}; pass a sum of "
                "kernels of finite rank, FiniteRank(first, first_block) + FiniteRank(second, "
                "second_block)."
            )
        check_covariance(inducing_variable, base_kernel(inducing_variable, kernel))
        super().__init__(name=name)
        self.kernel = kernel
        self.inducing_variable = inducing_variable

    @property
    def active_dims(self) -> NormalizedActiveDims:
        """The ``active_dims`` of the kernel of the features."""
        return self.kernel.active_dims

    @active_dims.setter
    def active_dims(self, value: ActiveDims) -> None:
        self.kernel.active_dims = value

    @kernel_method
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        features, kernel = as_family(self.inducing_variable, self.kernel)
        return features.explained(kernel, X, X2)

    @kernel_method
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return explained_variances(*as_family(self.inducing_variable, self.kernel), X)

    def diagonal_terms(self) -> list[DiagonalTerm] | None:
        """The terms of the diagonal, from the family of the features; None if it has no terms."""
        features, kernel = as_family(self.inducing_variable, self.kernel)
        return features.explained_terms(kernel)

    def scaled_parts(self) -> list[Kernel]:
        """The parts of the features' kernel that divide columns of X by a lengthscale."""
        return scaled_parts(self.kernel)

    def base_for(self, inducing_variable: InducingVariables) -> Kernel:
        """The kernel of the features, for an inducing variable that contains only these features.

        :raises ValueError: If the inducing variable has other features.
        """
        features = self.inducing_variable
        if inducing_variable is not features and not is_subset(inducing_variable, features):
            name, needed = type(inducing_variable).__name__, type(features).__name__
            raise ValueError(
                "inducing_variable must be that of the FiniteRank kernel, or some of its features, "
                f"found {name} with others than its {needed}; pass kernel.inducing_variable, or "
                "make the kernel as FiniteRank(kernel, inducing_variable)."
            )
        return self.kernel


def check_covariance(inducing_variable: InducingVariables, kernel: Kernel) -> None:
    """Check that the family or GPflow's ``Kuf`` defines a covariance; a ValueError otherwise."""
    kinds = type(inducing_variable), type(kernel), object
    covariance = Kuf.dispatch(*kinds)
    if isinstance(inducing_variable, InterDomainInducingVariables):
        if covariance is Kuf.dispatch(InterDomainInducingVariables, Kernel, object):
            check_kernel(inducing_variable, kernel)
    elif covariance is None:
        raise ValueError(
            f"kernel: there is no covariance between {kinds[0].__name__} and {kinds[1].__name__}; "
            "pass a kernel and an inducing variable that GPflow's Kuf is registered for."
        )


def check_kernel(inducing_variable: InterDomainInducingVariables, kernel: Kernel) -> None:
    """Check that the family supports the kernel; otherwise a ValueError that names a remedy."""
    if isinstance(kernel, inducing_variable.kernels):
        return
    name, kernel_name = type(inducing_variable).__name__, type(kernel).__name__
    if isinstance(kernel, MultioutputKernel):
        remedy = (
            "it has several outputs: pass both to a model, which takes them as they are; where Kuu "
            "and Kuf are needed, wrap it in interdomain.inducing_variables."
            f"SharedIndependentInducingVariables({name}(...)) or "
            "SeparateIndependentInducingVariables([...])"
        )
    elif isinstance(kernel, (Sum, DecomposedKernel)):
        remedy = (
            f"the kernel is a sum of {len(kernel.kernels)}: pass SumInducingVariables([...]) with "
            "an inducing variable for each of its parts"
        )
    else:
        fitting = " or ".join(kind.__name__ for kind in inducing_variable.kernels)
        remedy = f"use {inducing_variable.fitting_kernels or fitting}"
    raise ValueError(
        f"kernel: there is no covariance between {name} and {kernel_name}; {remedy}, see the "
        f"docstring of {name}."
    )


def base_of(kernel: Kernel) -> Kernel:
    """The kernel of the features of a :class:`FiniteRank`; any other kernel itself."""
    while isinstance(kernel, FiniteRank):
        kernel = kernel.kernel
    return kernel


def is_complete(inducing_variable: InducingVariables | None, kernel: Kernel) -> bool:
    """Whether the inducing variable has all features of a finite-rank kernel; for a sum, whether
    each block has all features of its summand. Then ``Kff = Kfu Kuu^{-1} Kuf``."""
    if rows_of(kernel) is not None:  # functionals of a prior
        return is_complete(inducing_variable, kernel.prior)
    if type(kernel) is Sum and isinstance(inducing_variable, DecomposedInducingVariables):
        blocks = inducing_variable.inducing_variables
        return len(blocks) == len(kernel.kernels) and all(map(is_complete, blocks, kernel.kernels))
    if not isinstance(kernel, FiniteRank):
        return False
    features = kernel.inducing_variable
    if inducing_variable is None or inducing_variable is features:
        return inducing_variable is features
    return is_subset(inducing_variable, features) and is_subset(features, inducing_variable)


def block_of(dictionary: Dictionary, atoms: IntArray) -> Block:
    """Some atoms of a dictionary, and their kernel: a FiniteRank if the dictionary's prior is."""
    features, kernel = dictionary.features(atoms)
    return features, FiniteRank(kernel, features) if dictionary.finite_rank else kernel
