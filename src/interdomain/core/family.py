"""The protocol of a family: what its inducing variables answer, and what they do by default."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias, TypeGuard

import gpflow
import tensorflow as tf
from check_shapes import Shape
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum

from .._arguments import Array
from ..linalg import Full, StructuredOperator
from .columns import num_columns
from .decomposed import DecomposedKernel
from .diagonals import DiagonalTerm
from .feature_sums import FeatureSums, sums_of_features

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


class InterDomainInducingVariables(gpflow.inducing_variables.InducingVariables, abc.ABC):
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

    def Kuf(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """The covariances of u and f, ``[M, batch..., N]`` for X ``[batch..., N, D]``.

        :raises ValueError: If there are none with this kernel.
        """
        raise_no_covariance(self, kernel)

    def Kuu(self, kernel: Any, *, jitter: float = 0.0) -> StructuredOperator:
        """The covariance of u, as an operator ``[M, M]`` that keeps its structure.

        By default the dense matrix that is registered with GPflow's ``Kuu``.

        :param jitter: Is added where a matrix of M rows (or of those of a block) is factorised.
        :raises ValueError: If there is none with this kernel.
        """
        if Kuu.dispatch(type(self), type(kernel)) is Kuu.dispatch(
            InterDomainInducingVariables, Kernel
        ):
            raise_no_covariance(self, kernel)
        return Full(Kuu(self, kernel, jitter=jitter))

    def dense_Kuu(self, kernel: Any, jitter: float) -> tf.Tensor:
        """Kuu for consumers that need a matrix; ``jitter`` is added as GPflow asks."""
        return with_jitter(self.Kuu(kernel).to_dense(), jitter, relative=self.relative_jitter)

    def Kuf_in_domain(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """Kuf at rows that are in the :meth:`domain`, ``[M, N]``, without what only rows outside
        need: it does not depend on parameters that matter only there."""
        return Kuf(self, kernel, X)

    def sums(
        self, kernel: Any, X: TensorType, weights: TensorType | None, targets: TensorType
    ) -> FeatureSums:
        """The sums over rows of products of features, with gradients; by default of dense ones.

        :param X: ``[n, D]``, in the domain.
        :param weights: ``[n, L]``, not negative; None for ones.
        :param targets: ``[n, T]``.
        """
        return sums_of_features(self.Kuf_in_domain(kernel, X), weights, targets)

    def explained(self, kernel: Any, X: TensorType, X2: TensorType | None) -> tf.Tensor | None:
        """``Kfu Kuu^{-1} Kuf``, what the features explain of a kernel, in the shape of
        ``kernel.K(X, X2)``; X and X2 have all their columns. None, the default, where it takes the
        features and a root of Kuu."""
        return None

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

    def is_subset_of(self, others: Any) -> bool:
        """Whether all of these features are features of others, an object of the same class; by
        default it is not known that they are."""
        return False

    def complaints(self, kernel: Any, finite: bool) -> list[str]:
        """What is wrong with the features and their kernel after training, as messages; by default
        nothing is known to be.

        :param finite: Whether they are all that the prior has of the kernel.
        """
        return []


class DecomposedInducingVariables(InterDomainInducingVariables, abc.ABC):
    """Independent blocks of inducing variables, one for each summand of a kernel.

    The kernel is a ``gpflow.kernels.Sum`` or a :class:`interdomain.kernels.DecomposedKernel`.
    """

    @property
    @abc.abstractmethod
    def inducing_variables(self) -> Sequence[InducingVariables | None]:
        """One block per summand, in the order of ``kernel.kernels``; None for a summand without."""


def summands(kernel: Kernel) -> Sequence[Kernel]:
    """The parts of a kernel that is a sum, or says by a method of this name what it is a sum of;
    none of any other."""
    is_sum = isinstance(kernel, (Sum, DecomposedKernel))
    parts: Sequence[Kernel] = kernel.kernels if is_sum else ()
    return kernel.summands() if hasattr(kernel, "summands") else parts


def pair_blocks(inducing_variable: DecomposedInducingVariables, kernel: Kernel) -> list[Block]:
    """Each block with its summand; summands without inducing variables are left out.

    :raises ValueError: If there is not one block per summand.
    """
    blocks, kernels = inducing_variable.inducing_variables, summands(kernel)
    if len(blocks) != len(kernels):
        raise ValueError(
            f"inducing_variables has {len(blocks)} blocks, but the kernel is a sum of "
            f"{len(kernels)} (gpflow flattens sums of sums); pass one block per summand."
        )
    pairs = zip(blocks, kernels, strict=True)
    return [(block, summand) for block, summand in pairs if block is not None]


def flat_blocks(inducing_variable: InducingVariables, kernel: Kernel) -> list[Block]:
    """All blocks, those of sums inside sums included; what is not a sum is one block.

    :raises ValueError: If a sum does not have one block per summand.
    """
    is_sum = isinstance(inducing_variable, DecomposedInducingVariables)
    if not is_sum or not summands(kernel):
        return [(inducing_variable, kernel)]
    return [
        flat
        for block, summand in pair_blocks(inducing_variable, kernel)
        for flat in flat_blocks(block, summand)
    ]


def answers(
    inducing_variable: InducingVariables, kernel: Kernel
) -> TypeGuard[InterDomainInducingVariables]:
    """Whether a family's methods know a pair; GPflow's dispatchers may know others."""
    is_family = isinstance(inducing_variable, InterDomainInducingVariables)
    return is_family and isinstance(kernel, inducing_variable.kernels)


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


def raise_no_covariance(inducing_variable: InducingVariables, kernel: Kernel) -> NoReturn:
    """:raises ValueError: Always, with what to use instead."""
    name, kernel_name = type(inducing_variable).__name__, type(kernel).__name__
    if isinstance(kernel, gpflow.kernels.MultioutputKernel):
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
        remedy = "use a kernel of the family that the inducing variable belongs to"
    raise ValueError(
        f"kernel: there is no covariance between {name} and {kernel_name}; {remedy}, see "
        f"help(interdomain.inducing_variables.{name})."
    )
