"""The kernel ``Functional``: rows are linear functionals of f, with the features of any family."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.functions import MeanFunction
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum
from gpflow.kernels.base import ActiveDims, NormalizedActiveDims

from .._arguments import Array, refusal
from ..linalg import StructuredOperator
from .acting import acted_features
from .columns import WholeRows, as_rows, kernel_method, scaled_parts
from .combined import num_inducing
from .decomposed import DecomposedKernel, flat_blocks
from .dictionaries import Dictionary
from .family import Block, BlockBatch, InterDomainInducingVariables
from .finite_rank import FiniteRank
from .functional_covariances import covariances, variances
from .functional_dictionary import FunctionalDictionary
from .functional_rows import FunctionalRows, acted_mean
from .functionals import LinearFunctional
from .pairs import (
    Kuu_operator,
    StackedBlocks,
    as_family,
    boxed_parts,
    num_columns_of_any,
    settings_of,
    structure_of,
)
from .parameters import check_no_noise, single_output
from .radial import check_slopes
from .structures import FeatureStructure


class Functional(WholeRows):
    """The kernel of rows that are linear functionals of f: ``K(x, x') = cov(L f(x), L' f(x'))``.

    f has the prior's kernel. With several functionals, the last column of X holds the number of
    each row's functional, as for ``gpflow.kernels.Coregion``. With one there is no such column. The
    prior sees the other columns of X, without columns of widths (see
    :class:`interdomain.functionals.Mean`); its own ``active_dims`` count these inputs.

    The inducing variables are those of the prior, of any family, and stay functionals of f. A
    model of sums over hours then predicts values, slopes, or means over any day.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> from interdomain.functionals import Derivative, Mean, Value
    >>> kernel = gpflow.kernels.Matern32(lengthscales=0.5)
    >>> points = gpflow.inducing_variables.InducingPoints(np.linspace(0, 3, 8)[:, None])
    >>> prior = idm.kernels.FiniteRank(kernel, points)
    >>> rows = idm.kernels.Functional(prior, [Value(), Mean([1.0]), Derivative(0)])
    >>> X = np.array([[1.5, 1.0], [1.5, 0.0], [1.5, 2.0]])  # a mean, a value and a slope at 1.5
    >>> rows(X).shape
    TensorShape([3, 3])

    Under a finite-rank prior, and sums of finite-rank priors, all covariances are exact, up to the
    quadrature of features without a closed form. Slopes under any other (full) prior need GPflow's
    stationary kernels, their sums or products. Averages are exact if each stationary kernel is
    averaged in one column, or is a squared exponential. Averages under all other kernels are sums
    over weighted points.

    :param prior: The kernel of f, of one output.
    :param functionals: A functional of :mod:`interdomain.functionals`, or a list.
    :param active_dims: The columns of X that hold inputs, widths and numbers, in this order; all by
        default.
    :raises ValueError: If the prior is not a kernel of one output, or a part of it is GPflow's
        ``White``; if a functional is not one of :mod:`interdomain.functionals`; or for a slope that
        does not exist under the prior. Calls raise it if the number of a row is that of no
        functional (in a graph, the error is an InvalidArgumentError), and for functionals that the
        prior does not support.
    """

    def __init__(
        self,
        prior: Kernel,
        functionals: Any,
        *,
        active_dims: ActiveDims | None = None,
        name: str | None = None,
    ) -> None:
        prior = single_output("prior", prior)
        if isinstance(prior, Functional):
            remedy = "pass the kernel of f"
            raise refusal("prior", "be the kernel of values of f", "a Functional", remedy)
        check_no_noise("prior", prior)
        self.rows = FunctionalRows(functionals)
        check_slopes(prior, self.rows.functionals)
        super().__init__(name=name)
        self.active_dims = slice(None) if active_dims is None else active_dims
        self.prior = prior
        self._views = SimpleNamespace(summands=None)  # no module, so that GPflow lists no copies

    @property
    def active_dims(self) -> NormalizedActiveDims:
        """The columns of X that hold inputs, widths and numbers."""
        dims: NormalizedActiveDims = self.rows.active_dims
        return dims

    @active_dims.setter
    def active_dims(self, value: ActiveDims) -> None:
        self.rows.active_dims = self._normalize_active_dims(value)

    @property
    def functionals(self) -> tuple[LinearFunctional, ...]:
        """The functionals, in the order of their numbers."""
        return self.rows.functionals

    def mean_function(self, mean_function: MeanFunction) -> MeanFunction:
        """The mean of rows for a mean function of f, such as ``gpflow.functions.Constant``. This
        library's models call this method themselves; pass the result to GPflow's models."""
        return acted_mean(mean_function, self)

    @property
    def summands(self) -> tuple[Functional, ...]:
        """The kernels of the summands of the prior, with the same functionals; empty if the prior
        is no sum."""
        if self._views.summands is None:
            is_sum = isinstance(self.prior, (Sum, DecomposedKernel))
            parts = self.prior.kernels if is_sum else ()
            self._views.summands = tuple(self.with_prior(part) for part in parts)
        summands: tuple[Functional, ...] = self._views.summands
        return summands

    def with_prior(self, prior: Kernel) -> Functional:
        """The kernel of the same functionals for another prior."""
        return Functional(prior, self.functionals, active_dims=self.active_dims)

    @kernel_method
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        if self.summands:
            return tf.add_n([part.K(X, X2) for part in self.summands])
        if isinstance(self.prior, FiniteRank):
            features = ActedFeatures(self.prior.inducing_variable)
            return features.explained(self, X, X2)
        return covariances(self.prior, self.rows, X, X2)

    @kernel_method
    def K_diag(self, X: TensorType) -> tf.Tensor:
        if self.summands:
            return tf.add_n([part.K_diag(X) for part in self.summands])
        if isinstance(self.prior, FiniteRank):
            return ActedFeatures(self.prior.inducing_variable).explained_diagonal(self, X)
        return variances(self.prior, self.rows, X)

    def acting_family(self, inducing_variable: InducingVariables) -> InterDomainInducingVariables:
        """The features of the prior, on which the functionals act; or a family of this kernel."""
        if Functional in getattr(inducing_variable, "kernels", ()):
            family: InterDomainInducingVariables = inducing_variable
            return family
        return ActedFeatures(inducing_variable)

    def scaled_parts(self) -> list[Kernel]:
        """A list of this kernel, if the prior has parts that divide inputs by a lengthscale."""
        return [self] if scaled_parts(self.prior) else []

    def validate_rows(self, name: str, X: Array) -> None:
        """Check rows ``[..., D]`` of all columns of X; a ValueError if a row is not valid."""
        X = X.reshape(-1, X.shape[-1])
        self.rows.validate(name, X)
        for part in scaled_parts(self.prior):
            if hasattr(part, "validate_rows"):
                part.validate_rows(name, self.rows.places(X))


class ActedFeatures(InterDomainInducingVariables):
    """The features of a prior, on which the functional of each row acts.

    :param inducing_variable: An inducing variable of the prior of a :class:`Functional` kernel.
    """

    kernels = (Functional,)

    def __init__(self, inducing_variable: InducingVariables) -> None:
        super().__init__()
        self._features = inducing_variable

    @property
    def num_inducing(self) -> int | tf.Tensor:
        return num_inducing(self._features)

    def Kuf(self, kernel: Functional, X: TensorType) -> tf.Tensor:
        """The functionals of the features, ``[M, batch..., N]``."""
        return self._acted(kernel, X, in_domain=False)

    def Kuf_in_domain(self, kernel: Functional, X: TensorType) -> tf.Tensor:
        return self._acted(kernel, X, in_domain=True)

    def _acted(self, kernel: Functional, X: TensorType, *, in_domain: bool) -> tf.Tensor:
        X = tf.convert_to_tensor(X)
        act = partial(acted_features, self._features, kernel.prior, in_domain=in_domain)
        functionals, rows = kernel.functionals, as_rows(X, self.num_columns(kernel))

        def of_kind(number: int, places: Any) -> tf.Tensor:
            return tf.linalg.matrix_transpose(act(functionals[number], places))

        if kernel.rows.has_numbers:
            features = tf.linalg.matrix_transpose(kernel.rows.by_kind(rows, of_kind))
        else:
            features = act(functionals[0], kernel.rows.split(rows)[0])
        if X.shape.rank == 2:
            return features
        return tf.reshape(features, tf.concat([tf.shape(features)[:1], tf.shape(X)[:-1]], axis=0))

    def Kuu(self, kernel: Functional, *, jitter: float = 0.0) -> StructuredOperator:
        """Kuu of the prior: functionals of rows do not change u."""
        return Kuu_operator(self._features, kernel.prior, jitter=jitter)

    def dense_Kuu(self, kernel: Functional, jitter: float) -> tf.Tensor:
        features, prior = as_family(self._features, kernel.prior)
        return features.dense_Kuu(prior, jitter)

    def structure(self, kernel: Functional) -> FeatureStructure | None:
        """The structure of the prior's features under the functionals; None for dense sums."""
        inner = structure_of(self._features, kernel.prior)
        return None if inner is None else inner.acted(self._features, kernel)

    def explained_diagonal(self, kernel: Functional, X: TensorType) -> tf.Tensor:
        X, structure = tf.convert_to_tensor(X), self.structure(kernel)
        found = None if structure is None else structure.explained_diagonal(as_rows(X))
        if found is None:
            return super().explained_diagonal(kernel, X)
        return tf.cast(tf.reshape(found, tf.shape(X)[:-1]), X.dtype)

    def parts(self, kernel: Functional) -> list[Block]:
        return list(boxed_parts(self._features, kernel.prior))

    def num_columns(self, kernel: Functional) -> int | None:
        """The number of columns of X: inputs, widths, and the number of the functional."""
        inputs = num_columns_of_any([(self._features, kernel.prior)])
        dims = kernel.active_dims
        is_all = isinstance(dims, slice) and dims == slice(None)
        return inputs + kernel.rows.num_added if is_all and inputs is not None else None

    def block_batches(self, kernel: Functional) -> list[BlockBatch] | None:
        blocks = flat_blocks(self._features, kernel)
        if len(blocks) < 2:
            return None
        return [StackedBlocks([block], [position]) for position, block in enumerate(blocks)]

    def settings_of(self, kernel: Functional) -> Any:
        """The settings of the prior, and the functionals."""
        return {"prior": settings_of(self._features, kernel.prior), **kernel.rows.settings()}

    def dictionary(self, kernel: Functional) -> Dictionary | None:
        return FunctionalDictionary.of(self._features, kernel)
