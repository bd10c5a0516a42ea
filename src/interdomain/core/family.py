"""The protocol of a family: what its inducing variables answer, and what they do by default."""

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
    from .structures import FeatureStructure

Block: TypeAlias = tuple[InducingVariables, Kernel]


class Domain(NamedTuple):
    """A box, its ends included, in the columns that a kernel sees.

    :ivar lower: ``[D]``.
    :ivar upper: ``[D]``.
    :ivar repeats: Whether the prior repeats outside, so that no model should be trained on data
        there.
    :ivar remedy: What to do about rows outside, for messages.
    """

    lower: Array
    upper: Array
    repeats: bool = False
    remedy: str = "build the features with a wider one"


class FeatureSums(NamedTuple):
    """Sums over some rows, in float64; those of all rows are their sums.

    :ivar gram: The sum of ``w phi phi^T``, ``[M, M]``; ``[L, M, M]`` for L columns of weights.
    :ivar products: The sum of ``phi t^T``, ``[M, T]``, without weights.
    """

    gram: tf.Tensor
    products: tf.Tensor


class BlockBatch(abc.ABC):
    """Blocks of equal size that can share their algebra.

    :param positions: Where each block stands in the order of all blocks.
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
    """Inducing variables that are not values of f at points: the class that a family derives.

    A family says which kernels it has covariances with (:attr:`kernels`), and what these are, by
    :meth:`Kuf` and :meth:`Kuu`. Everything else follows, structure included: GPflow's ``Kuf`` and
    ``Kuu``, posterior and KL divergence in ``gpflow.models.SVGP``, and the models of this library.
    (``gpflow.models.SGPR`` factorises the dense Kuu; for regression,
    :class:`interdomain.models.StructuredSGPR` keeps the structure.) The other methods are for what
    a family can do in a shorter way than by dense features. Kernels of finite rank, sums, products
    and several outputs of a family's kernels need nothing of it. Another kernel can be registered
    with GPflow's ``Kuf`` and ``Kuu``.

    The class does not derive from :class:`gpflow.inducing_variables.InducingPoints`: subclasses
    would inherit its covariances (kernel values between points) without a warning.
    """

    kernels: ClassVar[tuple[type[Kernel], ...]] = (Kernel,)
    """The classes of kernels that the methods know."""

    fitting_kernels: ClassVar[str] = ""
    """Which kernels a message names for another one; by default the classes of :attr:`kernels`."""

    relative_jitter: ClassVar[bool] = False
    """Whether jitter is relative to the diagonal of Kuu, as the scale of u is arbitrary."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Which features these are is said once: sums over rows and compiled functions that were
        made with them would not notice another value. Parameters take one by ``assign``.

        :raises AttributeError: If an attribute that is no parameter or module gets another value.
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
        """``(M, None, 1)``: X may have more columns than the kernel sees, and what u belongs to
        need not be in the space of X. M is None if only a graph knows it."""
        size = self.num_inducing
        return (size if isinstance(size, int) else None, None, 1)

    @abc.abstractmethod
    def Kuf(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """The covariances of u and f, ``[M, batch..., N]`` for X ``[batch..., N, D]``."""

    @abc.abstractmethod
    def Kuu(self, kernel: Any, *, jitter: float = 0.0) -> StructuredOperator:
        """The covariance of u, as an operator ``[M, M]`` that keeps its structure.

        :param jitter: What is added where a matrix of M rows (or of those of a block) is
            factorised.
        """

    def dense_Kuu(self, kernel: Any, jitter: float) -> tf.Tensor:
        """Kuu for consumers that need a matrix; ``jitter`` is added as GPflow asks."""
        return with_jitter(self.Kuu(kernel).to_dense(), jitter, relative=self.relative_jitter)

    def Kuf_in_domain(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """Kuf at rows that are in the :meth:`domain`, ``[M, N]``, without what only rows outside
        need: it does not depend on parameters that matter only there."""
        return self.Kuf(kernel, X)

    def sums(
        self, kernel: Any, X: TensorType, weights: TensorType | None, targets: TensorType
    ) -> FeatureSums:
        """The sums over rows of products of features, with gradients; by default of dense ones.

        :param X: ``[n, D]``, in the domain.
        :param weights: ``[n, L]``, not negative; None for ones.
        :param targets: ``[n, T]``.
        """
        features = tf.cast(self.Kuf_in_domain(kernel, X), tf.float64)
        products = tf.matmul(features, tf.cast(targets, tf.float64))
        if weights is None:
            return FeatureSums(gram_of(features), products)
        roots = tf.sqrt(tf.linalg.matrix_transpose(tf.cast(weights, tf.float64)))
        grams = [gram_of(features * root) for root in tf.unstack(roots)]
        return FeatureSums(tf.stack(grams), products)

    def structure(self, kernel: Any) -> FeatureStructure | None:
        """The structure by which sums over rows take less than :meth:`sums` and dense matrices;
        None, the default, if there is none."""
        return None

    def whitened_features(self, kernel: Any, *inputs: TensorType) -> list[tf.Tensor]:
        """``A = R^{-1} Kuf`` at each of the inputs ``[batch..., N, D]``, ``[M, batch..., N]``. R is
        the root of Kuu, which is factorised once, if it has to be."""
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
        """``Kfu Kuu^{-1} Kuf``, what the features explain of a kernel, in the shape of
        ``kernel.K(X, X2)``; by default from the :meth:`whitened_features`.

        :param X: Rows with all their columns, and so is X2.
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
        """The diagonal of :meth:`explained` as terms: a function of rows ``[..., N, D]``, and one
        without arguments, of the factor that all rows share. None, the default, where it takes the
        features."""
        return None

    def domain(self, kernel: Any) -> Domain | None:
        """The box that the features are made for, in the columns that the kernel sees; None, the
        default, if there is no end. Outside, Kuf may be different, or carry little information."""
        return None

    def parts(self, kernel: Any) -> list[Block]:
        """The pairs that may have a domain each, for some of the columns of X; by default this."""
        return [(self, kernel)]

    def num_columns(self, kernel: Any) -> int | None:
        """The number of columns of X that the features are made for, by default the kernel's
        ``input_dim``; None where nothing determines it, as with ``active_dims``, which select from
        any number."""
        return num_columns(kernel, getattr(kernel, "input_dim", None))

    def block_batches(self, kernel: Any) -> list[BlockBatch] | None:
        """The independent blocks, those that can be computed at once together; None for one."""
        return None

    def settings_of(self, kernel: Kernel) -> Any:
        """What ``Kuf`` takes from a kernel, besides the values of its parameters: numbers, text,
        arrays, modules, or mappings of these. Statistics are for models in which it is the same.

        By default the kernel, which stands for its class and all of its settings.
        """
        return kernel

    def dictionary(self, kernel: Any) -> Dictionary | None:
        """The orthogonal features from which these are taken, so that others can be chosen among
        them; None, the default, if there are no such."""
        return None

    def is_subset_of(self, others: Any) -> bool:
        """Whether all of these features are features of others, an object of the same class; by
        default it is not known that they are."""
        return False


def is_subset(some: InducingVariables, features: InducingVariables) -> bool:
    """Whether all features of one inducing variable are features of another, where a family knows
    how to compare them."""
    if not isinstance(some, InterDomainInducingVariables):
        return False
    alike = isinstance(features, type(some)) or isinstance(some, type(features))
    return alike and some.is_subset_of(features)


def with_jitter(matrix: tf.Tensor, jitter: float, *, relative: bool = False) -> tf.Tensor:
    """The matrix with ``jitter`` added to its diagonal, or that many times the diagonal."""
    diagonal = tf.linalg.diag_part(matrix)
    added = diagonal * (1 + jitter) if relative else diagonal + tf.cast(jitter, matrix.dtype)
    return tf.linalg.set_diag(matrix, added)


_LARGE = 400  # features from which on half of their products takes less time, through NumPy


@tf.custom_gradient
def gram_of(features: tf.Tensor) -> Any:
    """``F F^T`` of F ``[M, n]``. Its gradient is one product, where TensorFlow has two."""

    def product(values: Array) -> Array:
        # NumPy knows that this is symmetric, and computes half of it.
        with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for these
            return values @ values.T

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return tf.matmul(upstream + tf.linalg.matrix_transpose(upstream), features)

    if (features.shape[0] or _LARGE) < _LARGE:
        return tf.matmul(features, features, transpose_b=True), gradient
    gram = numpy_function(product, [features], features.dtype)
    return tf.ensure_shape(gram, [features.shape[0]] * 2), gradient
