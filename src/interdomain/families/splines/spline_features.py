"""B-spline features of a box: inducing variables of Matern kernels and their products."""

from __future__ import annotations

import math
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel, Product

from ..._arguments import (
    TIMES,
    Array,
    as_integers,
    check_size,
    filled_matrix,
    integer,
    number,
    refusal,
    short,
)
from ...core.columns import as_rows, num_columns
from ...core.domains import check_box
from ...core.family import Block, Domain, InterDomainInducingVariables
from ...core.finite_rank import base_of
from ...core.functionals import LinearFunctional, Places
from ...core.matern import MATERNS, matern_order, validate_one_lengthscale
from ...linalg.banded import KroneckerBanded
from ...linalg.spline_grid import SplineGrid
from ...sums.splines import Splines
from .acted import acted_grid
from .column import EPS, SplineColumn

_MOST_COLUMNS = 3
_COPIES = 8
"""Numbers in memory for each entry of the precision: of its factors, inverse and indices."""
_REMEDY = (
    "pass a product of Matern kernels, one for each column: gpflow.kernels.Matern32(active_dims="
    "[0]) * gpflow.kernels.Matern32(active_dims=[1])"
)


_LOST = 0.01
"""The largest rounding error of a row's place in a cell."""

_EXACT = 2.0**53
"""The least number above which float64 leaves out integers."""


def _check_digits(lower: Array, upper: Array, cells: Array) -> None:
    """Check that rows in the box keep their digits, such as nanoseconds do not; a ValueError
    otherwise."""
    dtype, largest = gpflow.default_float(), np.maximum(np.abs(lower), np.abs(upper))
    errors = np.finfo(dtype).eps * largest / ((upper - lower) / cells)
    far = np.flatnonzero((largest >= _EXACT) | (errors > _LOST))
    if len(far):
        rule = (
            f"be near zero in units of the cells, so that {np.dtype(dtype).name} keeps the digits"
        )
        found = (
            f"a box from {lower[far[0]]:.10g} to {upper[far[0]]:.10g} of {cells[far[0]]:,} cells"
        )
        raise refusal("lower", rule, found, f"subtract the start; {TIMES}")


class SplineFeatures(InterDomainInducingVariables):
    """Projections of f on B-splines of a box, for Matern kernels and their products.

    ``u_m = <f, B_m>`` in the RKHS of a Matern-1/2, 3/2 or 5/2 kernel on [lower, upper]. The B_m are
    uniform B-splines (Cunningham, de Souza and Hensman, *Actually Sparse Variational Gaussian
    Processes*, 2023, sections 3 and 4). For two or three columns, the kernel is a product of Matern
    kernels, one for each column, and B_m is a product of splines. ``Kuf`` is ``B_m(x)``, which does
    not depend on the kernel. At any x, ``degree + 1`` splines of a column are nonzero. ``Kuu`` is a
    Kronecker product of banded matrices.

    :class:`interdomain.models.StructuredSGPR` and :class:`interdomain.models.DualSVGP` build no
    M x M matrix, so tens of thousands of features take seconds and resolve local variation. In
    ``gpflow.models.SVGP``, q is dense, which limits the number of features.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[2000, 2])
    >>> Y = np.sin(30 * X[:, :1]) * X[:, 1:]
    >>> factors = [gpflow.kernels.Matern32(lengthscales=0.2, active_dims=[d]) for d in (0, 1)]
    >>> kernel = factors[0] * factors[1]
    >>> splines = idm.inducing_variables.SplineFeatures.from_data(X, num=[40, 20], degree=2)
    >>> splines.num_inducing
    800
    >>> model = idm.models.StructuredSGPR((X, Y), kernel, splines, noise_variance=0.01)
    >>> fitted = idm.fit(model, steps=3, progress=False)
    >>> mean, variance = model.predict_f(X[:5])

    If a lengthscale spans a few cells or more, :meth:`unexplained_share` is small.

    :param lower: The lower end of the box: a number for one column, or ``[D]``.
    :param upper: The upper end of the box. Rows outside the box are an error.
    :param num: The number of splines in each column, ``degree + 1`` or more: one number for all
        columns, or D numbers. M is the product over the columns.
    :param degree: The degree of the splines: 1 or more for Matern-1/2, 2 for Matern-3/2, 3 for
        Matern-5/2. A higher degree gives smoother functions and takes more time.
    :ivar lower: The lower end of the box, ``[D]``; ``upper`` and ``num`` also have D entries.
    :raises ValueError: If the box is empty, not finite or of more than three columns; if a number
        is too small; or if the precision of the features does not fit in memory.
    """

    kernels = (*MATERNS, Product)
    is_sparse = True
    fitting_kernels = "Matern12, Matern32, Matern52 or a product of one for each column"

    def __init__(
        self,
        lower: TensorType,
        upper: TensorType,
        num: Any,
        degree: int,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self.lower, self.upper = check_box(lower, upper)
        self.degree = integer("degree", degree, at_least=1)
        width = len(self.lower)
        if width > _MOST_COLUMNS:
            raise ValueError(
                f"lower must have at most {_MOST_COLUMNS} columns, found {width}; add up splines "
                "of few columns each by SumInducingVariables, or pass BoxFourierFeatures."
            )
        numbers = as_integers("num", num, "pass one number, or one for each column")
        self.num = numbers * width if len(numbers) == 1 else numbers
        if len(self.num) != width or min(self.num) <= self.degree:
            remedy = f"the box has {width} column" + "s" * (width > 1) + ", by lower and upper"
            rule = f"have an integer of degree + 1 = {self.degree + 1} or more for each column"
            raise refusal("num", rule, short(num), remedy)
        _check_digits(self.lower, self.upper, np.subtract(self.num, self.degree))
        size = math.prod(self.num)
        entries = size * (2 * self.degree + 1) ** width
        check_size("num", f"the precision of {size:,} splines", _COPIES * entries)

    @classmethod
    def from_data(
        cls, X: TensorType, num: Any, degree: int, *, margin: float = 0.01
    ) -> SplineFeatures:
        """Make features on a box around the data.

        :param X: ``[N, D]``, finite, with the columns of the kernel only, in its order.
        :param margin: The margin of the box on either side of the data, as a multiple of the range
            of the data, 0 or more. Rows to predict must also be inside the box.
        :raises ValueError: If an argument is not as above, or X does not vary.
        """
        values = filled_matrix("X", X, "a matrix [N, D]")
        reach = number("margin", margin, at_least=0) * np.ptp(values, axis=0)
        return cls(np.min(values, axis=0) - reach, np.max(values, axis=0) + reach, num, degree)

    @property
    def num_inducing(self) -> int:
        return math.prod(self.num)

    def _factors(self, kernel: Kernel) -> list[Kernel]:
        """The Matern kernel of each column; a ValueError for other kernels."""
        factors = list(kernel.kernels) if isinstance(kernel, Product) else [kernel]
        if len(factors) != len(self.num) or not all(isinstance(part, MATERNS) for part in factors):
            names = " * ".join(type(part).__name__ for part in factors)
            rule = f"be a product of {len(self.num)} Matern kernels, one for each column of the box"
            raise refusal("kernel", rule, names, _REMEDY)
        for part in factors:
            validate_one_lengthscale(part, _REMEDY)
            least = matern_order(part) + 1
            if self.degree < least:
                raise ValueError(
                    f"degree must be at least {least} for {type(part).__name__}, whose functions "
                    f"are smoother than splines of degree {self.degree}; make new features."
                )
        return factors

    def columns(self, kernel: Kernel) -> list[int]:
        """The column of X of each factor of a kernel; a ValueError unless each factor has one
        column and all columns differ."""
        columns, selected = [], [part.active_dims for part in self._factors(kernel)]
        for dims in selected:
            if isinstance(dims, slice):
                alone = dims == slice(None) and len(self.num) == 1
                dims = [0] if alone else range(dims.stop or 0)[dims]
            columns.append(int(dims[0]) if len(dims) == 1 else -1)
        if min(columns) < 0 or len(set(columns)) < len(columns):
            rule = "have one column of X for each factor, all different"
            raise refusal("kernel", rule, f"those of active_dims {selected}", _REMEDY)
        return columns

    def structure(self, kernel: Kernel) -> Splines:
        """The structure of splines on a grid."""
        return Splines([(self, kernel)], 0)

    def grid(self, kernel: Kernel) -> SplineGrid:
        """The grid of the splines, in columns of X."""
        cells = np.array(self.num) - self.degree
        steps = (self.upper - self.lower) / cells
        columns = np.array(self.columns(kernel))
        return SplineGrid(columns, self.lower, steps, self.num, self.degree)

    def acted_grid(self, kernel: Kernel, functional: LinearFunctional) -> SplineGrid | None:
        """The grid of the splines under a functional, if it is the same for all rows, else None."""
        return acted_grid(self.grid(kernel), functional)

    def settings_of(self, kernel: Kernel) -> Any:
        """The columns of the kernel's factors, as settings."""
        return {"columns": self.columns(base_of(kernel))}

    def num_columns(self, kernel: Kernel) -> int | None:
        """The number of columns of X for a box of one column; None if factors select columns."""
        return num_columns(kernel, 1) if len(self.num) == 1 else None

    def parts(self, kernel: Kernel) -> list[Block]:
        """The splines of each column, paired with the kernel's factor for that column."""
        if not isinstance(kernel, Product):
            return [(self, kernel)]
        parts = zip(self.lower, self.upper, self.num, self._factors(kernel), strict=True)
        return [(SplineFeatures(a, b, count, self.degree), part) for a, b, count, part in parts]

    def domain(self, kernel: Kernel) -> Domain:
        """The box of the splines."""
        remedy = (
            "make the features with a wider one, by SplineFeatures(lower, upper, ...) or a greater "
            "margin of from_data"
        )
        return Domain(self.lower, self.upper, remedy=remedy)

    def Kuf(self, kernel: Kernel, X: TensorType) -> tf.Tensor:
        """The splines at X; they depend on no parameter.

        :raises ValueError: If rows are outside the box; in a graph an InvalidArgumentError.
        """
        X = tf.convert_to_tensor(X)
        grid = self.grid(kernel)
        dense = grid.dense(grid.in_box(as_rows(X)))
        shape = tf.concat([[self.num_inducing], tf.shape(X)[:-1]], axis=0)
        return tf.cast(tf.reshape(dense, shape), X.dtype)

    def Kuf_in_domain(self, kernel: Kernel, X: TensorType) -> tf.Tensor:
        """The splines at X, without a check that rows are in the box."""
        return tf.cast(self.grid(kernel).dense(X), tf.convert_to_tensor(X).dtype)

    def acted_Kuf(
        self, kernel: Kernel, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        """The functional of the splines, exactly; None for regions of points.

        :raises ValueError: If rows, or the boxes of means, are outside of the box; in a graph an
            InvalidArgumentError.
        """
        grid = acted_grid(self.grid(kernel), functional, places)
        if grid is None:
            return None
        return tf.cast(grid.dense(grid.in_box(places.inputs)), places.inputs.dtype)

    def Kuu(self, kernel: Kernel, *, jitter: float = 0.0) -> KroneckerBanded:
        """A banded matrix for each column; ``jitter`` is not added, as float64 needs none."""
        columns = self._columns(kernel)
        stencils = [column.stencil() for column in columns]
        return KroneckerBanded(stencils, columns[0].kernel.lengthscales.dtype)

    def _columns(self, kernel: Kernel) -> list[SplineColumn]:
        """The splines of each column as a :class:`SplineColumn`, with its factor of the kernel."""
        parts = zip(self._factors(kernel), self.upper - self.lower, self.num, strict=True)
        return [
            SplineColumn(part, length, count - self.degree, self.degree)
            for part, length, count in parts
        ]

    def explained_diagonal(self, kernel: Kernel, X: TensorType) -> tf.Tensor:
        """The explained variance at X, from the entries of the inverse of Kuu within its bands."""
        inverse = self.Kuu(kernel).inverse()
        X = tf.convert_to_tensor(X)
        grid = self.grid(kernel)
        values = grid.quadratic(inverse[None], *grid(as_rows(X)))
        return tf.cast(tf.reshape(values, tf.shape(X)[:-1]), X.dtype)

    def unexplained_share(self, kernel: Kernel) -> float:
        """The share of the prior variance that the features do not explain, a mean over the box.

        In each column, the share falls with the spacing h of the splines as ``(h / l)^min(2 nu, 2 p
        + 1 - 2 nu)``, for degree p and a Matern-nu kernel of lengthscale l. In float64, the error
        of the share, and of its term in the collapsed bound, is about ``1e-16 (l / h)^(2 nu + 1)``.
        With many splines in a lengthscale, use a :class:`~interdomain.kernels.FiniteRank` prior.
        """
        return 1 - math.prod(1 - column.share_left() for column in self._columns(kernel))

    def rounding(self, kernel: Kernel) -> float:
        """An estimate of the relative error of float64 predictions far from the data: epsilon times
        the product of the columns' condition numbers, ``(l / h)^(2 nu + 1)``."""
        return EPS * math.prod(column.condition() for column in self._columns(kernel))

    def enough(self, kernel: Kernel, share: float = 0.05) -> tuple[int, ...]:
        """The number of splines in each column that leaves about ``share`` unexplained in all."""
        columns = self._columns(kernel)
        return tuple(column.enough(share / len(columns)) for column in columns)
