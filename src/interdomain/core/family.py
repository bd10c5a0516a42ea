"""The protocol of a family: the methods of its inducing variables, with their defaults."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf
from check_shapes import Shape
from gpflow.base import TensorType
from gpflow.config import default_jitter
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array
from .._tracing import numpy_function
from ..linalg import StructuredOperator
from .columns import num_columns, with_columns
from .diagonals import DiagonalTerm

if TYPE_CHECKING:
    from .dictionaries import Dictionary
    from .functionals import LinearFunctional, Places
    from .structures import FeatureStructure

Block: TypeAlias = tuple[InducingVariables, Kernel]


class Domain(NamedTuple):
    """A box that includes its ends, in the columns that a kernel uses.

    :ivar lower: The lower ends, ``[D]``.
    :ivar upper: The upper ends, ``[D]``.
    :ivar repeats: Whether the prior repeats outside. No model should then be trained on rows
        outside.
    :ivar remedy: What to do about rows outside, for messages.
    :ivar continues: Whether f continues outside, as past a pole. Means and slopes of rows inside
        are then defined.
    """

    lower: Array
    upper: Array
    repeats: bool = False
    remedy: str = "build the features with a wider one"
    continues: bool = False


class FeatureSums(NamedTuple):
    """Sums over some rows, in float64; the sums of several sets of rows can be added.

    :ivar gram: The sum of ``w phi phi^T``, ``[M, M]``; ``[L, M, M]`` for L columns of weights.
    :ivar products: The sum of ``phi t^T``, ``[M, T]``, without weights.
    """

    gram: tf.Tensor
    products: tf.Tensor


class BlockBatch(abc.ABC):
    """Blocks of equal size that are computed together.

    :param positions: The position of each block in the order of all blocks.
    """

    def __init__(self, positions: Sequence[int]) -> None:
        self.positions = tuple(positions)

    @abc.abstractmethod
    def features(self, X: TensorType) -> tf.Tensor:
        """Kuf of each block, ``[T, m, N]``, for X ``[N, D]``."""

    @abc.abstractmethod
    def operator(self, jitter: float) -> StructuredOperator:
        """Kuu of each block, as an operator ``[T, m, m]``."""


class InterDomainInducingVariables(InducingVariables, abc.ABC):
    """Base class of all families: inducing variables that are not values of f at points.

    A family declares its kernels (:attr:`kernels`), and defines the covariances by :meth:`Kuf` and
    :meth:`Kuu`. Everything else has a default that keeps the structure: GPflow's ``Kuf`` and
    ``Kuu``, posterior and KL divergence in ``gpflow.models.SVGP``, and the models of this library.
    (``gpflow.models.SGPR`` factorises the dense Kuu; for regression,
    :class:`interdomain.models.StructuredSGPR` keeps the structure.) Override another method if the
    family has a cheaper formula than dense features. Kernels of finite rank, sums, products and
    several outputs of the family's kernels work without further methods. Another kernel can be
    registered with GPflow's ``Kuf`` and ``Kuu``.

    The class does not derive from :class:`gpflow.inducing_variables.InducingPoints`: subclasses
    would silently inherit its covariances (kernel values between points).
    """

    kernels: ClassVar[tuple[type[Kernel], ...]] = (Kernel,)
    """The classes of kernels that the methods support."""

    fitting_kernels: ClassVar[str] = ""
    """The kernels that an error message recommends; by default the classes of :attr:`kernels`."""

    relative_jitter: ClassVar[bool] = False
    """Whether jitter is relative to the diagonal of Kuu, because the scale of u is arbitrary."""

    is_sparse: ClassVar[bool] = False
    """Whether few features are nonzero at a row, so that no dense covariances are made."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute once. Sums over rows and compiled functions depend on the features, and
        would not notice another value. Parameters can change, by ``assign``.

        :raises AttributeError: If an attribute is replaced, unless it is a parameter or a module.
        """
        present = vars(self).get(name, value)
        settled = not isinstance(present, (tf.Module, tf.Variable))
        if settled and present is not value and not name.startswith("_"):
            raise AttributeError(
                f"{name} of {type(self).__name__} cannot be replaced; make another one."
            )
        super().__setattr__(name, value)

    @property
    def shape(self) -> Shape:
        """``(M, None, 1)``: X may have more columns than the kernel uses, and u need not belong to
        the space of X. M is None if it is not known statically."""
        size = self.num_inducing
        return (size if isinstance(size, int) else None, None, 1)

    @abc.abstractmethod
    def Kuf(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """The covariances of u and f, ``[M, batch..., N]`` for X ``[batch..., N, D]``."""

    @abc.abstractmethod
    def Kuu(self, kernel: Any, *, jitter: float = 0.0) -> StructuredOperator:
        """The covariance of u, as an operator ``[M, M]`` that keeps its structure.

        :param jitter: The jitter to add if a matrix of M rows (or of a block's rows) is factorised.
            A diagonal operator may ignore it.
        """

    def dense_Kuu(self, kernel: Any, jitter: float) -> tf.Tensor:
        """Kuu as a dense matrix, for code that needs one; ``jitter`` is added to the diagonal."""
        return with_jitter(self.Kuu(kernel).to_dense(), jitter, relative=self.relative_jitter)

    def Kuf_in_domain(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """Kuf at rows that are inside the :meth:`domain`, ``[M, N]``. Override it to skip checks
        and computations that only rows outside require."""
        return self.Kuf(kernel, X)

    def acted_Kuf(
        self, kernel: Any, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        """The covariances of u and a functional of f at places, ``[M, n]``, in closed form; None,
        the default, to apply the functional to :meth:`Kuf` by quadrature or differentiation.

        :param functional: One that is no sum, and no :class:`interdomain.functionals.Value`.
        """
        return None

    def acted_Kuf_in_domain(
        self, kernel: Any, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        """The result of :meth:`acted_Kuf` for places whose functionals need f only inside of the
        :meth:`domain`. Override it to skip computations for other places."""
        return self.acted_Kuf(kernel, functional, places)

    def sums(
        self, kernel: Any, X: TensorType, weights: TensorType | None, targets: TensorType
    ) -> FeatureSums:
        """The sums over rows of products of features, with gradients; by default of dense features.

        :param X: Rows ``[n, D]`` inside the domain.
        :param weights: Nonnegative weights ``[n, L]``; None for ones.
        :param targets: Targets ``[n, T]``.
        """
        features = tf.cast(self.Kuf_in_domain(kernel, X), tf.float64)
        products = tf.matmul(features, tf.cast(targets, tf.float64))
        if weights is None:
            return FeatureSums(gram_of(features), products)
        roots = tf.sqrt(tf.linalg.matrix_transpose(tf.cast(weights, tf.float64)))
        grams = [gram_of(features * root) for root in tf.unstack(roots)]
        return FeatureSums(tf.stack(grams), products)

    def structure(self, kernel: Any) -> FeatureStructure | None:
        """The structure by which sums over rows cost less than :meth:`sums` and dense matrices;
        None, the default, if there is no such structure."""
        return None

    def whitened_features(self, kernel: Any, *inputs: TensorType) -> list[tf.Tensor]:
        """``A = R^{-1} Kuf`` at each of the inputs ``[batch..., N, D]``, ``[M, batch..., N]``. R is
        the root of Kuu, which is factorised at most once."""
        root = self.Kuu(kernel, jitter=default_jitter()).root()
        whitened = []
        for X in inputs:
            features = self.Kuf(kernel, with_columns(X, self.num_columns(kernel)))
            if features.shape.rank == 2:
                whitened.append(root.solve(features))
                continue
            columns = tf.reshape(features, [tf.shape(features)[0], -1])
            whitened.append(tf.reshape(root.solve(columns), tf.shape(features)))
        return whitened

    def explained(self, kernel: Any, X: TensorType, X2: TensorType | None) -> tf.Tensor:
        """``Kfu Kuu^{-1} Kuf``, the part of a kernel that the features explain, in the shape of
        ``kernel.K(X, X2)``; by default computed from the :meth:`whitened_features`.

        :param X: Rows with all their columns; X2 has all columns too.
        """
        if X2 is None:
            (A,) = self.whitened_features(kernel, X)
            return tf.einsum("m...i,m...j->...ij", A, A)
        return tf.tensordot(*self.whitened_features(kernel, X, X2), [[0], [0]])

    def explained_diagonal(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """The diagonal of :meth:`explained` at X, ``[batch..., N]``."""
        (A,) = self.whitened_features(kernel, X)
        return tf.reduce_sum(tf.square(A), axis=0)

    def explained_terms(self, kernel: Any) -> list[DiagonalTerm] | None:
        """The diagonal of :meth:`explained` as terms. A term is a function of rows ``[..., N, D]``
        and a function without arguments, which returns the factor that all rows share. None, the
        default, if the diagonal requires the features."""
        return None

    def domain(self, kernel: Any) -> Domain | None:
        """The box for which the features are built, in the columns that the kernel uses; None, the
        default, if it is unbounded. Outside, Kuf may differ or carry little information."""
        return None

    def parts(self, kernel: Any) -> list[Block]:
        """The inducing variables with kernels that may have a domain each; by default one pair."""
        return [(self, kernel)]

    def num_columns(self, kernel: Any) -> int | None:
        """The number of columns of X for which the features are built, by default the kernel's
        ``input_dim``. None if it is undetermined, such as with ``active_dims``, which select from
        any number of columns."""
        return num_columns(kernel, getattr(kernel, "input_dim", None))

    def block_batches(self, kernel: Any) -> list[BlockBatch] | None:
        """The independent blocks of u, in batches computed together; None for a single block."""
        return None

    def settings_of(self, kernel: Kernel) -> Any:
        """The settings of a kernel on which ``Kuf`` depends, other than the values of parameters:
        numbers, text, arrays, modules, or mappings of these. Statistics can be used in models with
        equal settings. By default the kernel, which stands for its class and all of its settings.
        """
        return kernel

    def dictionary(self, kernel: Any) -> Dictionary | None:
        """The orthogonal dictionary that contains these features, from which other features can be
        chosen; None, the default, if there is no dictionary."""
        return None

    def is_subset_of(self, others: Any) -> bool:
        """Whether all of these features are features of ``others``, an object of the same class.
        The default is False, which also stands for unknown."""
        return False


def is_subset(some: InducingVariables, features: InducingVariables) -> bool:
    """Whether all features of one inducing variable are features of another; False if the family
    has no comparison."""
    if not isinstance(some, InterDomainInducingVariables):
        return False
    alike = isinstance(features, type(some)) or isinstance(some, type(features))
    return alike and some.is_subset_of(features)


def with_jitter(matrix: tf.Tensor, jitter: float, *, relative: bool = False) -> tf.Tensor:
    """The matrix with ``jitter``, or with ``jitter`` times the diagonal, added to its diagonal."""
    diagonal = tf.linalg.diag_part(matrix)
    added = diagonal * (1 + jitter) if relative else diagonal + tf.cast(jitter, matrix.dtype)
    return tf.linalg.set_diag(matrix, added)


_LARGE = 400  # for this number of features or more, NumPy's half of the products is quicker


@tf.custom_gradient
def gram_of(features: tf.Tensor) -> Any:
    """``F F^T`` for F ``[M, n]``. Its gradient is one product; TensorFlow's would be two."""

    def product(values: Array) -> Array:
        # NumPy recognises that the product is symmetric, and computes one half.
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks for both
            return values @ values.T

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return tf.matmul(upstream + tf.linalg.matrix_transpose(upstream), features)

    if (features.shape[0] or _LARGE) < _LARGE:
        return tf.matmul(features, features, transpose_b=True), gradient
    gram = numpy_function(product, [features], features.dtype)
    return tf.ensure_shape(gram, [features.shape[0]] * 2), gradient
