"""Inducing variables that are products of features, for products of kernels."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Product

from .._arguments import IntArray, check_num_inducing, different_rows, instance, integer, short
from ..linalg import Diagonal, Full, StructuredOperator
from ..linalg.diagonal import least_eigenvalue
from .acting import acted_features
from .combined import CombinedInducingVariables, checked_list, each_once, num_inducing
from .diagonals import explained_variances
from .family import Block, is_subset, with_jitter
from .functionals import ByDegree, LinearFunctional, Places, Value
from .pairs import Kuu_operator, as_family, structure_of
from .product_choice import largest_products
from .product_rule import columns_seen, product_rule
from .structures import FeatureStructure


class ProductInducingVariables(CombinedInducingVariables):
    """Products of features, one from each factor of a product of kernels, such as space times time.

    For ``k(x, x') = prod_i k_i(x, x')``, whose factors have features with covariances ``Kuf_i`` and
    ``Kuu_i``, the feature ``(a, b, ...)`` is a product. Its factors are feature a of the first
    kernel, feature b of the second, and so on. It belongs to a process on the product of the input
    spaces; f is this process with the inputs of all factors from the same row. Therefore

    ``Kuf[(a, b, ...), n] = prod_i Kuf_i[., n]``,    ``Kuu = Kuu_1 (x) Kuu_2 (x) ...``.

    Kuu is diagonal if the Kuu of every factor is. ``gpflow.models.SVGP`` and this library's models
    then need no factorisation of Kuu (``gpflow.models.SGPR`` does), and any subset of the products
    can be used. If the features of the factors depend on no parameter, the products do not either:
    one pass of :class:`interdomain.models.StructuredSGPR` is valid for all parameters.

    The factors select their columns by ``active_dims``, usually different ones: harmonics of a
    sphere for space, waves of an interval for time. They may also share columns. For a sum, such as
    ``space + time + space * time``, use
    :class:`~interdomain.inducing_variables.SumInducingVariables` with each product as a block.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=[500, 3])
    >>> space = idm.kernels.SphericalMatern52(active_dims=[0, 1])
    >>> base = gpflow.kernels.Matern32(lengthscales=0.5)
    >>> time = idm.kernels.Periodized.from_data(base, X[:, 2:], active_dims=[2])
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(space, 2, max_degree=6)
    >>> waves = idm.inducing_variables.BoxFourierFeatures.for_kernel(time, 15)
    >>> features = idm.inducing_variables.ProductInducingVariables.for_kernel(
    ...     space * time, [harmonics, waves], 200
    ... )
    >>> features.num_inducing, harmonics.num_inducing * waves.num_inducing
    (191, 735)
    >>> type(idm.covariances.Kuu_operator(features, space * time)).__name__
    'Diagonal'
    >>> prior = idm.kernels.FiniteRank(space * time, features)
    >>> gpflow.set_trainable(space.weight_variances, False)
    >>> gpflow.set_trainable(space.bias_variance, False)
    >>> model = idm.models.StructuredSGPR((X, np.sin(3 * X[:, 2:])), prior, features)
    >>> [name for name, one in model.feature_parameters.items() if one.trainable]
    []

    If a factor has a Kuu that is not diagonal (points, features of an interval), the products have
    a dense Kuu. Its jitter is relative to its diagonal.

    :param inducing_variables: One for each factor, in the order of ``kernel.kernels``. GPflow's
        ``InducingPoints`` are allowed; they have all columns of X. GPflow flattens a product of
        products into one product: pass one inducing variable for each of its factors.
    :param members: Integers ``[M, F]``, a column for each factor: the features that each product
        multiplies. None for all products; the last factor then varies fastest.
    :ivar factors: The distinct objects among the inducing variables.
    :ivar has_all: Whether the features are all products, because ``members`` was None.
    :raises ValueError: If the list is empty, an entry is not an inducing variable, or there are too
        many products; or if members are invalid or contain a product twice.
    """

    kernels = (Product,)
    relative_jitter = True

    def __init__(
        self,
        inducing_variables: Sequence[InducingVariables],
        members: Any = None,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        factors = checked_list("inducing_variables", inducing_variables, "factor")
        self.factors, self._order = each_once(factors)
        self.has_all = members is None
        self._members: IntArray | None = None
        if members is not None:
            sizes = [int(num_inducing(factor)) for factor in factors]
            rule = f"integers [M, {len(sizes)}], a column for each factor"
            remedy = "pass the number of a feature of each factor in every row"
            places = different_rows("members", members, rule, len(sizes), remedy)
            wrong = np.flatnonzero(np.any((places < 0) | (places >= sizes), axis=1))
            if len(wrong):
                raise ValueError(
                    f"members must be integers of 0 or more, below {list(sizes)}, found "
                    f"{short(places[wrong[0]].tolist())} in row {wrong[0]}; {remedy}."
                )
            self._members = places
        size, argument = self.num_inducing, "inducing_variables" if members is None else "members"
        is_sparse = members is None and any(getattr(part, "is_sparse", False) for part in factors)
        if isinstance(size, int) and not is_sparse:  # sparse structures check their own sizes
            check_num_inducing(argument, size, "products")

    @classmethod
    def for_kernel(
        cls,
        kernel: Product,
        inducing_variables: Sequence[InducingVariables],
        num_inducing: int,
        *,
        name: str | None = None,
    ) -> ProductInducingVariables:
        """Choose the products that have the largest prior variance under the present kernel.

        They are the products with the largest ``prod_i 1 / Kuu_i``. Suppose the features are
        orthonormal over their domains, such as harmonics over the sphere or waves over their box.
        ``prod_i 1 / Kuu_i`` is then, up to a factor, the mean prior variance over the domains.

        :param inducing_variables: One for each factor, in the order of ``kernel.kernels``, with
            more features than the products are expected to use. Their Kuu must be diagonal.
        :param num_inducing: The largest number of products. Products of equal variance (such as
            the sines and cosines of a frequency times harmonics of a degree) are chosen together.
        :raises ValueError: If the kernel is not a product, or has another number of factors; if a
            Kuu is not diagonal; if ``num_inducing`` is less than 1, or less than the number of
            products of the largest variance; or for the errors of the constructor.
        """
        instance("kernel", kernel, Product, "a product of kernels", "pass first * second")
        count = integer("num_inducing", num_inducing, at_least=1)
        check_num_inducing("num_inducing", count, "products")
        a_product = cls(inducing_variables, [[0] * len(inducing_variables)])  # small, for its pairs
        variances = []
        for factor, part in a_product.pairs(kernel):
            diagonal = Kuu_operator(factor, part).sole_diagonal
            if diagonal is None:
                raise ValueError(
                    "inducing_variables must have a diagonal Kuu each if products are to be "
                    f"chosen, found {type(factor).__name__} with {type(part).__name__}; pass "
                    "ProductInducingVariables(inducing_variables), of all products."
                )
            variances.append(np.asarray(1 / diagonal, np.float64))
        if count >= math.prod(map(len, variances)):
            return cls(inducing_variables, name=name)
        return cls(inducing_variables, largest_products(variances, count), name=name)

    @property
    def inducing_variables(self) -> tuple[InducingVariables, ...]:
        """The inducing variable of each factor; several may have the same object."""
        return tuple(self.factors[i] for i in self._order if i is not None)

    @property
    def members(self) -> IntArray:
        """The features that each product multiplies, one of each factor, ``[M, F]``."""
        if self._members is not None:
            return self._members.copy()
        sizes = [int(num_inducing(factor)) for factor in self.inducing_variables]
        return np.indices(sizes).reshape([len(sizes), -1]).T

    @property
    def num_inducing(self) -> tf.Tensor | int:
        """The number M of products."""
        if self._members is not None:
            return len(self._members)
        return reduce(operator.mul, map(num_inducing, self.inducing_variables))

    def is_subset_of(self, others: ProductInducingVariables) -> bool:
        """Whether all of these products are among ``others``. If ``others`` has all products, it is
        enough that its factors contain the features of these factors."""
        pairs = list(zip(self.inducing_variables, others.inducing_variables, strict=False))
        if not len(pairs) == len(self.inducing_variables) == len(others.inducing_variables):
            return False
        if others.has_all:
            return all(factor is other or is_subset(factor, other) for factor, other in pairs)
        known = set(map(tuple, others.members.tolist()))
        same = all(factor is other for factor, other in pairs)
        return same and known.issuperset(map(tuple, self.members.tolist()))

    def pairs(self, kernel: Product) -> list[Block]:
        """Each inducing variable with its factor of the kernel.

        :raises ValueError: If the number of inducing variables differs from that of the factors.
        """
        factors = self.inducing_variables
        if len(factors) != len(kernel.kernels):
            raise ValueError(
                f"inducing_variables must have {len(kernel.kernels)} entries, one for each factor "
                f"of the kernel, found {len(factors)}; pass those of "
                f"{', '.join(type(part).__name__ for part in kernel.kernels)} (gpflow makes one "
                "product of products of products)."
            )
        return list(zip(factors, kernel.kernels, strict=True))

    def _combined(self, features: Sequence[tf.Tensor]) -> tf.Tensor:
        if self.has_all:
            return reduce(_all_products, features)
        pairs = zip(features, self.members.T, strict=True)
        return reduce(operator.mul, [tf.gather(factor, places) for factor, places in pairs])

    def _acted(
        self, kernel: Product, functional: LinearFunctional, places: Places, *, in_domain: bool
    ) -> tf.Tensor | None:
        """The functional by the product rule; None for averages of columns that factors share.
        A function of the degree acts on the only factor that has degrees."""
        pairs, inputs = self.pairs(kernel), places.inputs
        if isinstance(functional, ByDegree):
            return self._by_degree(pairs, functional, places)
        seen = [columns_seen(part, inputs) for _, part in pairs]
        terms = product_rule(functional, seen)
        if not terms:
            return None
        act = partial(acted_features, places=places, in_domain=in_domain)
        values = [
            weight * self._combined([act(*p, f) for p, f in zip(pairs, parts, strict=True)])
            for weight, parts in terms
        ]
        return tf.add_n(values)

    def _by_degree(
        self, pairs: Sequence[Block], functional: ByDegree, places: Places
    ) -> tf.Tensor | None:
        families = (as_family(*pair) for pair in pairs)
        acted = [family.acted_Kuf(kernel, functional, places) for family, kernel in families]
        if sum(features is not None for features in acted) != 1:
            return None
        values = [
            acted_features(*pair, Value(), places) if features is None else features
            for pair, features in zip(pairs, acted, strict=True)
        ]
        return self._combined(values)

    def structure(self, kernel: Product) -> FeatureStructure | None:
        """The structure of the products, if a factor or all factors have one that products can
        have, too."""
        pairs = self.pairs(kernel)
        known = [part for pair in pairs if (part := structure_of(*pair)) is not None]
        found = (part.in_all_products(pairs) for part in known if self.has_all)
        structure = next((part for part in found if part is not None), None)
        if structure is not None:
            return structure
        if len(known) < len(self.inducing_variables):
            return None
        return known[0].in_product(known[1:], self.members)

    def explained(self, kernel: Product, X: TensorType, X2: TensorType | None) -> tf.Tensor:
        """The product of what the features of each factor explain, if all products are features."""
        if not self.has_all:
            return super().explained(kernel, X, X2)
        families = (as_family(*pair) for pair in self.pairs(kernel))
        return reduce(operator.mul, [family.explained(part, X, X2) for family, part in families])

    def explained_diagonal(self, kernel: Product, X: TensorType) -> tf.Tensor:
        if not self.has_all:
            return super().explained_diagonal(kernel, X)
        families = (as_family(*pair) for pair in self.pairs(kernel))
        return reduce(operator.mul, [explained_variances(*pair, X) for pair in families])

    def Kuu(self, kernel: Product, *, jitter: float = 0.0) -> StructuredOperator:
        """A diagonal operator without ``jitter``, if the Kuu of all factors are diagonal. Otherwise
        a dense matrix plus ``jitter`` times its diagonal, because the scale of u is arbitrary.

        A feature whose prior variance underflows has no effect, and causes no NaN.
        """
        operators = [Kuu_operator(*pair) for pair in self.pairs(kernel)]
        diagonals = [d for d in (factor.sole_diagonal for factor in operators) if d is not None]
        if len(diagonals) == len(operators):
            variances = self._combined([1 / diagonal for diagonal in diagonals])
            return Diagonal(1 / tf.maximum(variances, least_eigenvalue(variances.dtype)))
        matrices = [factor.to_dense() for factor in operators]
        if self.has_all:
            factors = list(map(tf.linalg.LinearOperatorFullMatrix, matrices))
            matrix = tf.linalg.LinearOperatorKronecker(factors).to_dense()
        else:
            pairs = zip(matrices, self.members.T, strict=True)
            chosen = [tf.gather(tf.gather(K, rows), rows, axis=1) for K, rows in pairs]
            matrix = reduce(operator.mul, chosen)
        return Full(with_jitter(matrix, jitter, relative=True))


def _all_products(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    counts = [part.shape[0] or tf.shape(part)[0] for part in (first, second)]
    shape = tf.concat([[counts[0] * counts[1]], tf.shape(second)[1:]], axis=0)
    return tf.reshape(first[:, None] * second[None], shape)
